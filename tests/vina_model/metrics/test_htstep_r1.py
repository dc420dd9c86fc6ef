"""R@1 of HT-Step's steps against one pair of video and step after the other."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from tests.vina_model.metrics import random_worlds as worlds
from tests.vina_model.metrics import slow_metrics as slow
from tests.vina_model.metrics.slow_metrics import Segment
from vina_model.metrics.htstep_r1 import StepRecall, hits

pytestmark = pytest.mark.filterwarnings("error", worlds.OTHER_THREADS)


def recalls(
    truth: list[Segment], seconds: slow.Seconds, weights: np.ndarray, num_videos: int = worlds.NUM_VIDEOS
) -> list[float]:
    metric = StepRecall(worlds.segment_columns(truth), worlds.point_columns(seconds), num_videos)
    values = metric(weights)
    assert list(values) == ["R@1"]
    return values["R@1"].tolist()


def recall(truth: list[Segment], seconds: slow.Seconds) -> float:
    return recalls(truth, seconds, worlds.as_they_are(worlds.NUM_VIDEOS))[0]


@settings(max_examples=60, deadline=None)
@given(worlds.truths, worlds.named_seconds)
def test_recall_equals_the_slow_one(truth: list[Segment], seconds: dict[tuple[int, int], int]) -> None:
    assert recall(truth, seconds) == pytest.approx(slow.step_r1(truth, seconds), abs=1e-12, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(worlds.truths, worlds.named_seconds, worlds.weights, worlds.weights)
def test_weights_are_repetitions_of_videos(
    truth: list[Segment], seconds: dict[tuple[int, int], int], times: list[int], other_times: list[int]
) -> None:
    expected = []
    for repetitions in (times, other_times):
        repeated = worlds.repeated_in_place(truth, repetitions)
        said = {
            ((video, number), label): second
            for (video, label), second in seconds.items()
            for number in range(repetitions[video])
        }
        expected.append(slow.step_r1(repeated, said))
    assert recalls(truth, seconds, np.array([times, other_times], float)) == pytest.approx(
        expected, abs=1e-12, nan_ok=True
    )


@settings(max_examples=60, deadline=None)
@given(worlds.truths, worlds.named_seconds)
def test_each_pair_is_listed_once(truth: list[Segment], seconds: dict[tuple[int, int], int]) -> None:
    for closed in (True, False):
        columns = worlds.segment_columns(truth), worlds.point_columns(seconds)
        videos, labels, hit = hits(*columns, closed=closed)
        one_pair = slow.step_r1 if closed else slow.task_recall
        expected = {
            pair: one_pair(own, seconds) == 1
            for pair, own in slow.grouped(truth, lambda segment: (segment.video, segment.label)).items()
        }
        pairs = list(zip(videos.tolist(), labels.tolist(), strict=True))
        assert dict(zip(pairs, hit.tolist(), strict=True)) == expected and len(pairs) == len(expected)


@pytest.mark.parametrize(
    ("start_s", "end_s", "second", "hit", "hit_if_open"),
    [
        (3.2, 5.7, 2, False, False),
        (3.2, 5.7, 3, True, True),  # floor(3.2)
        (3.2, 5.7, 5, True, True),
        (3.2, 5.7, 5.9, True, True),  # a moment between whole seconds
        (3.2, 5.7, 2.9, False, False),
        (3.2, 5.7, 6, True, False),  # ceil(5.7)
        (3.2, 5.7, 7, False, False),
        (3.0, 5.0, 2, False, False),  # whole seconds stay where they are
        (3.0, 5.0, 3, True, True),
        (3.0, 5.0, 4, True, True),
        (3.0, 5.0, 5, True, False),
        (3.0, 5.0, 6, False, False),
        (0.0, 0.4, 0, True, True),  # a video of one second
        (4.0, 4.0, 4, True, False),  # no length at a whole second: open, no second is inside
        (4.5, 4.5, 4, True, True),
        (np.nextafter(5, 0), np.nextafter(7, 9), 4, True, True),
        (np.nextafter(5, 0), np.nextafter(7, 9), 8, True, False),
    ],
)
def test_the_ends_of_a_segment(start_s: float, end_s: float, second: float, hit: bool, hit_if_open: bool) -> None:
    columns = worlds.segment_columns([Segment(0, 0, start_s, end_s)]), worlds.point_columns({(0, 0): second})
    assert hits(*columns)[2].tolist() == [hit]
    assert hits(*columns, closed=False)[2].tolist() == [hit_if_open]


def test_by_hand() -> None:
    truth = [
        Segment(0, 0, 2.0, 4.0),
        Segment(0, 0, 10.0, 12.0),  # the same step again: one pair, hit by its second segment
        Segment(0, 1, 2.0, 4.0),  # overlaps another step, and is missed
        Segment(1, 0, 5.0, 6.0),  # nothing is said about it
        Segment(3, 2, 0.0, 9.0),
        Segment(3, 2, 3.0, 4.0),  # nested in the one before: still one hit
    ]
    seconds = {(0, 0): 11, (0, 1): 5, (0, 3): 3, (2, 0): 1, (3, 2): 3}
    assert recall(truth, seconds) == 2 / 4
    # Video 0 three times, video 1 not, video 3 twice: 3 x 1 + 2 x 1 hits of 3 x 2 + 2 x 1 pairs.
    assert recalls(truth, seconds, np.array([[3.0, 0, 1, 2]])) == [5 / 8]


def test_a_hit_in_a_gap_between_two_segments_is_none() -> None:
    assert recall([Segment(0, 0, 0.0, 2.0), Segment(0, 0, 5.0, 6.0)], {(0, 0): 3}) == 0


def test_nothing_to_measure() -> None:
    assert math.isnan(recall([], {(0, 0): 3}))
    assert math.isnan(recall([], {}))
    assert math.isnan(recalls([], {}, np.ones((1, 0)), num_videos=0)[0])
    assert math.isnan(recalls([Segment(0, 0, 0.0, 1.0)], {(0, 0): 0}, np.zeros((1, worlds.NUM_VIDEOS)))[0])


def test_nothing_predicted_is_all_missed() -> None:
    assert recall([Segment(0, 0, 0.0, 2.0), Segment(3, 2, 0.0, 2.0)], {}) == 0
    assert recall([Segment(0, 0, 0.0, 2.0)], {(1, 0): 0, (0, 4): 0}) == 0
