"""Decoding in order: one second for each step of a task, each later than the one before (dynamic programme)."""

# S steps, T seconds.

import numpy as np
import numpy.typing as npt

LOWEST = -1e300
"""Stands for a score of -inf, so that a sum over all steps is still a number."""


def in_order(scores_ST: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """Return the second of each step, S, such that they rise and the sum of their scores is the largest.

    In a video with fewer seconds than steps several steps share a second. Of equal sums, the earliest seconds win.
    """
    num_steps, num_seconds = scores_ST.shape
    if not num_steps or not num_seconds:
        raise ValueError(f"{num_steps} steps in {num_seconds} seconds: there is nothing to choose")
    scores_ST = np.maximum(scores_ST.astype(np.float64), LOWEST)
    shift = int(num_seconds >= num_steps)  # how much later the next step must be
    best_T = scores_ST[0]
    choices = []
    for scores_T in scores_ST[1:]:
        top_T = np.maximum.accumulate(best_T)
        is_new_T = np.concatenate([[True], best_T[1:] > top_T[:-1]])
        where_T = np.maximum.accumulate(np.where(is_new_T, np.arange(num_seconds), 0))
        before_T = np.concatenate([np.full(shift, -np.inf), top_T[: num_seconds - shift]])
        choices.append(np.concatenate([np.zeros(shift, np.int64), where_T[: num_seconds - shift]]))
        best_T = before_T + scores_T
    seconds = [int(best_T.argmax())]
    for choice_T in reversed(choices):
        seconds.append(int(choice_T[seconds[-1]]))
    return np.array(seconds[::-1], np.int64)
