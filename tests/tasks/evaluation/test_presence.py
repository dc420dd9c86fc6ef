"""What is said of a step's presence is said of videos that the weights were not fitted on; and the model's file."""

from pathlib import Path

import numpy as np
import pytest

from storage import Store
from storage.catalogue import Catalogue
from storage.feature_reader import FeatureReader
from tasks.evaluation import presence
from tasks.evaluation.benchmarks.htstep import HTSTEP
from tasks.evaluation.families import Pathway
from tasks.evaluation.presence import _half, calibrate
from tasks.evaluation.queries import read_queries
from tasks.evaluation.results import student_of
from tasks.evaluation.stage import EVALUATION, trained_methods
from tasks.pipeline.job import Job
from tasks.pipeline.parts import run_here
from tasks.pipeline.stage import run_stage
from tasks.training.model_files import key, read_model
from tests.trained_store import RUN, copy_of
from vina_model.grounder import WITH_NARRATIONS, WITHOUT_NARRATIONS


def test_every_step_of_every_annotated_held_out_video_is_judged(trained: Job) -> None:
    with Catalogue(Store(trained.store)) as catalogue:
        asked = catalogue.query("""
            SELECT count(*) AS steps, count(DISTINCT video_id) AS videos FROM
            (SELECT DISTINCT video_id, article_id FROM annotations WHERE benchmark = 'htstep' AND split <> 'train') t
            JOIN steps s ON s.article_id = t.article_id""").to_pylist()[0]
        shown = catalogue.query("""
            SELECT count(*) AS steps FROM (SELECT DISTINCT video_id, article_id, step_id FROM annotations
            WHERE benchmark = 'htstep' AND split <> 'train')""").to_pylist()[0]["steps"]
        found = catalogue.query("FROM presences").to_pylist()
    assert {(row["method"], row["pathway"]) for row in found} == {("vina", "direct"), ("vina", "fused")}
    for pathway in ("direct", "fused"):
        own = [row for row in found if row["pathway"] == pathway]
        assert len(own) == asked["steps"] and len({row["video_id"] for row in own}) == asked["videos"] == 32
        assert sum(row["is_shown"] for row in own) == shown
        assert all(0 < row["presence"] < 1 for row in own)


def test_metrics_are_those_of_the_table(trained: Job) -> None:
    store = Store(trained.store)
    with Catalogue(store) as catalogue:
        rows = catalogue.query("FROM presences WHERE pathway = 'direct' AND split = 'test_seen'")
        metrics = catalogue.query("""
            FROM metrics WHERE protocol IN ('htstep-presence', 'htstep-presence-by-peak') AND method = 'vina'
            AND split = 'test_seen'""").to_pylist()
        bins = catalogue.query("""
            FROM presence_reliability
            WHERE pathway = 'direct' AND split = 'test_seen' AND judge = 'presence'""").to_pylist()
    assert {(row["num_videos"], row["num_missing"]) for row in metrics} == {(16, 0)}
    values = {(row["protocol"], row["metric"]): row["value"] for row in metrics if row["pathway"] == "direct"}
    shown = np.array(rows["is_shown"].to_pylist())
    assert len(metrics) == 8, "two protocols of two pathways with two metrics each"
    for column, protocol in (("presence", "htstep-presence"), ("peak", "htstep-presence-by-peak")):
        scores = rows[column].to_numpy()
        wins = (scores[shown][:, None] > scores[~shown]) + (scores[shown][:, None] == scores[~shown]) / 2
        assert values[protocol, "AUC"] == pytest.approx(100 * wins.mean())
    error = sum(abs(row["mean_score"] - row["shown"]) * row["steps"] for row in bins) / len(rows)
    assert values["htstep-presence", "ECE"] == pytest.approx(100 * error, abs=0.05)


def test_test_videos_are_judged_by_the_weights_in_the_models_file(trained: Job) -> None:
    store = Store(trained.store)
    model = read_model(store, student_of(store, RUN), "cpu")
    features = FeatureReader(store, model.backbone)
    steps = store.table("steps").snapshot().where(source="htstep").read().to_pylist()
    headlines = {int(step["step_id"]): (step["article_id"], step["row"], step["headline"]) for step in steps}
    rows = store.table("presences").snapshot().where(method="vina", pathway="direct").read().to_pylist()
    for row in (row for row in rows if row["split"] == "test_seen"):
        own = sorted(step for step in headlines.values() if step[0] == row["article_id"])
        found = model.ground(features.read(row["video_id"]), [headline for _, _, headline in own])
        assert found.steps[headlines[row["label"]][1]].presence == pytest.approx(row["presence"], abs=1e-4)


def test_a_half_is_judged_by_the_other_half_alone(trained: Job) -> None:
    """If the truth of one half were the opposite, the other half would be judged otherwise, and it itself as before."""
    store = Store(trained.store)
    (method,) = (method for method in trained_methods(trained) if method.family == "vina")
    queries = read_queries(store, HTSTEP, method.corpus)
    before = calibrate(store, method, queries)[Pathway.DIRECT][1].to_pylist()
    annotated = presence._Annotated.read(store, HTSTEP)
    opposite: dict[tuple[str, str | None, int], list[tuple[float, float]]] = {
        (video, article, label): [] if annotated.shown.get((video, article, label)) else [(0.0, 1.0)]
        for video, article in annotated.splits
        for label in queries.labels.get(article, [])
        if _half(video)
    }
    turned = presence._Annotated({**annotated.shown, **opposite}, annotated.splits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presence._Annotated, "read", lambda store, benchmark: turned)
        after = calibrate(store, method, queries)[Pathway.DIRECT][1].to_pylist()
    for old, new in zip(before, after, strict=True):
        if old["split"] == "val_seen":
            assert (old["presence"] == new["presence"]) == _half(old["video_id"])
    assert {_half(row["video_id"]) for row in before if row["split"] == "val_seen"} == {True, False}


def test_weights_are_fitted_on_the_validation_split_alone(trained: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation videos of unseen activities are judged like test videos."""
    store = Store(trained.store)
    (method,) = (method for method in trained_methods(trained) if method.family == "vina")
    queries = read_queries(store, HTSTEP, method.corpus)
    before = calibrate(store, method, queries)[Pathway.DIRECT][1].to_pylist()
    annotated = presence._Annotated.read(store, HTSTEP)
    names = {"test_seen": "val_unseen"}
    renamed = presence._Annotated(
        annotated.shown, {pair: names.get(split, split) for pair, split in annotated.splits.items()}
    )
    monkeypatch.setattr(presence._Annotated, "read", lambda store, benchmark: renamed)
    after = calibrate(store, method, queries)[Pathway.DIRECT][1].to_pylist()
    assert {row["split"] for row in after} == {"val_seen", "val_unseen"}
    assert [row["presence"] for row in after] == [row["presence"] for row in before]


def test_the_models_file_needs_no_store_and_knows_how_its_features_were_made(trained: Job) -> None:
    store = Store(trained.store)
    model = read_model(store, student_of(store, RUN), "cpu")
    assert model.presence.keys() == {WITH_NARRATIONS, WITHOUT_NARRATIONS} and model.backbone == "demo-concepts"
    assert model.name == student_of(store, RUN) and store.objects.get(key(model.name))


def test_where_too_little_is_annotated_the_model_does_not_say_whether_steps_are_shown(
    trained: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    job = copy_of(trained, tmp_path).changed(force=True)
    monkeypatch.setattr("vina_model.presence.FEWEST", 1000)
    run_stage(job, EVALUATION, run_here)
    store = Store(job.store)
    assert read_model(store, student_of(store, RUN), "cpu").presence == {}
    assert "presence is not calibrated" in caplog.text and "1000 of each kind are needed" in caplog.text
