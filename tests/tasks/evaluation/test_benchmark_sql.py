"""SQL that knows the benchmarks: their splits, the paper's numbers, and whole articles."""

import pyarrow as pa
import pytest

from storage import Store
from storage.catalogue import Catalogue
from tasks.evaluation.benchmarks.htm_align import HTM_ALIGN
from tasks.evaluation.benchmarks.htstep import HTSTEP
from tasks.evaluation.benchmarks.sql import BENCHMARK_VIEWS, open_catalogue
from tests.samples import label_rows


def ask(store: Store, statement: str) -> list[tuple[object, ...]]:
    with open_catalogue(store) as catalogue:
        return [tuple(row.values()) for row in catalogue.query(statement).to_pylist()]


def commit_metrics(store: Store, benchmark: str, protocol: str, **values: float) -> None:
    """Commit VINA's R@1 on some splits."""
    rows = [
        {"protocol": protocol, "protocol_version": 1, "split": split, "method": "vina", "pathway": "direct"}
        | {"metric": "R@1", "value": value, "low": 0.0, "high": 100.0, "num_videos": 600, "num_missing": 0, "seed": 0}
        for split, value in values.items()
    ]
    table, partition = store.table("metrics"), {"model_id": "run-1", "benchmark": benchmark}
    table.commit(pa.Table.from_pylist(rows, schema=table.schema.files), partition, "0", fingerprint="f", run_id="run-1")


def test_every_view_answers_on_an_empty_store(store: Store) -> None:
    with open_catalogue(store) as catalogue, Catalogue(store) as plain:
        names, plain_names = (
            {row["name"] for row in each.query("SHOW TABLES").to_pylist()} for each in (catalogue, plain)
        )
        assert names - plain_names == {*(view.name for view in BENCHMARK_VIEWS), "benchmarks", "paper"}
        rows = {view.name: catalogue.query(f"FROM {view.name}").num_rows for view in BENCHMARK_VIEWS}
        published = catalogue.query("FROM paper").num_rows
    assert rows == {"reported_splits": 0, "label_precision": 0, "video_recall": 0, "metrics_beside_paper": published}
    assert published > 30


def test_metrics_stand_beside_the_papers_of_the_same_split(store: Store) -> None:
    commit_metrics(store, "htstep", "htstep-r1", test_seen=30.6, test_unseen=20.0, val_unseen=21.0)
    own = "method = 'vina' AND pathway = 'direct' AND benchmark = 'htstep'"
    rows = ask(store, f"SELECT split, ours, paper, difference FROM metrics_beside_paper WHERE {own}")
    assert rows == [
        ("test_seen", 30.6, 35.6, pytest.approx(-5.0)),
        ("test_unseen", 20.0, None, None),
        ("val_seen", None, 36.9, None),
        ("val_unseen", 21.0, None, None),
    ], "the paper has no number of unseen activities"
    only_paper = ask(store, "SELECT paper FROM metrics_beside_paper WHERE method = 'wsag' AND metric = 'R@50 IoU 0.3'")
    assert only_paper == [(pytest.approx(23.1),)]


@pytest.mark.parametrize(
    ("measured", "reported"),
    [
        (["val_seen", "val_unseen", "test_seen", "test_unseen"], "test_seen"),
        (["val_seen", "val_unseen", "test_unseen"], "val_seen"),
        (["val_unseen", "test_unseen"], "test_unseen"),
    ],
)
def test_one_split_of_a_benchmark_is_reported(store: Store, measured: list[str], reported: str) -> None:
    commit_metrics(store, "htstep", "htstep-r1", **dict.fromkeys(measured, 1.0))
    commit_metrics(store, "htm-align", "htm-align", test=1.0)
    assert ask(store, "FROM reported_splits ORDER BY ALL") == [("htm-align", "test"), ("htstep", reported)]


def test_choices_are_made_on_validation_videos_if_there_are_any() -> None:
    assert HTSTEP.split_to_choose_on(["test_seen", "test_unseen", "val_seen", "val_unseen"]) == "val_seen"
    assert HTSTEP.split_to_choose_on(["test_seen", "test_unseen", "val_unseen"]) == "test_seen"
    assert HTSTEP.split_to_choose_on(["val_unseen"]) == "val_unseen" and HTSTEP.split_to_choose_on([]) == ""
    assert HTM_ALIGN.split_to_choose_on(["test"]) == "test"


@pytest.fixture
def labelled(store: Store) -> Store:
    """Two rounds of labels for two videos, and the steps they speak of."""
    rounds = [
        [("v1", "7", 0, 3, 0.8, True), ("v1", "7", 1, 9, 0.2, False), ("v2", "8", 0, 1, 0.3, False)],
        [("v1", "7", 0, 4, 0.9, True), ("v1", "7", 1, 9, 0.7, True), ("v2", "8", 0, 1, 0.4, False)],
    ]
    for round_, rows in enumerate(rounds):
        partition: dict[str, str | int] = {"model_id": "run-1", "round": round_}
        store.table("pseudo_labels").commit(label_rows(rows), partition, "0", fingerprint="f", run_id="run-1")
    headlines = [("7", 0, "Peel"), ("7", 1, "Cut"), ("8", 0, "Fry")]
    steps = [
        {"article_id": article, "row": row, "step_id": text, "headline": text, "paragraph": None}
        for article, row, text in headlines
    ]
    table = store.table("steps")
    rows = pa.Table.from_pylist(steps, schema=table.schema.files)
    table.commit(rows, {"source": "demo"}, "0", fingerprint="f", run_id="run-1")
    return store


def test_how_good_labels_are_where_truth_is_known(labelled: Store) -> None:
    seen = [("v1", "Peel", 2.5, 3.2), ("v1", "Peel", 20.0, 25.0), ("v2", "Fry", 2.1, 9.0)]
    rows = [
        {"video_id": video, "split": "train", "article_id": "7", "step_id": text, "text": text, "start_s": start,
         "end_s": end, "alignable": True}
        for video, text, start, end in seen
    ]  # fmt: skip
    table = labelled.table("annotations")
    annotations = pa.Table.from_pylist(rows, schema=table.schema.files)
    table.commit(annotations, {"benchmark": "htstep"}, "0", fingerprint="f", run_id="run-1")
    answers = [row[1:] for row in ask(labelled, "FROM label_precision")]
    # Round 0: Peel's peak is right and kept; Cut is not shown; Fry's peak comes too early and is dropped.
    assert answers == [(0, 3, 33.3, 100.0, 100.0, 50.0), (1, 3, 66.7, 50.0, 50.0, 50.0)]
