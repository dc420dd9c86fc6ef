"""The detector again, slowly: one row at a time from the textbook's formulas, in float64 and without torch.

Each scale's filter slides over the row in time, peaks are looked for place by place, and of overlapping segments the
better ones are kept one by one. It shares nothing with vina_model but the numbers it is given.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Row = npt.NDArray[np.float64]


class Segment(NamedTuple):
    start: float
    end: float
    score: float


def slope(x: Row | float, scale: float) -> Row:
    """The first derivative of a Gaussian."""
    return np.asarray(-x / scale**2 * np.exp(-((x / scale) ** 2) / 2) / (scale * math.sqrt(2 * math.pi)))


def response_at(row: Row, scale: float) -> Row:
    """The row less its median, filtered with minus a Gaussian's second derivative.

    Scaled to answer with 1 in the middle of a plateau of height 1 from -scale to scale.
    """
    reach = len(row) - 1
    lags = np.arange(-reach, reach + 1, dtype=np.float64)
    kernel = slope(lags - 0.5, scale) - slope(lags + 0.5, scale)
    plateau = slope(-scale, scale) - slope(scale, scale)
    median = sorted(row)[(len(row) - 1) // 2]
    return np.convolve(row - median, kernel, "full")[reach : reach + len(row)] / plateau


def vertex(before: float | None, run_here: float, after: float | None) -> float:
    """Where the parabola through the three is highest, in steps from the middle one."""
    if before is None or after is None or before == run_here == after:
        return 0.0
    return (before - after) / (2 * (before - 2 * run_here + after))


def slow_candidates(row: Row, scales: Sequence[float], faint: float) -> list[Segment]:
    """Peaks in time and scale, the strongest first."""
    responses = [response_at(row, scale).tolist() for scale in scales]
    places = {(k, t): responses[k][t] for k in range(len(scales)) for t in range(len(row))}
    least = faint * max(0.0, max(places.values()))
    found = []
    for (k, t), run_here in places.items():
        around = (places.get((k + i, t + j), -math.inf) for i in (-1, 0, 1) for j in (-1, 0, 1))
        if run_here <= least or any(other > run_here for other in around):
            continue
        centre = t + 0.5 + vertex(places.get((k, t - 1)), run_here, places.get((k, t + 1)))
        half = scales[k] * (scales[1] / scales[0]) ** vertex(places.get((k - 1, t)), run_here, places.get((k + 1, t)))
        found.append(Segment(max(0.0, centre - half), min(float(len(row)), centre + half), run_here))
    return sorted(found, key=lambda segment: -segment.score)


def overlap(one: Segment, other: Segment) -> float:
    """IoU; 0 for two that are empty."""
    shared = min(one.end, other.end) - max(one.start, other.start)
    union = one.end - one.start + other.end - other.start - shared
    return shared / union if shared > 0 else 0.0


def slow_suppress(segments: Sequence[Segment], threshold: float) -> list[int]:
    """Places of those that stay, best first."""
    kept: list[int] = []
    for place in sorted(range(len(segments)), key=lambda place: -segments[place].score):
        if all(overlap(segments[place], segments[other]) <= threshold for other in kept):
            kept.append(place)
    return kept


def slow_detect(
    row: Row, scales: Sequence[float], limit: int, threshold: float, candidates: int, faint: float
) -> list[Segment]:
    found = slow_candidates(row, scales, faint)[:candidates]
    if not found:
        highest = int(np.argmax(row))
        return [Segment(highest, highest + 1, 0.0)]
    return [found[place] for place in slow_suppress(found, threshold)[:limit]]
