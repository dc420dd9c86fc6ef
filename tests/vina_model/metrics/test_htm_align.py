"""HTM-Align's recall and area under the curve against pair after pair of narrations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from tests.vina_model.metrics import random_worlds as worlds
from tests.vina_model.metrics import slow_metrics as slow
from tests.vina_model.metrics.slow_metrics import Narration, Segment
from vina_model.metrics.htm_align import NarrationAlignment

pytestmark = pytest.mark.filterwarnings("error", worlds.OTHER_THREADS)


def values(
    narrations: list[Narration], weights: np.ndarray, num_videos: int = worlds.NUM_VIDEOS
) -> dict[str, list[float]]:
    """A narration's label is its place in the list; only the alignable ones have a segment, all have a moment."""
    truth = [Segment(n.video, place, n.start_s, n.end_s) for place, n in enumerate(narrations) if n.alignable]
    seconds = {(n.video, place): n.second for place, n in enumerate(narrations)}
    metric = NarrationAlignment(
        worlds.segment_columns(truth),
        worlds.point_columns(seconds),
        worlds.ints([n.video for n in narrations]),
        worlds.bools([n.alignable for n in narrations]),
        worlds.floats([n.score for n in narrations]),
        num_videos,
    )
    return {name: value.tolist() for name, value in metric(weights).items()}


def scored(alignable: list[float], others: list[float]) -> list[Narration]:
    return [
        Narration(0, able, 0.0, 1.0, 0, score)
        for able, scores in ((True, alignable), (False, others))
        for score in scores
    ]


def auc(alignable: list[float], others: list[float]) -> float:
    return values(scored(alignable, others), worlds.as_they_are(1), 1)["AUC"][0]


@settings(max_examples=60, deadline=None)
@given(worlds.narrated)
def test_both_equal_the_slow_ones(narrations: list[Narration]) -> None:
    expected = {"R@1": [slow.narration_r1(narrations)], "AUC": [slow.alignability_auc(narrations)]}
    found = values(narrations, worlds.as_they_are(worlds.NUM_VIDEOS))
    assert list(found) == ["R@1", "AUC"]
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-12, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(worlds.narrated, worlds.weights, worlds.weights)
def test_weights_are_repetitions_of_videos(
    narrations: list[Narration], times: list[int], other_times: list[int]
) -> None:
    found = values(narrations, np.array([times, other_times], float))
    repeated = [worlds.repeated_in_place(narrations, repetitions) for repetitions in (times, other_times)]
    assert found["R@1"] == pytest.approx([slow.narration_r1(rows) for rows in repeated], abs=1e-12, nan_ok=True)
    assert found["AUC"] == pytest.approx([slow.alignability_auc(rows) for rows in repeated], abs=1e-12, nan_ok=True)


def test_many_narrations() -> None:
    rng = np.random.default_rng(0)
    narrations = [
        Narration(int(video), bool(able), 0.0, 1.0, 0, float(score) + 0.3 * able)
        for video, able, score in zip(
            rng.integers(0, 6, 900), rng.random(900) < 0.25, rng.standard_normal(900).round(1), strict=True
        )
    ]
    expected = slow.alignability_auc(narrations)
    assert values(narrations, worlds.as_they_are(6), 6)["AUC"] == pytest.approx([expected], abs=1e-12)
    assert 0.5 < expected < 0.7


def test_auc_by_hand() -> None:
    # 0.9 beats both others; 0.5 beats 0.1 and ties with 0.5: (1 + 1 + 1 + 1/2) of 2 x 2 pairs.
    assert auc([0.9, 0.5], [0.5, 0.1]) == 3.5 / 4
    assert auc([0.9], [0.1]) == 1
    assert auc([0.1], [0.9]) == 0
    assert auc([0.4, 0.4], [0.4, 0.4, 0.4]) == 0.5
    assert auc([-math.inf, 1.0], [-math.inf]) == 1.5 / 2  # without a score: a tie among themselves, below all others


def test_pairs_are_of_all_videos() -> None:
    """A score is compared with those of other videos too, and a pair weighs what both of its videos weigh."""
    narrations = [
        Narration(0, True, 0.0, 1.0, 0, 0.9),
        Narration(0, False, 0.0, 1.0, 0, 0.8),
        Narration(1, True, 0.0, 1.0, 0, 0.5),
        Narration(1, False, 0.0, 1.0, 0, 0.1),
    ]
    # Right: 0.9 > 0.8, 0.9 > 0.1, 0.5 > 0.1; wrong: 0.5 < 0.8.
    # With video 0 twice and video 1 three times: 2x2 + 2x3 + 3x3 = 19 right of 5 x 5.
    found = values(narrations, np.array([[1.0, 1.0], [2.0, 3.0], [0.0, 1.0]]), 2)
    assert found["AUC"] == [3 / 4, 19 / 25, 1.0]


def test_recall_by_hand() -> None:
    narrations = [
        Narration(0, True, 3.2, 5.7, 3, 0.0),  # floor(3.2)
        Narration(0, True, 3.2, 5.7, 6, 0.0),  # ceil(5.7)
        Narration(0, True, 3.0, 5.0, 2, 0.0),  # too early
        Narration(0, True, 3.0, 5.0, 6, 0.0),  # too late
        Narration(0, False, 3.0, 5.0, 4, 0.0),  # not asked for
        Narration(1, True, 0.0, 0.5, 0, 0.0),
    ]
    found = values(narrations, np.array([[1.0, 1.0], [1.0, 2.0]]), 2)
    assert found["R@1"] == [3 / 5, 4 / 6]


def test_nothing_to_measure() -> None:
    nothing = values([], worlds.as_they_are(worlds.NUM_VIDEOS))
    assert math.isnan(nothing["R@1"][0]) and math.isnan(nothing["AUC"][0])
    no_video = values([], np.ones((1, 0)), num_videos=0)
    assert math.isnan(no_video["R@1"][0]) and math.isnan(no_video["AUC"][0])
    all_alignable = values(scored([0.5, 0.2], []), worlds.as_they_are(1), 1)
    assert all_alignable["R@1"] == [1] and math.isnan(all_alignable["AUC"][0])
    none_alignable = values(scored([], [0.5, 0.2]), worlds.as_they_are(1), 1)
    assert math.isnan(none_alignable["R@1"][0]) and math.isnan(none_alignable["AUC"][0])
