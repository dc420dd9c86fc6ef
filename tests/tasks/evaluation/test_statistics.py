"""What annotations hold: small data sets counted by hand, and the published files beside the paper's appendix."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.catalogue import Catalogue
from tasks.evaluation.benchmarks.registry import find_benchmark
from tasks.evaluation.statistics import Statistics, read_statistics
from tasks.importers.sources import import_source

DATA = Path(os.environ.get("VINA_DATA", ""))
real = pytest.mark.skipif("VINA_DATA" not in os.environ, reason="VINA_DATA names no folder of real files")
Segments = list[tuple[int, float, float]]

ARTICLES = {("Boil an Egg", "A"): (1, 2, 3, 4), ("Boil an Egg", "B"): (5, 6), ("Fry Rice", "none"): (7, 8, 9, 10, 11)}
VIDEOS: dict[str, tuple[str, tuple[str, str], float | None, Segments]] = {
    "repeats": ("val_seen", ("Boil an Egg", "A"), 100, [(1, 20, 30), (1, 0, 10), (2, 5, 25)]),  # 30 s of steps
    "past-the-end": ("val_seen", ("Boil an Egg", "B"), 50, [(5, 40, 70), (6, 60, 65)]),  # 10 s
    "of-no-length": ("val_seen", ("Fry Rice", "none"), None, [(7, 0, 5)]),
    "nested": ("test_seen", ("Fry Rice", "none"), 40, [(8, 10, 30), (9, 15, 20), (10, 30, 40)]),  # 30 s
}
CROSSTASK = {
    "tasks_primary.txt": "1\nMake Tea\nurl\n3\nboil water,pour water,stir\n\n2\nMake Coffee\nurl\n2\nboil water,stir\n",
    "videos.csv": "1,both,url\n2,both,url\n1,listed,url\n",
    "videos_val.csv": "1,listed,url\n",
    "video_durations.json": '{"both": 20}',
    "annotations/1_both.csv": "1,0,10\n2,5,15\n",
    "annotations/2_both.csv": "1,0,10\n",
    "annotations/1_listed.csv": "3,1,2\n",
    "annotations/1_nowhere.csv": "1,0,1\n",  # in no list of videos
}
GROUNDING = {
    "task_full_name": "How to Make Tea2",
    "task_text": {"simplified_headline_list": ["Boil.", "Pour.", "Wait.", "Serve."]},
    "step2headline": ["0", "1/2", "_"],
    "task_video": ["both", "listed"],
    "video_duration": {"both": 40, "listed": 10},
    "crosstask_annotations": {
        "both": [
            {"step_id": "1", "step_s": "0", "step_e": "10"},
            {"step_id": "2", "step_s": "5", "step_e": "15"},
            {"step_id": "3", "step_s": "20", "step_e": "40"},
        ],
        "listed": [{"step_id": "3", "step_s": "1", "step_e": "2"}],  # nothing of the article
    },
}
NARRATIONS = {"first": [[1, 0, 1, "stir it"], [0, 0, 0, "hello"]], "second": [[1, 3, 4, "pour it"]]}


def import_by_hand(store: Store, source: str, folder: Path) -> Store:
    """One of the data sets above, through files in its own format."""
    annotations = {
        video: {"subset": split, "activity": article[0], "variation": article[1], "duration": length_s}
        | {"annotations": [{"id": step, "segment": [start, end]} for step, start, end in segments]}
        for video, (split, article, length_s, segments) in VIDEOS.items()
    }
    taxonomy = "global_step_index,activity,step_index,variation,variation_index,headline,paragraph\n" + "".join(
        f"{step},{activity},{step},{variation},1,Do it,\n"
        for (activity, variation), steps in ARTICLES.items()
        for step in steps
    )
    files = {
        "htstep": {"taxonomy.csv": taxonomy, "annotations.json": json.dumps(annotations)},
        "crosstask": CROSSTASK,
        "youwikihow": {"crosstask_test.json": json.dumps({"1": GROUNDING})},
        "htm-align": {"htm_align.json": json.dumps(NARRATIONS)},
    }
    for name, text in files[source].items():
        path = folder / source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    summary = import_source(store, "run-1", source, folder / source)
    assert not summary.damaged and not summary.rejected
    return store


def counted(found: Statistics) -> dict[str, list[int]]:
    return {row["split"]: [value for name, value in row.items() if name != "split"] for row in found.counts}


def averaged(found: Statistics) -> dict[str, Any]:
    """Activity -> videos, steps, the two coverages, videos of unknown length; in the order of the rows."""
    return {
        row["activity"]: pytest.approx([value for name, value in row.items() if name != "activity"], abs=1e-6)
        for row in found.activities
    }


def test_segments_are_counted_and_their_union_is_measured(store: Store, tmp_path: Path) -> None:
    found = read_statistics(import_by_hand(store, "htstep", tmp_path), find_benchmark("htstep"))
    assert counted(found) == {"test_seen": [1, 1, 5, 3, 3], "val_seen": [3, 2, 11, 5, 6], "all": [4, 2, 11, 8, 9]}
    assert averaged(found) == {"Boil an Egg": [2, 2, 0.75, 0.25, 0], "Fry Rice": [2, 2, 0.4, 0.75, 1]}
    assert list(found.activities[0]) == [
        "activity",
        "videos",
        "steps",
        "step_coverage",
        "video_coverage",
        "videos_of_unknown_length",
    ]
    assert list(found.averages.values()) == pytest.approx([2, 0.575, 0.5, 1])


def test_one_split_and_averages_over_activities(tmp_path: Path) -> None:
    store = import_by_hand(Store(tmp_path / "store"), "htstep", tmp_path)
    found = read_statistics(store, find_benchmark("htstep"), "val_seen")
    assert counted(found) == {"val_seen": [3, 2, 11, 5, 6]}
    assert [(row["activity"], row["video_coverage"]) for row in found.activities] == [
        ("Boil an Egg", pytest.approx(0.25)),
        ("Fry Rice", None),
    ]
    assert list(found.averages.values()) == pytest.approx([1.5, (0.75 + 0.2) / 2, 0.25, 1])
    assert counted(read_statistics(store, find_benchmark("htstep"), "test_seen")) == {"test_seen": [1, 1, 5, 3, 3]}


def test_a_video_of_two_tasks_and_lengths_that_another_source_knows(tmp_path: Path) -> None:
    store = import_by_hand(Store(tmp_path / "store"), "crosstask", tmp_path)
    found = read_statistics(store, find_benchmark("crosstask"))
    assert counted(found) == {"test": [2, 2, 5, 3, 4], "validation": [1, 1, 3, 1, 1], "all": [3, 2, 5, 4, 5]}
    assert averaged(found) == {"Make Coffee": [1, 1, 0.5, 0.5, 0], "Make Tea": [3, 4 / 3, 4 / 9, 0.75, 2]}
    import_by_hand(store, "youwikihow", tmp_path)
    tea = read_statistics(store, find_benchmark("crosstask")).activities[1]
    assert (tea["video_coverage"], tea["videos_of_unknown_length"]) == (pytest.approx((0.75 + 0.1) / 2), 1)


def test_segments_that_no_headline_describes_are_no_steps(tmp_path: Path) -> None:
    found = read_statistics(
        import_by_hand(Store(tmp_path / "store"), "youwikihow", tmp_path), find_benchmark("crosstask-articles"), "test"
    )
    assert counted(found) == {"test": [1, 1, 4, 3, 3]}
    assert averaged(found) == {"Make Tea": [1, 3, 0.75, 0.375, 0]}


def test_narrations_are_counted(tmp_path: Path) -> None:
    found = read_statistics(
        import_by_hand(Store(tmp_path / "store"), "htm-align", tmp_path), find_benchmark("htm-align")
    )
    assert found.counts == [{"split": "test", "videos": 2, "narrations": 3, "alignable_narrations": 2}]
    assert found.activities == [] and found.averages == {}


@pytest.mark.parametrize(
    ("benchmark", "source"),
    [("htstep", "htstep"), ("crosstask-articles", "youwikihow"), ("htm-align", "htm-align")],
)
def test_annotations_that_are_not_there(tmp_path: Path, benchmark: str, source: str) -> None:
    with pytest.raises(ValueError, match=f"no annotations of {benchmark}: .* `vina import {source} PATH`"):
        read_statistics(Store(tmp_path), find_benchmark(benchmark))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("real") / "store")
    for source in ("crosstask", "htstep", "youwikihow"):
        import_source(store, "run-1", source, DATA / source)
    return store


@real
def test_htstep_has_the_papers_averages(published: Store) -> None:
    found = read_statistics(published, find_benchmark("htstep"))
    assert counted(found) == {"val_seen": [600, 120, 1_395, 983, 3_441]}
    steps, step_coverage, video_coverage, unknown = found.averages.values()
    assert (round(steps, 1), round(step_coverage, 2), round(video_coverage, 2), unknown) == (4.0, 0.42, 0.24, 0)
    assert {row["videos"] for row in found.activities} == {5}
    coverages = [row["step_coverage"] for row in found.activities]
    assert coverages == sorted(coverages, reverse=True)
    paper = {  # those of its rows that the validation videos give by themselves
        "Cook Spaghetti alla Carbonara": (4.6, 0.73, 0.39),  # of two variations
        "Make Vegan Pesto": (2.2, 0.73, 0.15),
        "Make a Shrimp Po Boy Sandwich": (4.2, 0.70, 0.27),
        "Cook Prime Rib": (2.6, 0.19, 0.19),
        "Make Lobster Bisque": (3.6, 0.17, 0.28),
        "Make Giblet Gravy": (2.8, 0.16, 0.23),
    }
    rows = {row["activity"]: row for row in found.activities}
    for activity, numbers in paper.items():
        ours = [rows[activity][name] for name in ("steps", "step_coverage", "video_coverage")]
        assert ours == pytest.approx(numbers, abs=0.006)


@real
def test_video_coverage_is_that_of_a_sweep(published: Store) -> None:
    videos = json.loads((DATA / "htstep/annotations.json").read_text())
    with Catalogue(published) as catalogue:
        query = "SELECT video_id, video_coverage FROM annotated_videos WHERE benchmark = 'htstep'"
        found = {row["video_id"]: row["video_coverage"] for row in catalogue.query(query).to_pylist()}
    expected = {}
    for video_id, video in videos.items():
        covered = end = 0.0
        for begin, stop in sorted(annotation["segment"] for annotation in video["annotations"]):
            stop = min(stop, video["duration"])
            covered += max(0.0, stop - max(begin, end))
            end = max(end, stop)
        expected[video_id] = covered / video["duration"]
    assert found == pytest.approx(expected, abs=1e-5)


@real
def test_crosstask_has_the_papers_counts(published: Store) -> None:
    assert counted(read_statistics(published, find_benchmark("crosstask"))) == {
        "test": [2_390, 18, 133, 133, 18_067],
        "validation": [360, 18, 133, 133, 2_852],
        "all": [2_750, 18, 133, 133, 20_919],
    }
    found = read_statistics(published, find_benchmark("crosstask-articles"), "test")
    assert counted(found) == {"test": [2_407, 15, 154, 86, 16_035]} and len(found.activities) == 15
