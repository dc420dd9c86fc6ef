"""Read-only SQL over the store: a DuckDB connection with one view per table, the same on disk and on S3.

pyarrow reads the committed files, with DuckDB's filters pushed down; DuckDB itself is given no directory, no network
and no credentials, so that a statement that gets past `sql_guard` has nothing to write to. `features` is the newest
version when the catalogue is opened; `features_v3` is version 3, created when a query names it. Vectors are FLOAT[].
"""

import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import MappingProxyType, TracebackType

import duckdb
import pyarrow as pa
from duckdb.func import PythonUDFType

from storage.errors import QueryError, StoreError
from storage.schemas import PROVENANCE, TABLES, TableSchema
from storage.snapshot import Snapshot
from storage.sql_guard import refuse_writes
from storage.store import Store
from storage.vectors import decode_for_sql
from storage.views import VIEWS, View

_OLD_VERSION = re.compile(r"(\w+)_v(\d+)")
_MISSING_TABLE = re.compile(r"Table with name (\w+) does not exist")
_SHARD_COLUMNS = pa.schema(
    [
        ("table", pa.string()),
        ("partition", pa.string()),
        ("shard", pa.string()),
        ("fingerprint", pa.string()),
        ("written_by", pa.string()),
        ("written_at", pa.timestamp("us", tz="UTC")),
        ("num_rows", pa.int64()),
        ("num_bytes", pa.int64()),
        ("file", pa.string()),
    ]
)


class Catalogue:
    """Run SQL: `with Catalogue(store) as catalogue: catalogue.query("SELECT ...")`."""

    def __init__(
        self,
        store: Store,
        memory_limit: str | None = None,
        more_tables: Mapping[str, pa.Table] = MappingProxyType({}),
        more_views: Sequence[View] = (),
    ) -> None:
        """Open it; with a memory limit such as "1GB", larger queries use temporary files.

        `more_tables` are added to the tables of the store, and `more_views` to the views.
        """
        self.store = store
        self._more_tables, self._more_views = more_tables, more_views
        self._broken: dict[str, StoreError] = {}
        self._spill = tempfile.TemporaryDirectory(prefix="vina-sql-")
        settings = {"memory_limit": memory_limit} if memory_limit else {}
        self._connection = duckdb.connect(":memory:", config={"temp_directory": self._spill.name, **settings})
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Catalogue":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and delete its temporary files."""
        self._connection.close()
        self._spill.cleanup()

    def query(self, statement: str) -> pa.Table:
        """Run one statement and return all rows. Raise QueryError if it is wrong or would change anything."""
        return self.stream(statement).read_all()

    def stream(self, statement: str, rows_per_batch: int = 100_000) -> pa.RecordBatchReader:
        """Run one statement and return its rows in batches; read or drop them all before the next query."""
        with self._errors():
            refuse_writes(self._connection, statement)
            while True:
                try:
                    reader = self._connection.sql(statement).to_arrow_reader(rows_per_batch)
                    break
                except duckdb.CatalogException as error:
                    if not self._show_old_version(error):
                        raise
        return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))

    def first_rows(self, statement: str, limit: int, seconds: float) -> pa.Table:
        """Run one statement and return its first `limit` rows. Raise QueryError after `seconds`."""
        is_late = threading.Event()

        def interrupt() -> None:
            is_late.set()
            self._connection.interrupt()

        timer = threading.Timer(seconds, interrupt)
        timer.start()
        try:
            batches, count = [], 0
            reader = self.stream(statement, limit)
            for batch in reader:
                batches.append(batch)
                count += len(batch)
                if count >= limit:
                    break
        except QueryError as error:
            if is_late.is_set():
                raise QueryError(f"the query took longer than {seconds:g} s and was stopped: select less") from error
            raise
        finally:
            timer.cancel()
        return pa.Table.from_batches(batches, reader.schema).slice(0, limit)

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        with self._errors():
            yield from reader

    def _prepare(self) -> None:
        connection = self._connection
        for dtype in ("float16", "float32"):
            connection.create_function(
                f"vector_{dtype}", decode_for_sql(dtype), ["BLOB"], "FLOAT[]", type=PythonUDFType.ARROW
            )
        with ThreadPoolExecutor(len(TABLES)) as pool:
            snapshots = dict(zip(TABLES, pool.map(self._snapshot, TABLES), strict=True))
        for name, snapshot in snapshots.items():
            if snapshot is not None:
                self._show(name, snapshot)
        connection.register("shards", _list_shards([s for s in snapshots.values() if s is not None]))
        for name, rows in self._more_tables.items():
            connection.register(name, rows)
        for view in (*VIEWS, *self._more_views):
            broken_tables = self._broken.keys() & set(re.findall(r"\w+", view.query))
            if broken_tables:
                self._broken[view.name] = self._broken[min(broken_tables)]
            else:
                connection.execute(f"CREATE VIEW {view.name} AS {view.query}")
        connection.execute("SET python_enable_replacements = false")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")

    def _snapshot(self, name: str) -> Snapshot | None:
        try:
            return self.store.table(name).snapshot()
        except StoreError as error:
            self._broken[name] = error
            return None

    def _show(self, view: str, snapshot: Snapshot) -> None:
        """Create a view of a snapshot: all declared columns, with vectors decoded."""
        schema = snapshot.schema
        try:
            rows = snapshot.dataset() if snapshot.shards else schema.arrow.empty_table()
            columns = ", ".join(_column(schema, name) for name in schema.arrow.names)
            self._connection.from_arrow(rows).project(columns).create_view(view)
        except duckdb.Error as error:
            self._broken[view] = StoreError(f"table {schema.name}, version {snapshot.version}: {error}")

    def _show_old_version(self, error: duckdb.CatalogException) -> bool:
        """Create the missing view that the error names, if it is an older version of a table. Return whether it was."""
        missing = _MISSING_TABLE.search(str(error))
        name = missing[1].lower() if missing else ""
        version = _OLD_VERSION.fullmatch(name)
        if version is None or version[1] not in TABLES or name in self._broken:
            return False
        self._show(name, self.store.table(version[1]).snapshot(int(version[2])))
        return True

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except duckdb.CatalogException as error:
            missing = _MISSING_TABLE.search(str(error))
            if missing and missing[1].lower() in self._broken:
                raise self._broken[missing[1].lower()] from error
            raise QueryError(str(error)) from error
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise QueryError(str(error)) from error


def _column(schema: TableSchema, name: str) -> str:
    """Return the SQL of one column of a view, which decodes vectors."""
    dtype = next(column.vector for column in (*schema.columns, *PROVENANCE) if column.name == name)
    return f'vector_{dtype}("{name}") AS "{name}"' if dtype else f'"{name}"'


def _list_shards(snapshots: list[Snapshot]) -> pa.Table:
    rows = []
    for snapshot in snapshots:
        for shard in snapshot.shards:
            rows.append(
                {
                    "table": snapshot.schema.name,
                    "partition": ", ".join(f"{name}={shard.constants[name]}" for name in snapshot.schema.partition_by),
                    "shard": shard.name,
                    "fingerprint": shard.fingerprint,
                    "written_by": shard.written_by,
                    "written_at": shard.written_at,
                    "num_rows": shard.num_rows,
                    "num_bytes": shard.num_bytes,
                    "file": shard.path,
                }
            )
    return pa.Table.from_pylist(rows, schema=_SHARD_COLUMNS)


def quoted(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
