"""A table at one version: its shards and their rows. Later commits do not change it."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from storage.errors import MissingFileError, SchemaError
from storage.location import Location
from storage.schemas import TableSchema


@dataclass(frozen=True)
class Shard:
    """One committed file. `constants` are the values of the log's columns; `key_range` bounds the table's key."""

    constants: dict[str, Any]
    path: str
    num_rows: int
    num_bytes: int
    written_at: datetime
    key_range: tuple[str, str] | None

    @property
    def name(self) -> str:
        """The shard's name within its partition."""
        return str(self.constants["_shard"])

    @property
    def fingerprint(self) -> str:
        """Hash of the configuration, input versions and code version of the shard."""
        return str(self.constants["_fingerprint"])

    @property
    def written_by(self) -> str:
        """The run that wrote the shard."""
        return str(self.constants["_written_by"])


@dataclass(frozen=True)
class Snapshot:
    """The shards of one version; version -1 is a table without any commit.

    `files` is the log's list, an Arrow table with one row per file, so that no loop is needed to find a shard.
    """

    schema: TableSchema
    location: Location
    version: int
    files: pa.Table | None

    @classmethod
    def of(cls, schema: TableSchema, location: Location, delta: DeltaTable | None) -> "Snapshot":
        """Return the snapshot of an open Delta table."""
        if delta is None:
            return cls(schema, location, -1, None)
        return cls(schema, location, delta.version(), pa.table(delta.get_add_actions(flatten=True)))

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """The shards, sorted by partition and name."""
        rows = self.files.to_pylist() if self.files is not None else []
        return tuple(sorted((_shard(self.schema, row) for row in rows), key=self._sort_key))

    def _sort_key(self, shard: Shard) -> tuple[Any, ...]:
        return tuple(shard.constants[name] for name in (*self.schema.partition_by, "_shard"))

    def find(self, partition: Mapping[str, Any], shard: str) -> Shard | None:
        """Return the shard with this partition and name, if there is one."""
        shards = self.where(**partition, _shard=shard).shards
        return shards[0] if shards else None

    @property
    def num_rows(self) -> int:
        """Number of rows, from the log."""
        return sum(shard.num_rows for shard in self.shards)

    @property
    def num_bytes(self) -> int:
        """Size of the data files, from the log."""
        return sum(shard.num_bytes for shard in self.shards)

    @property
    def content_version(self) -> str:
        """Hash of the shards' names and fingerprints. It does not depend on who committed them, or in which order."""
        content = [[*self._sort_key(shard), shard.fingerprint] for shard in self.shards]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]

    def where(self, **constants: str | int) -> "Snapshot":
        """Return the shards whose log columns (partition, constants, provenance) have these values."""
        if self.files is None:
            return self
        files = self.files
        for name, value in constants.items():
            column = files.column(f"partition.{name}")
            try:
                wanted = pa.scalar(value).cast(column.type)
            except pa.ArrowInvalid as error:
                raise SchemaError(f"table {self.schema.name}, column {name}: {error}") from error
            files = files.filter(pc.equal(column, wanted))
        return Snapshot(self.schema, self.location, self.version, files)

    def starting(self, prefix: str) -> "Snapshot":
        """Return the shards whose names begin with a prefix."""
        if self.files is None:
            return self
        files = self.files.filter(pc.starts_with(self.files.column("partition._shard"), prefix))
        return Snapshot(self.schema, self.location, self.version, files)

    def vector_width(self) -> int | None:
        """Return the width of the first vector; None if there are no rows."""
        column = next(column for column in self.schema.columns if column.vector)
        with self.errors():
            if not self.num_rows:
                return None
            first = self.dataset().head(1, columns=[column.name])[column.name][0]
        return len(first.as_py()) // np.dtype(column.vector).itemsize

    def path(self, shard: Shard) -> str:
        """Return the path of a shard's file in the location's file system."""
        return f"{self.location.root}/{self.schema.name}/{shard.path}"

    def dataset(self) -> ds.Dataset:
        """Return a pyarrow dataset that skips whole files by partition and by key."""
        parquet, filesystem = ds.ParquetFileFormat(), self.location.filesystem
        fragments = [
            parquet.make_fragment(self.path(shard), filesystem, partition_expression=self._guarantee(shard))
            for shard in self.shards
        ]
        return ds.FileSystemDataset(fragments, self.schema.arrow, parquet, filesystem)

    def read(self, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
        """Read rows into memory."""
        with self.errors():
            return self.dataset().to_table(columns=list(columns) if columns else None, filter=where)

    def distinct(self, *columns: str, joint: str = "\x1f") -> set[str]:
        """Return the distinct values of a text column, or of several, joined. Memory: one batch and the values."""
        values: set[str] = set()
        with self.errors():
            for batch in self.dataset().to_batches(columns=list(columns)):
                parts = [pc.fill_null(batch.column(name), "") for name in columns]
                values.update(pc.unique(pc.binary_join_element_wise(*parts, joint)).to_pylist())
        return values

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of reading a file into a MissingFileError that names the table and the remedy."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise MissingFileError(
                f"table {self.schema.name}, version {self.version}: a file of its log cannot be read: {error}\n"
                "If it is an old version, `vina gc` may have removed it. Otherwise write its shard again."
            ) from error

    def _guarantee(self, shard: Shard) -> pc.Expression:
        """Return an expression that holds for every row of a file; pyarrow takes the log columns from it."""
        expression = pc.scalar(True)
        for name, value in shard.constants.items():
            column = pc.field(name)
            typed = pa.scalar(value, self.schema.arrow.field(name).type)
            expression &= column.is_null() if value is None else column == typed
        if shard.key_range is not None:
            low, high = shard.key_range
            expression &= (pc.field(self.schema.key) >= low) & (pc.field(self.schema.key) <= high)
        return expression


def _shard(schema: TableSchema, action: dict[str, Any]) -> Shard:
    low, high = action.get(f"min.{schema.key}"), action.get(f"max.{schema.key}")
    return Shard(
        constants={name: action[f"partition.{name}"] for name in schema.log_columns},
        path=action["path"],
        num_rows=action["num_records"],
        num_bytes=action["size_bytes"],
        written_at=datetime.fromtimestamp(action["modification_time"] / 1000, UTC),
        key_range=None if low is None or high is None else (low, high),
    )
