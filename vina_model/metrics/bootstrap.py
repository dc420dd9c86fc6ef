"""Confidence intervals: the metric again on videos drawn with replacement, which is the metric with other weights."""

# R draws, V videos.

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from vina_model.metrics.columns import Floats

DRAWS = 1000
AT_ONCE = 100
LEVEL = 95
Values = Mapping[str, Floats]
"""Metrics by their names, one number per draw; NaN if the draw has nothing to measure."""


class Estimate(NamedTuple):
    """A number in percent, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def estimate(
    values: Callable[[Floats], Values], num_videos: int, draws: int = DRAWS, seed: int = 0
) -> dict[str, Estimate]:
    """Return each metric and its interval. `values` takes weights R x V; weights of 1 give the metric itself."""
    exact = values(np.ones((1, num_videos)))
    rng, parts = np.random.default_rng(seed), []
    for begin in range(0, draws if num_videos else 0, AT_ONCE):
        shares = np.full(num_videos, 1 / num_videos)
        weights_RV = rng.multinomial(num_videos, shares, size=min(AT_ONCE, draws - begin)).astype(np.float64)
        parts.append(values(weights_RV))
    return {
        name: _estimate(float(value[0]), np.concatenate([part[name] for part in parts]) if parts else value)
        for name, value in exact.items()
    }


def _estimate(value: float, drawn: Floats) -> Estimate:
    """The draws' deviations from their mean, put around the value: what resampling adds to a metric (to mAP it does)
    is no part of it."""
    finite = drawn[np.isfinite(drawn)]
    if not len(finite):
        return Estimate(100 * value, 100 * value, 100 * value)
    lowest, highest = np.percentile(finite, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    low, high = np.clip(value + np.array([lowest, highest]) - finite.mean(), 0, 1)
    return Estimate(100 * value, 100 * float(low), 100 * float(high))


def ratio(parts_RX: Floats, wholes_RX: Floats) -> Floats:
    """Return parts / wholes; NaN where the whole is 0."""
    return np.divide(parts_RX, wholes_RX, out=np.full(parts_RX.shape, np.nan), where=wholes_RX > 0)
