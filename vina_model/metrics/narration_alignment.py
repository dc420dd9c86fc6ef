"""HTM-Align: R@1 of the narrations that can be aligned, and how well a score tells them from the others (ROC-AUC)."""

# R draws, V videos, N narrations.

import numpy as np

from vina_model.metrics.bootstrap import Values, ratio
from vina_model.metrics.columns import Bools, Floats, Ints, Points, Segments
from vina_model.metrics.step_recall import StepRecall

NAME, VERSION = "htm-align", 1


class NarrationAlignment:
    """`videos`, `alignable` and `scores` are of all narrations; a narration without a score has -inf."""

    def __init__(
        self, truth: Segments, points: Points, videos: Ints, alignable: Bools, scores: Floats, num_videos: int
    ) -> None:
        self._recall = StepRecall(truth, points, num_videos)
        self._videos, self._alignable = videos, alignable
        _, self._levels = np.unique(scores, return_inverse=True)

    def __call__(self, weights_RV: Floats) -> Values:
        """By the weights of videos."""
        return {**self._recall(weights_RV), "AUC": self._auc(weights_RV)}

    def _auc(self, weights_RV: Floats) -> Floats:
        """How often an alignable narration has a higher score than another one; an equal score counts half."""
        num_levels = int(self._levels.max(initial=-1)) + 1
        parts = []
        for weights_V in weights_RV:
            weights_N = weights_V[self._videos]
            right_L = np.bincount(self._levels, weights_N * self._alignable, num_levels)
            wrong_L = np.bincount(self._levels, weights_N * ~self._alignable, num_levels)
            below_L = np.cumsum(wrong_L) - wrong_L / 2
            parts.append((right_L @ below_L, right_L.sum() * wrong_L.sum()))
        wins_R, pairs_R = np.array(parts).T
        return ratio(wins_R, pairs_R)
