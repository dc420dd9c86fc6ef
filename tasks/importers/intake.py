"""What an import keeps and what it rejects, on its way into the store.

Rows are kept by key (a video, an article): a key that the store has already from this source is left as it is, so a
second import of the same files adds nothing and one that was interrupted goes on where it stopped. A key that comes
twice in the input is rejected the second time. Shards are named by their content and committed as they fill up, while
reading goes on. One import of a source at a time.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from storage import Store
from tasks.importers.text_files import BadFile

ROWS_PER_SHARD = 500_000
BYTES_PER_SHARD = 128 << 20
LOOSE_ROWS = 20_000
LONGEST_ID = 500
_TWO_PART_KEYS = {"videos": ("video_id", "task_id"), "annotations": ("video_id", "task_id")}
Partition = Mapping[str, str]
Key = str | tuple[str, str]
_Slot = tuple[str, tuple[tuple[str, str], ...]]


@dataclass
class Summary:
    """What an import did."""

    source: str
    path: str
    num_files: int = 0
    """Files of the source that were found."""
    read: Counter[str] = field(default_factory=Counter)
    """Rows, good or bad, by table; of features: videos."""
    kept: Counter[str] = field(default_factory=Counter)
    """Rows that are in the store now and were not before, by table."""
    present: Counter[str] = field(default_factory=Counter)
    """Rows that the store had already, by table."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Rejects, by reason."""
    notes: list[str] = field(default_factory=list)
    """Files that were not found, and what follows from that."""
    damaged: list[str] = field(default_factory=list)
    """Files that could not be read to their end."""


class Admission(Enum):
    """What becomes of the rows of a key."""

    NEW = auto()
    PRESENT = auto()
    """The store has them: they are checked, so that their rejects are known, but not kept again."""
    REFUSED = auto()


class Intake:
    """A context manager around one import. `new` asks whether a key is wanted, `keep` takes its rows."""

    def __init__(
        self,
        store: Store,
        run_id: str,
        source: str,
        path: Path,
        on_progress: Callable[[Summary], None] = lambda summary: None,
        replace: bool = False,
    ) -> None:
        self.summary = Summary(source, str(path))
        self._store, self._run_id, self._replace, self._on_progress = store, run_id, replace, on_progress
        self._seen: dict[_Slot, set[str]] = {}
        self._stored: dict[_Slot, set[str]] = {}
        self._loose: dict[_Slot, list[dict[str, Any]]] = {}
        self._waiting: dict[_Slot, list[pa.Table]] = {}
        self._sizes: Counter[_Slot] = Counter()
        self._constants: dict[_Slot, Mapping[str, Any]] = {}
        self._shards: dict[_Slot, list[str]] = {}
        self._rejects: list[dict[str, Any]] = []
        self._reject_tables: list[pa.Table] = []
        self._commits = ThreadPoolExecutor(1)
        self._commit: Future[None] | None = None

    def __enter__(self) -> "Intake":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                for slot in list(self._loose):
                    self._pack(slot)
                for slot in list(self._waiting):
                    self._flush(slot)
            if self._commit:
                self._commit.result()
            self._write_rejects()
            if error is None and self._replace and not self.summary.damaged:
                self._retire_old()
        finally:
            self._commits.shutdown()

    def new(self, table: str, partition: Partition, key: Key, file: Path, line: int | None = None) -> bool:
        """Whether the row of this key is wanted: it makes sense, and is new to this import and to the store."""
        return self.admit(table, partition, key, file, line) is Admission.NEW

    def admit(
        self, table: str, partition: Partition, key: Key, file: Path, line: int | None = None, rows: int = 1
    ) -> "Admission":
        """What is to be done with the rows of this key. One that came before in this import is rejected."""
        slot = _slot(table, partition)
        if slot not in self._seen:
            self._seen[slot] = set()
            self._stored[slot] = set() if self._replace else self._stored_keys(table, partition)
        name = key if isinstance(key, str) else "\x1f".join(key)
        self.summary.read[table] += rows
        if reason := _key_problem(name, name in self._seen[slot]):
            self.reject(
                name[:100].replace("\x1f", ", ") or "(empty)",
                reason,
                f"the key of {rows:,} rows of {table}",
                file,
                line,
            )
            return Admission.REFUSED
        self._seen[slot].add(name)
        if name in self._stored[slot]:
            self.summary.present[table] += rows
            return Admission.PRESENT
        return Admission.NEW

    def keep(
        self,
        table: str,
        partition: Partition,
        rows: pa.Table | Sequence[dict[str, Any]],
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        """Take the rows of keys that are new. In a table with vectors: the rows of one key."""
        slot = _slot(table, partition)
        self.summary.kept[table] += 1 if self._store.table(table).schema.sequence else len(rows)
        if isinstance(rows, pa.Table):
            self._constants[slot] = dict(constants or {})
            self._queue(slot, rows)
            return
        loose = self._loose.setdefault(slot, [])
        loose.extend(rows)
        if len(loose) >= LOOSE_ROWS:
            self._pack(slot)

    def _pack(self, slot: _Slot) -> None:
        """Rows that came one by one, as a table."""
        if loose := self._loose.pop(slot, []):
            self._queue(slot, pa.Table.from_pylist(loose, schema=self._store.table(slot[0]).schema.files))

    def _queue(self, slot: _Slot, rows: pa.Table) -> None:
        self._waiting.setdefault(slot, []).append(rows)
        self._sizes[slot] += max(rows.num_rows * BYTES_PER_SHARD // ROWS_PER_SHARD, rows.nbytes)
        if self._sizes[slot] >= BYTES_PER_SHARD:
            self._flush(slot)

    def keep_article(
        self, source: str, article: dict[str, Any], steps: list[dict[str, Any]], file: Path, line: int | None
    ) -> None:
        """An article with its steps in order, what of it is not known already. A step's row is its place."""
        partition, own_id = {"source": source}, article["article_id"]
        if own_id in self._seen.get(_slot("articles", partition), ()):
            self.new("articles", partition, own_id, file, line)  # rejects it
            return
        if self.new("articles", partition, own_id, file, line):
            self.keep("articles", partition, [article])
        # Asked for itself: an import may have been killed between the two tables' commits.
        if self.admit("steps", partition, own_id, file, line, rows=len(steps)) is Admission.NEW:
            self.keep("steps", partition, [{"article_id": own_id, "row": row} | step for row, step in enumerate(steps)])

    def reject(self, item: str, reason: str, detail: str, file: Path, line: int | None = None) -> None:
        """Take note of something that cannot be used."""
        self.summary.rejected[reason] += 1
        self._rejects.append(
            {"item": item[:1000], "reason": reason, "detail": detail[:2000], "file": str(file), "line": line}
        )
        if len(self._rejects) >= 10_000:
            self._pack_rejects()

    @contextmanager
    def file(self, path: Path, one_item: bool = False) -> Iterator[None]:
        """Around the reading of one file: what is wrong with it as a whole is rejected, and the import goes on.

        A file that is one item among thousands is a reject like any other; a damaged data set is said so at the end.
        """
        self.summary.num_files += 1
        try:
            yield
        except (BadFile, OSError) as error:
            bad = error if isinstance(error, BadFile) else BadFile("file cannot be read", f"{path}: {error}")
            self.reject(path.name, bad.reason, bad.detail, path, bad.line)
            if not one_item:
                self.summary.damaged.append(bad.detail)

    def note(self, text: str) -> None:
        """Say something in the summary."""
        self.summary.notes.append(text)

    def stored_steps(self, source: str) -> dict[tuple[str, str], str]:
        """Headlines of the steps that earlier imports brought, by article and step id."""
        rows = self._store.table("steps").snapshot().where(source=source).read(["article_id", "step_id", "headline"])
        return {(row["article_id"], row["step_id"]): row["headline"] for row in rows.to_pylist()}

    def _stored_keys(self, table: str, partition: Partition) -> set[str]:
        snapshot = self._store.table(table).snapshot().where(**partition)
        columns = _TWO_PART_KEYS.get(table) or (str(snapshot.schema.key),)
        keys: set[str] = set()
        with snapshot.errors():
            for batch in snapshot.dataset().to_batches(columns=list(columns)):
                parts = [pc.fill_null(batch.column(name), "") for name in columns]
                joined = pc.binary_join_element_wise(*parts, "\x1f") if len(parts) > 1 else parts[0]
                keys.update(pc.unique(joined).to_pylist())
        return keys

    def _flush(self, slot: _Slot) -> None:
        """Commit what waits, in the background; at most one shard is on its way."""
        tables = self._waiting.pop(slot, [])
        self._sizes[slot] = 0
        if self._commit:
            self._commit.result()
        self._on_progress(self.summary)
        if tables:
            self._commit = self._commits.submit(self._write, slot, tables)

    def _write(self, slot: _Slot, tables: list[pa.Table]) -> None:
        name, partition = slot[0], dict(slot[1])
        table = self._store.table(name)
        if not table.schema.vectors:
            tables = [pa.concat_tables(tables).combine_chunks()]
        content = _hash(tables)
        shard = f"{self.summary.source}-{content[:16]}"
        self._shards.setdefault(slot, []).append(shard)
        constants = self._constants.get(slot)
        with table.writer(partition, shard, fingerprint=content, run_id=self._run_id, constants=constants) as writer:
            for rows in tables:
                writer.write(rows)

    def _retire_old(self) -> None:
        for (name, partition), shards in self._shards.items():
            self._store.table(name).retire(dict(partition), keep=shards)

    def _pack_rejects(self) -> None:
        schema = self._store.table("rejects").schema.files
        self._reject_tables.append(pa.Table.from_pylist(self._rejects, schema=schema))
        self._rejects = []

    def _write_rejects(self) -> None:
        """One shard for each source and path: an import of the same path replaces it."""
        self._pack_rejects()
        rows = pa.concat_tables(self._reject_tables).combine_chunks()
        table, partition = self._store.table("rejects"), {"stage": "import"}
        place = hashlib.sha256(self.summary.path.encode()).hexdigest()[:16]
        shard = f"{self.summary.source}-{place}"
        if rows.num_rows or table.snapshot().find(partition, shard):
            table.commit(rows, partition, shard, fingerprint=_hash([rows]), run_id=self._run_id)


def _key_problem(name: str, is_known: bool) -> str | None:
    if not name.strip() or name.startswith("\x1f"):
        return "empty id"
    if len(name.encode(errors="replace")) > LONGEST_ID:
        return "id too long"
    return "duplicate id" if is_known else None


def _slot(table: str, partition: Partition) -> _Slot:
    return table, tuple(sorted(partition.items()))


def _hash(tables: list[pa.Table]) -> str:
    """Hash of the rows' content."""
    digest = hashlib.blake2b(digest_size=16)
    for rows in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        digest.update(sink.getvalue())
    return digest.hexdigest()
