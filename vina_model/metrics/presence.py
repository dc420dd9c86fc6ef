"""Is a step shown at all? How well a score tells (ROC-AUC), and how far it is from a probability (calibration error).

The steps of an annotated video's article are shown where they are annotated, and not shown where they are not. The
calibration error is the mean distance, over ten bins of equal width, between the scores of a bin and the share of its
steps that is shown, weighted by its size. A score outside of 0 to 1 counts as the nearer of the two.
"""

# R draws, V videos, N steps, K bins.

import numpy as np

from vina_model.metrics.bootstrap import Values, ratio
from vina_model.metrics.columns import Bools, Floats, Ints
from vina_model.metrics.ranking import Ranking

BINS = 10


class StepPresence:
    """`videos`, `shown` and `scores` are of all steps of the videos' articles."""

    def __init__(self, videos: Ints, shown: Bools, scores: Floats) -> None:
        self._ranking, self._videos, self._shown = Ranking(videos, shown, scores), videos, shown
        self._chances = np.clip(scores, 0, 1)
        self._bins = np.minimum((BINS * self._chances).astype(np.int64), BINS - 1)

    def __call__(self, weights_RV: Floats) -> Values:
        """Return the metric for weights of videos."""
        return {"AUC": self._ranking.auc(weights_RV), "ECE": self._calibration_error(weights_RV)}

    def _calibration_error(self, weights_RV: Floats) -> Floats:
        apart_N = self._chances - self._shown
        parts = []
        for weights_V in weights_RV:
            weights_N = weights_V[self._videos]
            apart_K = np.bincount(self._bins, weights_N * apart_N, BINS)
            parts.append((np.abs(apart_K).sum(), weights_N.sum()))
        apart_R, all_R = np.array(parts).T
        return ratio(apart_R, all_R)
