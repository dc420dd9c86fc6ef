"""The temporal shape of annotated videos: computed by hand, by a slow version, and of the published files."""

import math
import os
import statistics
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import Store
from tasks.evaluation.annotated_videos import AnnotatedVideo, read_annotated_videos, step_benchmarks
from tasks.evaluation.shape import RECALL, SHARE, SIZE, Shape, compare, shape_of
from tasks.importers.sources import import_source
from tests.tasks.evaluation.test_statistics import import_by_hand
from vina_model.metrics.columns import Points, Segments
from vina_model.metrics.htstep_r1 import StepRecall

DATA = Path(os.environ.get("VINA_DATA", ""))
real = pytest.mark.skipif("VINA_DATA" not in os.environ, reason="VINA_DATA names no folder of real files")

LONG = AnnotatedVideo(
    "long", "tea", "test", 10.0, 4, ((0, 0.0, 2.0), (0, 6.5, 7.0), (2, 1.5, 3.5)), narrations=((0, 2), (5, 9))
)
SHORT = AnnotatedVideo("short", "egg", "test", 4.0, 2, ((1, 0.0, 1.0), (0, 2.0, 4.0)))


def values(shape: Shape) -> dict[str, float]:
    return {statistic.name: statistic.value for statistic in shape.statistics}


def test_two_videos_by_hand() -> None:
    # seconds of LONG: step 0 at 0, 1, 6; step 2 at 1, 2, 3. Hits: step 0 at 0, 1, 2, 6, 7; step 2 at 1 to 4.
    # seconds of SHORT: step 1 at 0, step 0 at 2, 3. Hits: step 1 at 0, 1; step 0 at 2, 3.
    assert values(shape_of([LONG, SHORT])) == pytest.approx({
        "video length, s, median": 7,
        "video length, s, mean": 7,
        "video length, s, p10": 4.6,
        "video length, s, p90": 9.4,
        "steps of the article": 3,
        "share of its steps shown, mean": 0.75,
        "share of its steps shown, p10": 0.55,
        "share of its steps shown, p90": 0.95,
        "segment length, s, median": 2,
        "segment length, s, mean": 7.5 / 5,
        "segment length, s, p90": 2,
        "shown steps with several segments": 1 / 4,
        "share of the video annotated": (5 / 10 + 3 / 4) / 2,
        "annotated seconds with two steps at once": 1 / 8,
        "pairs of shown steps in the article's order": 1 / 2,
        "spread of first start less place": statistics.pstdev([0 - 1 / 8, 0.15 - 5 / 8, 0 - 3 / 4, 1 / 2 - 1 / 4]),
        "R@1 of a random second, %": 100 * (5 / 10 + 4 / 10 + 2 / 4 + 2 / 4) / 4,
        "R@1 of the centre, %": 100 * 1 / 4,  # seconds 5 and 2: step 0 of SHORT
        "R@1 of steps spread evenly, %": 100 * 1 / 4,  # seconds 1 and 6, 1 and 3: step 0 of LONG
        "narrations of a narrated video": 2,
        "seconds of video per narration": 5,
    })  # fmt: skip


def test_videos_without_a_usable_length_are_left_out_and_counted() -> None:
    unknown = AnnotatedVideo("unknown", "tea", "test", None, 4, ((0, 0.0, 1.0),))
    wrong = AnnotatedVideo("wrong", "tea", "test", 5.0, 4, ((0, 0.0, 1.0), (1, 5.0, 6.0)))
    shape = shape_of([unknown, LONG, wrong, SHORT, wrong])
    assert (shape.num_videos, shape.num_unknown_length, shape.num_wrong_length) == (2, 1, 2)
    assert shape.statistics == shape_of([LONG, SHORT]).statistics
    with pytest.raises(ValueError, match="none of the 2 annotated videos has a known length"):
        shape_of([unknown, wrong])


def test_a_segment_may_end_after_its_video() -> None:
    shape = values(shape_of([AnnotatedVideo("v", "tea", "test", 3.5, 1, ((0, 2.0, 90.0),))]))
    assert shape["share of the video annotated"] == 0.5 and shape["R@1 of a random second, %"] == 50
    assert "pairs of shown steps in the article's order" not in shape, "one step has no order"


@st.composite
def random_videos(draw: st.DrawFn) -> list[AnnotatedVideo]:
    videos = []
    for number in range(draw(st.integers(1, 4))):
        length_s, num_steps = draw(st.integers(1, 60)) / 4, draw(st.integers(1, 4))
        quarters = st.tuples(
            st.integers(0, num_steps - 1), st.integers(0, math.ceil(4 * length_s) - 1), st.integers(0, 20)
        )
        drawn = draw(st.lists(quarters, min_size=1, max_size=6))
        segments = tuple((row, start / 4, (start + size) / 4) for row, start, size in drawn)
        videos.append(AnnotatedVideo(str(number), "a", "test", length_s, num_steps, segments))
    return videos


def slow_shape(videos: list[AnnotatedVideo]) -> dict[str, float]:
    """The statistics that need seconds, second by second."""
    coverages, at_once, in_order, offsets, several = [], [], [], [], []
    recalls: dict[str, list[float]] = {"a random second": [], "the centre": [], "steps spread evenly": []}
    for video in videos:
        assert video.duration_s is not None
        shown: dict[int, list[tuple[float, float]]] = {}
        for row, start, end in video.segments:
            shown.setdefault(row, []).append((start, end))
        seconds = range(math.ceil(video.duration_s))
        counts = [
            sum(any(math.floor(s) <= t < math.ceil(e) for s, e in segments) for segments in shown.values())
            for t in seconds
        ]
        coverages.append(sum(count > 0 for count in counts) / len(counts))
        at_once += [count > 1 for count in counts if count]
        firsts = [min(start for start, _ in shown[row]) for row in sorted(shown)]
        in_order += [first < second for first, second in combinations(firsts, 2)]
        for row, segments in shown.items():
            place = (row + 0.5) / video.num_steps
            several.append(len(segments) > 1)
            offsets.append(min(segments)[0] / video.duration_s - place)
            hits = [any(math.floor(s) <= t <= math.ceil(e) for s, e in segments) for t in seconds]
            recalls["a random second"].append(sum(hits) / len(hits))
            recalls["the centre"].append(hits[min(int(video.duration_s / 2), len(hits) - 1)])
            recalls["steps spread evenly"].append(hits[min(int(place * video.duration_s), len(hits) - 1)])
    samples = {
        "shown steps with several segments": several,
        "share of the video annotated": coverages,
        "annotated seconds with two steps at once": at_once,
        "pairs of shown steps in the article's order": in_order,
    }
    means = {name: statistics.fmean(sample) for name, sample in samples.items() if sample}
    means |= {f"R@1 of {guess}, %": 100 * statistics.fmean(hits) for guess, hits in recalls.items()}
    return means | {"spread of first start less place": statistics.pstdev(offsets)}


@settings(max_examples=200, deadline=None)
@given(random_videos())
def test_it_is_what_a_loop_over_seconds_finds(videos: list[AnnotatedVideo]) -> None:
    found = values(shape_of(videos))
    expected = slow_shape(videos)
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    others = {name for name in found if not name.startswith(("video", "steps", "share of its", "segment"))}
    assert others == set(expected)


@settings(max_examples=50, deadline=None)
@given(random_videos())
def test_the_recall_of_even_steps_is_that_of_the_protocol(videos: list[AnnotatedVideo]) -> None:
    rows = [(number, *segment) for number, video in enumerate(videos) for segment in video.segments]
    numbers, labels, starts, ends = (np.array(column) for column in zip(*rows, strict=True))
    times = [
        min(int((row + 0.5) / videos[number].num_steps * length_s), math.ceil(length_s) - 1)
        for number, row, *_ in rows
        if (length_s := videos[number].duration_s)
    ]
    recall = StepRecall(
        Segments(numbers, labels, starts, ends), Points(numbers, labels, np.array(times, float)), len(videos)
    )
    (expected,) = recall(np.ones((1, len(videos))))["R@1"]
    assert values(shape_of(videos))["R@1 of steps spread evenly, %"] == pytest.approx(100 * expected)


def test_tolerances_are_relative_for_sizes_and_absolute_for_shares() -> None:
    assert SIZE.allows(110, 100) and SIZE.allows(90, 100) and not SIZE.allows(111, 100)
    assert SHARE.allows(0.52, 0.5) and not SHARE.allows(0.54, 0.5)
    assert RECALL.allows(12, 13.9) and not RECALL.allows(12, 14.1)


def test_what_only_one_side_has_is_not_compared() -> None:
    both, silent = shape_of([LONG, SHORT]), shape_of([SHORT])
    assert len(compare(both, both)) == 21 and all(each.is_within_tolerance for each in compare(both, both))
    names = [each.name for each in compare(both, silent)]
    assert names == [each.name for each in compare(silent, both)] and len(names) == 19
    mean = compare(both, silent)[1]
    assert (mean.name, mean.a, mean.b, mean.is_within_tolerance) == ("video length, s, mean", 7, 4, False)


def test_videos_are_read_from_the_tables(store: Store, tmp_path: Path) -> None:
    import_by_hand(store, "htstep", tmp_path)
    (tmp_path / "said.json").write_text('{"nested": {"text": ["stir", "pour"], "start": [4, 1], "end": [6, 2]}}')
    import_source(store, "run-1", "howto100m", tmp_path / "said.json")
    found = {video.video_id: video for video in read_annotated_videos(store, "htstep")}
    assert sorted(found) == ["nested", "of-no-length", "past-the-end", "repeats"]
    assert found["repeats"] == AnnotatedVideo(
        "repeats", "htstep/Boil an Egg/A", "val_seen", 100, 4, ((0, 0, 10), (1, 5, 25), (0, 20, 30))
    )
    assert found["nested"].narrations == ((1, 2), (4, 6)) and found["of-no-length"].duration_s is None
    assert [video.video_id for video in read_annotated_videos(store, "htstep", "test_seen")] == ["nested"]
    assert read_annotated_videos(store, "coin") == []
    assert step_benchmarks(store) == {"htstep": ["test_seen", "val_seen"]}
    shape = shape_of(list(found.values()))
    assert (shape.num_videos, shape.num_unknown_length, shape.num_wrong_length) == (2, 1, 1)


def test_a_video_of_two_articles_is_there_twice(tmp_path: Path) -> None:
    store = import_by_hand(Store(tmp_path / "store"), "crosstask", tmp_path)
    found = [(video.video_id, video.article_id) for video in read_annotated_videos(store, "crosstask", "test")]
    assert found == [("both", "crosstask/1"), ("both", "crosstask/2"), ("nowhere", "crosstask/1")]


PUBLISHED = {
    "htstep": (
        (600, 0, 0),
        "331 383 150 699 10.1 0.42 0.17 0.71 7.7 15.9 36.5 0.26 0.26 0.01 0.86 0.237 7.0 9.6 12.1",
    ),
    "crosstask": (
        (2_304, 442, 4),
        "263 279 114 484 7.5 0.70 0.38 1 5.1 9.7 21.5 0.26 0.28 0.04 0.83 0.268 6.3 9.0 10.0",
    ),
    "coin": (
        (2_354, 0, 0),
        "137 142 58 219 4.3 0.71 0.40 1 8.2 14.8 35.0 0.20 0.42 0.00 0.905 0.251 15.6 21.5 27.5",
    ),
}
"""By data set: videos used and left out for each reason, and the statistics in their order."""


@real
@pytest.mark.parametrize("source", PUBLISHED)
def test_published_files(tmp_path: Path, source: str) -> None:
    store = Store(tmp_path / "store")
    import_source(store, "run-1", source, DATA / source)
    counts, printed = PUBLISHED[source]
    shape = shape_of(read_annotated_videos(store, source))
    assert (shape.num_videos, shape.num_unknown_length, shape.num_wrong_length) == counts
    for statistic, text in zip(shape.statistics, printed.split(), strict=True):
        half_unit = 0.5 * 10.0 ** -len(text.partition(".")[2])
        assert statistic.value == pytest.approx(float(text), abs=half_unit + 1e-6), statistic.name
