"""`vina score` on the published annotations, where VINA_DATA names a folder that has them: equal to the slow versions.

Predictions are random, half of them near what is annotated; some videos have none.
"""

import csv
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows.cli.main import main
from storage import Store
from tasks.evaluation.benchmarks.crosstask import CROSSTASK
from tasks.evaluation.truth import read_truth
from tasks.importers.sources import import_source
from tests.tasks.evaluation.small_benchmarks import HEADERS
from tests.vina_model.metrics import slow_metrics as slow
from tests.vina_model.metrics.slow_metrics import Detection, Segment
from vina_model.metrics.crosstask import draw_test_sets

DATA = Path(os.environ.get("VINA_DATA", ""))
RELEASE = DATA / "crosstask/crosstask_release"
Capture = pytest.CaptureFixture[str]
Video = tuple[str, str]
"""A task and a video."""
pytestmark = [
    pytest.mark.skipif("VINA_DATA" not in os.environ, reason="VINA_DATA names no folder of real files"),
    pytest.mark.filterwarnings("error"),
]


class HTStep:
    """Segments and candidates by video id."""

    def __init__(self) -> None:
        self.entries = json.loads((DATA / "htstep/annotations.json").read_text())
        steps: dict[tuple[str, str], list[int]] = {}
        with (DATA / "htstep/taxonomy.csv").open() as file:
            for row in csv.DictReader(file):
                steps.setdefault((row["activity"], row["variation"]), []).append(int(row["global_step_index"]))
        self.candidates = {video: steps[entry["activity"], entry["variation"]] for video, entry in self.entries.items()}
        self.activities = {video: entry["activity"] for video, entry in self.entries.items()}
        self.truth = [
            Segment(video, annotation["id"], *annotation["segment"])
            for video, entry in self.entries.items()
            for annotation in entry["annotations"]
        ]

    def value(self, detections: Sequence[Detection]) -> float:
        counted = slow.counted_detections(self.truth, detections, self.candidates)
        return 100 * slow.article_map(self.truth, counted, self.activities)


@pytest.fixture(scope="module")
def htstep() -> HTStep:
    return HTStep()


def ask(capsys: Capture, benchmark: str, data: str, path: Path, *more: str) -> dict[str, Any]:
    code = main(["score", benchmark, "--data", str(DATA / data), "--predictions", str(path), "--json", *more])
    answer = capsys.readouterr()
    assert (code, answer.err) == (0, "")
    return dict(json.loads(answer.out))


def write_rows(path: Path, benchmark: str, rows: Iterable[Sequence[object]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADERS[benchmark].split(","), *rows])
    return path


def some_detections(
    rng: np.random.Generator, truth: Sequence[Segment], labels: Sequence[int], count: int
) -> list[Detection]:
    """Of one video; scores are one of few, so that many are equal."""
    found, last_s = [], max(segment.end_s for segment in truth)
    for near in rng.choice(len(truth), count):
        start_s, end_s = np.array([truth[near].start_s, truth[near].end_s]) + rng.normal(0, 5, 2)
        label = truth[near].label
        if rng.random() < 0.5:
            start_s, label = rng.uniform(0, last_s), int(rng.choice(labels))
            end_s = start_s + rng.uniform(0, 30)
        times = round(float(start_s), 3), round(float(max(start_s, end_s)), 3)
        found.append(Detection(truth[0].video, label, *times, float(rng.integers(50)) / 8))
    return found


def test_htstep_recall(htstep: HTStep, tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(0)
    seconds = {
        (video, label): round(float(rng.uniform(0, htstep.entries[video]["duration"])), 2)
        for video, own in htstep.candidates.items()
        for label in own
        if rng.random() < 0.9
    }
    for segment in htstep.truth[::3]:
        seconds[segment.video, segment.label] = round(segment.start_s)
    path = write_rows(tmp_path / "mine.csv", "htstep-r1", [(*pair, second) for pair, second in seconds.items()])
    found = ask(capsys, "htstep-r1", "htstep", path)
    assert (found["num_videos"], found["split"], found["num_predictions"]) == (600, "val_seen", len(seconds))
    assert found["metrics"]["R@1"]["value"] == pytest.approx(100 * slow.step_r1(htstep.truth, seconds), abs=1e-6)
    assert 30 < found["metrics"]["R@1"]["value"] < 70


def test_htstep_map(htstep: HTStep, tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(1)
    strangers = sorted({step for own in htstep.candidates.values() for step in own})
    detections: list[Detection] = []
    for video, own in slow.grouped(htstep.truth, lambda segment: segment.video).items():
        labels = [*htstep.candidates[video], int(rng.choice(strangers))]
        detections += some_detections(rng, own, labels, int(rng.integers(0, 12)))
    detections = [detections[place] for place in rng.permutation(len(detections))]
    rows = [(row.video, row.start_s, row.end_s, row.label, row.score) for row in detections]
    found = ask(capsys, "htstep-map", "htstep", write_rows(tmp_path / "mine.csv", "htstep-map", rows))
    assert found["num_videos"] == 600
    assert found["metrics"]["mAP"]["value"] == pytest.approx(htstep.value(detections), abs=1e-6)
    assert 5 < found["metrics"]["mAP"]["value"] < 50


def test_htstep_s_example_predictions(htstep: HTStep, capsys: Capture) -> None:
    path = DATA / "htstep/example_predictions_val_seen.csv"
    with path.open() as file:
        rows = [
            Detection(row["video-id"], int(row["label"]), *(float(row[name]) for name in ("t-start", "t-end", "score")))
            for row in csv.DictReader(file)
        ]
    found = ask(capsys, "htstep-map", "htstep", path)
    assert (found["num_videos"], found["num_predictions"]) == (600, 3000)
    assert found["metrics"]["mAP"]["value"] == pytest.approx(htstep.value(rows), abs=1e-6)
    assert found["metrics"]["mAP"]["value"] == pytest.approx(11.502, abs=1e-3)
    notes = "\n".join(found["notes"])  # 973 are of the video's own article, 957 of them are annotated somewhere
    assert "2,027 predictions are of a step that their video's article does not have" in notes
    assert "16 predictions have a label that is not annotated" in notes


def test_crosstask(tmp_path: Path, capsys: Capture) -> None:
    rng, truth = np.random.default_rng(2), []
    seconds: dict[tuple[Video, int], int] = {}
    for path in sorted((RELEASE / "annotations").iterdir()):
        task, _, video = path.stem.partition("_")
        with path.open() as file:
            own = [Segment((task, video), int(step), float(start), float(end)) for step, start, end in csv.reader(file)]
        truth += own
        if rng.random() < 0.95:
            last_s = int(max(segment.end_s for segment in own))
            chosen = [(segment.label, segment.start_s) for segment in own if rng.random() < 0.7]
            seconds |= {
                ((task, video), label): int(rng.choice([start, rng.integers(last_s)])) for label, start in chosen
            }
    rows = [(*name, step, second) for (name, step), second in seconds.items()]
    path = write_rows(tmp_path / "mine.csv", "crosstask", rows)
    task_of = {segment.video: segment.video[0] for segment in truth}

    def value(*more: str) -> float:
        found = ask(capsys, "crosstask", "crosstask", path, *more)
        assert found["num_videos"] == (2_750 if "all" in more else 1_850)
        return float(found["metrics"]["recall"]["value"])

    everything = 100 * slow.localization_recall(truth, seconds, task_of, [set(task_of)])
    assert [value("--split", "all", "--seed", seed) for seed in "05"] == pytest.approx([everything] * 2, abs=1e-6)
    store = Store(tmp_path / "store")
    import_source(store, "run-1", "crosstask", DATA / "crosstask")
    known = read_truth(store, CROSSTASK, "test")
    names = [(task.partition("/")[2], video) for task, video in zip(known.tasks, known.videos, strict=True)]
    with (RELEASE / "videos_val.csv").open() as file:
        held_back = {(task, video) for task, video, _ in csv.reader(file)}
    values = []
    for seed in (0, 5):
        test_sets = draw_test_sets(known.tasks_V, ~known.is_validation_V, seed=seed)
        members = [{names[number] for number in np.flatnonzero(chosen)} for chosen in test_sets]
        assert [len(member) for member in members] == [1_850] * 20 and not any(held_back & own for own in members)
        expected = 100 * slow.localization_recall(truth, seconds, task_of, members)
        values.append(value("--seed", str(seed)))
        assert values[-1] == pytest.approx(expected, abs=1e-6)
    assert 20 < values[0] != values[1]


def test_crosstask_articles(tmp_path: Path, capsys: Capture) -> None:
    """Some videos have more than 50 detections, some more than 100."""
    tasks = json.loads((DATA / "youwikihow/crosstask_test.json").read_text())
    rng, truth, detections = np.random.default_rng(3), [], []
    for task, entry in tasks.items():
        if task in {"105222", "44789", "87706"}:
            continue
        headlines = range(len(entry["task_text"]["simplified_headline_list"]))
        for video, annotations in entry["crosstask_annotations"].items():
            own = [
                Segment((task, video), int(headline), float(annotation["step_s"]), float(annotation["step_e"]))
                for annotation in annotations
                for headline in entry["step2headline"][int(annotation["step_id"]) - 1].split("/")
                if headline != "_"
            ]
            truth += own
            detections += some_detections(
                rng, own, headlines, int(rng.choice([0, 8, 60, 120], p=[0.1, 0.8, 0.05, 0.05]))
            )
    rows = [(*row.video, row.label, row.start_s, row.end_s, row.score) for row in detections]
    found = ask(
        capsys, "crosstask-articles", "youwikihow", write_rows(tmp_path / "mine.csv", "crosstask-articles", rows)
    )
    assert (found["num_videos"], found["num_predictions"]) == (2_407, len(rows))
    for best in (50, 100):
        for threshold in (0.1, 0.3, 0.5):
            expected = 100 * slow.article_recall(truth, detections, best, threshold)
            assert found["metrics"][f"R@{best} IoU {threshold}"]["value"] == pytest.approx(expected, abs=1e-6)
    metrics = found["metrics"]
    assert 20 < metrics["R@50 IoU 0.1"]["value"] < metrics["R@100 IoU 0.1"]["value"] < 90
