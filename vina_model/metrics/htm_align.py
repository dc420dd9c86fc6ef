"""HTM-Align: R@1 of the narrations that can be aligned, and how well a score tells them from the others (ROC-AUC)."""

# R draws, V videos.

from vina_model.metrics.bootstrap import Values
from vina_model.metrics.columns import Bools, Floats, Ints, Points, Segments
from vina_model.metrics.htstep_r1 import StepRecall
from vina_model.metrics.ranking import Ranking


class NarrationAlignment:
    """`videos`, `alignable` and `scores` are of all narrations; a narration without a score has -inf."""

    def __init__(
        self, truth: Segments, points: Points, videos: Ints, alignable: Bools, scores: Floats, num_videos: int
    ) -> None:
        self._recall = StepRecall(truth, points, num_videos)
        self._ranking = Ranking(videos, alignable, scores)

    def __call__(self, weights_RV: Floats) -> Values:
        """Return the metric for weights of videos."""
        return {**self._recall(weights_RV), "AUC": self._ranking.auc(weights_RV)}
