"""Confidence intervals: where they lie, how wide they are, and that nothing to measure is no accident."""

import math

import numpy as np
import pytest

from tests.vina_model.metrics import random_worlds as worlds
from tests.vina_model.metrics.slow_metrics import Detection, Segment
from vina_model.metrics.bootstrap import DRAWS, LEVEL, Estimate, Values, estimate, ratio
from vina_model.metrics.columns import Floats
from vina_model.metrics.crosstask import StepLocalization
from vina_model.metrics.crosstask_articles import ArticleRecall
from vina_model.metrics.htm_align import NarrationAlignment
from vina_model.metrics.htstep_map import ArticleMap
from vina_model.metrics.htstep_r1 import StepRecall

pytestmark = pytest.mark.filterwarnings("error", worlds.OTHER_THREADS)


class Share:
    """The share of videos that are right, and all weights that it was asked with."""

    def __init__(self, num_videos: int, num_right: int) -> None:
        self.right_V = (np.arange(num_videos) < num_right).astype(np.float64)
        self.asked: list[Floats] = []

    def __call__(self, weights_RV: Floats) -> Values:
        self.asked.append(weights_RV)
        return {"share": ratio(weights_RV @ self.right_V, weights_RV.sum(1))}


def everything(num_videos: int, seed: int) -> dict[str, Estimate]:
    """All metrics on random videos: a model that is right about half of the time."""
    rng = np.random.default_rng(seed)
    truth, found, seconds, scores, alignable = [], [], {}, [], []
    for video in range(num_videos):
        for label in range(3):
            start_s = float(rng.integers(0, 50))
            truth.append(Segment(video, label, start_s, start_s + 8))
            off_s = float(rng.choice([0, 2, 4, 30]))
            found.append(Detection(video, label, start_s + off_s, start_s + off_s + 8, float(rng.random())))
            seconds[video, label] = start_s + off_s
            alignable.append(bool(rng.random() < 0.5))
            scores.append(rng.normal() + alignable[-1])
    given = worlds.segment_columns(truth), worlds.point_columns(seconds)
    proposed = worlds.detection_columns(found)
    groups = worlds.ints([video % 5 for video in range(num_videos)])
    narrated = given[0].videos, worlds.bools(alignable), worlds.floats(scores)
    metrics = {
        "steps": StepRecall(*given, num_videos),
        "narrations": NarrationAlignment(*given, *narrated, num_videos),
        "tasks": StepLocalization(*given, groups, np.ones((2, num_videos), bool)),
        "recall": ArticleRecall(given[0], proposed, num_videos),
        "map": ArticleMap(given[0], proposed, groups),
    }
    return {
        f"{kind} {name}": value
        for kind, metric in metrics.items()
        for name, value in estimate(metric, num_videos, draws=200).items()
    }


def test_every_metric_s_interval_contains_its_value_and_shrinks_with_more_videos() -> None:
    few, many = everything(40, seed=1), everything(360, seed=1)
    assert len(few) == 1 + 2 + 1 + 6 + 6 and few.keys() == many.keys()
    for name in few:
        for found in (few[name], many[name]):
            assert 0 < found.low < found.value < found.high < 100, name
        narrower = (many[name].high - many[name].low) / (few[name].high - few[name].low)
        assert 0.2 < narrower < 0.5, name  # nine times the videos: a third of the width


def test_the_interval_of_a_share() -> None:
    found = estimate(Share(400, 120), 400, draws=4_000)["share"]
    assert found.value == 30
    # The standard deviation of a mean of 400 that is 0.3 is sqrt(0.3 x 0.7 / 400) = 0.0229.
    half = 1.96 * 100 * math.sqrt(0.3 * 0.7 / 400)
    assert found.low == pytest.approx(30 - half, abs=0.5) and found.high == pytest.approx(30 + half, abs=0.5)


def test_videos_are_drawn_with_replacement_as_often_as_there_are_videos() -> None:
    metric = Share(50, 25)
    estimate(metric, 50, draws=2_050)
    first, drawn = metric.asked[0], np.concatenate(metric.asked[1:])
    assert first.tolist() == [[1.0] * 50]
    assert drawn.shape == (2_050, 50) and (drawn.sum(1) == 50).all() and (drawn == drawn.round()).all()
    # How often a video is drawn: mean 1, variance 1 - 1/50, zero times with probability (1 - 1/50)^50 = 0.364.
    assert np.abs(drawn.mean(0) - 1).max() < 0.12
    assert drawn.var() == pytest.approx(0.98, abs=0.02)
    assert (drawn == 0).mean() == pytest.approx(0.98**50, abs=0.01)
    assert len({row.tobytes() for row in drawn}) == 2_050


def test_the_ends_are_percentiles_of_the_draws_around_the_value() -> None:
    metric = Share(30, 11)
    found = estimate(metric, 30)["share"]
    drawn = sorted(float(row @ metric.right_V) / 30 for weights in metric.asked[1:] for row in weights)
    assert len(drawn) == DRAWS == 1000 and LEVEL == 95
    # 25 of 1,000 values lie below, 25 above; the mean of all is put where the value is.
    hair, shift = 1e-9, found.value - 100 * sum(drawn) / 1000
    assert 100 * drawn[24] - hair <= found.low - shift <= 100 * drawn[25] + hair
    assert 100 * drawn[974] - hair <= found.high - shift <= 100 * drawn[975] + hair


def test_the_same_seed_gives_the_same_interval() -> None:
    first, again, other = (estimate(Share(60, 20), 60, draws=150, seed=seed) for seed in (3, 3, 4))
    assert first == again and first != other
    assert first["share"].value == other["share"].value == pytest.approx(100 / 3)


def test_one_video_has_no_width() -> None:
    assert estimate(Share(1, 1), 1)["share"] == (100, 100, 100)


def test_draws_with_nothing_to_measure_are_left_out() -> None:
    def first_alone(weights_RV: Floats) -> Values:
        return {"first": ratio(0.5 * weights_RV[:, 0], weights_RV[:, 0])}

    found = estimate(first_alone, 3)["first"]
    assert found == (50, 50, 50)


def test_nothing_to_measure() -> None:
    empty = worlds.segment_columns([]), worlds.point_columns({})
    for num_videos in (0, 4):
        found = estimate(StepRecall(*empty, num_videos), num_videos)
        assert list(found) == ["R@1"] and all(math.isnan(number) for number in found["R@1"])
    groups = np.zeros(0, np.int64)
    for metric in (
        ArticleMap(empty[0], worlds.detection_columns([]), groups),
        ArticleRecall(empty[0], worlds.detection_columns([]), 0),
        StepLocalization(*empty, groups, np.zeros((20, 0), bool)),
        NarrationAlignment(*empty, groups, worlds.bools([]), worlds.floats([]), 0),
    ):
        found = estimate(metric, 0)
        assert found and all(math.isnan(number) for value in found.values() for number in value)


def test_a_ratio_without_a_whole() -> None:
    found = ratio(np.array([1.0, 0.0, 2.0]), np.array([4.0, 0.0, 2.0]))
    assert found[[0, 2]].tolist() == [0.25, 1.0] and math.isnan(found[1])
