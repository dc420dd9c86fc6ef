"""How well a score tells one kind from the other: the area under the ROC curve."""

# R draws, V videos, N things that are scored, L different scores.

import numpy as np

from vina_model.metrics.bootstrap import ratio
from vina_model.metrics.columns import Bools, Floats, Ints


class Ranking:
    """`videos`, `positives` and `scores` are of the things that are scored."""

    def __init__(self, videos: Ints, positives: Bools, scores: Floats) -> None:
        self._videos, self._positives = videos, positives
        _, self._levels = np.unique(scores, return_inverse=True)

    def auc(self, weights_RV: Floats) -> Floats:
        """Return how often a positive has a higher score than a negative; equal scores count half."""
        num_levels = int(self._levels.max(initial=-1)) + 1
        parts = []
        for weights_V in weights_RV:
            weights_N = weights_V[self._videos]
            right_L = np.bincount(self._levels, weights_N * self._positives, num_levels)
            wrong_L = np.bincount(self._levels, weights_N * ~self._positives, num_levels)
            below_L = np.cumsum(wrong_L) - wrong_L / 2
            parts.append((right_L @ below_L, right_L.sum() * wrong_L.sum()))
        wins_R, pairs_R = np.array(parts).T
        return ratio(wins_R, pairs_R)
