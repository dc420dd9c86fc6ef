"""Summarise the content of the store, table by table: `vina tables`."""

from typing import Any

from storage import Store, StoreError


def summarise(store: Store) -> list[dict[str, Any]]:
    """Return for every table its size, its version, the run that wrote last, and its problem if it cannot be read."""
    rows = []
    for table in store.tables():
        row: dict[str, Any] = {"table": table.name, "comment": table.schema.comment, "problem": None}
        try:
            snapshot = table.snapshot()
        except StoreError as error:
            rows.append(row | dict.fromkeys(("rows", "shards", "bytes"), 0) | {"problem": str(error)})
            continue
        last = max(snapshot.shards, key=lambda shard: shard.written_at, default=None)
        rows.append(
            row
            | {
                "rows": snapshot.num_rows,
                "shards": len(snapshot.shards),
                "bytes": snapshot.num_bytes,
                "version": snapshot.version if snapshot.version >= 0 else None,
                "last_run": last.written_by if last else None,
                "last_written": last.written_at.isoformat() if last else None,
            }
        )
    return rows
