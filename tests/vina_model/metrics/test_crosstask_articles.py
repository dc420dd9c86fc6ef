"""CrossTask's article grounding against video after video."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings

from tests.vina_model.metrics import random_worlds as worlds
from tests.vina_model.metrics import slow_metrics as slow
from tests.vina_model.metrics.slow_metrics import Detection, Segment
from vina_model.metrics import crosstask_articles
from vina_model.metrics.crosstask_articles import ArticleRecall

THRESHOLDS = (0.1, 0.3, 0.5)

pytestmark = pytest.mark.filterwarnings("error", worlds.OTHER_THREADS)


def values(
    truth: list[Segment],
    found: list[Detection],
    weights: np.ndarray | None = None,
    num_videos: int = worlds.NUM_VIDEOS,
    best: tuple[int, ...] = (50, 100),
) -> dict[str, list[float]]:
    with patch.object(crosstask_articles, "BEST", best):
        metric = ArticleRecall(worlds.segment_columns(truth), worlds.detection_columns(found), num_videos)
        measured = metric(worlds.as_they_are(num_videos) if weights is None else weights)
    return {name: value.tolist() for name, value in measured.items()}


def check(
    found: dict[str, list[float]], worlds_: list[tuple[list[Segment], list[Detection]]], best: tuple[int, ...]
) -> None:
    assert list(found) == [f"R@{top} IoU {threshold}" for top in best for threshold in THRESHOLDS]
    for top in best:
        for threshold in THRESHOLDS:
            expected = [slow.article_recall(*world, top, threshold) for world in worlds_]
            assert found[f"R@{top} IoU {threshold}"] == pytest.approx(expected, abs=1e-12, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(worlds.truths, worlds.founds)
def test_recall_equals_the_slow_one(truth: list[Segment], found: list[Detection]) -> None:
    check(values(truth, found), [(truth, found)], (50, 100))


@settings(max_examples=60, deadline=None)
@given(worlds.truths, worlds.founds)
def test_a_short_list_decides(truth: list[Segment], found: list[Detection]) -> None:
    """With so few taken, which of equal scores comes first is seen."""
    check(values(truth, found, best=(1, 3)), [(truth, found)], (1, 3))


@settings(max_examples=60, deadline=None)
@given(worlds.truths, worlds.founds, worlds.weights, worlds.weights)
def test_weights_are_repetitions_of_videos(
    truth: list[Segment], found: list[Detection], times: list[int], other_times: list[int]
) -> None:
    repeated = [
        (worlds.repeated_by_video(truth, repetitions), worlds.repeated_by_video(found, repetitions))
        for repetitions in (times, other_times)
    ]
    check(values(truth, found, np.array([times, other_times], float), best=(2, 100)), repeated, (2, 100))


@pytest.mark.parametrize("seed", range(3))
def test_long_lists(seed: int) -> None:
    """Up to 160 detections a video, so that 50 and 100 cut them."""
    rng = np.random.default_rng(seed)
    truth, found = [], []
    for video in range(12):
        for _ in range(int(rng.integers(0, 12))):
            start_s = float(rng.integers(0, 80)) / 2
            truth.append(Segment(video, int(rng.integers(0, 4)), start_s, start_s + float(rng.integers(1, 20)) / 2))
        for _ in range(int(rng.integers(0, 160))):
            start_s = float(rng.integers(0, 80)) / 2
            end_s = start_s + float(rng.integers(1, 20)) / 2
            found.append(Detection(video, int(rng.integers(0, 6)), start_s, end_s, float(rng.integers(0, 30))))
    found = [found[place] for place in rng.permutation(len(found))]
    measured = values(truth, found, num_videos=12)
    check(measured, [(truth, found)], (50, 100))
    assert measured["R@50 IoU 0.3"] < measured["R@100 IoU 0.3"]


def test_by_hand() -> None:
    truth = [
        Segment(0, 0, 0.0, 10.0),
        Segment(0, 0, 20.0, 30.0),
        Segment(0, 1, 0.0, 10.0),
        Segment(1, 1, 0.0, 10.0),
    ]
    found = [
        Detection(0, 0, 0.0, 5.0, 0.9),  # 5 of 10 with the first: right at all three
        Detection(0, 0, 1.0, 10.0, 0.8),  # better, but the first is taken; nothing of the second
        Detection(0, 0, 29.0, 30.0, 0.7),  # 1 of 10 with the second: right at 0.1 alone
        Detection(0, 2, 0.0, 10.0, 0.6),  # the right time of another headline
        Detection(1, 1, 7.0, 10.0, 0.1),  # 3 of 10
        Detection(2, 1, 0.0, 9.0, 0.9),  # a video without segments
    ]
    measured = values(truth, found)
    # Video 0: 2, 1, 1 of 3; video 1: 1, 1, 0 of 1; the others have no part.
    assert measured["R@50 IoU 0.1"] == pytest.approx([(2 / 3 + 1) / 2])
    assert measured["R@50 IoU 0.3"] == pytest.approx([(1 / 3 + 1) / 2])
    assert measured["R@50 IoU 0.5"] == pytest.approx([(1 / 3 + 0) / 2])
    weighted = values(truth, found, np.array([[3.0, 1.0, 5.0, 0.0]]))
    assert weighted["R@50 IoU 0.3"] == pytest.approx([(3 / 3 + 1) / 4])


@pytest.mark.parametrize(("place", "at_50", "at_100"), [(49, 1, 1), (50, 0, 1), (99, 0, 1), (100, 0, 0)])
def test_the_last_of_the_best(place: int, at_50: int, at_100: int) -> None:
    """The one right detection has `place` better ones before it."""
    found = [Detection(0, 0, 50.0, 51.0, 200.0 - n) for n in range(130)]
    found[place] = found[place]._replace(start_s=0.0, end_s=4.0)
    measured = values([Segment(0, 0, 0.0, 4.0)], found[::-1], num_videos=1)
    assert measured["R@50 IoU 0.5"] == [at_50] and measured["R@100 IoU 0.5"] == [at_100]


def test_the_detections_of_all_headlines_share_the_fifty() -> None:
    found = [Detection(0, 1, 50.0, 51.0, 1.0)] * 50 + [Detection(0, 0, 0.0, 4.0, 0.5)]
    measured = values([Segment(0, 0, 0.0, 4.0)], found, num_videos=1)
    assert measured["R@50 IoU 0.1"] == [0] and measured["R@100 IoU 0.1"] == [1]


def test_a_segment_of_two_headlines_is_two() -> None:
    truth = [Segment(0, 0, 0.0, 4.0), Segment(0, 1, 0.0, 4.0)]
    assert values(truth, [Detection(0, 1, 0.0, 4.0, 0.5)])["R@50 IoU 0.5"] == [0.5]


def test_nothing_to_measure() -> None:
    some = Detection(0, 0, 0.0, 1.0, 1.0)
    for measured in (values([], [some]), values([], []), values([], [], np.ones((1, 0)), num_videos=0)):
        assert all(math.isnan(value) for column in measured.values() for value in column) and len(measured) == 6
    without = values([Segment(0, 0, 0.0, 1.0)], [some], np.array([[0.0, 1, 1, 1]]))
    assert all(math.isnan(value) for column in without.values() for value in column)


def test_nothing_predicted_finds_nothing() -> None:
    assert set(map(tuple, values([Segment(0, 0, 0.0, 1.0)], []).values())) == {(0.0,)}
    elsewhere = values([Segment(0, 0, 0.0, 1.0)], [Detection(1, 0, 0.0, 1.0, 1.0)])
    assert set(map(tuple, elsewhere.values())) == {(0.0,)}
