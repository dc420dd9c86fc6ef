"""CrossTask's step localization: recall of each task's annotated steps, the mean over tasks, over drawn test sets."""

# R draws of the bootstrap, V videos (one that is listed under two tasks is two), K tasks, X = test sets x tasks.

import numpy as np

from vina_model.metrics.bootstrap import Values, ratio
from vina_model.metrics.columns import Bools, Floats, Ints, Points, Segments, total_by
from vina_model.metrics.htstep_r1 import hits

DRAWS, LEFT_OUT = 20, 30
"""Number of test sets, and of videos of each task that a test set leaves out for training."""


def draw_test_sets(tasks_V: Ints, eligible_V: Bools, draws: int = DRAWS, seed: int = 0) -> Bools:
    """Test sets, draws x V: the eligible videos but for LEFT_OUT random ones of each task.

    A task that has no more than that is tested on all it has.
    """
    rng = np.random.default_rng(seed)
    chosen = np.broadcast_to(eligible_V, (draws, len(tasks_V))).copy()
    for task in np.unique(tasks_V[eligible_V]):
        eligible = np.flatnonzero(eligible_V & (tasks_V == task))
        if len(eligible) > LEFT_OUT:
            for row in chosen:
                row[rng.choice(eligible, LEFT_OUT, replace=False)] = False
    return chosen


class StepLocalization:
    """Recall by floor(start) <= moment < ceil(end), averaged over tasks, then over test sets."""

    def __init__(self, truth: Segments, points: Points, tasks_V: Ints, test_sets: Bools) -> None:
        videos, _, hit = hits(truth, points, closed=False)
        num_videos = len(tasks_V)
        hits_V = total_by(videos, hit.astype(np.float64), num_videos)
        pairs_V = total_by(videos, np.ones(len(videos)), num_videos)
        self._num_sets = len(test_sets)
        members_VK = (tasks_V[:, None] == np.unique(tasks_V)).astype(np.float64)
        members_VX = np.concatenate([members_VK * chosen[:, None] for chosen in test_sets], axis=1)
        self._hits_VX, self._pairs_VX = members_VX * hits_V[:, None], members_VX * pairs_V[:, None]

    def __call__(self, weights_RV: Floats) -> Values:
        """Return the metric for weights of videos. A task without annotated steps is left out of the mean."""
        recalls_RX = ratio(weights_RV @ self._hits_VX, weights_RV @ self._pairs_VX)
        recalls = recalls_RX.reshape(len(weights_RV), self._num_sets, -1)
        measurable = np.isfinite(recalls)
        by_set = ratio(np.where(measurable, recalls, 0).sum(2), measurable.sum(2).astype(np.float64))
        return {"recall": ratio(np.nan_to_num(by_set).sum(1), np.isfinite(by_set).sum(1).astype(np.float64))}
