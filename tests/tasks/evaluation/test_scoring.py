"""Predictions held against small data sets whose scores are known by hand, and what is said about the rest."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from storage import Store
from tasks.evaluation.benchmarks.registry import find_protocol
from tasks.evaluation.prediction_files import read_predictions
from tasks.evaluation.scoring import Predictions, Scored, score
from tasks.evaluation.truth import read_truth
from tasks.importers.sources import import_source
from tests.tasks.evaluation.small_benchmarks import (
    HTSTEP_STEPS,
    HTSTEP_VIDEOS,
    ROWS,
    VALUES,
    Cell,
    csv_text,
    htstep_files,
    write_data,
    write_files,
)

SPLITS = {"htstep-r1": "val_seen", "htstep-map": "val_seen"}
Rows = Sequence[Sequence[Cell]]
pytestmark = pytest.mark.filterwarnings("error")


def scored(
    folder: Path, name: str, rows: Rows | None = None, split: str = "", data: Path | None = None, seed: int = 0
) -> Scored:
    """The predictions made by hand, or others, held against the data set made by hand, or another."""
    benchmark, protocol = find_protocol(name)
    path = folder / "mine.csv"
    path.write_text(csv_text(name, rows))
    store = Store(folder / "store")
    summary = import_source(store, "run-1", benchmark.source, data or write_data(folder, name))
    assert not summary.damaged and not summary.rejected
    truth = read_truth(store, benchmark, split or SPLITS.get(name, "test"))
    return score(protocol, truth, Predictions.of(read_predictions(path, protocol), protocol, truth), seed=seed)


def values(found: Scored) -> dict[str, float]:
    return {name: estimate.value for name, estimate in found.metrics.items()}


def without(name: str, *missing: int) -> Rows:
    return [row for number, row in enumerate(ROWS[name]) if number not in missing]


@pytest.mark.parametrize("name", list(ROWS))
def test_every_benchmark_by_hand(tmp_path: Path, name: str) -> None:
    found = scored(tmp_path, name)
    assert values(found) == pytest.approx(VALUES[name], abs=1e-9)
    assert found.num_predictions == len(ROWS[name])
    for estimate in found.metrics.values():
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 100


@pytest.mark.parametrize("name", list(ROWS))
def test_the_order_of_rows_does_not_matter(tmp_path: Path, name: str) -> None:
    assert values(scored(tmp_path, name, ROWS[name][::-1])) == pytest.approx(VALUES[name], abs=1e-9)


@pytest.mark.parametrize(
    ("time", "hit"), [(9.99, False), (10, True), (21, True), (21.01, False), (50, True), (60, True), (-1, False)]
)
def test_step_recall_at_the_ends_of_segments(tmp_path: Path, time: float, hit: bool) -> None:
    """A step with two segments, 10.5 to 20.2 and 50 to 60; three others are missed."""
    found = scored(tmp_path, "htstep-r1", [("-dash", 10, time)])
    assert values(found)["R@1"] == pytest.approx(25 if hit else 0)


@pytest.mark.parametrize(("time", "hit"), [(-0.5, False), (0, True), (10.9, True), (11, False)])
def test_crosstask_at_the_ends_of_segments(tmp_path: Path, time: float, hit: bool) -> None:
    """A step from 0.5 to 10.2, one of three of its task; nothing of the other task."""
    found = scored(tmp_path, "crosstask", [(1, "both", 1, time)])
    assert values(found)["recall"] == pytest.approx(100 / 3 / 2 if hit else 0)


def test_crosstask_on_all_videos(tmp_path: Path) -> None:
    found = scored(tmp_path, "crosstask", split="all")
    assert (values(found)["recall"], found.num_videos) == (pytest.approx(87.5), 4)
    assert scored(tmp_path, "crosstask").num_videos == 3  # one is held back


def crosstask_of(folder: Path, *num_videos: int, num_held: int = 0) -> Path:
    """Tasks with one step, shown from 0 to 1 in all videos."""
    blocks, listed = [], []
    for task, count in enumerate(num_videos):
        blocks.append(f"{task}\nTask {task}\nurl\n1\nstir\n")
        listed += [f"{task},v{number:03}" for number in range(count)]
    files = {f"annotations/{name.replace(',', '_')}.csv": "1,0,1\n" for name in listed}
    files |= {"tasks_primary.txt": "\n".join(blocks), "videos.csv": "".join(f"{name},url\n" for name in listed)}
    files["videos_val.csv"] = "".join(f"{name},url\n" for name in listed[:num_held])
    return write_files(folder / "tasks", files)


def test_twenty_test_sets_are_drawn_from_what_is_not_held_back(tmp_path: Path) -> None:
    """45 videos of a task, 5 held back, 30 left out: 10 are tested. Of another with 30, all are."""
    data = crosstask_of(tmp_path, 45, 30, num_held=5)
    rows = [(0, f"v{number:03}", 1, number % 2) for number in range(45)] + [(1, "v000", 1, 0)]

    def ask(split: str, seed: int) -> Scored:
        return scored(tmp_path / f"{split}{seed}", "crosstask", rows, split, data, seed)

    for name in ("test0", "test1", "test2", "all0", "all1"):
        (tmp_path / name).mkdir()
    first, second = ask("test", 0), ask("test", 1)
    assert first.num_videos == second.num_videos == 40
    recalls = [values(found)["recall"] for found in (first, second, ask("test", 2))]
    assert len(set(recalls)) == 3
    for recall in recalls:  # the first task: right in 20 of the 40 eligible ones, a mean of 20 sets of 10
        tenths = (2 * recall - 100 / 30) / 100 * 20 * 10
        assert tenths == pytest.approx(round(tenths), abs=1e-6) and 70 < tenths < 130
    assert values(ask("all", 0)) == values(ask("all", 1)) == pytest.approx({"recall": (2300 / 45 + 100 / 30) / 2})
    assert any("1 tasks have at most 30 videos: all of them are tested" in note for note in first.notes)


def test_only_the_best_hundred_and_fifty_of_a_video_count(tmp_path: Path) -> None:
    """60 wrong ones are better than -solo's right one, 100 are better than 007's."""
    rows: list[Sequence[Cell]] = [(1, "-solo", 0, 50, 60, 1)] * 60 + [(1, "-solo", 0, 0, 10, 0.5)]
    rows += [(1, "007", 0, 50, 60, 1)] * 100 + [(1, "007", 0, 0, 10, 0.5)]
    expected = {name: 50 if "R@100" in name else 0 for name in VALUES["crosstask-articles"]}
    assert values(scored(tmp_path, "crosstask-articles", rows)) == pytest.approx(expected)


def test_a_label_of_another_article_or_that_nobody_annotated_does_not_count(tmp_path: Path) -> None:
    """All overlap a segment fully, and are better than the rest; 12 and 31 are never annotated, 99 does not exist."""
    strangers = [("-dash", 50, 60, label, 1.0) for label in (12, 20, 30, 99)] + [("1234567", 5, 15, 31, 1.0)]
    found = scored(tmp_path, "htstep-map", [*strangers, *ROWS["htstep-map"]])
    assert values(found) == pytest.approx(VALUES["htstep-map"])
    assert found.notes[:2] == [
        "3 predictions are of a step that their video's article does not have, e.g. 20 of -dash: not counted",
        "2 predictions have a label that is not annotated in this split: not counted",
    ]


def test_any_step_s_segment_of_the_video_will_do(tmp_path: Path) -> None:
    rows = [("-dash", 10.5, 20.2, 11, 1), ("-dash", 30, 40, 10, 1), ("-dash", 50, 60, 11, 1), ("007", 0, 10, 20, 1)]
    assert values(scored(tmp_path, "htstep-map", rows))["mAP"] == pytest.approx(50)  # all of the eggs, nothing of rice


def test_missing_videos_and_steps_are_missed_and_said(tmp_path: Path) -> None:
    found = scored(tmp_path, "htstep-r1", without("htstep-r1", 0, 2))  # the two that are right
    assert values(found) == {"R@1": 0}
    assert found.notes == [
        "1 of 3 videos have no prediction, e.g. 007: missed",
        "2 of 4 annotated labels have no prediction in their video, e.g. label 10 of -dash: missed",
    ]


def test_missing_narrations_have_the_lowest_score(tmp_path: Path) -> None:
    """1 of 3 is hit. Alignable 0.9, 0.5, none against 0.5, none: 2 + 1.5 + 0.5 of 6 pairs."""
    found = scored(tmp_path, "htm-align", without("htm-align", 3, 4))
    assert values(found) == pytest.approx({"R@1": 100 / 3, "AUC": 400 / 6})
    assert "1 of 2 videos have no prediction, e.g. -x: missed" in found.notes


def test_narrations_that_cannot_be_aligned_count_for_the_auc_only(tmp_path: Path) -> None:
    """Without 0.5 and 0.1 for them: nothing is below 0.9, 0.5 and 0.2, and all six pairs are right."""
    found = scored(tmp_path, "htm-align", without("htm-align", 1, 4))
    assert values(found) == pytest.approx({"R@1": 200 / 3, "AUC": 100})


def test_unknown_videos_are_not_counted_and_said(tmp_path: Path) -> None:
    found = scored(tmp_path, "htstep-r1", [*ROWS["htstep-r1"], ("7", 20, 10), ("nobody", 1, 1), ("dash", 10, 1)])
    assert (values(found), found.num_predictions, found.num_videos) == ({"R@1": 50}, 7, 3)
    assert found.notes == [
        "3 predictions are for videos that are not annotated in this split, e.g. 7, nobody, dash: not counted"
    ]


def test_videos_of_another_task_are_unknown(tmp_path: Path) -> None:
    found = scored(tmp_path, "crosstask", [*ROWS["crosstask"], (2, "-v", 1, 0)])
    assert values(found) == pytest.approx(VALUES["crosstask"])
    assert any("1 predictions are for videos that are not annotated" in note and "2/-v" in note for note in found.notes)


def test_tasks_that_are_no_part_of_article_grounding(tmp_path: Path) -> None:
    rows = [*ROWS["crosstask-articles"], (105222, "elsewhere", 0, 0, 10, 1)]
    found = scored(tmp_path, "crosstask-articles", rows)
    assert values(found) == pytest.approx(VALUES["crosstask-articles"])
    assert any("105222/elsewhere" in note for note in found.notes)


def test_times_past_the_end_are_said(tmp_path: Path) -> None:
    """Videos are 100 s long; a second more may be rounding."""
    rows = [("-dash", 50, 101, 10, 1), ("-dash", 50, 101.5, 10, 1), ("007", 500, 1e9, 20, 1), ("1234567", -9, 1, 30, 1)]
    notes = scored(tmp_path, "htstep-map", rows).notes
    assert "2 predictions are after the end of their video, e.g. in -dash: scored unchanged" in notes


def test_all_detections_may_be_useless(tmp_path: Path) -> None:
    assert values(scored(tmp_path, "htstep-map", [("-dash", 0, 0, 12, 0)]))["mAP"] == 0
    (tmp_path / "other").mkdir()
    found = values(scored(tmp_path / "other", "crosstask-articles", [(1, "007", 3, 0, 10, 0)]))
    assert set(found.values()) == {0}


def test_one_split_of_several(tmp_path: Path) -> None:
    files = htstep_files(HTSTEP_VIDEOS, HTSTEP_STEPS, {"007": "test_seen", "1234567": "train"})
    data = write_files(tmp_path / "splits", files)
    for split, recall, num_videos in (("val_seen", 50, 1), ("test_seen", 100, 1), ("all", 200 / 3, 2)):
        folder = tmp_path / split
        folder.mkdir()
        found = scored(folder, "htstep-r1", None, split, data)
        assert (values(found)["R@1"], found.num_videos) == (pytest.approx(recall), num_videos)


def test_lines_for_people(tmp_path: Path) -> None:
    lines = scored(tmp_path, "htstep-map").lines()
    assert lines[0] == "htstep-map, version 1: 5 predictions on 3 videos (split val_seen)"
    assert lines[1].startswith("  mAP           71.25 %   (95 % interval ") and len(lines) == 7


def test_the_interval_is_the_same_each_time(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    assert scored(tmp_path, "htstep-map").metrics == scored(tmp_path / "again", "htstep-map").metrics


# What follows is said, or not said, beside the right numbers.


def test_videos_held_back_from_every_test_set_are_not_missed(tmp_path: Path) -> None:
    found = scored(tmp_path, "crosstask", without("crosstask", 4))
    assert values(found) == pytest.approx(VALUES["crosstask"])
    assert not [note for note in found.notes if "missed" in note]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("crosstask", (1, "-v", 0, 1)),  # counted from 0
        ("crosstask-articles", (1, "007", 4, 0, 10, 1)),
        ("htm-align", ("first", 3, 1, 1)),
        ("htstep-r1", ("-dash", 99, 1)),
        ("htstep-r1", ("-dash", 30, 1)),  # of another article
    ],
)
def test_labels_that_their_article_does_not_have_are_said(tmp_path: Path, name: str, row: Sequence[Cell]) -> None:
    found = scored(tmp_path, name, [*ROWS[name], row])
    assert any(note.startswith("1 predictions ") for note in found.notes)


def test_narrations_are_called_so(tmp_path: Path) -> None:
    notes = scored(tmp_path, "htm-align", without("htm-align", 0)).notes
    assert not [note for note in notes if "indexs" in note]


def test_a_segment_that_another_step_s_detection_found_is_not_called_missed(tmp_path: Path) -> None:
    rows = [("-dash", 10.5, 20.2, 11, 1), ("-dash", 30, 40, 11, 1), ("-dash", 50, 60, 11, 1), ("007", 0, 10, 20, 1)]
    found = scored(tmp_path, "htstep-map", [*rows, ("1234567", 5, 15, 30, 1)])
    assert values(found)["mAP"] == pytest.approx(100)
    assert not [note for note in found.notes if "missed" in note]


def test_a_step_that_only_a_very_short_segment_shows_is_not_annotated(tmp_path: Path) -> None:
    """Segments under a millisecond are no ground truth, and so their labels are none that occur in it."""
    activity, variation, segments = HTSTEP_VIDEOS["-dash"]
    videos = HTSTEP_VIDEOS | {"-dash": (activity, variation, [*segments, (12, 70, 70.0005)])}
    data = write_files(tmp_path / "short", htstep_files(videos, HTSTEP_STEPS))
    found = scored(tmp_path, "htstep-map", [("-dash", 80, 90, 12, 1), *ROWS["htstep-map"]], data=data)
    assert values(found) == pytest.approx(VALUES["htstep-map"])


@pytest.mark.parametrize("alignable", [0, 1])
def test_what_cannot_be_measured_is_no_number(tmp_path: Path, alignable: int) -> None:
    data = write_files(tmp_path / "one", {"htm_align.json": json.dumps({"a": [[alignable, 1, 2, "x"]]})})
    found = scored(tmp_path, "htm-align", [("a", 0, 1, 1)], data=data)
    assert np.isnan(values(found)["AUC"]) and (values(found)["R@1"] == 100 or not alignable)
    assert "nan" not in "\n".join(found.lines())


def test_a_video_with_steps_of_two_articles_is_one_video(tmp_path: Path) -> None:
    videos = HTSTEP_VIDEOS | {"007": ("Boil an Egg", "B", [(20, 0, 10), (30, 20, 30)])}
    data = write_files(tmp_path / "mixed", htstep_files(videos, HTSTEP_STEPS))
    found = scored(tmp_path, "htstep-r1", [("007", 20, 5), ("007", 30, 25)], data=data)
    assert (values(found), found.num_videos) == ({"R@1": pytest.approx(40)}, 3)
