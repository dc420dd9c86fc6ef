"""A table at one version: which shards it has, and their rows. Nothing in it changes when others commit."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from storage.errors import MissingFileError
from storage.location import Location
from storage.schemas import TableSchema


@dataclass(frozen=True)
class Shard:
    """One committed file. `values` are its partition's values and its name; `key_range` bounds the table's key."""

    values: tuple[str, ...]
    fingerprint: str
    written_by: str
    path: str
    num_rows: int
    num_bytes: int
    written_at: datetime
    key_range: tuple[str, str] | None

    @property
    def name(self) -> str:
        """The shard's name within its partition."""
        return self.values[-1]


@dataclass(frozen=True)
class Snapshot:
    """The shards of one version; version -1 is a table that nobody has written to.

    `files` is the log's own list, an Arrow table with a row a file: to look one up among thousands takes no loop.
    """

    schema: TableSchema
    location: Location
    version: int
    files: pa.Table | None

    @classmethod
    def of(cls, schema: TableSchema, location: Location, delta: DeltaTable | None) -> "Snapshot":
        """The snapshot that a Delta table is at."""
        if delta is None:
            return cls(schema, location, -1, None)
        return cls(schema, location, delta.version(), pa.table(delta.get_add_actions(flatten=True)))

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """The shards, in the order of their partitions and names."""
        rows = self.files.to_pylist() if self.files is not None else []
        return tuple(sorted((_shard(self.schema, row) for row in rows), key=lambda shard: shard.values))

    def find(self, values: tuple[str, ...]) -> Shard | None:
        """The shard of a partition and name."""
        names = (*self.schema.partition_by, "_shard")
        found = self._select(dict(zip(names, values, strict=True)))
        return found.shards[0] if found.shards else None

    @property
    def num_rows(self) -> int:
        """Rows, counted by the log."""
        return sum(shard.num_rows for shard in self.shards)

    @property
    def num_bytes(self) -> int:
        """Bytes of the data files."""
        return sum(shard.num_bytes for shard in self.shards)

    @property
    def content_version(self) -> str:
        """A hash of what the table holds, equal for equal contents however they were committed: an input's version."""
        content = [[*shard.values, shard.fingerprint] for shard in self.shards]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]

    def where(self, **partition: str | int) -> "Snapshot":
        """The part of the snapshot whose partition has these values."""
        return self._select({name: str(value) for name, value in partition.items()})

    def _select(self, constants: dict[str, str]) -> "Snapshot":
        if self.files is None:
            return self
        files = self.files
        for name, value in constants.items():
            files = files.filter(pc.equal(files.column(f"partition.{name}").cast(pa.string()), value))
        return Snapshot(self.schema, self.location, self.version, files)

    def path(self, shard: Shard) -> str:
        """A shard's file, as the location's file system names it."""
        return f"{self.location.root}/{self.schema.name}/{shard.path}"

    def dataset(self) -> ds.Dataset:
        """A pyarrow dataset in which whole files are skipped by partition and by key."""
        parquet, filesystem = ds.ParquetFileFormat(), self.location.filesystem
        fragments = [
            parquet.make_fragment(self.path(shard), filesystem, partition_expression=self._guarantee(shard))
            for shard in self.shards
        ]
        return ds.FileSystemDataset(fragments, self.schema.arrow, parquet, filesystem)

    def read(self, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
        """Rows in memory."""
        with self.errors():
            return self.dataset().to_table(columns=list(columns) if columns else None, filter=where)

    def batches(
        self, columns: Sequence[str] | None = None, where: pc.Expression | None = None
    ) -> Iterator[pa.RecordBatch]:
        """All rows in bounded memory: a few row groups are in flight at a time."""
        with self.errors():
            scanner = self.dataset().scanner(
                columns=list(columns) if columns else None, filter=where, batch_readahead=4, fragment_readahead=1
            )
            yield from scanner.to_batches()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns what reading a file may raise into an error that names the table and says what to do."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise MissingFileError(
                f"table {self.schema.name}, version {self.version}: a file that its log names cannot be read: {error}\n"
                f"If it is an old version, `vina gc` may have removed it. Otherwise write its shard again."
            ) from error

    def _guarantee(self, shard: Shard) -> pc.Expression:
        names = self.schema.log_columns
        values = (*shard.values, shard.fingerprint, shard.written_by)
        expression = pc.scalar(True)
        for name, value in zip(names, values, strict=True):
            expression &= pc.field(name) == pa.scalar(value).cast(self.schema.arrow.field(name).type)
        if shard.key_range is not None:
            low, high = shard.key_range
            expression &= (pc.field(self.schema.key) >= low) & (pc.field(self.schema.key) <= high)
        return expression


def _shard(schema: TableSchema, action: dict[str, object]) -> Shard:
    values = [str(action[f"partition.{name}"]) for name in schema.log_columns]
    low, high = action.get(f"min.{schema.key}"), action.get(f"max.{schema.key}")
    return Shard(
        values=tuple(values[:-2]),
        fingerprint=values[-2],
        written_by=values[-1],
        path=str(action["path"]),
        num_rows=int(str(action["num_records"])),
        num_bytes=int(str(action["size_bytes"])),
        written_at=datetime.fromtimestamp(int(str(action["modification_time"])) / 1000, UTC),
        key_range=(str(low), str(high)) if low is not None and high is not None else None,
    )
