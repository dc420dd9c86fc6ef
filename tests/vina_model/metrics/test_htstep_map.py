"""HT-Step's mean average precision against activity after activity, detection after detection."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vina_model.metrics import random_worlds as worlds
from tests.vina_model.metrics import slow_metrics as slow
from tests.vina_model.metrics.slow_metrics import Detection, Segment
from vina_model.metrics.htstep_map import THRESHOLDS, ArticleMap, without_repetitions

EACH = [f"mAP IoU {threshold}" for threshold in (0.3, 0.4, 0.5, 0.6, 0.7)]
CANDIDATES = {video: set(worlds.LABELS) - {video % 3} for video in range(worlds.NUM_VIDEOS)}

pytestmark = pytest.mark.filterwarnings("error", worlds.OTHER_THREADS)

activity_lists = st.lists(st.sampled_from([0, 1, 3]), min_size=worlds.NUM_VIDEOS, max_size=worlds.NUM_VIDEOS)
hairs = st.sampled_from([0.0, 0.0005, 0.000999, 0.0011])


@st.composite
def near_repetitions(draw: st.DrawFn) -> list[Segment]:
    """Segments, some of them again with ends that are about a millisecond off."""
    rows = draw(worlds.truths)
    again = draw(st.lists(st.tuples(st.sampled_from(rows), hairs, hairs), max_size=8)) if rows else []
    moved = [row._replace(start_s=row.start_s + left, end_s=row.end_s + right) for row, left, right in again]
    return draw(st.permutations(rows + moved))


def values(
    truth: list[Segment], counted: list[Detection], activities: list[int], weights: np.ndarray | None = None
) -> dict[str, list[float]]:
    metric = ArticleMap(worlds.segment_columns(truth), worlds.detection_columns(counted), worlds.ints(activities))
    measured = metric(worlds.as_they_are(len(activities)) if weights is None else weights)
    return {name: value.tolist() for name, value in measured.items()}


def check(
    found: dict[str, list[float]],
    worlds_: list[tuple[list[Segment], list[Detection]]],
    activity_of: dict[object, int],
) -> None:
    assert list(found) == ["mAP", *EACH]
    expected = [slow.article_map(*world, activity_of) for world in worlds_]
    assert found["mAP"] == pytest.approx(expected, abs=1e-12, nan_ok=True)
    for name, threshold in zip(EACH, slow.HTSTEP_TIOUS, strict=True):
        expected = [slow.article_map(*world, activity_of, [threshold]) for world in worlds_]
        assert found[name] == pytest.approx(expected, abs=1e-12, nan_ok=True)


def alone(hits: list[bool], positives: int) -> float:
    """The AP of one video with one segment a minute, where the detections, best first, are right or wrong."""
    truth = [Segment(0, 0, 60.0 * n, 60.0 * n + 10) for n in range(positives)]
    places = iter(range(positives))
    found = [
        Detection(0, 0, start_s, start_s + 10, -rank)
        for rank, hit in enumerate(hits)
        for start_s in [60.0 * next(places) if hit else 30.0]
    ]
    measured = values(truth, found, [0])
    assert [measured[name] for name in EACH] == [measured[EACH[0]]] * 5
    return measured["mAP"][0]


def test_the_thresholds_are_the_evaluator_s() -> None:
    assert THRESHOLDS.tolist() == np.linspace(0.3, 0.7, 5).tolist()


@settings(max_examples=60, deadline=None)
@given(near_repetitions(), worlds.founds, activity_lists)
def test_map_equals_the_slow_one(truth: list[Segment], found: list[Detection], activities: list[int]) -> None:
    counted = slow.counted_detections(truth, found, CANDIDATES)
    check(values(truth, counted, activities), [(truth, counted)], dict(enumerate(activities)))


@settings(max_examples=60, deadline=None)
@given(near_repetitions(), worlds.founds, activity_lists)
def test_all_that_is_given_counts(truth: list[Segment], found: list[Detection], activities: list[int]) -> None:
    """Labels that nobody annotated are wrong detections, if the caller lets them through."""
    check(values(truth, found, activities), [(truth, found)], dict(enumerate(activities)))


@settings(max_examples=60, deadline=None)
@given(near_repetitions())
def test_repetitions_are_left_out(truth: list[Segment]) -> None:
    kept = without_repetitions(worlds.segment_columns(truth))
    assert [segment for segment, counts in zip(truth, kept, strict=True) if counts] == slow.without_repeats(truth)


@settings(max_examples=60, deadline=None)
@given(worlds.truths, worlds.founds, activity_lists, worlds.weights, worlds.weights)
def test_weights_are_repetitions_of_rows(
    truth: list[Segment], found: list[Detection], activities: list[int], times: list[int], other_times: list[int]
) -> None:
    """Exact with equal scores too, if the copies of a row follow each other: they stay one block of the ranking.

    Inside a block of right detections precision rises, inside one of wrong ones it falls: the best is at a block's end.
    """
    repeated = [
        (worlds.repeated_in_place(truth, repetitions), worlds.repeated_in_place(found, repetitions))
        for repetitions in (times, other_times)
    ]
    activity_of = worlds.repeated_keys(dict(enumerate(activities)), [3] * worlds.NUM_VIDEOS)
    check(values(truth, found, activities, np.array([times, other_times], float)), repeated, activity_of)


@settings(max_examples=60, deadline=None)
@given(worlds.truths, worlds.distinct_founds(), activity_lists, worlds.weights)
def test_weights_are_repetitions_of_videos(
    truth: list[Segment], found: list[Detection], activities: list[int], times: list[int]
) -> None:
    """With distinct scores the order of the copies does not matter."""
    repeated = worlds.repeated_by_video(truth, times), worlds.repeated_by_video(found, times)
    activity_of = worlds.repeated_keys(dict(enumerate(activities)), times)
    check(values(truth, found, activities, np.array([times], float)), [repeated], activity_of)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_a_crowded_world(seed: int, ties: bool) -> None:
    """Sixty videos of twelve activities, with and without weights."""
    rng = np.random.default_rng(seed)
    activities = rng.integers(0, 12, 60).tolist()
    truth, found = [], []
    for _ in range(300):
        start_s = float(rng.uniform(0, 60))
        truth.append(Segment(int(rng.integers(0, 60)), int(rng.integers(0, 8)), start_s, start_s + rng.uniform(1, 20)))
    for _ in range(1200):
        near, score = truth[int(rng.integers(0, 300))], float(rng.random())
        start_s, end_s = near.start_s + rng.normal(0, 3), near.end_s + rng.normal(0, 3)
        score = round(score, 1) if ties else score
        found.append(Detection(near.video, near.label, start_s, max(end_s, start_s + 1), score))
    times = [rng.multinomial(60, np.full(60, 1 / 60)).tolist() for _ in range(3)]
    repeated = [(worlds.repeated_in_place(truth, t), worlds.repeated_in_place(found, t)) for t in times]
    check(values(truth, found, activities), [(truth, found)], dict(enumerate(activities)))
    activity_of = worlds.repeated_keys(dict(enumerate(activities)), [60] * 60)
    check(values(truth, found, activities, np.array(times, float)), repeated, activity_of)


def test_average_precision_by_hand() -> None:
    # Right, wrong, right of 2: precision 1, 1/2, 2/3; each right one adds 1/2 of recall: 1/2 x 1 + 1/2 x 2/3.
    assert alone([True, False, True], 2) == pytest.approx(5 / 6)
    # Wrong, right, right of 3: precision 0, 1/2, 2/3, interpolated 2/3 at both: 2/3 x 1/3 + 2/3 x 1/3.
    assert alone([False, True, True], 3) == pytest.approx(4 / 9)
    # Right, wrong, wrong, right, right of 4: precision 1, 1/2, 1/3, 1/2, 3/5: (1 + 3/5 + 3/5) / 4.
    assert alone([True, False, False, True, True], 4) == pytest.approx(2.2 / 4)
    assert alone([True, True], 2) == pytest.approx(1)
    assert alone([True, True], 4) == pytest.approx(0.5)
    assert alone([True, True, False, False], 2) == pytest.approx(1)  # what comes after all are found does not matter
    assert alone([False, False], 2) == 0
    assert alone([False], 1) == 0


def test_of_equal_scores_the_later_row_is_ranked_first() -> None:
    truth = [Segment(0, 0, 0.0, 10.0)]
    right, wrong = Detection(0, 0, 0.0, 10.0, 0.5), Detection(0, 0, 50.0, 60.0, 0.5)
    assert values(truth, [right, wrong], [0])["mAP"] == [0.5]
    assert values(truth, [wrong, right], [0])["mAP"] == [1.0]


def test_a_segment_of_another_step_of_the_video_counts_and_one_of_another_video_does_not() -> None:
    truth = [Segment(0, 0, 0.0, 10.0), Segment(1, 1, 20.0, 30.0)]
    assert values(truth, [Detection(0, 1, 0.0, 10.0, 0.5)], [0, 0])["mAP"] == [0.5]
    assert values(truth, [Detection(1, 0, 0.0, 10.0, 0.5)], [0, 0])["mAP"] == [0.0]


@pytest.mark.parametrize(("shared", "levels"), [(2, 0), (3, 1), (4, 2), (5, 3), (6, 4), (7, 5), (8, 5)])
def test_an_overlap_of_exactly_a_threshold_is_enough(shared: int, levels: int) -> None:
    """`shared` of 10 seconds."""
    measured = values([Segment(0, 0, 0.0, 10.0)], [Detection(0, 0, 0.0, float(shared), 1.0)], [0])
    assert [measured[name] for name in EACH] == [[1.0]] * levels + [[0.0]] * (5 - levels)
    assert measured["mAP"] == pytest.approx([levels / 5])


def test_precision_is_of_an_activity_and_the_mean_over_activities() -> None:
    truth = [
        Segment(0, 0, 0.0, 10.0),
        Segment(1, 0, 0.0, 10.0),
        Segment(2, 1, 0.0, 10.0),
        Segment(3, 2, 0.0, 10.0),
    ]
    activities = [0, 0, 1, 2, 3]  # the last has no segments
    found = [
        Detection(1, 0, 30.0, 40.0, 0.9),  # wrong, and before the right one of the other video
        Detection(0, 0, 0.0, 10.0, 0.8),
        Detection(2, 1, 0.0, 10.0, 0.1),
        Detection(4, 3, 0.0, 10.0, 1.0),
    ]
    # Activity 0: 1/2 at 1 of 2; activity 1: 1; activity 2: nothing predicted, 0; activity 3: no part.
    assert values(truth, found, activities)["mAP"] == pytest.approx([(1 / 4 + 1 + 0) / 3])
    weights = np.array([[2.0, 1, 1, 0, 1], [0, 1, 0, 0, 0], [1, 0, 3, 1, 0], [3.0, 1, 0, 0, 0]])
    expected = [
        (2 / 3 * 2 / 3 + 1) / 2,  # wrong, right, right of 3 segments
        0,
        (1 + 1 + 0) / 3,
        3 / 4 * 3 / 4,
    ]
    assert values(truth, found, activities, weights)["mAP"] == pytest.approx(expected)


def test_repetitions_by_hand() -> None:
    truth = [
        Segment(0, 0, 5.0, 5.0005),  # too short, so the next does not repeat it
        Segment(0, 0, 5.0, 5.001),
        Segment(0, 1, 10.0, 20.0),
        Segment(1, 1, 10.0, 20.0),  # another video
        Segment(0, 2, 10.0, 20.0),  # another step
        Segment(0, 1, 10.0009, 19.9995),  # both ends within a millisecond
        Segment(0, 1, 10.0015, 20.0),  # near the one that was left out, not near the one that was kept
        Segment(0, 1, 10.0, 20.002),
        Segment(0, 1, 10.0, 20.0),
        Segment(2, 0, 0.0, 0.001),  # exactly a millisecond is long enough
        Segment(2, 1, 0.0, 0.002),
        Segment(2, 1, 0.001, 0.002),  # exactly a millisecond off is a repetition
    ]
    kept = without_repetitions(worlds.segment_columns(truth)).tolist()
    assert kept == [False, True, True, True, True, False, True, True, False, True, True, False]


def test_a_repeated_segment_is_found_once() -> None:
    truth = [Segment(0, 0, 0.0, 10.0), Segment(0, 0, 0.0, 10.0)]
    found = [Detection(0, 0, 0.0, 10.0, 1.0), Detection(0, 0, 0.0, 10.0, 0.9)]
    assert values(truth, found, [0])["mAP"] == [1.0]
    two_steps = [truth[0], truth[1]._replace(label=1)]
    assert values(two_steps, found[:1], [0])["mAP"] == [0.5]


def test_nothing_to_measure() -> None:
    some = Detection(0, 0, 0.0, 1.0, 1.0)
    too_short = [Segment(0, 0, 1.0, 1.0)]
    no_videos = values([], [], [], np.ones((1, 0)))
    for measured in (values([], [some], [0, 1]), values([], [], [0, 1]), values(too_short, [some], [0, 1]), no_videos):
        assert list(measured) == ["mAP", *EACH]
        assert all(math.isnan(value) for column in measured.values() for value in column)
    without = values([Segment(0, 0, 0.0, 1.0)], [some], [0, 1], np.array([[0.0, 1.0]]))
    assert all(math.isnan(value) for column in without.values() for value in column)


def test_nothing_predicted_scores_nothing() -> None:
    truth = [Segment(0, 0, 0.0, 1.0), Segment(1, 0, 0.0, 1.0)]
    assert set(map(tuple, values(truth, [], [0, 1]).values())) == {(0.0,)}
    elsewhere = values(truth[:1], [Detection(1, 0, 0.0, 1.0, 1.0)], [0, 1])
    assert set(map(tuple, elsewhere.values())) == {(0.0,)}
