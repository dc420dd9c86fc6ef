"""CrossTask's article grounding: how many annotated segments the best K detections of a video find, by overlap."""

# R draws, V videos, H thresholds, N detections.

import numpy as np

from vina_model.metrics.bootstrap import Values, ratio
from vina_model.metrics.columns import Floats, ScoredSegments, Segments, total_by
from vina_model.metrics.matching import best_first, match, places_within

BEST = (50, 100)
THRESHOLDS = np.array([0.1, 0.3, 0.5])


class ArticleRecall:
    """Recall in each video, the detections of all its headlines pooled; the mean over videos that have segments."""

    def __init__(self, truth: Segments, detections: ScoredSegments, num_videos: int) -> None:
        detections = detections.take(best_first(detections.scores))
        detections = detections.take(places_within(detections.videos) < max(BEST))
        ranks = places_within(detections.videos)
        right_HN = match(truth, detections, THRESHOLDS, same_label=True)
        segments_V = total_by(truth.videos, np.ones(len(truth.videos)), num_videos)
        self._annotated_V = (segments_V > 0).astype(np.float64)
        self._recalls_V = {
            f"R@{best} IoU {threshold}": np.nan_to_num(
                ratio(
                    total_by(detections.videos, (right_N & (ranks < best)).astype(np.float64), num_videos), segments_V
                )
            )
            for best in BEST
            for threshold, right_N in zip(THRESHOLDS.tolist(), right_HN, strict=True)
        }

    def __call__(self, weights_RV: Floats) -> Values:
        """Return the metric for weights of videos."""
        videos_R = weights_RV @ self._annotated_V
        return {name: ratio(weights_RV @ recalls_V, videos_R) for name, recalls_V in self._recalls_V.items()}
