"""SQL over the store as it is now: a DuckDB connection with one view a table, read-only, the same on disk and on S3.

On disk DuckDB reads the committed files itself. On S3 it does so through its httpfs extension where that is installed,
and otherwise through a pyarrow dataset that takes its filters: same views, same answers. `features` is the newest
version; `features_v3` is version 3, made when a query names it. Vector columns are shown as FLOAT[].
Only SELECT, and EXPLAIN of a SELECT, run; files outside the store stay closed; settings are locked.
"""

import json
import re
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Any
from urllib.parse import urlparse

import duckdb
import pyarrow as pa
from duckdb.func import PythonUDFType

from storage.errors import QueryError, StoreError
from storage.paper import PAPER_NUMBERS
from storage.schemas import FLOAT, INT, STRING, TABLES, TableSchema
from storage.snapshot import Snapshot
from storage.store import Store
from storage.vectors import decode_for_sql
from storage.views import VIEWS

_OLD_VERSION = re.compile(r"(\w+)_v(\d+)")
_MISSING_TABLE = re.compile(r"Table with name (\w+) does not exist")
_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(ANALYZE\s+)?", re.IGNORECASE)
_QUESTIONS = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_SQL_TYPES = {STRING: "VARCHAR", INT: "INTEGER", FLOAT: "FLOAT"}
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

    def __init__(self, store: Store, memory_limit: str | None = None) -> None:
        """With a limit ("1GB") larger queries go through temporary files; without one they have most of the memory."""
        self.store = store
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
        """End it; what it spilled goes away."""
        self._connection.close()
        self._spill.cleanup()

    def query(self, statement: str) -> pa.Table:
        """The answer to one statement, in memory. QueryError if it is wrong or would change anything."""
        return self.stream(statement).read_all()

    def stream(self, statement: str, rows_per_batch: int = 100_000) -> pa.RecordBatchReader:
        """The same, a batch at a time: read it to its end, or drop it, before the next query."""
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
        """At most so many rows of the answer; a QueryError if it takes longer."""
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            self._connection.interrupt()

        watch = threading.Timer(seconds, stop)
        watch.start()
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
                raise QueryError(f"the query took longer than {seconds:g} s and was stopped: ask for less") from error
            raise
        finally:
            watch.cancel()
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
        # DuckDB would take some characters of a path for a pattern.
        self._native = self._load_httpfs() if self.store.location.is_s3 else not set("*?[") & set(self.store.uri)
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
        """Make a view of a snapshot: declared columns, those of the log included, and vectors decoded."""
        schema = snapshot.schema
        try:
            if self._native and snapshot.shards:
                base = "s3://" if snapshot.location.is_s3 else ""
                self._set(f"{view} files", [base + snapshot.path(shard) for shard in snapshot.shards])
                for name in schema.log_columns:
                    self._set(f"{view} {name}", [shard.constants[name] for shard in snapshot.shards])
                columns = ", ".join(_column(schema, view, name) for name in schema.arrow.names)
                source = f"read_parquet(getvariable('{view} files'))"
                self._connection.execute(f"CREATE VIEW {view} AS SELECT {columns} FROM {source}")
            else:
                rows = snapshot.dataset() if snapshot.shards else schema.arrow.empty_table()
                columns = ", ".join(_column(schema, None, name) for name in schema.arrow.names)
                self._connection.from_arrow(rows).project(columns).create_view(view)
        except duckdb.Error as error:
            self._broken[view] = StoreError(f"table {schema.name}, version {snapshot.version}: {error}")

    def _set(self, variable: str, values: list[Any]) -> None:
        self._connection.execute(f'SET VARIABLE "{variable}" = ?', [values])

    def _show_old_version(self, error: duckdb.CatalogException) -> bool:
        """Make the view whose absence the error speaks of, if its name is that of an older version of a table."""
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

    def _load_httpfs(self) -> bool:
        keys = self.store.location.static_keys()
        if not keys:
            return False
        try:
            self._connection.execute("LOAD httpfs")
        except duckdb.Error:
            return False
        options = {
            "KEY_ID": keys.get("access_key"),
            "SECRET": keys.get("secret_key"),
            "SESSION_TOKEN": keys.get("token"),
            "REGION": self.store.location.region,
        }
        if self.store.location.endpoint:
            endpoint = urlparse(self.store.location.endpoint)
            secure = str(endpoint.scheme == "https").lower()
            options |= {"ENDPOINT": endpoint.netloc, "URL_STYLE": "path", "USE_SSL": secure}
        given = ", ".join(f"{name} {quoted(value)}" for name, value in options.items() if value)
        self._connection.execute(f"CREATE SECRET vina (TYPE s3, {given})")
        return True


def refuse_writes(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """QueryError unless this is one SELECT (or FROM, WITH, DESCRIBE, SHOW, SUMMARIZE), or an EXPLAIN of one."""
    statements = duckdb.extract_statements(statement)
    if len(statements) != 1:
        raise QueryError(f"one statement at a time, please; this has {len(statements)}")
    kind = statements[0].type
    if kind == duckdb.StatementType.EXPLAIN and (explain := _EXPLAIN.match(statement)):
        refuse_writes(connection, statement[explain.end() :])
        return
    if kind != duckdb.StatementType.SELECT:
        raise QueryError(f"the store is read-only here: a {kind.name} statement is refused; use SELECT")
    answer = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [statement]).fetchall()
    tree = json.loads(answer[0][0])
    if tree.get("error"):
        raise QueryError(f"this kind of statement is refused: {tree.get('error_message')}")
    if writing := set(_node_types(tree)) - _QUESTIONS:
        raise QueryError(f"the store is read-only here: {', '.join(sorted(writing))} inside the query is refused")


def _node_types(tree: Any) -> Iterator[str]:
    """The types of all query nodes of a serialized statement: since DuckDB 2.0 a CTE may write."""
    children = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    if isinstance(tree, dict) and str(tree.get("type", "")).endswith("_NODE"):
        yield str(tree["type"])
    for child in children:
        yield from _node_types(child)


def _column(schema: TableSchema, view: str | None, name: str) -> str:
    """A column of a view. One of the log's is looked up by the number of the file: DuckDB skips whole files by it."""
    vectors = {column.name: column.vector for column in schema.columns if column.vector}
    if name in vectors:
        return f'vector_{vectors[name]}("{name}") AS "{name}"'
    if view is not None and name in schema.log_columns:
        kind = _SQL_TYPES[schema.arrow.field(name).type]
        return f"getvariable('{view} {name}')[(file_index + 1)::BIGINT]::{kind} AS \"{name}\""
    return f'"{name}"'


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


def _paper() -> pa.Table:
    names = ("benchmark", "protocol", "metric", "split", "method", "value")
    return pa.table(dict(zip(names, map(list, zip(*PAPER_NUMBERS, strict=True)), strict=True)))


def quoted(text: str) -> str:
    """A text as SQL spells it."""
    return "'" + text.replace("'", "''") + "'"
