"""The published annotations, where VINA_DATA names a folder that has them: random predictions, scored in both ways."""

import csv
import json
import os
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.vina_model.metrics import random_worlds as worlds
from tests.vina_model.metrics import slow_metrics as slow
from tests.vina_model.metrics.slow_metrics import Detection, Segment
from vina_model.decoding import in_order
from vina_model.metrics.bootstrap import Values
from vina_model.metrics.crosstask import StepLocalization, draw_test_sets
from vina_model.metrics.crosstask_articles import ArticleRecall
from vina_model.metrics.htstep_map import ArticleMap
from vina_model.metrics.htstep_r1 import StepRecall

DATA = Path(os.environ.get("VINA_DATA", ""))
NOT_IN_THE_ARTICLE_TEST = {"105222", "44789", "87706"}

pytestmark = [
    pytest.mark.skipif("VINA_DATA" not in os.environ, reason="VINA_DATA names no folder of real files"),
    pytest.mark.filterwarnings("error", worlds.OTHER_THREADS),
]


class HTStep:
    """Videos, labels and activities are numbered in the order in which they are met."""

    def __init__(self) -> None:
        self.entries = json.loads((DATA / "htstep/annotations.json").read_text())
        self.numbers = numbered(self.entries)
        self.steps: dict[tuple[str, str], list[int]] = {}
        with (DATA / "htstep/taxonomy.csv").open() as file:
            for row in csv.DictReader(file):
                key = row["activity"], row["variation"]
                self.steps.setdefault(key, []).append(int(row["global_step_index"]))
        self.candidates = {
            self.numbers[video]: self.steps[entry["activity"], entry["variation"]]
            for video, entry in self.entries.items()
        }
        activities = numbered(entry["activity"] for entry in self.entries.values())
        self.activities = [activities[entry["activity"]] for entry in self.entries.values()]
        self.truth = [
            Segment(self.numbers[video], annotation["id"], *annotation["segment"])
            for video, entry in self.entries.items()
            for annotation in entry["annotations"]
        ]

    def maps(self, counted: Sequence[Detection], weights: Sequence[int] | None = None) -> Values:
        metric = ArticleMap(
            worlds.segment_columns(self.truth), worlds.detection_columns(counted), worlds.ints(self.activities)
        )
        return metric(worlds.as_they_are(600) if weights is None else np.array([weights], np.float64))


def numbered(names: Iterable[Hashable]) -> dict[Hashable, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def random_detections(
    rng: np.random.Generator, truth: Sequence[Segment], labels: Sequence[int], duration_s: float, count: int
) -> list[Detection]:
    """Of one video: half of them anywhere, half near a segment, with scores that are often equal."""
    video, found = truth[0].video, []
    for _ in range(count):
        if rng.random() < 0.5:
            near = truth[rng.integers(len(truth))]
            start_s, end_s = near.start_s + rng.normal(0, 4), near.end_s + rng.normal(0, 4)
            label = near.label
        else:
            start_s, label = rng.uniform(0, duration_s), labels[rng.integers(len(labels))]
            end_s = start_s + rng.uniform(0.5, 30)
        found.append(Detection(video, label, start_s, max(end_s, start_s), float(rng.integers(0, 40))))
    return found


@pytest.fixture(scope="module")
def htstep() -> HTStep:
    return HTStep()


@pytest.fixture(scope="module")
def htstep_detections(htstep: HTStep) -> list[Detection]:
    """Some videos have none; one label in twenty is a step of another article."""
    rng = np.random.default_rng(0)
    strangers = [step for steps in htstep.steps.values() for step in steps]
    found = []
    for video, own in slow.grouped(htstep.truth, lambda segment: segment.video).items():
        labels = [*htstep.candidates[video], strangers[rng.integers(len(strangers))]]
        duration_s = htstep.entries[list(htstep.entries)[video]]["duration"]
        found += random_detections(rng, own, labels, duration_s, int(rng.integers(0, 16)))
    return [found[place] for place in rng.permutation(len(found))]


def test_htstep_recall(htstep: HTStep) -> None:
    rng = np.random.default_rng(1)
    durations = [entry["duration"] for entry in htstep.entries.values()]
    seconds = {
        (video, label): int(rng.integers(durations[video])) for video, own in htstep.candidates.items() for label in own
    }
    assert len(htstep.truth) == 3_441 and len(durations) == 600
    columns = worlds.segment_columns(htstep.truth), worlds.point_columns(seconds)
    found = StepRecall(*columns, 600)(worlds.as_they_are(600))["R@1"]
    assert found.tolist() == pytest.approx([slow.step_r1(htstep.truth, seconds)], abs=1e-9)
    assert 0.03 < found[0] < 0.2


def test_htstep_map(htstep: HTStep, htstep_detections: list[Detection]) -> None:
    counted = slow.counted_detections(htstep.truth, htstep_detections, htstep.candidates)
    assert 3_000 < len(counted) < len(htstep_detections)
    aps = slow.article_aps(htstep.truth, counted, dict(enumerate(htstep.activities)))
    assert len(aps) == 120
    found = htstep.maps(counted)
    for place, threshold in enumerate(slow.HTSTEP_TIOUS):
        expected = slow.mean(ap[place] for ap in aps.values())
        assert found[f"mAP IoU {threshold:.1f}"].tolist() == pytest.approx([expected], abs=1e-9)
    assert found["mAP"].tolist() == pytest.approx([slow.mean(map(slow.mean, aps.values()))], abs=1e-9)
    assert 0.05 < found["mAP"][0] < 0.5


def test_htstep_map_of_videos_drawn_with_replacement(htstep: HTStep, htstep_detections: list[Detection]) -> None:
    times = np.random.default_rng(2).multinomial(600, np.full(600, 1 / 600)).tolist()
    counted = slow.counted_detections(htstep.truth, htstep_detections, htstep.candidates)
    repeated = worlds.repeated_in_place(htstep.truth, times), worlds.repeated_in_place(counted, times)
    activity_of = worlds.repeated_keys(dict(enumerate(htstep.activities)), times)
    expected = slow.article_map(*repeated, activity_of)
    assert htstep.maps(counted, times)["mAP"].tolist() == pytest.approx([expected], abs=1e-9)


def test_htstep_s_example_predictions(htstep: HTStep) -> None:
    with (DATA / "htstep/example_predictions_val_seen.csv").open() as file:
        rows = [
            Detection(
                htstep.numbers[row["video-id"]],
                int(row["label"]),
                *(float(row[name]) for name in ("t-start", "t-end", "score")),
            )
            for row in csv.DictReader(file)
        ]
    own = [row for row in rows if row.label in htstep.candidates[row.video]]
    counted = slow.counted_detections(htstep.truth, rows, htstep.candidates)
    assert (len(rows), len(own), len(counted)) == (3_000, 973, 957)
    expected = slow.article_map(htstep.truth, counted, dict(enumerate(htstep.activities)))
    assert htstep.maps(counted)["mAP"].tolist() == pytest.approx([expected], abs=1e-9)
    assert expected == pytest.approx(0.115020, abs=1e-6)


def test_crosstask_recall() -> None:
    """Random moments, and random scores decoded in the order of the steps."""
    release = DATA / "crosstask/crosstask_release"
    with (release / "videos_val.csv").open() as file:
        held_out = {(task, video) for task, video, _ in csv.reader(file)}
    paths = sorted((release / "annotations").iterdir())
    names = [tuple(path.stem.split("_", 1)) for path in paths]
    tasks = numbered(task for task, _ in names)
    rng, truth, free, ordered = np.random.default_rng(3), [], {}, {}
    for video, path in enumerate(paths):
        with path.open() as file:
            own = [Segment(video, int(step) - 1, float(start), float(end)) for step, start, end in csv.reader(file)]
        truth += own
        scores_ST = rng.random((max(segment.label for segment in own) + 1, int(max(row.end_s for row in own)) + 9))
        for label, (second, in_turn) in enumerate(zip(scores_ST.argmax(1), in_order(scores_ST), strict=True)):
            free[video, label], ordered[video, label] = int(second), int(in_turn)
    task_of = [tasks[task] for task, _ in names]
    test_sets = draw_test_sets(worlds.ints(task_of), worlds.bools([name not in held_out for name in names]))
    assert (len(paths), len(tasks), len(held_out), len(truth)) == (2_750, 18, 360, 20_919)
    assert test_sets.sum(1).tolist() == [1_850] * 20
    members = [set(np.flatnonzero(test_set).tolist()) for test_set in test_sets]
    assert not any(names[video] in held_out for member in members for video in member)
    for seconds in (free, ordered):
        columns = worlds.segment_columns(truth), worlds.point_columns(seconds)
        metric = StepLocalization(*columns, worlds.ints(task_of), test_sets)
        expected = slow.localization_recall(truth, seconds, dict(enumerate(task_of)), members)
        assert metric(worlds.as_they_are(2_750))["recall"].tolist() == pytest.approx([expected], abs=1e-9)
        assert 0.03 < expected < 0.2


def test_crosstask_article_recall() -> None:
    """Up to 144 detections a video, so that 50 and 100 cut some lists; some are empty."""
    tasks = json.loads((DATA / "youwikihow/crosstask_test.json").read_text())
    rng, truth, found, num_videos = np.random.default_rng(4), [], [], 0
    for task, entry in tasks.items():
        if task in NOT_IN_THE_ARTICLE_TEST:
            continue
        headlines = range(len(entry["task_text"]["simplified_headline_list"]))
        for annotations in entry["crosstask_annotations"].values():
            own = [
                Segment(num_videos, int(headline), float(annotation["step_s"]), float(annotation["step_e"]))
                for annotation in annotations
                for headline in entry["step2headline"][int(annotation["step_id"]) - 1].split("/")
                if headline != "_"
            ]
            truth += own
            duration_s = max(float(annotation["step_e"]) for annotation in annotations) + 20
            anywhere = [Segment(num_videos, 0, 0.0, duration_s)]
            found += random_detections(rng, own or anywhere, headlines, duration_s, int(rng.integers(0, 13)) ** 2)
            num_videos += 1
    assert num_videos == 2_407
    metric = ArticleRecall(worlds.segment_columns(truth), worlds.detection_columns(found), num_videos)
    values = metric(worlds.as_they_are(num_videos))
    for top in (50, 100):
        for threshold in (0.1, 0.3, 0.5):
            expected = slow.article_recall(truth, found, top, threshold)
            assert values[f"R@{top} IoU {threshold}"].tolist() == pytest.approx([expected], abs=1e-9)
    assert 0.3 < values["R@50 IoU 0.5"][0] < values["R@100 IoU 0.5"][0] < values["R@100 IoU 0.1"][0] < 1
