"""Videos that gave no features, and why: a row each, until they have features or are no longer listed.

The rows of a backbone are in shards that its name begins. While a run goes on each of its shards writes its own; at the
end (or at the next run's, if it was interrupted) `settle` leaves one shard with what still holds.
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
"""Whoever unmounted a disk mounts it again: such videos are tried by every run."""


def _known(store: Store, backbone: str) -> Snapshot:
    return store.table("rejects").snapshot().where(**PARTITION).starting(f"{backbone}/")


def given_up(store: Store, backbone: str) -> set[str]:
    """The videos that are not to be tried again unasked."""
    known = _known(store, backbone)
    rows = known.read(["item"], where=pc.field("reason") != MISSING) if known.shards else None
    return set(rows.column("item").to_pylist()) if rows else set()


def missing_files(store: Store, backbone: str) -> int:
    """How many videos had no file when they were tried."""
    known = _known(store, backbone)
    return len(known.read(["item"], where=pc.field("reason") == MISSING)) if known.shards else 0


def written(store: Store, backbone: str, shard: str) -> Shard | None:
    """What a shard of videos has left here."""
    return store.table("rejects").snapshot().find(PARTITION, f"{backbone}/{shard}")


def write(store: Store, run_id: str, backbone: str, shard: str, rejects: Sequence[dict[str, Any]]) -> None:
    """The rejects of one shard of videos."""
    table, name = store.table("rejects"), f"{backbone}/{shard}"
    if rejects or table.snapshot().find(PARTITION, name):
        rows = pa.Table.from_pylist(rejects, schema=table.schema.files)
        table.commit(rows, PARTITION, name, fingerprint=content_hash([rows]), run_id=run_id)


def settle(store: Store, run_id: str, backbone: str, holding: Set[str], tried: Set[str], shards: Set[str]) -> None:
    """Leave what still holds: rows of `holding` videos, and of those `tried` in this run only what its shards said."""
    known = _known(store, backbone)
    rows = known.read() if known.shards else None
    if rows is None:
        return
    names = {f"{backbone}/{shard}" for shard in shards}
    keep = [
        item in holding and (item not in tried or shard in names)
        for item, shard in zip(rows["item"].to_pylist(), rows["_shard"].to_pylist(), strict=True)
    ]
    table = store.table("rejects")
    left = rows.filter(pa.array(keep, pa.bool_())).select(table.schema.files.names)
    if len(left) == len(rows) and len(known.shards) == 1:
        return
    settled = f"{backbone}/settled"
    if len(left):
        table.commit(left, PARTITION, settled, fingerprint=content_hash([left]), run_id=run_id)
    table.retire(PARTITION, keep=[settled] if len(left) else [], prefix=f"{backbone}/")
