"""The narrations that count: one source a video, by the view and shard by shard."""

from pathlib import Path

import pyarrow as pa

from storage import Store
from storage.catalogue import Catalogue, quoted
from storage.views import narrations_of_shard

NARRATED = {("b", "s0"): ["v1", "v2"], ("a", "s0"): ["v2", "v3"], ("c", "s0"): ["v1", "v2", "v4"], ("c", "s1"): ["v5"]}
"""By source and shard."""
COUNTED = {("b", "v1"), ("a", "v2"), ("a", "v3"), ("c", "v4"), ("c", "v5")}


def narrated_store(folder: Path) -> Store:
    store = Store(folder / "store")
    table = store.table("narrations")
    for (source, shard), videos in NARRATED.items():
        rows = [
            {"video_id": video, "row": row, "text": f"{source}{row}", "start_s": row, "end_s": row + 1}
            for video in videos
            for row in range(2)
        ]
        content = pa.Table.from_pylist(rows, schema=table.schema.files)
        table.commit(content, {"source": source}, shard, fingerprint=f"{source}{shard}", run_id="import")
    return store


def test_the_first_source_by_name_counts(tmp_path: Path) -> None:
    with Catalogue(narrated_store(tmp_path)) as catalogue:
        rows = catalogue.query("FROM video_narrations").to_pylist()
        names = catalogue.query("FROM narrations LIMIT 0").column_names
    assert {(row["source"], row["video_id"]) for row in rows} == COUNTED
    assert len(rows) == 2 * len(COUNTED) and list(rows[0]) == names


def test_shard_by_shard_they_are_the_same(tmp_path: Path) -> None:
    with Catalogue(narrated_store(tmp_path)) as catalogue:
        queries = [narrations_of_shard(quoted(source), quoted(shard)) for source, shard in NARRATED]
        by_shard = [row for query in queries for row in catalogue.query(query).to_pylist()]
        rows = catalogue.query("FROM video_narrations").to_pylist()
    assert sorted(map(repr, by_shard)) == sorted(map(repr, rows))
