"""The rejects of one import, written while it runs, so that memory stays constant.

Shards are named by source and path, so the next import of the same path replaces them.
"""

import os
from pathlib import Path

import pyarrow as pa

from storage import Store
from storage.fingerprint import content_hash, shard_name

ROWS_PER_SHARD = 50_000
_PARTITION = {"stage": "import"}


class RejectLog:
    """Collects the rejects of one import: `add` each, `close` at the end."""

    def __init__(self, store: Store, run_id: str, source: str, path: Path, backbone: str = "") -> None:
        readable_path = os.fspath(path.resolve()).encode(errors="replace").decode()
        self.prefix = f"{source}-{shard_name([readable_path, backbone])}-"
        self._table, self._run_id = store.table("rejects"), run_id
        self._waiting: list[dict[str, object]] = []
        self._shards: list[str] = []

    def add(self, item: str, reason: str, detail: str, file: Path, line: int | None) -> None:
        """Add one reject. Texts that are not UTF-8 are made readable, long ones are cut."""
        texts = {"item": item[:1000], "reason": reason, "detail": detail[:2000], "file": os.fspath(file)}
        row = {name: text.encode(errors="replace").decode() for name, text in texts.items()}
        self._waiting.append(row | {"line": line})
        if len(self._waiting) >= ROWS_PER_SHARD:
            self._write()

    def close(self) -> None:
        """Write the last rejects, and remove those of an earlier import of the same path."""
        if self._waiting:
            self._write()
        if any(name.startswith(self.prefix) for name in self._names()):
            self._table.retire(_PARTITION, keep=self._shards, prefix=self.prefix)

    def _names(self) -> list[str]:
        return [shard.name for shard in self._table.snapshot().where(**_PARTITION).shards]

    def _write(self) -> None:
        rows = pa.Table.from_pylist(self._waiting, schema=self._table.schema.files)
        self._waiting = []
        shard = f"{self.prefix}{len(self._shards):04d}"
        self._shards.append(shard)
        self._table.commit(rows, _PARTITION, shard, fingerprint=content_hash([rows]), run_id=self._run_id)
