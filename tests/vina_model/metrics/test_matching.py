"""Matching in all videos at once against one detection after the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vina_model.metrics import random_worlds as worlds
from tests.vina_model.metrics import slow_metrics as slow
from tests.vina_model.metrics.slow_metrics import Detection, Segment
from vina_model.metrics.columns import overlaps, total_by
from vina_model.metrics.matching import best_first, match, places_within

THRESHOLDS = np.array([0.1, 0.3, 0.5, 0.7, 1.0])

pytestmark = pytest.mark.filterwarnings("error", worlds.OTHER_THREADS)


def matched(truth: list[Segment], ranked: list[Detection], thresholds: list[float], same_label: bool) -> object:
    columns = worlds.segment_columns(truth), worlds.detection_columns(ranked)
    return match(*columns, np.array(thresholds), same_label).tolist()


@settings(max_examples=60, deadline=None)
@given(worlds.truths, worlds.founds, st.booleans())
def test_matches_equal_the_slow_ones(truth: list[Segment], found: list[Detection], same_label: bool) -> None:
    ranked = slow.best_first(found)
    expected = [slow.claims(truth, ranked, threshold, same_label) for threshold in THRESHOLDS]
    assert matched(truth, ranked, THRESHOLDS.tolist(), same_label) == expected


@pytest.mark.parametrize("same_label", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_crowded_world(seed: int, same_label: bool) -> None:
    """Many segments and detections a video: long chains of who took what before."""
    rng = np.random.default_rng(seed)
    begin, length = rng.integers(0, 30, 1500) / 2, rng.integers(1, 30, 1500) / 2
    labelled = rng.integers(0, 7, 1500).tolist(), rng.integers(0, 3, 1500).tolist()
    rows = list(zip(*labelled, begin.tolist(), (begin + length).tolist(), strict=True))
    truth = [Segment(*row) for row in rows[:150]]
    ranked = slow.best_first([Detection(*row, float(rng.integers(0, 9))) for row in rows[150:]])
    expected = [slow.claims(truth, ranked, threshold, same_label) for threshold in THRESHOLDS]
    assert matched(truth, ranked, THRESHOLDS.tolist(), same_label) == expected
    assert 20 < sum(expected[2]) < len(truth)


@settings(max_examples=60, deadline=None)
@given(worlds.founds)
def test_the_order_of_detections(found: list[Detection]) -> None:
    order = best_first(worlds.detection_columns(found).scores)
    assert [found[place] for place in order] == slow.best_first(found)
    assert order.tolist() == slow.later_of_equals_first([detection.score for detection in found])


def test_of_equal_scores_the_later_comes_first() -> None:
    assert best_first(np.array([0.5, 1.0, 0.5, 1.0])).tolist() == [3, 1, 2, 0]


def test_the_order_of_many_equal_scores() -> None:
    scores = np.random.default_rng(0).integers(0, 3, 5_000).astype(np.float64)
    assert best_first(scores).tolist() == slow.later_of_equals_first(scores.tolist())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4)))
def test_places_within_groups(groups: list[int]) -> None:
    assert places_within(worlds.ints(groups)).tolist() == [groups[:n].count(group) for n, group in enumerate(groups)]


@settings(max_examples=60, deadline=None)
@given(worlds.founds, worlds.truths)
def test_overlaps(found: list[Detection], truth: list[Segment]) -> None:
    pairs = [(detection, segment) for detection in found for segment in truth]
    a = worlds.detection_columns([detection for detection, _ in pairs])
    b = worlds.segment_columns([segment for _, segment in pairs])
    assert overlaps(a.starts, a.ends, b.starts, b.ends).tolist() == [slow.overlap(*pair) for pair in pairs]


def test_overlaps_by_hand() -> None:
    starts, ends = np.array([0.0, 0.0, 2.0, 3.0, 5.0]), np.array([4.0, 2.0, 8.0, 3.0, 5.0])
    other_starts, other_ends = np.array([2.0, 2.0, 4.0, 2.0, 5.0]), np.array([6.0, 4.0, 6.0, 4.0, 5.0])
    # 2 of 6 shared; touching; nested, 2 of 6; no length inside 2 s; no length on no length
    assert overlaps(starts, ends, other_starts, other_ends).tolist() == [2 / 6, 0, 2 / 6, 0, 0]


def test_the_total_of_each_group() -> None:
    assert total_by(np.array([2, 0, 2]), np.array([1.0, 0.5, 2.0]), 4).tolist() == [0.5, 0, 3, 0]


def test_an_overlap_of_exactly_the_threshold_is_enough() -> None:
    truth = [Segment(0, 0, 0.0, 10.0)]
    ranked = [Detection(0, 0, 0.0, 3.0, 1.0)]  # 3 of 10
    assert matched(truth, ranked, [0.3, float(np.nextafter(0.3, 1))], True) == [[True], [False]]


def test_a_segment_is_taken_once() -> None:
    truth = [Segment(0, 0, 0.0, 4.0)]
    ranked = [Detection(0, 0, 0.0, 3.0, 2.0), Detection(0, 0, 0.0, 4.0, 1.0)]
    assert matched(truth, ranked, [0.5, 0.8], True) == [[True, False], [False, True]]


def test_the_second_choice_is_taken_if_the_first_is_gone() -> None:
    truth = [Segment(0, 0, 0.0, 10.0), Segment(0, 0, 2.0, 12.0)]
    ranked = [Detection(0, 0, 0.0, 10.0, 2.0), Detection(0, 0, 0.0, 10.0, 1.0)]  # the second has 8 of 12 left
    assert matched(truth, ranked, [0.5, 0.7], True) == [[True, True], [True, False]]


def test_of_equal_overlaps_the_later_segment_is_taken() -> None:
    truth = [Segment(0, 0, 0.0, 4.0), Segment(0, 0, 4.0, 8.0)]
    ranked = [Detection(0, 0, 2.0, 6.0, 2.0), Detection(0, 0, 4.0, 8.0, 1.0), Detection(0, 0, 0.0, 4.0, 0.0)]
    # 2 of 6 with both: the first detection takes the later segment, so the second has 0 of 8 left and the third 4 of 4.
    assert matched(truth, ranked, [0.3], True) == [[True, False, True]]


def test_labels_matter_only_if_asked() -> None:
    truth, ranked = [Segment(0, 1, 0.0, 4.0)], [Detection(0, 0, 0.0, 4.0, 1.0)]
    assert matched(truth, ranked, [0.5], True) == [[False]]
    assert matched(truth, ranked, [0.5], False) == [[True]]


def test_videos_are_apart() -> None:
    truth = [Segment(3, 0, 0.0, 4.0), Segment(5, 0, 0.0, 4.0)]
    ranked = [Detection(video, 0, 0.0, 4.0, 1.0) for video in (5, 4, 3, 2, 6)]
    assert matched(truth, ranked, [0.5], True) == [[True, False, True, False, False]]


def test_nothing_annotated_or_nothing_found() -> None:
    some = Detection(0, 0, 0.0, 4.0, 1.0)
    assert matched([], [some], [0.3, 0.5], True) == [[False], [False]]
    assert matched([Segment(0, 0, 0.0, 4.0)], [], [0.3, 0.5], True) == [[], []]
    assert matched([Segment(1, 0, 0.0, 4.0)], [some], [0.3, 0.5], False) == [[False], [False]]
    assert matched([], [], [0.3], False) == [[]]
