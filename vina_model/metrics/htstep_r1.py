"""R@1: the share of steps (or narrations) whose predicted moment is within an annotated segment."""

# R draws, V videos, Q queries.

import numpy as np

from vina_model.metrics.bootstrap import Values, ratio
from vina_model.metrics.columns import Bools, Floats, Ints, Points, Segments, total_by


def hits(truth: Segments, points: Points, closed: bool = True) -> tuple[Ints, Ints, Bools]:
    """For each annotated pair of video and label: the video, the label, and whether it is hit.

    A hit is floor(start) <= time <= ceil(end) (`closed`; otherwise < ceil(end)) for one of the pair's segments. A pair
    without a point is missed.
    """
    num_labels = int(max(truth.labels.max(initial=-1), points.labels.max(initial=-1))) + 1
    keys, rows = np.unique(truth.videos * num_labels + truth.labels, return_inverse=True)
    asked = points.videos * num_labels + points.labels
    times = np.full(len(keys), np.nan)
    if len(keys):
        places = np.searchsorted(keys, asked).clip(max=len(keys) - 1)
        times[places[keys[places] == asked]] = points.times[keys[places] == asked]
    predicted = times[rows]
    inside = (np.floor(truth.starts) <= predicted) & (
        (predicted <= np.ceil(truth.ends)) if closed else (predicted < np.ceil(truth.ends))
    )
    hit = total_by(rows, inside.astype(np.float64), len(keys)) > 0
    return keys // max(num_labels, 1), keys % max(num_labels, 1), hit


class StepRecall:
    """Share of annotated (video, step) pairs that are hit."""

    def __init__(self, truth: Segments, points: Points, num_videos: int) -> None:
        videos, _, hit = hits(truth, points)
        self._hits_V = total_by(videos, hit.astype(np.float64), num_videos)
        self._pairs_V = total_by(videos, np.ones(len(videos)), num_videos)

    def __call__(self, weights_RV: Floats) -> Values:
        """Return the metric for weights of videos."""
        return {"R@1": ratio(weights_RV @ self._hits_V, weights_RV @ self._pairs_V)}
