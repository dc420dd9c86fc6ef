import json
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage import MissingFileError, SchemaError, Store, StoreError, fingerprint_of
from storage.schemas import TABLES
from tests.samples import ENCODER, commit_features, commit_votes, label_rows, random_videos, video_ids, votes

ODD_IDS = [
    "a/b",
    "../../etc/passwd",
    'it\'s "quoted"',
    "100%25",
    "émigré-視頻-🎬",
    "x" * 300,
    "-dash",
    "_under",
    "a\\b",
    " ",
]


def test_a_table_nobody_wrote_to_is_empty(store: Store) -> None:
    snapshot = store.table("votes").snapshot()
    assert (snapshot.version, snapshot.num_rows, snapshot.read().num_rows) == (-1, 0, 0)
    assert snapshot.read().schema.names == TABLES["votes"].arrow.names


def test_a_committed_shard_is_read_back_with_its_provenance(store: Store) -> None:
    assert commit_votes(store, "0", "v1", "v2", run="run-7")
    rows = Store(store.uri).table("votes").snapshot().read().to_pylist()
    assert [row["video_id"] for row in rows] == ["v1", "v2"]
    assert {(row["encoder"], row["_shard"], row["_fingerprint"], row["_written_by"]) for row in rows} == {
        ("tiny", "0", "a", "run-7")
    }


def test_the_same_fingerprint_is_a_no_op(store: Store) -> None:
    commit_votes(store, "0", "v1", run="run-1")
    version = store.table("votes").snapshot().version
    assert not commit_votes(store, "0", "other", run="run-2")
    assert store.table("votes").has(ENCODER, "0", "a")
    assert store.table("votes").snapshot().version == version
    assert video_ids(store) == ["v1"]


def test_force_replaces_a_shard_of_the_same_fingerprint(store: Store) -> None:
    commit_votes(store, "0", "v1")
    assert commit_votes(store, "0", "v2", force=True)
    assert video_ids(store) == ["v2"]


def test_a_rerun_replaces_exactly_its_own_shard(store: Store) -> None:
    commit_votes(store, "0", "v1")
    commit_votes(store, "1", "v2")
    store.table("votes").commit(votes("v3"), {"encoder": "other"}, "0", fingerprint="a", run_id="r")
    commit_votes(store, "0", "v1-again", fingerprint="b")
    assert video_ids(store) == ["v1-again", "v2", "v3"]


def test_old_versions_stay_readable_until_gc(store: Store) -> None:
    commit_votes(store, "0", "old")
    version = store.table("votes").snapshot().version
    commit_votes(store, "0", "new", fingerprint="b")
    assert video_ids(store, version=version) == ["old"]
    assert store.table("votes").gc(older_than_hours=24) == []
    assert video_ids(store, version=version) == ["old"]
    planned = store.table("votes").gc(older_than_hours=0, dry_run=True)
    assert video_ids(store, version=version) == ["old"]
    assert len(planned) == 1 and store.table("votes").gc(older_than_hours=0) == planned
    with pytest.raises(MissingFileError, match=r"table votes, version 1.*part-[0-9a-f]+\.parquet(.|\n)*vina gc"):
        video_ids(store, version=version)
    assert video_ids(store) == ["new"]


def test_old_versions_do_not_expire_by_themselves(store: Store) -> None:
    """Delta's own clean-up would drop log entries after thirty days."""
    commit_votes(store, "0", "v1")
    delta = DeltaTable(f"{store.uri}/votes", storage_options=store.location.delta_options)
    assert delta.metadata().configuration["delta.enableExpiredLogCleanup"] == "false"


def test_gc_removes_what_a_dead_writer_left(store: Store) -> None:
    commit_votes(store, "0", "v1")
    path = f"{store.location.root}/votes/part-{'0' * 32}.parquet"
    with store.location.filesystem.open_output_stream(path) as orphan:
        orphan.write(b"half a file")
    assert store.table("votes").gc(older_than_hours=0) == [path.rsplit("/", 1)[1]]
    assert video_ids(store) == ["v1"]


def test_an_unknown_version_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="votes has no version 3; its versions are none yet"):
        store.table("votes").snapshot(3)
    commit_votes(store, "0", "v1")
    with pytest.raises(StoreError, match="votes has no version 9; its versions are 0 to 1"):
        store.table("votes").snapshot(9)


def test_the_different_values_of_columns(store: Store) -> None:
    snapshot = store.table("votes").snapshot()
    assert snapshot.distinct("video_id") == set()
    commit_votes(store, "0", "v1", "v2", "v1")
    commit_votes(store, "1", "v2", "v3")
    snapshot = store.table("votes").snapshot().where(**ENCODER)
    assert snapshot.distinct("video_id") == {"v1", "v2", "v3"}
    assert {name.split("|")[0] for name in snapshot.distinct("video_id", "article_id", joint="|")} == {"v1", "v2", "v3"}


def test_retire_takes_out_the_shards_of_another_cut(store: Store) -> None:
    for shard in ("0", "1", "2"):
        commit_votes(store, shard, f"v{shard}")
    store.table("votes").commit(votes("mine"), {"encoder": "other"}, "2", fingerprint="a", run_id="r")
    assert store.table("votes").retire(ENCODER, keep=["0"]) == ["1", "2"]
    assert video_ids(store) == ["mine", "v0"]
    assert store.table("votes").retire(ENCODER, keep=["0"]) == []
    assert store.table("votes").retire(ENCODER, prefix="1") == [] and store.table("votes").retire(
        ENCODER, prefix="0"
    ) == ["0"]


def test_a_failing_writer_leaves_the_table_as_it_was(store: Store) -> None:
    commit_votes(store, "0", "v1")
    with (
        pytest.raises(RuntimeError, match="in the middle"),
        store.table("votes").writer(ENCODER, "1", fingerprint="a", run_id="r") as writer,
    ):
        writer.write(votes("v2"))
        raise RuntimeError("in the middle")
    assert video_ids(store) == ["v1"]
    assert store.table("votes").gc(0, dry_run=True) == []


def test_a_shard_may_have_no_rows(store: Store) -> None:
    assert commit_votes(store, "0")
    assert store.table("votes").has(ENCODER, "0", "a")
    assert video_ids(store) == []


def test_odd_ids_and_partitions_are_kept_as_they_are(store: Store) -> None:
    for number, odd in enumerate(ODD_IDS):
        table = store.table("votes")
        assert table.commit(votes(odd), {"encoder": odd}, odd, fingerprint=f"f{number}", run_id="r")
    snapshot = Store(store.uri).table("votes").snapshot()
    rows = snapshot.read(["video_id", "encoder", "_shard"]).to_pylist()
    assert sorted(row["video_id"] for row in rows) == sorted(ODD_IDS)
    assert all(row["video_id"] == row["encoder"] == row["_shard"] for row in rows)
    for odd in ODD_IDS:
        assert snapshot.where(encoder=odd).read(["video_id"]).column(0).to_pylist() == [odd]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (votes("v").drop_columns(["votes"]), "table votes: missing columns votes"),
        (votes("v").append_column("x", pa.array([1])), "table votes: unknown columns x"),
        (votes("v").append_column("encoder", pa.array(["m"])), "table votes: unknown columns encoder"),
        (votes("v").set_column(3, "votes", pa.array(["many"])), "table votes, column votes: .*many"),
        (votes("v").set_column(0, "video_id", pa.array([None], pa.string())), "column video_id: 1 nulls"),
        (votes("v").set_column(3, "votes", pa.array([2**40])), "table votes, column votes: .*not in range"),
        (votes("v").append_column("votes", pa.array([1])), "table votes: a column is given twice"),
        (votes("v" * 1001), "table votes: a video_id has 1001 bytes; at most 1000 are allowed"),
    ],
)
def test_schemas_are_enforced_at_write(store: Store, rows: pa.Table, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        store.table("votes").commit(rows, ENCODER, "0", fingerprint="a", run_id="r")
    assert store.table("votes").snapshot().version == -1


@pytest.mark.parametrize(
    ("partition", "shard", "fingerprint", "run", "message"),
    [
        ({}, "0", "a", "r", "partitioned by encoder; given: nothing"),
        ({"modle": "x"}, "0", "a", "r", "partitioned by encoder; given: modle"),
        ({"encoder": ""}, "0", "a", "r", "column encoder: .* may not be empty"),
        (ENCODER, "", "a", "r", "column _shard: .* may not be empty"),
        (ENCODER, "0", "", "r", "column _fingerprint: .* may not be empty"),
        (ENCODER, "0", "a", "", "column _written_by: .* may not be empty"),
        ({"encoder": object()}, "0", "a", "r", "table votes, column encoder: "),
        ({"encoder": None}, "0", "a", "r", "table votes, column encoder: it may not be null"),
    ],
)
def test_a_shard_without_its_names_is_refused(
    tmp_path: object, partition: dict[str, str], shard: str, fingerprint: str, run: str, message: str
) -> None:
    with pytest.raises(StoreError, match=message):
        Store(f"{tmp_path}/store").table("votes").commit(
            votes("v"), partition, shard, fingerprint=fingerprint, run_id=run
        )


def test_a_partition_of_the_wrong_type_is_named(store: Store) -> None:
    partition: dict[str, str | int] = {"model_id": "r", "round": 1}
    rows = label_rows([("v1", "7", 0, 3, 0.8, True)])
    store.table("pseudo_labels").commit(rows, partition, "0", fingerprint="a", run_id="r")
    assert store.table("pseudo_labels").has(partition, "0", "a")
    with pytest.raises(SchemaError, match="table pseudo_labels, column round: "):
        store.table("pseudo_labels").has({"model_id": "r", "round": "one"}, "0", "a")


def test_an_unknown_table_is_named(store: Store) -> None:
    with pytest.raises(SchemaError, match="no table 'vote'; the tables are videos, narrations"):
        store.table("vote")


def test_threads_that_share_a_table_lose_nothing(store: Store) -> None:
    threads = [threading.Thread(target=commit_votes, args=(store, str(n), f"v{n}")) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert video_ids(store) == [f"v{n}" for n in range(8)]


def test_two_writers_of_one_shard_leave_one(store: Store) -> None:
    """The second has opened its file before the first commits; same fingerprint: the first one stays."""
    other = Store(store.uri)
    with store.table("votes").writer(ENCODER, "0", fingerprint="a", run_id="late") as late:
        late.write(votes("v1"))
        assert commit_votes(other, "0", "v1", run="early")
    assert not late.committed
    assert [shard.written_by for shard in store.table("votes").snapshot().shards] == ["early"]


def test_a_file_alone_says_what_it_is(store: Store) -> None:
    commit_votes(store, "0", "v1", run="run-7")
    snapshot = store.table("votes").snapshot()
    with store.location.filesystem.open_input_file(snapshot.path(snapshot.shards[0])) as source:
        story = json.loads(pq.read_schema(source).metadata[b"vina"])
    assert story == {"table": "votes", "encoder": "tiny", "_shard": "0", "_fingerprint": "a", "_written_by": "run-7"}


def test_any_delta_reader_opens_a_table(store: Store) -> None:
    commit_votes(store, "0", "v1", "v2")
    commit_votes(store, "1", "v3")
    delta = DeltaTable(f"{store.uri}/votes", storage_options=store.location.delta_options)
    assert delta.metadata().name == "votes"
    rows = delta.to_pyarrow_table().sort_by("video_id")
    assert rows.column("video_id").to_pylist() == ["v1", "v2", "v3"]
    assert rows.column("_shard").to_pylist() == ["0", "0", "1"]


def test_a_delta_reader_gets_the_bytes_of_vectors(store: Store) -> None:
    videos = random_videos(["v1"], width=3)
    commit_features(store, "0", videos)
    delta = DeltaTable(f"{store.uri}/features", storage_options=store.location.delta_options)
    rows = delta.to_pyarrow_table().sort_by("second")
    assert b"".join(rows.column("vector").to_pylist()) == videos["v1"].tobytes()
    assert set(rows.column("fps").to_pylist()) == {16.0}


def test_a_snapshot_does_not_move(store: Store) -> None:
    commit_votes(store, "0", "v1")
    before = store.table("votes").snapshot()
    commit_votes(store, "1", "v2")
    assert before.read(["video_id"]).column(0).to_pylist() == ["v1"]


def test_content_versions_depend_on_contents_not_on_history(tmp_path: object) -> None:
    one, two = Store(f"{tmp_path}/one"), Store(f"{tmp_path}/two")
    commit_votes(one, "0", "v1")
    commit_votes(one, "1", "v2")
    commit_votes(two, "1", "v2", run="other")
    commit_votes(two, "0", "v0", fingerprint="x")
    assert one.table("votes").snapshot().content_version != two.table("votes").snapshot().content_version
    commit_votes(two, "0", "v1")
    assert one.table("votes").snapshot().content_version == two.table("votes").snapshot().content_version


def test_files_are_skipped_by_partition_and_by_key(tmp_path: object) -> None:
    store = Store(f"{tmp_path}/store")
    for shard in ("a", "b", "c"):
        commit_votes(store, shard, f"{shard}1", f"{shard}2")
    dataset = store.table("votes").snapshot().dataset()
    expression = pa.dataset.field("video_id") == "b2"
    assert len(list(dataset.get_fragments(expression))) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.dictionaries(st.text(max_size=3), json_values, max_size=3),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)
def test_fingerprints_ignore_order_and_notice_change(configuration: dict, inputs: dict) -> None:
    fingerprint = fingerprint_of(configuration, inputs, "1")
    backwards = dict(reversed(configuration.items()))
    assert fingerprint_of(backwards, dict(reversed(inputs.items())), "1") == fingerprint
    assert fingerprint_of(configuration, inputs, "2") != fingerprint
    assert fingerprint_of({**configuration, "new key": 1}, inputs, "1") != fingerprint
    assert fingerprint_of(configuration, {**inputs, "new key": "1"}, "1") != fingerprint
