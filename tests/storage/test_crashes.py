"""Writers that are killed, and writers that race: nothing half written, nothing lost."""

import multiprocessing
import os
import random
import signal
import threading
import time
from collections import Counter
from multiprocessing.context import ForkServerContext

import numpy as np
import pytest

from storage import Store
from storage.feature_reader import FeatureReader
from storage.vectors import feature_rows
from tests.samples import commit_votes, made_with, video_ids

pytestmark = pytest.mark.slow
SHARDS, VIDEOS_PER_SHARD = 3, 3
BACKBONE = {"backbone": "b"}


def expected_video(round_: int, shard: int, video: int) -> np.ndarray:
    return np.random.default_rng([round_, shard, video]).standard_normal((30, 256)).astype(np.float16)


def write_round(uri: str, round_: int, environment: dict[str, str]) -> None:
    """Replace every shard by this round's content."""
    os.environ.update(environment)
    table = Store(uri).table("features")
    for shard in range(SHARDS):
        names = {"fingerprint": f"round {round_}", "run_id": f"run-{round_}"}
        with table.writer(BACKBONE, str(shard), **names, constants=made_with()) as writer:
            for video in range(VIDEOS_PER_SHARD):
                writer.write(feature_rows(f"{shard}-{video}", expected_video(round_, shard, video)))


def check_only_whole_shards(uri: str) -> list[str]:
    """Every visible shard holds all of its videos, in the version its fingerprint says; returns the fingerprints."""
    store = Store(uri)
    snapshot = store.table("features").snapshot()
    reader = FeatureReader(store, "b")
    seen = {video_id: reader.read(video_id) for video_id in reader.num_seconds}
    assert len(seen) == VIDEOS_PER_SHARD * len(snapshot.shards)
    for shard in snapshot.shards:
        round_ = int(shard.fingerprint.removeprefix("round "))
        for video in range(VIDEOS_PER_SHARD):
            expected_TD = expected_video(round_, int(shard.name), video)
            assert np.array_equal(seen[f"{shard.name}-{video}"], expected_TD)
    rows = snapshot.read(["_shard", "_fingerprint", "_written_by"]).to_pylist()
    assert set(Counter(row["_shard"] for row in rows).values()) <= {30 * VIDEOS_PER_SHARD}
    return [shard.fingerprint for shard in snapshot.shards]


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """New processes that have the imports behind them, so that a kill hits the work and not the start."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["storage.feature_reader", "tests.samples", "tests.storage.test_crashes"])
    return context


def between_commits(shards_written: Counter[int]) -> int:
    """How many of the kills fell between the first commit of a writer and its last."""
    return sum(shards_written[some] for some in range(1, SHARDS))


def kill_writers(store_uri: str, processes: ForkServerContext, num_kills: int) -> Counter[int]:
    """Kill writers at moments all over a write; return how many had then committed 0, 1, ... of their shards."""
    environment = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}

    def undisturbed(round_: int) -> float:
        started = time.monotonic()
        writer = processes.Process(target=write_round, args=(store_uri, round_, environment))
        writer.start()
        writer.join()
        duration_s = time.monotonic() - started
        assert check_only_whole_shards(store_uri) == [f"round {round_}"] * SHARDS
        return duration_s

    undisturbed(0)
    duration_s = undisturbed(1)
    shards_written, round_, moment = Counter[int](), 1, random.Random(0).random()
    while shards_written.total() < num_kills or (not between_commits(shards_written) and round_ < 5 * num_kills):
        round_ += 1
        writer = processes.Process(target=write_round, args=(store_uri, round_, environment))
        writer.start()
        moment = (moment + 0.618) % 1  # of the write; few kills cover all of it too
        time.sleep(duration_s * moment)
        writer.kill()
        writer.join()
        fingerprints = check_only_whole_shards(store_uri)
        assert len(fingerprints) == SHARDS
        if writer.exitcode == -signal.SIGKILL:
            shards_written[fingerprints.count(f"round {round_}")] += 1
        if round_ % 5 == 0:  # a rerun ends as if nothing had happened
            duration_s = undisturbed(round_)
    Store(store_uri).table("features").gc(older_than_hours=0)
    undisturbed(999)
    return shards_written


def test_a_writer_killed_anywhere_leaves_whole_shards(store_uri: str, processes: ForkServerContext) -> None:
    """Eight kills; tests/benchmarks/test_store.py has fifty."""
    shards_written = kill_writers(store_uri, processes, 8)
    assert shards_written.total() >= 8
    assert between_commits(shards_written) >= 1, f"no kill fell between commits: {shards_written}"


def write_shards(uri: str, writer: int, count: int, environment: dict[str, str]) -> None:
    os.environ.update(environment)
    store = Store(uri)
    for number in range(count):
        assert commit_votes(store, f"{writer}-{number}", f"video-{writer}-{number}", run=f"run-{writer}")


def commit_at_once(store_uri: str, processes: ForkServerContext, num_shards: int) -> None:
    """Let two processes commit to one table at once, and look for all that they committed."""
    environment = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    writers = [processes.Process(target=write_shards, args=(store_uri, w, num_shards, environment)) for w in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    snapshot = Store(store_uri).table("votes").snapshot()
    assert len(snapshot.shards) == 2 * num_shards
    assert Counter(shard.written_by for shard in snapshot.shards) == {"run-0": num_shards, "run-1": num_shards}
    assert video_ids(Store(store_uri)) == sorted(f"video-{w}-{n}" for w in range(2) for n in range(num_shards))


def test_two_processes_committing_at_once_lose_nothing(store_uri: str, processes: ForkServerContext) -> None:
    """On S3, where a commit takes ten times as long, with fewer shards; tests/benchmarks/test_store.py has all."""
    commit_at_once(store_uri, processes, 60 if store_uri.startswith("s3://") else 200)


def test_writers_that_make_a_table_at_once_all_succeed(store_uri: str) -> None:
    for attempt in range(5):
        uri, barrier, failures = f"{store_uri}/{attempt}", threading.Barrier(4), []

        def write(number: int, uri: str = uri, barrier: threading.Barrier = barrier, failures: list = failures) -> None:
            store = Store(uri)
            barrier.wait()
            try:
                commit_votes(store, str(number), f"v{number}")
            except Exception as error:  # reported by the test's thread
                failures.append(error)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert video_ids(Store(uri)) == ["v0", "v1", "v2", "v3"]
