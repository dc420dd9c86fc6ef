"""The store against `np.load` of one file a video, and against DuckDB on one plain Parquet file."""

import random
import statistics
import subprocess
import sys
import time
from multiprocessing.context import ForkServerContext
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage import Store
from storage.catalogue import Catalogue
from storage.feature_reader import FeatureReader
from storage.vectors import feature_rows
from tests.benchmarks.measure import ratio_of_times, report
from tests.samples import commit_votes, made_with
from tests.storage.test_crashes import between_commits, commit_at_once, kill_writers, processes

__all__ = ["processes"]  # a fixture

SECONDS, WIDTH, VIDEOS_PER_SHARD = 20_000, 1024, 16


def lengths(total_s: int, seed: int = 0) -> list[int]:
    """Lengths of how-to videos: 60 to 1,024 s, 400 s in the mean."""
    rng, chosen = np.random.default_rng(seed), []
    while sum(chosen) < total_s:
        chosen.append(int(np.clip(rng.lognormal(5.8, 0.5), 60, 1024)))
    return chosen


def write_features(store: Store, total_s: int, npy_folder: Path | None = None) -> list[str]:
    rng, names = np.random.default_rng(1), []
    sizes = lengths(total_s)
    for shard in range(0, len(sizes), VIDEOS_PER_SHARD):
        partition, name = {"backbone": "s3d-milnce"}, f"{shard // VIDEOS_PER_SHARD:05d}"
        names_of = {"fingerprint": "f", "run_id": "bench", "constants": made_with(fps=16.0, frames_per_clip=16)}
        with store.table("features").writer(partition, name, **names_of) as writer:
            for number, size in enumerate(sizes[shard : shard + VIDEOS_PER_SHARD], start=shard):
                vectors_TD = rng.standard_normal((size, WIDTH), np.float32).astype(np.float16)
                names.append(f"video-{number:06d}")
                writer.write(feature_rows(names[-1], vectors_TD))
                if npy_folder:
                    np.save(npy_folder / f"{names[-1]}.npy", vectors_TD)
    return names


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[str], Path]:
    folder = tmp_path_factory.mktemp("npy")
    store = Store(tmp_path_factory.mktemp("bench") / "store")
    return store, write_features(store, SECONDS, folder), folder


def test_random_video_reads(features: tuple[Store, list[str], Path]) -> None:
    store, names, folder = features
    reader = FeatureReader(store, "s3d-milnce")
    for name in names:
        assert np.array_equal(reader.read(name), np.load(folder / f"{name}.npy"))
    order = random.Random(0).choices(names, k=300)
    slow, fast, ratio = ratio_of_times(
        lambda: [np.load(folder / f"{name}.npy") for name in order], lambda: [reader.read(name) for name in order]
    )
    detail = f"np.load {slow / 300 * 1e6:.0f} us a video, ours {fast / 300 * 1e6:.0f} us"
    report("random video reads, np.load / ours", ratio, ">= 1.0", detail)


def test_sequential_scan(features: tuple[Store, list[str], Path]) -> None:
    store, names, folder = features
    assert list(FeatureReader(store, "s3d-milnce").num_seconds) == names

    def scan() -> int:
        reader = FeatureReader(store, "s3d-milnce")
        return sum(len(reader.read(name)) for name in names)

    slow, fast, ratio = ratio_of_times(
        lambda: sum(np.load(folder / f"{name}.npy").shape[0] for name in names),
        scan,
        repeats=15,
    )
    detail = f"np.load {slow * 1e3:.1f} ms, ours {fast * 1e3:.1f} ms with opening the store"
    report("sequential scan, np.load / ours", ratio, ">= 0.8", detail)


def test_size_on_disk(features: tuple[Store, list[str], Path]) -> None:
    store, names, folder = features
    on_disk = sum(path.stat().st_size for path in Path(store.uri, "features").rglob("*") if path.is_file())
    raw = sum(np.load(folder / f"{name}.npy", mmap_mode="r").nbytes for name in names)
    assert on_disk <= 1.05 * raw
    report("size on disk / raw float16", on_disk / raw, "<= 1.05", f"{on_disk:,} bytes, log included, and {raw:,}")


SCAN = """
import sys
from pathlib import Path
from storage import Store
from storage.feature_reader import FeatureReader
reader = FeatureReader(Store(sys.argv[1]), "s3d-milnce")
rows = sum(len(reader.read(name)) for name in reader.num_seconds)
print(rows, Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def test_memory_of_a_full_scan(features: tuple[Store, list[str], Path], tmp_path: Path) -> None:
    small = features[0]
    large = Store(tmp_path / "large")
    write_features(large, 10 * SECONDS)
    peaks = []
    for store, at_least in ((small, SECONDS), (large, 10 * SECONDS)):
        answer = subprocess.run([sys.executable, "-c", SCAN, store.uri], capture_output=True, text=True, check=True)
        rows, peak_kb = map(int, answer.stdout.split())
        assert rows >= at_least
        peaks.append(peak_kb / 1000)
    assert peaks[1] <= 1.1 * peaks[0]
    detail = f"{peaks[0]:.0f} MB at {SECONDS:,} s, {peaks[1]:.0f} MB at {10 * SECONDS:,} s"
    report("peak memory of a full scan, 10x / 1x data", peaks[1] / peaks[0], "<= 1.1", detail)


def label_shard(size: int, rng: np.random.Generator) -> pa.Table:
    peaks = rng.integers(0, 400, size)
    scores = rng.random(size, np.float32)
    kept = scores > 0.65
    reasons = np.where(kept, "confidence reaches gamma", "confidence below gamma")
    return pa.table(
        {
            "video_id": [f"video-{number:07d}" for number in np.sort(rng.integers(0, 370_000, size))],
            "article_id": pa.array(rng.integers(0, 14_541, size)).cast(pa.string()),
            "step_row": rng.integers(0, 12, size),
            "peak_s": peaks,
            "score": scores,
            "start_s": (peaks - 2).astype(np.float32),
            "end_s": (peaks + 3).astype(np.float32),
            "kept": kept,
            "reason": reasons,
            "confidence": scores,
            "gamma": np.full(size, 0.65, np.float32),
            "matrix": ["SV"] * size,
            "teacher": ["tan-lc"] * size,
        }
    )


GROUP_BY = """
    SELECT round, article_id, count(*) AS labels, avg(kept::INT) AS kept, avg(score) AS score
    FROM {source} GROUP BY ALL ORDER BY ALL"""


def test_group_by_over_four_million_labels(tmp_path: Path) -> None:
    store, rng = Store(tmp_path / "store"), np.random.default_rng(0)
    for shard in range(40):
        partition: dict[str, str | int] = {"model_id": "bench", "round": shard // 10}
        rows = label_shard(100_000, rng)
        store.table("pseudo_labels").commit(rows, partition, f"{shard:03d}", fingerprint="f", run_id="bench")
    plain = str(tmp_path / "plain.parquet")
    pq.write_table(store.table("pseudo_labels").snapshot().read(), plain, compression="zstd", row_group_size=122_880)
    with duckdb.connect() as direct, Catalogue(store) as catalogue:
        theirs = GROUP_BY.format(source=f"read_parquet('{plain}')")
        ours = GROUP_BY.format(source="pseudo_labels")
        columns = ["round", "article_id", "labels"]
        assert direct.sql(theirs).to_arrow_table().select(columns).equals(catalogue.query(ours).select(columns))
        slow, fast, ratio = ratio_of_times(lambda: direct.sql(theirs).to_arrow_table(), lambda: catalogue.query(ours))
    detail = f"one plain file {slow * 1e3:.0f} ms, the store's 40 shards {fast * 1e3:.0f} ms"
    report("group-by over 4,000,000 labels, ours / one plain Parquet file", 1 / ratio, "<= 2.0", detail)


@pytest.mark.parametrize(("where", "count"), [("disk", 5_000), ("s3", 500)])
def test_many_shards(request: pytest.FixtureRequest, tmp_path: Path, where: str, count: int) -> None:
    uri = str(tmp_path / "store") if where == "disk" else request.getfixturevalue("s3_uri")
    store, seconds = Store(uri), []
    for shard in range(count):
        started = time.perf_counter()
        commit_votes(store, f"{shard:05d}", f"video-{shard:05d}")
        seconds.append(time.perf_counter() - started)
    started = time.perf_counter()
    assert len(Store(uri).table("votes").snapshot().shards) == count
    opened = time.perf_counter() - started
    started = time.perf_counter()
    with Catalogue(Store(uri)) as catalogue:
        assert catalogue.query("SELECT count(*) AS n FROM votes").to_pylist() == [{"n": count}]
    asked = time.perf_counter() - started
    middle = {at: statistics.median(seconds[at - 50 : at]) * 1e3 for at in (50, count // 5, count)}
    print(
        f"\n{where}: commits take "
        + ", ".join(f"{ms:.0f} ms at {at:,} shards" for at, ms in middle.items())
        + f"; opening a table of {count:,} shards {opened * 1e3:.0f} ms; a catalogue and a count {asked:.1f} s"
    )


def test_writers_killed_fifty_times(store_uri: str, processes: ForkServerContext) -> None:
    shards_written = kill_writers(store_uri, processes, 50)
    assert shards_written.total() == 50 and between_commits(shards_written) >= 3
    print(f"\n50 writers killed, {between_commits(shards_written)} of them between two commits: every shard is whole")


def test_two_processes_commit_four_hundred_shards(store_uri: str, processes: ForkServerContext) -> None:
    commit_at_once(store_uri, processes, 200)
