"""What goes wrong around a store gives an error that names the table and the file, and loses nothing."""

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from storage import MissingFileError, QueryError, SchemaError, Store, StoreError
from storage.catalogue import Catalogue
from storage.feature_reader import FeatureReader
from storage.schemas import TABLES
from storage.table import Table
from tests.fault_proxy import Fault, FaultProxy
from tests.samples import ENCODER, commit_features, commit_votes, random_videos, video_ids, votes


def damage(store: Store, table: str, keep_bytes: int | None) -> str:
    """Cut the first file of a table short, or remove it; returns its name."""
    snapshot = store.table(table).snapshot()
    path = snapshot.path(snapshot.shards[0])
    with store.location.filesystem.open_input_file(path) as source:
        content = source.read()
    if keep_bytes is None:
        store.location.delete(path)
    else:
        with store.location.filesystem.open_output_stream(path) as sink:
            sink.write(content[:keep_bytes])
    return snapshot.shards[0].path


@pytest.mark.parametrize("keep_bytes", [None, 0, 100, 2000])
def test_a_missing_or_truncated_file_is_named(store: Store, keep_bytes: int | None) -> None:
    commit_votes(store, "0", "v1")
    commit_votes(store, "1", "v2")
    commit_features(store, "0", random_videos(["v1"]))
    names = damage(store, "votes", keep_bytes), damage(store, "features", keep_bytes)
    with pytest.raises(MissingFileError, match=rf"table votes, version 2(.|\n)*{names[0]}"):
        video_ids(store)
    with pytest.raises(MissingFileError, match=r"table features, version 1"):
        FeatureReader(store, "s3d-milnce").read("v1")
    with Catalogue(store) as catalogue:
        with pytest.raises((QueryError, StoreError), match=rf"votes(.|\n)*{names[0]}"):
            catalogue.query("SELECT video_id FROM votes")
        assert catalogue.query("SELECT count(*) AS n FROM rejects").to_pylist() == [{"n": 0}]
        assert catalogue.query("SELECT count(*) AS n FROM shards").to_pylist() == [{"n": 3}]
    assert commit_votes(store, "0", "v1", fingerprint="again")
    assert video_ids(store) == ["v1", "v2"]


def test_another_schema_version_is_refused_and_left_alone(store: Store) -> None:
    commit_votes(store, "0", "v1")
    newer = Table(store.location, dataclasses.replace(TABLES["votes"], version=3))
    for attempt in (newer.snapshot, lambda: newer.commit(votes("v"), ENCODER, "1", fingerprint="a", run_id="r")):
        with pytest.raises(SchemaError, match=r"table votes at .* has schema version 2; .* version 3: use the code"):
            attempt()
    assert video_ids(store) == ["v1"]


def test_one_table_of_another_version_leaves_sql_on_the_others(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_votes(store, "0", "v1")
    monkeypatch.setitem(TABLES, "votes", dataclasses.replace(TABLES["votes"], version=3))
    with Catalogue(Store(store.uri)) as catalogue:
        with pytest.raises(SchemaError, match=r"table votes .* schema version 2"):
            catalogue.query("SELECT * FROM votes")
        assert catalogue.query("SELECT count(*) AS n FROM runs").to_pylist() == [{"n": 0}]


def many_votes(count: int) -> pa.Table:
    return votes(*(os.urandom(16).hex() for _ in range(count)))


def test_a_full_disk_costs_nothing_but_the_shard(small_disk: Path) -> None:
    store = Store(small_disk / "store")
    commit_votes(store, "0", "v1")
    with pytest.raises(
        StoreError, match=r"table votes: .*/votes/part-[0-9a-f]+\.parquet was not written: .*No space left"
    ):
        store.table("votes").commit(many_votes(60_000), ENCODER, "1", fingerprint="a", run_id="r")
    assert video_ids(store) == ["v1"]
    assert commit_votes(store, "1", "v2")
    assert video_ids(Store(store.uri)) == ["v1", "v2"]


def test_a_disk_that_fills_up_at_any_page_of_a_commit(small_disk: Path) -> None:
    """The last page goes in the data file, in the log entry or in its checkpoint, one after the other."""
    store, committed, refused = Store(small_disk / "store"), [], 0
    commit_votes(store, "first", "first")
    for pages in list(range(12)) * 2:
        filler, shard = small_disk / "filler", f"{pages}-{len(committed)}-{refused}"
        free = os.statvfs(small_disk).f_bavail - pages
        with filler.open("wb") as sink:
            sink.write(b"\0" * 4096 * free)
        try:
            assert commit_votes(store, shard, shard)
            committed.append(shard)
        except StoreError as error:
            assert "table votes" in str(error)
            refused += 1
        filler.unlink()
        seen = set(video_ids(Store(store.uri)))
        assert {"first", *committed} <= seen <= {"first", *committed, shard}
        committed = sorted(seen - {"first"})
    assert committed and refused


def as_nobody(code: str) -> subprocess.CompletedProcess[str]:
    """Run code without the right to do everything, which tests in a container often have."""
    root = str(Path(__file__).parent.parent.parent)
    drop = "import os\nif os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
    start = f"import sys; sys.path.insert(0, {root!r})\nfrom tests.samples import *\nimport storage.catalogue\n"
    return subprocess.run([sys.executable, "-c", start + drop + code], capture_output=True, text=True, check=False)


def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    commit_votes(store, "0", "v1")
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == os.getuid() and folder != Path(folder.anchor):
            folder.chmod(folder.stat().st_mode | 0o055)
    Path(store.uri, "votes").chmod(0o555)
    try:
        answer = as_nobody(f"commit_votes(Store({store.uri!r}), '1', 'v2')")
        assert answer.returncode == 1 and "StoreError: table votes: " in answer.stderr
        assert "Permission denied" in answer.stderr and f"{store.uri}/votes/part-" in answer.stderr
    finally:
        Path(store.uri, "votes").chmod(0o755)
    assert video_ids(store) == ["v1"]


@pytest.fixture
def proxy(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    proxy = FaultProxy(s3_endpoint)
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "3")
    monkeypatch.setenv("VINA_S3_TIMEOUT_S", "2")
    yield proxy
    proxy.close()


@pytest.fixture
def impatient(proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes stores that are opened from now on give up a request after one second, and after two attempts."""

    def set_limits() -> None:
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
        monkeypatch.setenv("VINA_S3_TIMEOUT_S", "1")

    return set_limits


def anything(method: str, path: str) -> bool:
    return True


def log_entry(method: str, path: str) -> bool:
    return method == "PUT" and "_delta_log" in path


def data_file(method: str, path: str) -> bool:
    return method in ("PUT", "POST") and "part-" in path


def data_read(method: str, path: str) -> bool:
    return method in ("GET", "HEAD") and "part-" in path


@pytest.mark.parametrize("status", [500, 503])
@pytest.mark.parametrize("where", [log_entry, data_file, anything])
def test_s3_errors_that_pass_are_lived_through(proxy: FaultProxy, s3_uri: str, status: int, where: object) -> None:
    store = Store(s3_uri)
    commit_votes(store, "0", "v1")
    with proxy.misbehaving(Fault(where, times=2, status=status)) as fault:  # type: ignore[arg-type]
        assert commit_votes(store, "1", "v2")
        assert fault.happened == 2
    with proxy.misbehaving(Fault(anything, times=2, status=status)):
        assert video_ids(Store(s3_uri)) == ["v1", "v2"]
    with proxy.misbehaving(Fault(anything, times=1, status=status)):
        store.objects.put("a", b"b")


@pytest.mark.parametrize(
    "fault",
    [
        Fault(log_entry, status=500),
        Fault(data_file, status=503),
        Fault(anything, status=403),
        Fault(log_entry, delay_s=3),
        Fault(data_file, delay_s=3),
    ],
    ids=["log 500", "data 503", "all 403", "log time-out", "data time-out"],
)
def test_s3_errors_that_stay_are_reported_and_lose_nothing(
    proxy: FaultProxy, impatient: Callable[[], None], s3_uri: str, fault: Fault
) -> None:
    commit_votes(Store(s3_uri), "0", "v1")
    impatient()
    store = Store(s3_uri)
    started = time.monotonic()
    with (
        proxy.misbehaving(dataclasses.replace(fault)),
        pytest.raises(StoreError, match=r"table votes: (.|\n)*votes") as caught,
    ):
        commit_votes(store, "1", "v2")
    assert time.monotonic() - started < 60
    assert "test-secret" not in str(caught.value)
    assert "v1" in video_ids(Store(s3_uri))
    assert commit_votes(store, "2", "v3")
    assert set(video_ids(store)) - {"v2"} == {"v1", "v3"}
    with (
        proxy.misbehaving(dataclasses.replace(fault, applies=anything)),
        pytest.raises(StoreError, match=r"object s3://.*/a"),
    ):
        store.objects.put("a", b"b")


@pytest.mark.parametrize("fault", [Fault(data_read, status=500), Fault(data_read, delay_s=3)], ids=["500", "time-out"])
def test_a_data_file_that_s3_does_not_give_is_named(
    proxy: FaultProxy, impatient: Callable[[], None], s3_uri: str, fault: Fault
) -> None:
    store = Store(s3_uri)
    commit_votes(store, "0", "v1")
    videos = random_videos(["v1"])
    commit_features(store, "0", videos)
    names = [store.table(table).snapshot().shards[0].path for table in ("votes", "features")]
    impatient()
    store = Store(s3_uri)
    with proxy.misbehaving(dataclasses.replace(fault)):
        with pytest.raises(MissingFileError, match=rf"table votes, version 1(.|\n)*{names[0]}"):
            video_ids(store)
        with pytest.raises(MissingFileError, match=rf"table features, version 1(.|\n)*{names[1]}"):
            FeatureReader(store, "s3d-milnce").read("v1")
        with Catalogue(store) as catalogue, pytest.raises(QueryError, match=names[0]):
            catalogue.query("SELECT * FROM votes")
    assert video_ids(store) == ["v1"]
    assert (FeatureReader(store, "s3d-milnce").read("v1") == videos["v1"]).all()


def test_slow_answers_are_waited_for(proxy: FaultProxy, s3_uri: str) -> None:
    store = Store(s3_uri)
    with proxy.misbehaving(Fault(anything, delay_s=0.1)):
        assert commit_votes(store, "0", "v1")
        assert video_ids(store) == ["v1"]


@pytest.mark.parametrize("times", [1, 2])
def test_a_commit_whose_answer_is_lost_happens_once(proxy: FaultProxy, s3_uri: str, times: int) -> None:
    store = Store(s3_uri)
    commit_votes(store, "0", "v1")
    with proxy.misbehaving(Fault(log_entry, times=times, lose_answer=True)) as fault:
        assert commit_votes(store, "1", "v2")
        assert fault.happened == times
    assert video_ids(Store(s3_uri)) == ["v1", "v2"]
    assert store.table("votes").gc(0, dry_run=True) == []


def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, s3_uri: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    with pytest.raises(StoreError, match=r"store s3://.* cannot be reached"):
        Store(s3_uri).location.check()
    with pytest.raises(StoreError, match="table votes: could not read the log at s3://"):
        Store(s3_uri).table("votes").snapshot()
