import numpy as np
import pytest

from vina_model.metrics.bootstrap import estimate
from vina_model.metrics.presence import BINS, StepPresence


def slow(shown: list[bool], scores: list[float]) -> tuple[float, float]:
    """Pair by pair, and bin by bin."""
    yes = [score for score, flag in zip(scores, shown, strict=True) if flag]
    no = [score for score, flag in zip(scores, shown, strict=True) if not flag]
    wins = sum((a > b) + (a == b) / 2 for a in yes for b in no)
    error = 0.0
    clipped = [min(max(score, 0), 1) for score in scores]
    for number in range(BINS):
        own = [
            (score, flag)
            for score, flag in zip(clipped, shown, strict=True)
            if number / BINS <= score < (number + 1) / BINS or (score == 1 and number == BINS - 1)
        ]
        if own:
            said, seen = np.mean([score for score, _ in own]), np.mean([flag for _, flag in own])
            error += abs(said - seen) * len(own) / len(scores)
    return wins / (len(yes) * len(no)), error


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_loops_find(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shown = rng.random(80) < 0.4
    scores = np.round(rng.normal(0.5, 0.4, 80), 1)  # some are equal, some lie outside of 0 to 1
    scores += 0.03  # none lies on an edge, where rounding decides
    found = StepPresence(rng.integers(0, 9, 80), shown, scores)(np.ones((1, 9)))
    auc, error = slow(shown.tolist(), scores.tolist())
    assert found["AUC"][0] == pytest.approx(auc) and found["ECE"][0] == pytest.approx(error)


def test_a_perfect_judge_and_one_who_says_the_opposite() -> None:
    shown = np.array([True, False, True, False])
    videos, every = np.array([0, 0, 1, 1]), np.ones((1, 2))
    perfect = StepPresence(videos, shown, shown.astype(float))(every)
    wrong = StepPresence(videos, shown, 1.0 - shown)(every)
    assert (perfect["AUC"][0], perfect["ECE"][0]) == (1, 0)
    assert (wrong["AUC"][0], wrong["ECE"][0]) == (0, 1)


def test_intervals_hold_the_value() -> None:
    rng = np.random.default_rng(0)
    shown = rng.random(300) < 0.5
    scores = np.clip(0.2 * shown + 0.8 * rng.random(300), 0, 1)
    found = estimate(StepPresence(np.repeat(np.arange(30), 10), shown, scores), 30, draws=200)
    for value, low, high in found.values():
        assert low < value < high
