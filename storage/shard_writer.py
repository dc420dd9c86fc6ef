"""Writing one shard: a Parquet file under a name nobody else has, verified, then published by the table's log.

A writer that dies leaves a file that no log names; `vina gc` removes it. A file whose commit ended in an error is left
alone too: the error may have come after the commit.
"""

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from botocore.exceptions import BotoCoreError, ClientError
from deltalake.transaction import AddAction

from storage.errors import SchemaError, StoreError
from storage.schemas import TableSchema

if TYPE_CHECKING:
    from storage.table import Table

ROWS_PER_GROUP = 122_880  # DuckDB's own: its threads take one row group each


class ShardWriter:
    """A context manager. In tables with vectors each `write` becomes one row group: write one video at a time."""

    def __init__(self, table: "Table", values: tuple[str, ...], constants: dict[str, str | int], force: bool) -> None:
        self._table, self._values, self._constants, self._force = table, values, constants, force
        self._name = f"part-{uuid.uuid4().hex}.parquet"
        self._folder = f"{table.location.root}/{table.name}"
        self._path = f"{self._folder}/{self._name}"
        self._num_rows = 0
        self.committed = False

    def __enter__(self) -> "ShardWriter":
        location = self._table.location
        with self._errors():
            if not location.is_s3:
                location.filesystem.create_dir(self._folder)
            self._sink = location.filesystem.open_output_stream(self._path)
            options = _parquet_options(self._table.schema)
            self._parquet = pq.ParquetWriter(self._sink, self._table.schema.arrow, **options)
        return self

    def write(self, rows: pa.Table) -> None:
        """Append rows; the columns that are constant in the shard are filled in."""
        fixed = self._table.schema.cast(rows, self._constants)
        whole = any(column.vector for column in self._table.schema.columns)
        with self._errors():
            self._parquet.write_table(fixed, row_group_size=max(1, len(fixed)) if whole else ROWS_PER_GROUP)
        self._num_rows += len(fixed)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._abandon()
            return
        try:
            with self._errors():
                self._parquet.close()
                self._sink.close()
            add = self._verified()
        except BaseException:
            self._abandon()
            raise
        fingerprint = str(self._constants["_fingerprint"])
        self.committed, tried = self._table.publish(add, self._values, fingerprint, self._force)
        if not tried:
            self._abandon()

    def _verified(self) -> AddAction:
        """Reopen the file from where it lies, and describe it to the log."""
        filesystem = self._table.location.filesystem
        with self._errors(), filesystem.open_input_file(self._path) as source:
            footer = pq.read_metadata(source)
            size = source.size()
        if footer.num_rows != self._num_rows:
            raise StoreError(f"table {self._table.name}: {self._path} has {footer.num_rows} rows, not {self._num_rows}")
        values = (*self._values, self._constants["_fingerprint"], self._constants["_written_by"])
        return AddAction(
            path=self._name,
            size=size,
            partition_values={n: str(v) for n, v in zip(self._table.schema.log_columns, values, strict=True)},
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps(_statistics(self._table.schema, footer)),
        )

    def _abandon(self) -> None:
        for closing in (self._parquet, self._sink):
            try:
                closing.close()
            except (OSError, pa.ArrowException):
                continue  # it failed to write, so it may fail to close; the file goes away
        try:
            self._table.location.delete(self._path)
        except (OSError, BotoCoreError, ClientError):
            return  # an orphan: no log names it, `vina gc` removes it

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except SchemaError:
            raise
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"table {self._table.name}: {self._path} was not written: {error}") from error


def _parquet_options(schema: TableSchema) -> dict[str, Any]:
    vectors = {column.name for column in schema.columns if column.vector}
    plain = [column.name for column in schema.arrow if column.name not in vectors]
    return {
        "compression": {column.name: "NONE" if column.name in vectors else "ZSTD" for column in schema.arrow},
        "use_dictionary": plain,
        # In tables with vectors a row group is one video: statistics on all columns would be most of the footer.
        "write_statistics": [schema.key] if vectors else True,
        "data_page_size": 2**30 if vectors else None,
    }


def _statistics(schema: TableSchema, footer: pq.FileMetaData) -> dict[str, Any]:
    known: dict[str, Any] = {"numRecords": footer.num_rows}
    if schema.key is None or footer.num_rows == 0:
        return known
    place = schema.arrow.get_field_index(schema.key)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    chunks = [group.column(place).statistics for group in groups if group.num_rows]
    if all(chunk is not None and chunk.has_min_max for chunk in chunks):
        known["minValues"] = {schema.key: min(chunk.min for chunk in chunks)}
        known["maxValues"] = {schema.key: max(chunk.max for chunk in chunks)}
    return known
