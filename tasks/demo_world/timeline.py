"""When a demo video shows which step: its duration and its segments, drawn with the statistics of real annotations."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tasks.demo_world.knobs import Knobs

_P90 = 1.2816
"""The 90th percentile of the normal distribution."""
_FARTHEST = 2.6
"""Durations are cut at this many standard deviations."""
_LONGER_IN_LONGER = 0.6
"""A segment's length grows with this power of the video's duration."""
_VIDEO_SHARE = 0.35
"""Share of the variance of log lengths that the segments of a video have in common."""
_MORE_REPEATS = 0.4
"""Probability of one more segment of a step, after its second."""
_NEXT_AGAIN = 0.5
"""Probability that a repetition comes directly after the step's last segment."""
_MOST_ANNOTATED = 0.97
_END_SHAPE = 1.5
"""Shape of the gamma distribution of what comes before the first segment and after the last one."""
_SHORTEST_S = 1.0
_SHORTEST_GAP_S = 0.3
"""Shorter gaps are closed."""

Lengths = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Segment:
    """A step is shown from `start_s` to `end_s`."""

    step: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Timeline:
    """A video's duration, and its segments by start. Two segments of one step do not overlap."""

    duration_s: float
    segments: tuple[Segment, ...]


def draw_timeline(rng: np.random.Generator, knobs: Knobs, num_steps: int) -> Timeline:
    """Draw the timeline of a video about an article of so many steps."""
    duration_s = _duration(rng, knobs)
    steps = _order(rng, knobs, _shown(rng, knobs, num_steps), num_steps)
    lengths = _lengths(rng, knobs, duration_s, len(steps))
    gaps = _gaps(rng, knobs, steps, lengths, duration_s, num_steps)
    clock = 0.0
    segments: list[Segment] = []
    last_end: dict[int, float] = {}
    unit_s = knobs.time_unit_s
    for step, length, gap in zip(steps, lengths, gaps, strict=True):
        gap = 0.0 if 0 < gap < _SHORTEST_GAP_S and segments else gap
        start = _rounded(max(clock + gap, last_end.get(step, 0.0)), unit_s)
        end = min(_rounded(start + length, unit_s), duration_s)
        clock = max(clock, end)
        if end > start:
            segments.append(Segment(step, start, end))
            last_end[step] = end
    return Timeline(duration_s, tuple(sorted(segments, key=lambda segment: segment.start_s)))


def _rounded(time_s: float, unit_s: float) -> float:
    return round(round(float(time_s) / unit_s) * unit_s, 2)


def _duration(rng: np.random.Generator, knobs: Knobs) -> float:
    """Return a duration from two halves of lognormal distributions that meet at the median."""
    z = float(np.clip(rng.standard_normal(), -_FARTHEST, _FARTHEST))
    percentile = knobs.duration_p90_s if z > 0 else knobs.duration_p10_s
    spread = abs(np.log(percentile / knobs.duration_s)) / _P90
    return round(float(knobs.duration_s * np.exp(z * spread)), 2)


def _shown(rng: np.random.Generator, knobs: Knobs, num_steps: int) -> list[int]:
    """Return the steps that are shown, at least one; their share has a beta distribution."""
    mean, spread = knobs.shown_share, knobs.shown_spread
    concentration = max(mean * (1 - mean) / spread**2 - 1, 0.1)
    share = rng.beta(mean * concentration, (1 - mean) * concentration)
    count = int(np.clip(np.floor(share * num_steps + rng.random()), 1, num_steps))
    return sorted(int(row) for row in rng.permutation(num_steps)[:count])


def _order(rng: np.random.Generator, knobs: Knobs, rows: list[int], num_steps: int) -> list[int]:
    """Return the steps in the order of the video, with repetitions."""
    places = np.array(rows) / num_steps + knobs.order_noise * rng.standard_normal(len(rows))
    order = [rows[i] for i in np.argsort(places)]
    for row in list(order):
        if rng.random() < knobs.repeat_rate:
            for _ in range(int(rng.geometric(1 - _MORE_REPEATS))):
                after = len(order) - order[::-1].index(row)
                is_next = rng.random() < _NEXT_AGAIN
                order.insert(after if is_next else int(rng.integers(after, len(order) + 1)), row)
    return order


def _lengths(rng: np.random.Generator, knobs: Knobs, duration_s: float, count: int) -> Lengths:
    """Return lognormal lengths, correlated within a video and with its duration; they fit into it."""
    of_duration = _LONGER_IN_LONGER * np.log(duration_s / knobs.duration_s)
    spread_of_durations = np.log(knobs.duration_p90_s / knobs.duration_p10_s) / (2 * _P90)
    variance = max(knobs.segment_spread**2 - (_LONGER_IN_LONGER * spread_of_durations) ** 2, 0.0)
    of_video = np.sqrt(_VIDEO_SHARE * variance) * rng.standard_normal()
    of_segment = np.sqrt((1 - _VIDEO_SHARE) * variance) * rng.standard_normal(count)
    lengths = np.maximum(knobs.segment_s * np.exp(of_duration + of_video + of_segment), _SHORTEST_S)
    return lengths * min(1.0, _MOST_ANNOTATED * duration_s / lengths.sum())


def _gaps(
    rng: np.random.Generator, knobs: Knobs, steps: list[int], lengths: Lengths, duration_s: float, num_steps: int
) -> Lengths:
    """Return the seconds before each segment, negative where two overlap; the rest comes after the last one."""
    count = len(steps)
    weights = rng.gamma(knobs.gap_shape, 1 / knobs.gap_shape, count + 1)
    weights[[0, -1]] = rng.gamma(_END_SHAPE, knobs.gap_ends / _END_SHAPE, 2)
    skipped = np.abs(np.diff([0, *steps, num_steps - 1])) / num_steps * (count + 1)
    weights = weights * (1 - knobs.gap_tilt + knobs.gap_tilt * skipped) + 1e-6
    gaps = weights / weights.sum() * (duration_s - lengths.sum())
    for i in np.flatnonzero(rng.random(count) < knobs.overlap_rate):
        if i and steps[i] != steps[i - 1]:
            gaps[i] = -rng.uniform(0.2, 0.9) * min(lengths[i], lengths[i - 1])
    return gaps[:-1]
