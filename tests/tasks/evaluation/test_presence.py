"""What is said of a step's presence is said of videos that the weights were not fitted on; and the model's file."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from storage import Store
from storage.catalogue import Catalogue
from storage.feature_reader import FeatureReader
from tasks.evaluation.results import student_of
from tasks.evaluation.stage import EVALUATION
from tasks.job import Job
from tasks.model_files import key, read_model
from tasks.spread import here
from tasks.stage import run_stage
from tests.trained_store import RUN, copy_of
from vina_model.grounder import SILENT, TOLD


def test_every_step_of_every_annotated_held_out_video_is_judged(trained: Job) -> None:
    with Catalogue(Store(trained.store)) as catalogue:
        asked = catalogue.query("""
            SELECT count(*) AS steps, count(DISTINCT video_id) AS videos FROM
            (SELECT DISTINCT video_id, task_id FROM annotations WHERE benchmark = 'htstep' AND split <> 'train') t
            JOIN steps s ON s.article_id = t.task_id""").to_pylist()[0]
        shown = catalogue.query("""
            SELECT count(*) AS steps FROM (SELECT DISTINCT video_id, task_id, step_id FROM annotations
            WHERE benchmark = 'htstep' AND split <> 'train')""").to_pylist()[0]["steps"]
        found = catalogue.query("FROM presences").to_pylist()
    assert {row["method"] for row in found} == {"vina", "vina with narrations"}
    for method in ("vina", "vina with narrations"):
        own = [row for row in found if row["method"] == method]
        assert len(own) == asked["steps"] and len({row["video_id"] for row in own}) == asked["videos"] == 32
        assert sum(row["is_shown"] for row in own) == shown
        assert all(0 < row["presence"] < 1 for row in own)


def test_metrics_are_those_of_the_table(trained: Job) -> None:
    store = Store(trained.store)
    with Catalogue(store) as catalogue:
        rows = catalogue.query("FROM presences WHERE method = 'vina' AND split = 'test_seen'")
        metrics = catalogue.query("FROM metrics WHERE protocol = 'htstep-presence' AND split = 'test_seen'").to_pylist()
        bins = catalogue.query("""
            FROM presence_reliability
            WHERE method = 'vina' AND split = 'test_seen' AND judge = 'presence'""").to_pylist()
    values = {(row["method"], row["metric"]): row["value"] for row in metrics}
    shown = np.array(rows["is_shown"].to_pylist())
    for column, method in (("presence", "vina"), ("peak", "vina, plain peak")):
        scores = rows[column].to_numpy()
        wins = (scores[shown][:, None] > scores[~shown]) + (scores[shown][:, None] == scores[~shown]) / 2
        assert values[method, "AUC"] == pytest.approx(100 * wins.mean())
    error = sum(abs(row["said"] - row["shown"]) * row["steps"] for row in bins) / len(rows)
    assert values["vina", "ECE"] == pytest.approx(100 * error, abs=0.05)


def test_halves_are_judged_by_each_other_and_test_videos_by_all(trained: Job) -> None:
    """The model's file has the weights of all validation videos: it agrees on test videos, and not on validation's."""
    store = Store(trained.store)
    model = read_model(store, student_of(store, RUN), "cpu")
    features = FeatureReader(store, model.backbone)
    steps = store.table("steps").snapshot().where(source="htstep").read().to_pylist()
    headlines = {int(step["step_id"]): (step["article_id"], step["row"], step["headline"]) for step in steps}
    apart: dict[str, list[float]] = {"test_seen": [], "val_seen": []}
    for row in store.table("presences").snapshot().where(method="vina").read().to_pylist():
        own = sorted(step for step in headlines.values() if step[0] == row["task_id"])
        found = model.ground(features.read(row["video_id"]), [headline for _, _, headline in own])
        chance = found.steps[headlines[row["label"]][1]].presence
        assert chance is not None
        apart[row["split"]].append(abs(chance - row["presence"]))
    assert max(apart["test_seen"]) < 1e-4
    assert min(apart["val_seen"]) > 1e-4


def test_the_models_file_needs_no_store_and_knows_how_its_features_were_made(trained: Job) -> None:
    store = Store(trained.store)
    model = read_model(store, student_of(store, RUN), "cpu")
    assert model.presence.keys() == {SILENT, TOLD} and model.backbone == "demo-concepts"
    assert model.name == student_of(store, RUN) and store.objects.get(key(model.name))


def test_where_too_little_is_annotated_the_model_does_not_say_whether_steps_are_shown(
    trained: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    job = replace(copy_of(trained, tmp_path), force=True)
    monkeypatch.setattr("vina_model.presence.FEWEST", 1000)
    run_stage(job, EVALUATION, here)
    store = Store(job.store)
    assert read_model(store, student_of(store, RUN), "cpu").presence == {}
    assert "presence is not calibrated" in caplog.text and "1000 of each kind are needed" in caplog.text
