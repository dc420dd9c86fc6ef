"""When a demo video shows which step: its duration and its segments, drawn with the statistics of real annotations."""

from dataclasses import dataclass

import numpy as np

from tasks.demo_world.knobs import Knobs

_P90 = 1.2816
"""The 90th percentile of the normal distribution."""
_LONGER_IN_LONGER = 0.5
"""A segment's length grows with this power of the video's duration."""
_VIDEO_SHARE = 0.35
"""Share of the variance of log lengths that a video's segments have in common."""
_MORE_REPEATS = 0.4
"""Probability of one more segment, after the second."""
_AT_ONCE_AGAIN = 0.5
"""Probability that a step's next segment is the next one of the video."""
_MOST_ANNOTATED = 0.95
_SHORTEST_S = 1.0
_END_SHAPE = 1.5
"""Shape of the gamma distribution of what comes before the first segment and after the last one."""


@dataclass(frozen=True)
class Segment:
    """A step is shown from `start_s` to `end_s`."""

    step: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Timeline:
    """A video's duration, and its segments by start."""

    duration_s: float
    segments: tuple[Segment, ...]


def draw_timeline(rng: np.random.Generator, knobs: Knobs, num_steps: int) -> Timeline:
    """Draw the timeline of a video about an article of so many steps."""
    duration_s = _duration(rng, knobs)
    steps = _order(rng, knobs, _shown(rng, knobs, num_steps), num_steps)
    lengths = _lengths(rng, knobs, duration_s, len(steps))
    gaps = _gaps(rng, knobs, steps, lengths, duration_s, num_steps)
    clock, segments = 0.0, []
    for step, length, gap in zip(steps, lengths, gaps, strict=True):
        start = max(0.0, clock + gap)
        segments.append(Segment(step, round(start, 2), round(start + length, 2)))
        clock = start + length
    segments = _without_touching_itself(segments)
    return Timeline(round(duration_s, 2), tuple(sorted(segments, key=lambda segment: segment.start_s)))


def _duration(rng: np.random.Generator, knobs: Knobs) -> float:
    """Two halves of lognormal distributions that meet at the median."""
    z = rng.standard_normal()
    other = knobs.duration_p90_s if z > 0 else knobs.duration_p10_s
    spread = abs(np.log(other / knobs.duration_s)) / _P90
    return float(knobs.duration_s * np.exp(np.clip(z, -3, 3) * spread))


def _shown(rng: np.random.Generator, knobs: Knobs, num_steps: int) -> list[int]:
    """The steps that are shown: at least one; their share has a beta distribution."""
    concentration = max(knobs.shown_share * (1 - knobs.shown_share) / knobs.shown_spread**2 - 1, 0.1)
    share = rng.beta(knobs.shown_share * concentration, (1 - knobs.shown_share) * concentration)
    count = int(np.clip(np.floor(share * num_steps + rng.random()), 1, num_steps))
    return sorted(int(row) for row in rng.choice(num_steps, count, replace=False))


def _order(rng: np.random.Generator, knobs: Knobs, rows: list[int], num_steps: int) -> list[int]:
    """The steps in the order of the video, with repetitions."""
    places = [(row + 0.5) / num_steps + knobs.order_noise * rng.standard_normal() for row in rows]
    order = [rows[i] for i in np.argsort(places)]
    for row in list(order):
        if rng.random() < knobs.repeat_rate:
            for _ in range(int(rng.geometric(1 - _MORE_REPEATS))):
                last = len(order) - 1 - order[::-1].index(row)
                soon = rng.random() < _AT_ONCE_AGAIN
                order.insert(last + 1 if soon else int(rng.integers(last + 1, len(order) + 1)), row)
    return order


def _lengths(rng: np.random.Generator, knobs: Knobs, duration_s: float, count: int) -> np.ndarray:
    """Lognormal, correlated within a video and with its duration."""
    of_duration = _LONGER_IN_LONGER * np.log(duration_s / knobs.duration_s)
    spread_of_durations = np.log(knobs.duration_p90_s / knobs.duration_p10_s) / (2 * _P90)
    rest = max(knobs.segment_spread**2 - (_LONGER_IN_LONGER * spread_of_durations) ** 2, 0.0)
    of_video = np.sqrt(_VIDEO_SHARE * rest) * rng.standard_normal()
    own = np.sqrt((1 - _VIDEO_SHARE) * rest) * rng.standard_normal(count)
    lengths = np.maximum(knobs.segment_s * np.exp(of_duration + of_video + own), _SHORTEST_S)
    return lengths * min(1.0, _MOST_ANNOTATED * duration_s / lengths.sum())


def _gaps(
    rng: np.random.Generator, knobs: Knobs, steps: list[int], lengths: np.ndarray, duration_s: float, num_steps: int
) -> np.ndarray:
    """The seconds before each segment; the rest of the video comes after the last one."""
    count = len(steps)
    skipped = np.abs(np.diff([0, *steps, num_steps - 1])) / num_steps
    weights = rng.gamma(knobs.gap_shape, 1 / knobs.gap_shape, size=count + 1) * (1 - knobs.gap_tilt + knobs.gap_tilt * skipped * (count + 1))
    ends = rng.gamma(_END_SHAPE, knobs.gap_ends / _END_SHAPE, size=2)
    weights[[0, -1]] = ends * (1 - knobs.gap_tilt + knobs.gap_tilt * skipped[[0, -1]] * (count + 1))
    weights += 1e-6
    gaps = weights / weights.sum() * (duration_s - lengths.sum())
    overlapping = np.flatnonzero(rng.random(count) < knobs.overlap_rate)
    for i in overlapping:
        if i and steps[i] != steps[i - 1]:
            gaps[i] = -rng.uniform(0.2, 0.9) * min(lengths[i], lengths[i - 1])
    return gaps[:-1]


def _without_touching_itself(segments: list[Segment]) -> list[Segment]:
    return segments
