"""One import: decide which rows are new or rejected, and write them into shards.

Rows are kept by key (a video, an article): a key that the store already has from this source is left unchanged, so a
second import of the same files adds nothing, and the next import completes an interrupted one. A key that occurs
twice in the input is rejected the second time. Shards are named by their content and committed while
reading goes on. Run one import of a source at a time: two at once may both take a key for new.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

import pyarrow as pa

from storage import Store
from storage.fingerprint import content_hash
from tasks.importers.reject_log import RejectLog
from tasks.importers.summary import Summary
from tasks.importers.text_files import BadFile

ROWS_PER_SHARD = 500_000
BYTES_PER_SHARD = 128 << 20
LOOSE_ROWS = 20_000
LONGEST_ID = 500
_JOINT = "\x1f"
Partition = Mapping[str, str]
Key = str | tuple[str, str]
"""A video or an article; or a video and its task, if a data set may list a video under several tasks."""
_Slot = tuple[str, tuple[tuple[str, str], ...]]


class Admission(Enum):
    """What is done with the rows of a key."""

    NEW = auto()
    PRESENT = auto()
    """The store has them: they are checked, to count their rejects, but not stored again."""
    REFUSED = auto()


@dataclass(frozen=True)
class RowsOf:
    """Collects the rejects of a reader of one table, and counts them as rows read."""

    session: "ImportSession"
    table: str

    def reject(self, item: str, reason: str, detail: str, file: Path, line: int | None, rows: int = 1) -> None:
        """Record rows that cannot be used and are not counted as read yet."""
        self.session.summary.read[self.table] += rows
        self.session.reject(item, reason, detail, file, line)


class ImportSession:
    """A context manager around one import: call `new` or `admit` for a key, then `keep` its rows."""

    def __init__(
        self,
        store: Store,
        run_id: str,
        source: str,
        path: Path,
        backbone: str = "",
        on_progress: Callable[[Summary], None] = lambda summary: None,
    ) -> None:
        self._store, self._run_id, self._on_progress = store, run_id, on_progress
        self._reject_log = RejectLog(store, run_id, source, path, backbone)
        self.summary = Summary(source, str(path), rejects_shard=self._reject_log.prefix)
        self._seen: dict[_Slot, set[str]] = {}
        self._stored: dict[tuple[_Slot, tuple[str, ...]], set[str]] = {}
        self._loose: dict[_Slot, list[dict[str, Any]]] = {}
        self._waiting: dict[_Slot, list[pa.Table]] = {}
        self._sizes: Counter[_Slot] = Counter()
        self._constants: dict[_Slot, Mapping[str, Any]] = {}
        self._commits = ThreadPoolExecutor(1)
        self._commit: Future[None] | None = None

    def __enter__(self) -> "ImportSession":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Commit what was kept, also if an error ended the import; not if the user interrupted it."""
        try:
            if error is None or isinstance(error, Exception):
                for slot in list(self._loose):
                    self._pack(slot)
                for slot in list(self._waiting):
                    self._flush(slot)
            if self._commit:
                self._commit.result()
            self._reject_log.close()
        finally:
            self._commits.shutdown()

    def rows_of(self, table: str) -> RowsOf:
        """Return the collector of rejects for a reader of this table."""
        return RowsOf(self, table)

    def new(self, table: str, partition: Partition, key: Key, file: Path, line: int | None = None) -> bool:
        """Return whether the one row of this key is valid, and new to this import and to the store."""
        admission = self.admit(table, partition, key, file, line)
        self.summary.present[table] += admission is Admission.PRESENT
        return admission is Admission.NEW

    def admit(
        self, table: str, partition: Partition, key: Key, file: Path, line: int | None = None, rows: int = 1
    ) -> Admission:
        """Return what to do with the rows of this key. A key that occurs again in this import is rejected."""
        seen, name = self._seen.setdefault(_slot(table, partition), set()), _name(key)
        self.summary.read[table] += rows
        if reason := _key_problem(name, name in seen):
            item = name[:100].replace(_JOINT, ", ") or "(empty)"
            self.reject(item, reason, f"the key of {rows:,} rows of {table}", file, line)
            return Admission.REFUSED
        seen.add(name)
        return Admission.PRESENT if self.is_stored(table, partition, key) else Admission.NEW

    def is_stored(self, table: str, partition: Partition, key: Key) -> bool:
        """Return whether the store had rows of this key when the import began."""
        columns = ("video_id", "article_id") if isinstance(key, tuple) else (str(self._store.table(table).schema.key),)
        stored_keys = _slot(table, partition), columns
        if stored_keys not in self._stored:
            self._stored[stored_keys] = (
                self._store.table(table).snapshot().where(**partition).distinct(*columns, joint=_JOINT)
            )
        return _name(key) in self._stored[stored_keys]

    def keep(
        self,
        table: str,
        partition: Partition,
        rows: pa.Table | Sequence[dict[str, Any]],
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the rows of new keys; in a table with vectors the rows of one key."""
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

    def keep_or_count(
        self, admission: Admission, table: str, partition: Partition, rows: Sequence[dict[str, Any]]
    ) -> None:
        """Keep the good rows of a key that is new; count those of one that is present."""
        if admission is Admission.NEW and rows:
            self.keep(table, partition, rows)
        elif admission is Admission.PRESENT:
            self.summary.present[table] += len(rows)

    def keep_article(
        self, source: str, article: dict[str, Any], steps: list[dict[str, Any]], file: Path, line: int | None
    ) -> None:
        """Keep an article and its steps, if they are new. The row of a step is its position in the article."""
        partition, article_id = {"source": source}, article["article_id"]
        admission = self.admit("articles", partition, article_id, file, line)
        self.keep_or_count(admission, "articles", partition, [article])
        if admission is Admission.REFUSED:
            self.summary.read["steps"] += len(steps)
            return
        # Steps are checked separately: an import may have been killed between the commits of the two tables.
        admission = self.admit("steps", partition, article_id, file, line, rows=len(steps))
        rows = [{"article_id": article_id, "row": row} | step for row, step in enumerate(steps)]
        self.keep_or_count(admission, "steps", partition, rows)

    def reject(self, item: str, reason: str, detail: str, file: Path, line: int | None = None) -> None:
        """Record something that cannot be used."""
        self.summary.rejected[reason] += 1
        self._reject_log.add(item, reason, detail, file, line)

    @contextmanager
    def file(self, path: Path, one_item: bool = False) -> Iterator[None]:
        """Read one file inside this context; a damaged file is rejected, and the import continues.

        A file that is one item among thousands is an ordinary reject; other damaged files are listed in the summary.
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
        """Add a note to the summary."""
        self.summary.notes.append(text)

    def stored_rows(self, table: str, source: str, *columns: str) -> list[dict[str, Any]]:
        """Return rows of earlier imports of a source."""
        snapshot = self._store.table(table).snapshot().where(source=source)
        return list(snapshot.read(columns).to_pylist()) if snapshot.shards else []

    def _pack(self, slot: _Slot) -> None:
        """Turn collected rows into a table."""
        if loose := self._loose.pop(slot, []):
            self._queue(slot, pa.Table.from_pylist(loose, schema=self._store.table(slot[0]).schema.files))

    def _queue(self, slot: _Slot, rows: pa.Table) -> None:
        self._waiting.setdefault(slot, []).append(rows)
        self._sizes[slot] += max(rows.num_rows * BYTES_PER_SHARD // ROWS_PER_SHARD, rows.nbytes)
        if self._sizes[slot] >= BYTES_PER_SHARD:
            self._flush(slot)

    def _flush(self, slot: _Slot) -> None:
        """Commit the collected tables in the background, one shard at a time."""
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
        content = content_hash(tables)
        shard, constants = f"{self.summary.source}-{content[:16]}", self._constants.get(slot)
        with table.writer(partition, shard, fingerprint=content, run_id=self._run_id, constants=constants) as writer:
            for rows in tables:
                writer.write(rows)


def _name(key: Key) -> str:
    return key if isinstance(key, str) else _JOINT.join(key)


def _key_problem(name: str, is_repeated: bool) -> str | None:
    if not name.strip() or name.startswith(_JOINT):
        return "empty id"
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "id is not UTF-8"
    if size > LONGEST_ID:
        return "id too long"
    return "duplicate id" if is_repeated else None


def _slot(table: str, partition: Partition) -> _Slot:
    return table, tuple(sorted(partition.items()))
