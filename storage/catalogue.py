"""SQL over the store: a DuckDB connection with one view a table, read-only, the same on disk and on S3.

On disk DuckDB reads the committed files itself. On S3 it does so through its httpfs extension where that is installed,
and otherwise through a pyarrow dataset that takes its filters: same views, same answers. `features` is the newest
version; `features_v3` is version 3, made when a query names it. Vector columns are shown as FLOAT[].
Only SELECT, and EXPLAIN of a SELECT, run; files outside the store stay closed; settings are locked.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from urllib.parse import urlparse

import duckdb
import pyarrow as pa
from duckdb.func import PythonUDFType

from storage.errors import QueryError, StoreError
from storage.paper import PAPER_NUMBERS
from storage.schemas import TABLES
from storage.snapshot import Snapshot
from storage.store import Store
from storage.vectors import decode_for_sql
from storage.views import VIEWS

_OLD_VERSION = re.compile(r"\b([a-z_]+)_v(\d+)\b")
_MISSING_TABLE = re.compile(r"Table with name (\w+) does not exist")
_EXPLAIN = re.compile(r"\s*EXPLAIN\b\s*(ANALY[SZ]E\b)?\s*(\([^)]*\))?", re.IGNORECASE)
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
    """A context manager: `with Catalogue(store) as catalogue: catalogue.query("SELECT ...")`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._broken: dict[str, StoreError] = {}
        self._old_versions: set[str] = set()
        self._connection = duckdb.connect(":memory:")
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> "Catalogue":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def query(self, statement: str) -> pa.Table:
        """The answer to one statement, in memory. QueryError if it is wrong or would change anything."""
        return self.stream(statement).read_all()

    def stream(self, statement: str, rows_per_batch: int = 100_000) -> pa.RecordBatchReader:
        """The same, a batch at a time."""
        with self._errors():
            refuse_writes(statement)
            for table, version in _OLD_VERSION.findall(statement):
                self._show_old_version(table, int(version))
            reader = self._connection.sql(statement).to_arrow_reader(rows_per_batch)
        return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        with self._errors():
            yield from reader

    def _prepare(self) -> None:
        connection = self._connection
        for dtype in ("float16", "float32"):
            connection.create_function(
                f"vector_{dtype}", decode_for_sql(dtype), ["BLOB"], "FLOAT[]", type=PythonUDFType.ARROW
            )
        self._native = not self.store.location.is_s3 or self._load_httpfs()
        roots = [self.store.uri + "/"] if self._native else []
        with ThreadPoolExecutor(len(TABLES)) as pool:
            snapshots = dict(zip(TABLES, pool.map(self._snapshot, TABLES), strict=True))
        for name, snapshot in snapshots.items():
            if snapshot is not None:
                self._show(name, snapshot)
        connection.register("shards", _list_shards([s for s in snapshots.values() if s is not None]))
        connection.register("paper", _paper())
        for view in VIEWS:
            needs = self._broken.keys() & set(re.findall(r"\w+", view.query))
            if needs:
                self._broken[view.name] = self._broken[min(needs)]
            else:
                connection.execute(f"CREATE VIEW {view.name} AS {view.query}")
        connection.execute("SET allowed_directories = ?", [roots])
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
        """Make a view of a snapshot, with declared columns and decoded vectors."""
        schema = snapshot.schema
        vectors = {column.name: column.vector for column in schema.columns if column.vector}
        columns = ", ".join(
            f'vector_{vectors[name]}("{name}") AS "{name}"' if name in vectors else f'"{name}"'
            for name in schema.arrow.names
        )
        base = "s3://" if snapshot.location.is_s3 else ""
        try:
            if self._native and snapshot.shards:
                files = ", ".join(_quoted(base + snapshot.path(shard)) for shard in snapshot.shards)
                self._connection.execute(f"CREATE VIEW {view} AS SELECT {columns} FROM read_parquet([{files}])")
            else:
                rows = snapshot.dataset() if snapshot.shards else schema.arrow.empty_table()
                self._connection.from_arrow(rows).project(columns).create_view(view)
        except duckdb.Error as error:
            self._broken[view] = StoreError(f"table {schema.name}, version {snapshot.version}: {error}")

    def _show_old_version(self, table: str, version: int) -> None:
        view = f"{table}_v{version}"
        if table in TABLES and view not in self._old_versions:
            self._show(view, self.store.table(table).snapshot(version))
            self._old_versions.add(view)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except duckdb.CatalogException as error:
            name = _MISSING_TABLE.search(str(error))
            if name is not None and name[1] in self._broken:
                raise self._broken[name[1]] from error
            raise QueryError(str(error)) from error
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise QueryError(str(error)) from error

    def _load_httpfs(self) -> bool:
        keys = self.store.location.static_keys()
        if not keys:
            return False
        try:
            self._connection.execute("LOAD httpfs")
        except duckdb.Error:
            return False
        client = self.store.location.client
        endpoint = urlparse(client.meta.endpoint_url)
        options = {
            "KEY_ID": keys.get("access_key"),
            "SECRET": keys.get("secret_key"),
            "SESSION_TOKEN": keys.get("token"),
            "REGION": client.meta.region_name,
            "ENDPOINT": endpoint.netloc,
            "URL_STYLE": "path",
            "USE_SSL": str(endpoint.scheme == "https").lower(),
        }
        given = ", ".join(f"{name} {_quoted(value)}" for name, value in options.items() if value)
        self._connection.execute(f"CREATE SECRET vina (TYPE s3, {given})")
        return True


def refuse_writes(statement: str) -> None:
    """QueryError unless this is one SELECT (or FROM, WITH, DESCRIBE, SHOW, SUMMARIZE), or an EXPLAIN of one."""
    statements = duckdb.extract_statements(statement)
    if len(statements) != 1:
        raise QueryError(f"one statement at a time, please; this has {len(statements)}")
    kind = statements[0].type
    if kind == duckdb.StatementType.EXPLAIN:
        explained = _EXPLAIN.sub("", statements[0].query, count=1)
        kind = duckdb.extract_statements(explained)[0].type
    if kind != duckdb.StatementType.SELECT:
        raise QueryError(f"the store is read-only here: a {kind.name} statement is refused; use SELECT")


def _list_shards(snapshots: list[Snapshot]) -> pa.Table:
    rows = []
    for snapshot in snapshots:
        for shard in snapshot.shards:
            partition = dict(zip(snapshot.schema.partition_by, shard.values[:-1], strict=True))
            rows.append(
                {
                    "table": snapshot.schema.name,
                    "partition": ", ".join(f"{name}={value}" for name, value in partition.items()),
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


def _paper() -> pa.Table:
    names = ("benchmark", "protocol", "metric", "method", "value")
    return pa.table(dict(zip(names, map(list, zip(*PAPER_NUMBERS, strict=True)), strict=True)))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
