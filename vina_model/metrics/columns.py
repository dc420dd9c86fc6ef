"""Inputs of metrics: annotated segments, and predicted moments or segments, in columns of equal length."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Segments(NamedTuple):
    """Annotated segments: video, label, start and end."""

    videos: Ints
    labels: Ints
    starts: Floats
    ends: Floats

    def take(self, chosen: Ints | Bools) -> "Segments":
        """Return the chosen segments."""
        return Segments(self.videos[chosen], self.labels[chosen], self.starts[chosen], self.ends[chosen])


class Points(NamedTuple):
    """The predicted moment of each pair of video and label."""

    videos: Ints
    labels: Ints
    times: Floats


class ScoredSegments(NamedTuple):
    """Predicted segments with scores."""

    videos: Ints
    labels: Ints
    starts: Floats
    ends: Floats
    scores: Floats

    def take(self, chosen: Ints | Bools) -> "ScoredSegments":
        """Return the chosen segments, in this order."""
        return ScoredSegments(
            self.videos[chosen], self.labels[chosen], self.starts[chosen], self.ends[chosen], self.scores[chosen]
        )


def overlaps(starts: Floats, ends: Floats, other_starts: Floats, other_ends: Floats) -> Floats:
    """Return the intersection over union of segments, element by element; 0 where the union is empty."""
    common = np.clip(np.minimum(ends, other_ends) - np.maximum(starts, other_starts), 0, None)
    union = (ends - starts) + (other_ends - other_starts) - common
    return np.divide(common, union, out=np.zeros_like(union), where=union > 0)


def total_by(groups: Ints, values: Floats, num_groups: int) -> Floats:
    """Return the sum of the values of each group."""
    return np.bincount(groups, values, num_groups).astype(np.float64)
