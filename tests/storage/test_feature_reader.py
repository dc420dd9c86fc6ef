import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from storage import SchemaError, Store, StoreError
from storage.feature_reader import FeatureReader
from storage.range_cache import RangeCache
from storage.vectors import feature_rows
from tests.samples import commit_features, made_with, random_videos

NAMES = ["-a", "_b", "c/d", "é", "v1", "v2", "v3", "v4", "v5", "v6", "x" * 300]


@pytest.fixture
def videos(store: Store) -> dict[str, np.ndarray]:
    videos = random_videos(NAMES)
    items = list(videos.items())
    for shard in range(3):
        commit_features(store, str(shard), dict(items[shard::3]))
    commit_features(store, "other", random_videos(["only-clip", "v1"], width=8, seed=1), backbone="clip")
    return videos


def test_every_video_comes_back_exactly(store: Store, videos: dict[str, np.ndarray]) -> None:
    reader = FeatureReader(store, "s3d-milnce")
    for name in reversed(NAMES):
        assert reader.read(name).dtype == np.float16
        assert np.array_equal(reader.read(name), videos[name])
    assert reader.num_seconds == {name: len(videos[name]) for name in sorted(NAMES)}


def test_backbones_of_any_width_share_the_table(store: Store, videos: dict[str, np.ndarray]) -> None:
    assert FeatureReader(store, "clip").read("v1").shape[1] == 8
    with pytest.raises(StoreError, match="no s3d-milnce features of video 'only-clip'"):
        FeatureReader(store, "s3d-milnce").read("only-clip")


def test_a_long_video_may_be_written_in_parts(store: Store) -> None:
    whole_TD = random_videos(["long"], seed=3)["long"]
    names = {"fingerprint": "f", "run_id": "r"}
    with store.table("features").writer({"backbone": "b"}, "0", **names, constants=made_with()) as writer:
        for start in range(0, len(whole_TD), 7):
            writer.write(feature_rows("long", whole_TD[start : start + 7], first=start))
    reader = FeatureReader(store, "b")
    assert np.array_equal(reader.read("long"), whole_TD)
    assert reader.num_seconds == {"long": len(whole_TD)}


def test_a_very_long_video_is_read_whole(tmp_path: Path) -> None:
    """Ten hours: more rows than pyarrow puts on a page."""
    store = Store(tmp_path / "store")
    long_TD = np.random.default_rng(0).standard_normal((36_000, 3)).astype(np.float16)
    commit_features(store, "0", {"a": long_TD[:5], "long": long_TD, "z": long_TD[-7:]})
    assert np.array_equal(FeatureReader(store, "s3d-milnce").read("long"), long_TD)
    assert np.array_equal(FeatureReader(store, "s3d-milnce").read("z"), long_TD[-7:])


def test_the_caller_may_write_into_what_it_read(store: Store, videos: dict[str, np.ndarray]) -> None:
    vectors_TD = FeatureReader(store, "s3d-milnce").read("v1")
    vectors_TD += 1
    assert np.array_equal(vectors_TD, videos["v1"] + 1)


def test_one_shard_has_vectors_of_one_width(store: Store) -> None:
    mixed = {"a": np.zeros((2, 4), np.float16), "b": np.zeros((2, 5), np.float16)}
    with pytest.raises(SchemaError, match="table features: the width of the vectors differs"):
        commit_features(store, "0", mixed)
    rows = feature_rows("a", mixed["a"])
    rows = rows.set_column(2, "vector", pa.array([b"raw", b"raw"]))
    names = {"fingerprint": "f", "run_id": "r"}
    with pytest.raises(SchemaError, match=r"column vector: use storage\.vectors\.encode, not binary"):
        store.table("features").commit(rows, {"backbone": "b"}, "0", **names, constants=made_with())
    assert store.table("features").snapshot().version == -1


def test_a_video_in_two_shards_is_an_error(store: Store) -> None:
    commit_features(store, "0", random_videos(["twice"]))
    commit_features(store, "1", random_videos(["twice"]))
    for look in (lambda reader: reader.num_seconds, lambda reader: reader.read("twice")):
        with pytest.raises(StoreError, match="video 'twice' is in shard '1' of s3d-milnce and in another"):
            look(FeatureReader(store, "s3d-milnce"))


@pytest.mark.parametrize(
    ("names", "seconds", "message"),
    [
        (["a", "b"], [0, 1], "write the rows of one video_id at a time"),
        (["a", "a"], [1, 0], "second of 'a' does not count up from 0"),
        (["a", "a"], [0, 2], "second of 'a' does not count up from 0"),
        (["a", "a"], [1, 2], "second of 'a' does not count up from 0"),
    ],
)
def test_rows_that_random_access_would_get_wrong_are_refused(
    store: Store, names: list[str], seconds: list[int], message: str
) -> None:
    rows = feature_rows("a", np.zeros((2, 3), np.float16))
    rows = rows.set_column(0, "video_id", pa.array(names)).set_column(1, "second", pa.array(seconds))
    with pytest.raises(SchemaError, match=f"table features: {message}"):
        store.table("features").commit(rows, {"backbone": "b"}, "0", fingerprint="f", run_id="r", constants=made_with())


def test_threads_that_share_a_reader_all_find_their_videos(tmp_path: Path) -> None:
    store, names = Store(tmp_path / "store"), [f"v{number:03d}" for number in range(200)]
    videos = random_videos(names, width=3)
    for shard in range(20):
        commit_features(store, f"{shard:02d}", {name: videos[name] for name in names[shard::20]})
    for seed in range(5):
        order = random.Random(seed).sample(names, len(names))
        with ThreadPoolExecutor(8) as pool:
            vectors = list(pool.map(FeatureReader(store, "s3d-milnce").read, order))
        assert all(np.array_equal(vectors_TD, videos[name]) for name, vectors_TD in zip(order, vectors, strict=True))


def test_a_second_read_from_s3_comes_from_the_cache(s3_uri: str, tmp_path: Path) -> None:
    store = Store(s3_uri)
    commit_features(store, "0", random_videos(NAMES, width=1024))
    cache = RangeCache(tmp_path / "ranges", 10**8)
    reader = FeatureReader(store, "s3d-milnce", cache)
    first = {name: reader.read(name) for name in NAMES}
    misses = cache.misses
    reader = FeatureReader(store, "s3d-milnce", cache)
    again = {name: reader.read(name) for name in reversed(NAMES)}
    assert misses > 0 and cache.misses == misses and cache.hits >= len(NAMES)
    assert all(np.array_equal(first[name], again[name]) for name in NAMES)


def test_the_store_needs_no_torch() -> None:
    code = "import storage, storage.catalogue, storage.feature_reader, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
