"""CrossTask's recall against task after task, test set after test set."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vina_model.metrics import random_worlds as worlds
from tests.vina_model.metrics import slow_metrics as slow
from tests.vina_model.metrics.slow_metrics import Segment
from vina_model.metrics.crosstask import DRAWS, LEFT_OUT, StepLocalization, draw_test_sets

pytestmark = pytest.mark.filterwarnings("error", worlds.OTHER_THREADS)

task_lists = st.lists(st.sampled_from([0, 1, 3]), min_size=worlds.NUM_VIDEOS, max_size=worlds.NUM_VIDEOS)
set_lists = st.lists(
    st.lists(st.booleans(), min_size=worlds.NUM_VIDEOS, max_size=worlds.NUM_VIDEOS), min_size=1, max_size=3
)
ALL_FOUR = [[True] * 4]


def recalls(
    truth: list[Segment],
    seconds: slow.Seconds,
    tasks: list[int],
    test_sets: list[list[bool]],
    weights: np.ndarray | None = None,
) -> list[float]:
    columns = worlds.segment_columns(truth), worlds.point_columns(seconds)
    metric = StepLocalization(*columns, worlds.ints(tasks), worlds.bools(test_sets))
    values = metric(worlds.as_they_are(len(tasks)) if weights is None else weights)
    assert list(values) == ["recall"]
    return values["recall"].tolist()


@settings(max_examples=60, deadline=None)
@given(worlds.truths, worlds.named_seconds, task_lists, set_lists)
def test_recall_equals_the_slow_one(
    truth: list[Segment], seconds: dict[tuple[int, int], int], tasks: list[int], test_sets: list[list[bool]]
) -> None:
    members = [{video for video, chosen in enumerate(test_set) if chosen} for test_set in test_sets]
    expected = slow.localization_recall(truth, seconds, dict(enumerate(tasks)), members)
    assert recalls(truth, seconds, tasks, test_sets) == pytest.approx([expected], abs=1e-12, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(worlds.truths, worlds.named_seconds, task_lists, set_lists, worlds.weights, worlds.weights)
def test_weights_are_repetitions_of_videos(
    truth: list[Segment],
    seconds: dict[tuple[int, int], int],
    tasks: list[int],
    test_sets: list[list[bool]],
    times: list[int],
    other_times: list[int],
) -> None:
    """A copy of a video is in the test sets that the video is in."""
    expected = []
    for repetitions in (times, other_times):
        copies = [(video, number) for video, count in enumerate(repetitions) for number in range(count)]
        said = {
            (copy, label): second for (video, label), second in seconds.items() for copy in copies if copy[0] == video
        }
        members = [{copy for copy in copies if test_set[copy[0]]} for test_set in test_sets]
        task_of = {copy: tasks[copy[0]] for copy in copies}
        repeated = worlds.repeated_in_place(truth, repetitions)
        expected.append(slow.localization_recall(repeated, said, task_of, members))
    weights = np.array([times, other_times], float)
    assert recalls(truth, seconds, tasks, test_sets, weights) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_by_hand() -> None:
    truth = [
        Segment(0, 0, 1.5, 3.5),  # seconds 1, 2, 3
        Segment(0, 1, 4.0, 6.0),  # seconds 4, 5
        Segment(0, 1, 8.0, 9.0),  # second 8
        Segment(1, 0, 0.0, 1.0),  # second 0
        Segment(2, 2, 2.0, 5.0),  # another task
    ]
    seconds = {(0, 0): 3, (0, 1): 6, (1, 0): 0, (2, 2): 2, (2, 0): 9}
    tasks = [7, 7, 5]
    both = [[True, True, True], [True, False, True]]
    # Task 7: 2 of 3 pairs, without video 1: 1 of 2. Task 5: 1 of 1.
    first, second = (2 / 3 + 1) / 2, (1 / 2 + 1) / 2
    assert recalls(truth, seconds, tasks, both[:1]) == pytest.approx([first])
    assert recalls(truth, seconds, tasks, both[1:]) == pytest.approx([second])
    assert recalls(truth, seconds, tasks, both) == pytest.approx([(first + second) / 2])
    # Video 0 twice: task 7 has 3 of 5. Without video 2, task 5 is out of the mean.
    weights = np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    assert recalls(truth, seconds, tasks, both[:1], weights) == pytest.approx([(3 / 5 + 1) / 2, 2 / 3])


@pytest.mark.parametrize(("second", "hit"), [(2, 0), (3, 1), (4, 1), (5, 0)])
def test_a_segment_ends_before_its_last_whole_second(second: int, hit: int) -> None:
    assert recalls([Segment(0, 0, 3.0, 5.0)], {(0, 0): second}, [0], [[True]]) == [hit]
    assert recalls([Segment(0, 0, 3.9, 4.1)], {(0, 0): second}, [0], [[True]]) == [hit]


def test_a_video_of_one_second() -> None:
    assert recalls([Segment(0, 0, 0.0, 0.3), Segment(0, 1, 0.2, 1.0)], {(0, 0): 0, (0, 1): 0}, [0], [[True]]) == [1]


def test_a_task_or_test_set_without_annotated_steps_has_no_part_in_a_mean() -> None:
    truth, seconds = [Segment(0, 0, 0.0, 1.0)], {(0, 0): 0, (1, 0): 0}
    assert recalls(truth, seconds, [0, 1], [[True, True], [False, True], [True, False]]) == [1]


def test_nothing_to_measure() -> None:
    assert math.isnan(recalls([], {(0, 0): 1}, [0] * 4, ALL_FOUR)[0])
    assert math.isnan(recalls([], {}, [0] * 4, ALL_FOUR)[0])
    assert math.isnan(recalls([Segment(0, 0, 0.0, 1.0)], {(0, 0): 0}, [0] * 4, [[False] * 4])[0])
    assert math.isnan(recalls([], {}, [], [[], []])[0])
    assert recalls([Segment(0, 0, 0.0, 1.0)], {}, [0] * 4, ALL_FOUR) == [0]


def test_test_sets_leave_thirty_videos_of_each_task_out() -> None:
    tasks = np.repeat([4, 9, 2], [100, 31, 30])
    eligible = np.ones(161, bool)
    eligible[:20] = False
    chosen = draw_test_sets(tasks, eligible)
    assert chosen.shape == (DRAWS, 161) == (20, 161) and chosen.dtype == np.bool_
    assert not chosen[:, ~eligible].any()
    assert chosen[:, tasks == 4].sum(1).tolist() == [100 - 20 - LEFT_OUT] * DRAWS == [50] * 20
    assert chosen[:, tasks == 9].sum(1).tolist() == [1] * DRAWS
    assert chosen[:, tasks == 2].all()  # it has no more than thirty
    assert len({row.tobytes() for row in chosen}) == DRAWS


def test_test_sets_are_the_same_for_the_same_seed() -> None:
    tasks, eligible = np.repeat([0, 1], 60), np.ones(120, bool)
    before = eligible.copy()
    assert (draw_test_sets(tasks, eligible, 5, seed=1) == draw_test_sets(tasks, eligible, 5, seed=1)).all()
    assert (draw_test_sets(tasks, eligible, 5, seed=1) != draw_test_sets(tasks, eligible, 5, seed=2)).any()
    assert (eligible == before).all()


def test_every_video_is_left_out_as_often_as_the_others() -> None:
    tasks = np.repeat([0, 1], [60, 90])
    share = draw_test_sets(tasks, np.ones(150, bool), 2_000).mean(0)
    # 30 of 60 and 60 of 90 stay; five standard deviations of a share among 2,000 draws are 0.056.
    assert np.abs(share[:60] - 1 / 2).max() < 0.056 and np.abs(share[60:] - 2 / 3).max() < 0.056


def test_test_sets_without_eligible_videos() -> None:
    assert not draw_test_sets(np.zeros(40, np.int64), np.zeros(40, bool)).any()
    assert draw_test_sets(np.zeros(0, np.int64), np.zeros(0, bool)).shape == (DRAWS, 0)
