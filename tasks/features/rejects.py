"""Rejected videos: one row with the reason for each, until it has features or is no longer listed.

Shards are named BACKBONE/SHARD. During a run each shard of videos writes its own; at the end of the run (or of the next
one, if it was interrupted) `settle` merges the rows that are still valid into one shard.
"""

from collections.abc import Sequence, Set
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from storage import Store
from storage.fingerprint import content_hash
from storage.snapshot import Shard, Snapshot

PARTITION = {"stage": "features"}
MISSING = "file is missing"
"""Reason of videos that every run tries again: a disk may have been unmounted."""


def _stored(store: Store, backbone: str) -> Snapshot:
    return store.table("rejects").snapshot().where(**PARTITION).starting(f"{backbone}/")


def given_up(store: Store, backbone: str) -> set[str]:
    """Return the videos that are tried again only on request."""
    stored = _stored(store, backbone)
    rows = stored.read(["item"], where=pc.field("reason") != MISSING) if stored.shards else None
    return set(rows.column("item").to_pylist()) if rows else set()


def missing_files(store: Store, backbone: str) -> int:
    """Return the number of videos whose file was missing when they were tried."""
    stored = _stored(store, backbone)
    return len(stored.read(["item"], where=pc.field("reason") == MISSING)) if stored.shards else 0


def written(store: Store, backbone: str, shard: str) -> Shard | None:
    """Return the shard of rejects that belongs to a shard of videos, if there is one."""
    return store.table("rejects").snapshot().find(PARTITION, f"{backbone}/{shard}")


def write(store: Store, run_id: str, backbone: str, shard: str, rejects: Sequence[dict[str, Any]]) -> None:
    """Write the rejects of one shard of videos."""
    table, name = store.table("rejects"), f"{backbone}/{shard}"
    if rejects or table.snapshot().find(PARTITION, name):
        rows = pa.Table.from_pylist(rejects, schema=table.schema.files)
        table.commit(rows, PARTITION, name, fingerprint=content_hash([rows]), run_id=run_id)


def settle(store: Store, run_id: str, backbone: str, holding: Set[str], tried: Set[str], shards: Set[str]) -> None:
    """Keep the rows of videos in `holding`; for videos `tried` in this run only the rows of this run's `shards`."""
    stored = _stored(store, backbone)
    rows = stored.read() if stored.shards else None
    if rows is None:
        return
    names = {f"{backbone}/{shard}" for shard in shards}
    keep = [
        item in holding and (item not in tried or shard in names)
        for item, shard in zip(rows["item"].to_pylist(), rows["_shard"].to_pylist(), strict=True)
    ]
    table = store.table("rejects")
    valid_rows = rows.filter(pa.array(keep, pa.bool_())).select(table.schema.files.names)
    if len(valid_rows) == len(rows) and len(stored.shards) == 1:
        return
    settled = f"{backbone}/settled"
    if len(valid_rows):
        table.commit(valid_rows, PARTITION, settled, fingerprint=content_hash([valid_rows]), run_id=run_id)
    table.retire(PARTITION, keep=[settled] if len(valid_rows) else [], prefix=f"{backbone}/")
