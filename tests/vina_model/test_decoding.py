"""Moments in a task's order against all rising choices there are."""

import math
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.vina_model.metrics.slow_metrics import best_rising_choices
from vina_model.decoding import in_order

pytestmark = pytest.mark.filterwarnings("error")


@st.composite
def small_scores(draw: st.DrawFn, values: st.SearchStrategy[float]) -> list[list[float]]:
    """One to four steps in at least as many seconds."""
    num_steps = draw(st.integers(1, 4))
    num_seconds = draw(st.integers(num_steps, 8))
    row = st.lists(values, min_size=num_seconds, max_size=num_seconds)
    return draw(st.lists(row, min_size=num_steps, max_size=num_steps))


def total(scores: list[list[float]], seconds: list[int]) -> float:
    return sum(row[second] for row, second in zip(scores, seconds, strict=True))


def best_sum_of_long_videos(scores: np.ndarray) -> float:
    """For each step and second: the best of all earlier seconds for the step before."""
    best = scores[0].tolist()
    for row in scores[1:].tolist():
        best = [-math.inf] + [max(best[:second]) + row[second] for second in range(1, len(row))]
    return max(best)


@settings(max_examples=300, deadline=None)
@given(small_scores(st.integers(-2, 2).map(float)))
@example([[0.0, 0.0], [0.0, 0.0]])
@example([[1.0, 5.0], [5.0, 1.0]])
def test_the_sum_is_the_largest_and_of_equal_choices_the_earliest_is_taken(scores: list[list[float]]) -> None:
    best, choices = best_rising_choices(scores)
    found = in_order(np.array(scores))
    assert found.dtype == np.int64 and found.shape == (len(scores),)
    assert total(scores, found.tolist()) == best
    assert tuple(found.tolist()) == tuple(min(seconds) for seconds in zip(*choices, strict=True))


@settings(deadline=None)
@given(small_scores(st.floats(-1, 1)))
def test_any_scores(scores: list[list[float]]) -> None:
    found = in_order(np.array(scores)).tolist()
    assert all(earlier < later for earlier, later in pairwise(found))
    assert total(scores, found) == pytest.approx(best_rising_choices(scores)[0], abs=1e-12)


@pytest.mark.parametrize(("num_steps", "num_seconds"), [(2, 300), (7, 200), (12, 400), (12, 12), (12, 13)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_long_videos(num_steps: int, num_seconds: int, dtype: type[np.floating]) -> None:
    """Scores are multiples of 1/64, so that sums are exact."""
    rng = np.random.default_rng(num_steps * num_seconds)
    scores = (rng.integers(-64, 65, (num_steps, num_seconds)) / 64).astype(dtype)
    found = in_order(scores)
    assert (np.diff(found) > 0).all() and found[0] >= 0 and found[-1] < num_seconds
    assert total(scores.astype(np.float64).tolist(), found.tolist()) == best_sum_of_long_videos(scores.astype(float))


def test_by_hand() -> None:
    # Alone, both steps want second 1 (5 + 4), which only one can have: 5 + 3 for (1, 2) beats 2 + 4 for (0, 1).
    assert in_order(np.array([[2.0, 5.0, 0.0], [0.0, 4.0, 3.0]])).tolist() == [1, 2]
    # The best seconds are in the wrong order: (2, 3) gives 9 + 1, (0, 1) gives 1 + 8, (0, 3) 1 + 1.
    assert in_order(np.array([[1.0, 0.0, 9.0, 0.0], [0.0, 8.0, 0.0, 1.0]])).tolist() == [2, 3]
    # A late best second of the first step leaves no room for the others.
    assert in_order(np.array([[0.0, 0.0, 9.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])).tolist() == [0, 1, 2]


def test_equal_scores_take_the_first_seconds() -> None:
    assert in_order(np.zeros((3, 9))).tolist() == [0, 1, 2]


def test_one_step_takes_its_first_best_second() -> None:
    assert in_order(np.array([[0.0, 2.0, 1.0, 2.0]])).tolist() == [1]


def test_the_scores_are_not_changed() -> None:
    scores = np.random.default_rng(0).random((4, 9))
    before = scores.copy()
    in_order(scores)
    assert (scores == before).all()


def test_as_many_seconds_as_steps_leave_one_choice() -> None:
    assert in_order(np.random.default_rng(0).standard_normal((6, 6))).tolist() == list(range(6))


@pytest.mark.parametrize("num_steps", [1, 2, 5])
def test_a_video_of_one_second(num_steps: int) -> None:
    assert in_order(np.random.default_rng(0).standard_normal((num_steps, 1))).tolist() == [0] * num_steps


@settings(deadline=None)
@given(st.integers(2, 5), st.data())
def test_fewer_seconds_than_steps(num_steps: int, data: st.DataObject) -> None:
    """Seconds no longer rise, but never fall."""
    num_seconds = data.draw(st.integers(1, num_steps - 1))
    row = st.lists(st.integers(-2, 2).map(float), min_size=num_seconds, max_size=num_seconds)
    scores = data.draw(st.lists(row, min_size=num_steps, max_size=num_steps))
    sums = {c: total(scores, list(c)) for c in combinations_with_replacement(range(num_seconds), num_steps)}
    best = [choice for choice, reached in sums.items() if reached == max(sums.values())]
    assert tuple(in_order(np.array(scores)).tolist()) == tuple(min(seconds) for seconds in zip(*best, strict=True))


def test_forbidden_seconds_are_not_taken() -> None:
    never = -math.inf
    assert in_order(np.array([[never, 0.0, 0.0, 1.0], [5.0, never, never, 0.0]])).tolist() == [1, 3]


def test_seconds_rise_where_every_choice_is_forbidden() -> None:
    found = in_order(np.array([[-math.inf, -math.inf], [0.0, 0.0]])).tolist()
    assert found == [0, 1]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_nothing_to_choose_is_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="there is nothing to choose"):
        in_order(np.zeros(shape))
