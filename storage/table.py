"""One table: plain Parquet files listed by a Delta log. A file that the log does not list does not exist.

Why Delta (`deltalake`, no JVM): it is maintained, any Delta reader opens these tables, and a commit is one numbered log
entry that is created only if absent (hard link on disk, If-None-Match on S3), so that no lock service is needed.
`shard_writer` writes the Parquet files (row groups sized for random access; vectors as bytes, because Delta has no
float16). They are committed as add/remove actions with Delta's retries off: a writer that loses the race for a version
reads the log and decides again. Columns that are constant in a file are Delta partition columns, in the log and not in
the file: the footer of a file of features with thirteen columns took five times longer to read than one with three.
Why not Iceberg: pyiceberg needs a catalogue service or a database in addition to S3.
Cost (two cores, `make bench`): a commit takes 11 ms in a table of 50 shards, 34 ms at 1,000, 117 ms at 5,000,
and about 110 ms on a loopback S3 server up to 500; a table of 5,000 shards opens in 180 ms.
"""

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from storage.errors import SchemaError, StoreError
from storage.location import Location
from storage.schemas import TableSchema
from storage.shard_writer import ShardWriter, log_values
from storage.snapshot import Shard, Snapshot

COMMIT_ATTEMPTS = 200
CHECKPOINT_EVERY = 10
_VERSION_KEY = "vina.schema_version"

Partition = Mapping[str, str | int]
Actions = list[AddAction | RemoveAction]


class Table:
    """A table of a store: reads through `snapshot`, writes through `writer` or `commit`. Threads may share it."""

    def __init__(self, location: Location, schema: TableSchema) -> None:
        self.schema = schema
        self.location = location
        self.uri = f"{location.uri}/{schema.name}"
        self._lock = threading.Lock()
        self._delta: DeltaTable | None = None

    @property
    def name(self) -> str:
        """The table's name."""
        return self.schema.name

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Return the table at its newest version, or at an older one."""
        with self._lock, self._errors("read the log"):
            delta = self._open() if version is None else self._open_old(version)
            return Snapshot.of(self.schema, self.location, delta)

    def has(self, partition: Partition, shard: str, fingerprint: str) -> bool:
        """Return whether this shard is committed with this fingerprint, so that it need not be computed."""
        self._check(partition)
        current = self.snapshot().find(partition, shard)
        return current is not None and current.fingerprint == fingerprint

    def writer(
        self,
        partition: Partition,
        shard: str,
        *,
        fingerprint: str,
        run_id: str,
        constants: Mapping[str, Any] | None = None,
        force: bool = False,
    ) -> ShardWriter:
        """Return a context manager that writes one shard and commits it at the end; after an error nothing changes."""
        self._check(partition)
        provenance = {"_shard": shard, "_fingerprint": fingerprint, "_written_by": run_id}
        return ShardWriter(self, self.schema.cast_constants({**partition, **(constants or {}), **provenance}), force)

    def commit(self, rows: pa.Table, partition: Partition, shard: str, **options: Any) -> bool:
        """Write one shard from rows in memory, with the options of `writer`. Return False if it existed already."""
        with self.writer(partition, shard, **options) as writer:
            writer.write(rows)
        return writer.committed

    def publish(self, add: AddAction, constants: Mapping[str, Any], force: bool) -> tuple[bool, bool]:
        """Commit a written file as the shard's content, unless the shard already has this fingerprint.

        Return whether the file is now the content, and whether a commit was tried.
        """
        partition = {name: constants[name] for name in self.schema.partition_by}
        is_content = True

        def plan(snapshot: Snapshot) -> Actions:
            nonlocal is_content
            current = snapshot.find(partition, constants["_shard"])
            if current is None:
                return [add]
            if current.path == add.path:  # an earlier attempt succeeded, but its response was lost
                return []
            if current.fingerprint == constants["_fingerprint"] and not force:
                is_content = False
                return []
            return [self._remove(current), add]

        tried = self._transact(plan)
        return is_content, tried

    def retire(
        self,
        partition: Partition,
        keep: Iterable[str] = (),
        prefix: str = "",
        only: Callable[[Shard], bool] = lambda shard: True,
    ) -> list[str]:
        """Remove the shards of a partition that are not in `keep` from the newest version; return their names.

        A stage calls this at its end if its shards may differ from those of the previous run. Only shards whose names
        begin with `prefix` and for which `only` is true are removed.
        """
        self._check(partition)
        kept = set(keep)
        retired: list[str] = []

        def plan(snapshot: Snapshot) -> Actions:
            shards = snapshot.where(**partition).shards
            candidates = [shard for shard in shards if shard.name not in kept and shard.name.startswith(prefix)]
            to_remove = [shard for shard in candidates if only(shard)]
            retired[:] = [shard.name for shard in to_remove]
            return [self._remove(shard) for shard in to_remove]

        self._transact(plan)
        return retired

    def gc(self, older_than_hours: int, dry_run: bool = False) -> list[str]:
        """Delete files that only older versions use, and files left by writers that died; return their names."""
        with self._lock, self._errors("collect garbage"):
            delta = self._open()
            if delta is None:
                return []
            return list(delta.vacuum(older_than_hours, dry_run, enforce_retention_duration=False, full=True))

    def _transact(self, plan: Callable[[Snapshot], Actions]) -> bool:
        """Commit the actions that `plan` returns for the newest snapshot; after losing a race, plan again.

        Without actions nothing is committed. Return whether a commit was tried.
        """
        for attempt in range(COMMIT_ATTEMPTS):
            with self._lock, self._errors("commit"):
                try:
                    delta = self._open() or self._create()
                    actions = plan(Snapshot.of(self.schema, self.location, delta))
                    if not actions:
                        return attempt > 0
                    delta.create_write_transaction(
                        actions,
                        mode="append",
                        schema=DeltaSchema.from_arrow(self.schema.arrow),
                        partition_by=list(self.schema.log_columns),
                        commit_properties=CommitProperties(max_commit_retries=0),
                    )
                    return True
                except CommitFailedError:  # another writer committed first, or created the table
                    pause_s = random.uniform(0, min(1.0, 0.01 * 2**attempt))
            time.sleep(pause_s)
        raise StoreError(
            f"table {self.name}: {COMMIT_ATTEMPTS} commits in a row lost the race to another writer; run it again"
        )

    def _open(self) -> DeltaTable | None:
        """Return the table at its newest version; None if there is no table yet."""
        if self._delta is not None:
            self._delta.update_incremental()
            return self._delta
        try:
            self._delta = self._checked(DeltaTable(self.uri, storage_options=self.location.delta_options))
        except TableNotFoundError:
            return None
        return self._delta

    def _open_old(self, version: int) -> DeltaTable:
        newest = self._open()
        if newest is None or not 0 <= version <= newest.version():
            versions = f"0 to {newest.version()}" if newest else "none yet"
            raise StoreError(f"table {self.name} has no version {version}; its versions are {versions}")
        return self._checked(DeltaTable(self.uri, version=version, storage_options=self.location.delta_options))

    def _create(self) -> DeltaTable:
        configuration = {
            _VERSION_KEY: str(self.schema.version),
            "delta.checkpointInterval": str(CHECKPOINT_EVERY),
            "delta.enableExpiredLogCleanup": "false",  # old versions stay until `vina gc`, not for 30 days
        }
        delta = DeltaTable.create(
            self.uri,
            DeltaSchema.from_arrow(self.schema.arrow),
            mode="ignore",
            partition_by=list(self.schema.log_columns),
            name=self.name,
            description=self.schema.comment,
            configuration=configuration,
            storage_options=self.location.delta_options,
            raise_if_key_not_exists=False,
        )
        self._delta = self._checked(delta)
        return self._delta

    def _checked(self, delta: DeltaTable) -> DeltaTable:
        stored = delta.metadata().configuration.get(_VERSION_KEY)
        if stored != str(self.schema.version):
            raise SchemaError(
                f"table {self.name} at {self.uri} has schema version {stored}; this code reads and writes version"
                f" {self.schema.version}: use the code that wrote the store, or import into a new store"
            )
        return delta

    def _remove(self, shard: Shard) -> RemoveAction:
        return RemoveAction(shard.path, True, int(time.time() * 1000), shard.num_bytes, log_values(shard.constants))

    def _check(self, partition: Partition) -> None:
        expected = self.schema.partition_by
        if set(partition) != set(expected):
            given = ", ".join(partition) or "nothing"
            raise SchemaError(f"table {self.name} is partitioned by {', '.join(expected)}; given: {given}")

    @contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise StoreError(f"table {self.name}: could not {action} at {self.uri}: {error}") from error
