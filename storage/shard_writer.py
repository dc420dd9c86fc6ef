"""Write one shard: a Parquet file under a unique name, verified, then published by the table's log.

A writer that dies leaves a file that is not in the log; `vina gc` deletes it. A file whose commit raised an error is
kept, because the commit may have succeeded before the error.
"""

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from botocore.exceptions import BotoCoreError, ClientError
from deltalake.transaction import AddAction

from storage.errors import SchemaError, StoreError
from storage.schemas import TableSchema

if TYPE_CHECKING:
    from storage.table import Table

ROWS_PER_GROUP = 122_880  # DuckDB's default: each of its threads reads one row group
ROWS_PER_PAGE = 16_384  # pyarrow begins a new page at 20,000 rows
PAGE_HEADER_BYTES = 36  # one header takes 19 to 27 bytes, two take at least 38
KEY_BYTES = 1_000  # Parquet has no statistics of very long values


class ShardWriter:
    """Writes one shard, as a context manager. In tables with vectors each `write` is a row group of one video."""

    def __init__(self, table: "Table", constants: dict[str, Any], force: bool) -> None:
        self._table, self._constants, self._force = table, constants, force
        self._name = f"part-{uuid.uuid4().hex}.parquet"
        self._folder = f"{table.location.root}/{table.name}"
        self._path = f"{self._folder}/{self._name}"
        self._sink: pa.NativeFile = None
        self._parquet: pq.ParquetWriter | None = None
        self._num_rows = 0
        self._next: dict[str, int] = {}
        self.committed = False

    def __enter__(self) -> "ShardWriter":
        location = self._table.location
        with self._errors():
            if not location.is_s3:
                location.filesystem.create_dir(self._folder)
            self._sink = location.filesystem.open_output_stream(self._path)
        return self

    def _begin(self, schema: pa.Schema) -> pq.ParquetWriter:
        # The metadata identifies the file even without the log.
        metadata = {"vina": json.dumps({"table": self._table.name, **self._constants}, default=str)}
        return pq.ParquetWriter(self._sink, schema.with_metadata(metadata), **_parquet_options(self._table.schema))

    def write(self, rows: pa.Table) -> None:
        """Append rows, with all columns except those that have one value per shard."""
        cast_rows = self._table.schema.cast(rows)
        self._check_keys(cast_rows)
        with self._errors():
            self._parquet = self._parquet or self._begin(cast_rows.schema)
            if not cast_rows.schema.equals(self._parquet.schema):
                raise SchemaError(
                    f"table {self._table.name}: the width of the vectors differs from that of the shard's first vectors"
                )
            if len(cast_rows):
                limit = ROWS_PER_PAGE if self._table.schema.vectors else ROWS_PER_GROUP
                self._parquet.write_table(cast_rows, row_group_size=limit)
        self._num_rows += len(cast_rows)

    def _check_keys(self, rows: pa.Table) -> None:
        """Check that keys are not too long, and that the rows of a sequence have one key and no gaps."""
        schema = self._table.schema
        if schema.key is None or not len(rows):
            return
        keys = rows.column(schema.key)
        longest = pc.max(pc.binary_length(keys)).as_py()
        if longest > KEY_BYTES:
            raise SchemaError(
                f"table {schema.name}: a {schema.key} has {longest} bytes; at most {KEY_BYTES} are allowed"
            )
        if schema.sequence is None:
            return
        if pc.count_distinct(keys).as_py() != 1:
            raise SchemaError(f"table {schema.name}: write the rows of one {schema.key} at a time")
        key, numbers = keys[0].as_py(), rows.column(schema.sequence).to_numpy()
        begin = self._next.get(key, 0)
        if not np.array_equal(numbers, np.arange(begin, begin + len(rows))):
            raise SchemaError(f"table {schema.name}: {schema.sequence} of {key!r} does not count up from {begin}")
        self._next[key] = begin + len(rows)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._abandon()
            return
        try:
            with self._errors():
                self._parquet = self._parquet or self._begin(self._table.schema.files)
                self._parquet.close()
                self._sink.close()
                self._table.location.make_durable(self._path)
            add = self._verified()
        except BaseException:
            self._abandon()
            raise
        self.committed, tried = self._table.publish(add, self._constants, self._force)
        if not tried:
            self._abandon()

    def _verified(self) -> AddAction:
        """Reopen the file, check it, and return its entry for the log."""
        with self._errors():
            footer = read_footer(self._table.location.filesystem, self._path)
            size = self._table.location.filesystem.get_file_info(self._path).size
        if self._table.schema.vectors:
            for group in range(footer.num_row_groups):
                vector_page(self._table.schema, footer, group, self._path)
        if footer.num_rows != self._num_rows:
            raise StoreError(f"table {self._table.name}: {self._path} has {footer.num_rows} rows, not {self._num_rows}")
        return AddAction(
            path=self._name,
            size=size,
            partition_values=log_values(self._constants),
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps(_statistics(self._table.schema, footer)),
        )

    def _abandon(self) -> None:
        for closing in (self._parquet, self._sink):
            try:
                if closing is not None:
                    closing.close()
            except (OSError, pa.ArrowException):
                continue  # it failed to write, so it may fail to close; the file is deleted
        try:
            self._table.location.delete(self._path)
        except (OSError, BotoCoreError, ClientError):
            return  # it is not in the log: `vina gc` deletes it

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except SchemaError:
            raise
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"table {self._table.name}: {self._path} was not written: {error}") from error


def log_values(constants: dict[str, Any]) -> dict[str, str | None]:
    """Return constants as texts, as the log stores them."""
    return {name: None if value is None else str(value) for name, value in constants.items()}


def read_footer(filesystem: pafs.FileSystem, path: str) -> pq.FileMetaData:
    """Return the footer of a Parquet file. Raise OSError with the path if it cannot be read."""
    with filesystem.open_input_file(path) as source:
        try:
            return pq.read_metadata(source)
        except pa.ArrowException as error:
            raise OSError(f"{path}: {error}") from error


def vector_page(schema: TableSchema, footer: pq.FileMetaData, group: int, path: str) -> tuple[int, int]:
    """Return where the vectors of a row group begin in the file, and their size in bytes.

    They are one uncompressed page of values of fixed width: the last bytes of their column chunk.
    """
    column = footer.row_group(group).column(schema.files.get_field_index(schema.vectors[0]))
    width = footer.schema.column(schema.files.get_field_index(schema.vectors[0])).length
    size = footer.row_group(group).num_rows * width
    header = column.total_compressed_size - size
    if column.compression != "UNCOMPRESSED" or column.has_dictionary_page or not 0 < header <= PAGE_HEADER_BYTES:
        raise StoreError(f"table {schema.name}: the vectors of row group {group} in {path} are not one plain page")
    return column.data_page_offset + header, size


def _parquet_options(schema: TableSchema) -> dict[str, Any]:
    if not schema.vectors:
        return {"compression": "ZSTD"}
    plain = [column.name for column in schema.files if column.name not in schema.vectors]
    return {
        "compression": {column.name: "ZSTD" if column.name in plain else "NONE" for column in schema.files},
        "use_dictionary": plain,
        # A row group is one video: statistics on all columns would be most of the footer.
        "write_statistics": [schema.key],
        "data_page_size": 2**30,
    }


def _statistics(schema: TableSchema, footer: pq.FileMetaData) -> dict[str, Any]:
    statistics: dict[str, Any] = {"numRecords": footer.num_rows}
    if schema.key is None or footer.num_rows == 0:
        return statistics
    key_index = schema.files.get_field_index(schema.key)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    chunks = [group.column(key_index).statistics for group in groups if group.num_rows]
    if all(chunk is not None and chunk.has_min_max for chunk in chunks):
        statistics["minValues"] = {schema.key: min(chunk.min for chunk in chunks)}
        statistics["maxValues"] = {schema.key: max(chunk.max for chunk in chunks)}
    return statistics
