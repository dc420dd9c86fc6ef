"""The temporal shape of annotated videos: how long, how much is annotated, in which order, and what guesses score.

A second t of a video (0 <= t < its length, rounded up) is annotated with a step if floor(start) <= t < ceil(end) for
one of the step's segments. R@1 is that of HT-Step's protocol, where t = ceil(end) counts as well. `shown` steps have a
segment. Videos without a known length, or with a segment that starts after it, are left out and counted.
"""

# P shown steps of a video, T its seconds.

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from tasks.evaluation.annotated_videos import AnnotatedVideo
from vina_model.metrics.columns import Bools, Floats, Ints


@dataclass(frozen=True)
class Tolerance:
    """By how much a statistic may differ from that of the reference, and how it is printed."""

    absolute: float = 0.0
    relative: float = 0.0
    decimals: int = 1

    def allows(self, value: float, reference: float) -> bool:
        """Return whether the difference is small enough."""
        return abs(value - reference) <= max(self.absolute, self.relative * abs(reference))


SIZE = Tolerance(relative=0.1)
"""Seconds and counts."""
SHARE = Tolerance(absolute=0.03, decimals=3)
RECALL = Tolerance(absolute=2.0)
"""R@1 in %."""


@dataclass(frozen=True)
class ShapeStatistic:
    """One number of a shape."""

    name: str
    value: float
    tolerance: Tolerance


@dataclass(frozen=True)
class Shape:
    """The statistics of a set of videos. One that has no samples (order, if no video shows two steps) is not there."""

    num_videos: int
    num_unknown_length: int
    """Left out: their length is not known."""
    num_wrong_length: int
    """Left out: a segment starts after the video's end."""
    statistics: tuple[ShapeStatistic, ...]


@dataclass(frozen=True)
class ShapeDifference:
    """A statistic of two shapes; B is the reference."""

    name: str
    a: float
    b: float
    tolerance: Tolerance

    @property
    def is_within_tolerance(self) -> bool:
        """Whether A is close enough to B."""
        return self.tolerance.allows(self.a, self.b)


@dataclass(frozen=True)
class _VideoSeconds:
    """One video in seconds."""

    seconds_PT: Bools
    """Which seconds are annotated with which shown step."""
    hits_PT: Bools
    """Which seconds are hits by HT-Step's R@1."""
    rows_P: Ints
    """Rows of the shown steps in the article, ascending."""
    first_starts_P: Floats
    num_segments_P: Ints
    centre: int
    even_P: Ints
    """The second of each shown step if the whole article is spread evenly."""
    offsets_P: Floats
    """First start as a share of the video, less the step's place in the article."""


def shape_of(videos: Sequence[AnnotatedVideo]) -> Shape:
    """Return the statistics; a ValueError if no video can be used."""
    known = [(video, video.duration_s) for video in videos if video.duration_s is not None]
    used = [(video, length_s) for video, length_s in known if all(start < length_s for _, start, _ in video.segments)]
    if not used:
        raise ValueError(f"none of the {len(videos):,} annotated videos has a known length that its segments fit in")
    statistics = [
        *_sizes("video length, s", [length_s for _, length_s in used], "median", "mean", "p10", "p90"),
        *_mean("steps of the article", [video.num_steps for video, _ in used], SIZE),
        *_annotation_statistics([video for video, _ in used], [_timeline(*each) for each in used]),
        *_narration_statistics([video for video, _ in used]),
    ]
    return Shape(len(used), len(videos) - len(known), len(known) - len(used), tuple(statistics))


def compare(a: Shape, b: Shape) -> list[ShapeDifference]:
    """Return the statistics that both have, in order."""
    values = {statistic.name: statistic.value for statistic in a.statistics}
    return [
        ShapeDifference(statistic.name, values[statistic.name], statistic.value, statistic.tolerance)
        for statistic in b.statistics
        if statistic.name in values
    ]


def _timeline(video: AnnotatedVideo, length_s: float) -> _VideoSeconds:
    rows, starts, ends = (np.array(column) for column in zip(*video.segments, strict=True))
    rows_P, place, num_segments_P = np.unique(rows, return_inverse=True, return_counts=True)
    num_seconds = math.ceil(length_s)
    seconds_PT, hits_PT = np.zeros((2, len(rows_P), num_seconds), np.bool_)
    first_starts_P = np.full(len(rows_P), np.inf)
    np.minimum.at(first_starts_P, place, starts)
    for shown, start, end in zip(place, np.floor(starts).astype(int), np.ceil(ends).astype(int), strict=True):
        seconds_PT[shown, start:end] = True
        hits_PT[shown, start : end + 1] = True
    places_P = (rows_P + 0.5) / video.num_steps
    last = num_seconds - 1
    return _VideoSeconds(
        seconds_PT, hits_PT, rows_P, first_starts_P, num_segments_P,
        centre=min(int(length_s / 2), last),
        even_P=np.minimum((places_P * length_s).astype(np.int64), last),
        offsets_P=first_starts_P / length_s - places_P,
    )  # fmt: skip


def _annotation_statistics(videos: list[AnnotatedVideo], timelines: list[_VideoSeconds]) -> list[ShapeStatistic]:
    shown = [len(line.rows_P) / video.num_steps for video, line in zip(videos, timelines, strict=True)]
    lengths = [end - start for video in videos for _, start, end in video.segments]
    num_shown = [line.seconds_PT.sum(axis=0) for line in timelines]  # steps at each second
    annotated = np.concatenate(num_shown)
    in_order = [first < second for line in timelines for first, second in combinations(line.first_starts_P, 2)]
    return [
        *_mean("share of its steps shown, mean", shown, SHARE),
        ShapeStatistic("share of its steps shown, p10", float(np.percentile(shown, 10)), SHARE),
        ShapeStatistic("share of its steps shown, p90", float(np.percentile(shown, 90)), SHARE),
        *_sizes("segment length, s", lengths, "median", "mean", "p90"),
        *_mean("shown steps with several segments", _joined([x.num_segments_P > 1 for x in timelines]), SHARE),
        *_mean("share of the video annotated", [(count_T > 0).mean() for count_T in num_shown], SHARE),
        *_mean("annotated seconds with two steps at once", annotated[annotated > 0] > 1, SHARE),
        *_mean("pairs of shown steps in the article's order", in_order, SHARE),
        ShapeStatistic(
            "spread of first start less place", float(_joined([x.offsets_P for x in timelines]).std()), SHARE
        ),
        *_recall("a random second", [x.hits_PT.mean(axis=1) for x in timelines]),
        *_recall("the centre", [x.hits_PT[:, x.centre] for x in timelines]),
        *_recall("steps spread evenly", [x.hits_PT[np.arange(len(x.even_P)), x.even_P] for x in timelines]),
    ]


def _narration_statistics(videos: list[AnnotatedVideo]) -> list[ShapeStatistic]:
    spoken = [video.narrations for video in videos if video.narrations]
    spacings = [video.duration_s / len(video.narrations) for video in videos if video.narrations and video.duration_s]
    return [
        *_mean("narrations of a narrated video", [len(narrations) for narrations in spoken], SIZE),
        *_mean("seconds of video per narration", spacings, SIZE),
    ]


def _sizes(name: str, values: list[float], *kinds: str) -> list[ShapeStatistic]:
    numbers = {"median": np.median(values), "mean": np.mean(values)}
    numbers |= {"p10": np.percentile(values, 10), "p90": np.percentile(values, 90)}
    return [ShapeStatistic(f"{name}, {kind}", float(numbers[kind]), SIZE) for kind in kinds]


def _recall(guess: str, hits: list[Bools] | list[Floats]) -> list[ShapeStatistic]:
    return _mean(f"R@1 of {guess}, %", 100.0 * _joined(hits), RECALL)


def _mean(name: str, values: ArrayLike, tolerance: Tolerance) -> list[ShapeStatistic]:
    """Return the mean; nothing if there are no values."""
    array = np.asarray(values, np.float64)
    return [ShapeStatistic(name, float(array.mean()), tolerance)] if array.size else []


def _joined(arrays: Sequence[Bools | Floats]) -> Floats:
    return np.concatenate(arrays).astype(np.float64)
