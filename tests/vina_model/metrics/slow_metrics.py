"""Every evaluation protocol again, slowly: plain loops over plain tuples, from the protocols' own words.

It shares nothing with vina_model. Values are fractions; NaN where a protocol has nothing to average over.
Of equal scores, and of equal overlaps, the later row comes first, as `argsort()[::-1]` of a stable sort would have it.
"""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np

HTSTEP_TIOUS: list[float] = np.linspace(0.3, 0.7, 5).tolist()  # the second is a hair below 0.4, as in the evaluator
SHORTEST_S = 1e-3

Video = Hashable
Label = Hashable
Seconds = Mapping[tuple[Video, Label], float]
"""The second that a model names for a label in a video."""
Row = TypeVar("Row")


class Segment(NamedTuple):
    video: Video
    label: Label
    start_s: float
    end_s: float


class Detection(NamedTuple):
    video: Video
    label: Label
    start_s: float
    end_s: float
    score: float


class Narration(NamedTuple):
    """The second is the model's; the times are the annotators', and say nothing if it is not alignable."""

    video: Video
    alignable: bool
    start_s: float
    end_s: float
    second: float
    score: float


def mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else math.nan


def grouped(rows: Iterable[Row], key: Callable[[Row], Hashable]) -> dict[Hashable, list[Row]]:
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def later_of_equals_first(values: Sequence[float]) -> list[int]:
    """Places in falling order of value."""
    return sorted(range(len(values)), key=lambda place: (-values[place], -place))


def best_first(detections: Sequence[Detection]) -> list[Detection]:
    return [detections[place] for place in later_of_equals_first([detection.score for detection in detections])]


def overlap(a: Segment | Detection, b: Segment | Detection) -> float:
    """Intersection over union."""
    shared = max(0.0, min(a.end_s, b.end_s) - max(a.start_s, b.start_s))
    union = (b.end_s - b.start_s) + (a.end_s - a.start_s) - shared
    return shared / union if union else 0.0


def step_r1(segments: Sequence[Segment], seconds: Seconds) -> float:
    """HT-Step: the share of (video, annotated step) whose second lies in one of the step's segments, ends included."""
    hits = []
    for pair, own in grouped(segments, lambda segment: (segment.video, segment.label)).items():
        second = seconds.get(pair, math.inf)
        hits.append(any(math.floor(segment.start_s) <= second <= math.ceil(segment.end_s) for segment in own))
    return mean(hits)


def narration_r1(narrations: Sequence[Narration]) -> float:
    """HTM-Align: the share of alignable narrations whose second lies in their span, ends included."""
    return mean(math.floor(n.start_s) <= n.second <= math.ceil(n.end_s) for n in narrations if n.alignable)


def alignability_auc(narrations: Sequence[Narration]) -> float:
    """How often an alignable narration scores above one that is not; a tie is half a time."""
    able = [narration.score for narration in narrations if narration.alignable]
    unable = [narration.score for narration in narrations if not narration.alignable]
    return mean(1.0 if high > low else 0.5 if high == low else 0.0 for high in able for low in unable)


def task_recall(segments: Sequence[Segment], seconds: Seconds) -> float:
    """CrossTask, one task: hits / annotated (video, step) pairs; a segment's last second is before ceil(end)."""
    hits = []
    for pair, own in grouped(segments, lambda segment: (segment.video, segment.label)).items():
        inside = {second for segment in own for second in range(math.floor(segment.start_s), math.ceil(segment.end_s))}
        hits.append(seconds.get(pair) in inside)
    return mean(hits)


def localization_recall(
    segments: Sequence[Segment],
    seconds: Seconds,
    task_of: Mapping[Video, Hashable],
    test_sets: Sequence[Collection[Video]],
) -> float:
    """CrossTask: mean over test sets of the mean over tasks; what has no annotated step has no part in a mean."""
    per_set = []
    for test_set in test_sets:
        tested = [segment for segment in segments if segment.video in test_set]
        by_task = grouped(tested, lambda segment: task_of[segment.video])
        per_set.append(mean(task_recall(own, seconds) for own in by_task.values()))
    return mean(recall for recall in per_set if not math.isnan(recall))


def claims(truth: Sequence[Segment], ranked: Sequence[Detection], threshold: float, same_label: bool) -> list[bool]:
    """For each detection in turn: does it take a segment of its video that nobody took before?

    It takes the one that it overlaps most of those still free, if that is enough.
    """
    free = list(truth)
    answers = []
    for detection in ranked:
        own = [
            place
            for place, segment in enumerate(free)
            if segment.video == detection.video and (segment.label == detection.label or not same_label)
        ]
        overlaps = [overlap(detection, free[place]) for place in own]
        right = bool(own) and max(overlaps) >= threshold
        if right:
            del free[own[later_of_equals_first(overlaps)[0]]]
        answers.append(right)
    return answers


def article_recall(segments: Sequence[Segment], detections: Sequence[Detection], top: int, threshold: float) -> float:
    """CrossTask articles: of each video's best `top` detections, the share of its segments taken; mean over videos."""
    found = grouped(detections, lambda detection: detection.video)
    recalls = []
    for video, truth in grouped(segments, lambda segment: segment.video).items():
        ranked = best_first(found.get(video, []))[:top]
        recalls.append(sum(claims(truth, ranked, threshold, same_label=True)) / len(truth))
    return mean(recalls)


def without_repeats(segments: Sequence[Segment]) -> list[Segment]:
    """HT-Step's cleaning: very short segments go, and those that repeat an earlier kept one."""
    kept: list[Segment] = []
    for segment in segments:
        repeats = any(
            other.video == segment.video
            and other.label == segment.label
            and abs(other.start_s - segment.start_s) <= SHORTEST_S
            and abs(other.end_s - segment.end_s) <= SHORTEST_S
            for other in kept
        )
        if segment.end_s - segment.start_s >= SHORTEST_S and not repeats:
            kept.append(segment)
    return kept


def counted_detections(
    segments: Sequence[Segment], detections: Sequence[Detection], candidates: Mapping[Video, Collection[Label]]
) -> list[Detection]:
    """HT-Step's choice: the label is a step of the video's own article, and somebody annotated it somewhere."""
    annotated = {segment.label for segment in without_repeats(segments)}
    return [d for d in detections if d.label in candidates.get(d.video, ()) and d.label in annotated]


def interpolated_ap(hits: Sequence[bool], positives: int) -> float:
    """VOC 2011: each hit adds 1 / positives of recall, at the best precision from there on."""
    precisions = [sum(hits[: n + 1]) / (n + 1) for n in range(len(hits))]
    return sum(max(precisions[n:]) for n, hit in enumerate(hits) if hit) / positives


def article_aps(
    segments: Sequence[Segment],
    counted: Sequence[Detection],
    activity_of: Mapping[Video, Hashable],
    thresholds: Sequence[float] = HTSTEP_TIOUS,
) -> dict[Hashable, list[float]]:
    """HT-Step: for each activity with ground truth, an average precision a threshold."""
    truth = grouped(without_repeats(segments), lambda segment: activity_of[segment.video])
    found = grouped(counted, lambda detection: activity_of[detection.video])
    ranked = {activity: best_first(own) for activity, own in found.items()}
    return {
        activity: [
            interpolated_ap(claims(own, ranked.get(activity, []), threshold, same_label=False), len(own))
            for threshold in thresholds
        ]
        for activity, own in truth.items()
    }


def article_map(
    segments: Sequence[Segment],
    counted: Sequence[Detection],
    activity_of: Mapping[Video, Hashable],
    thresholds: Sequence[float] = HTSTEP_TIOUS,
) -> float:
    """Mean over activities, then over thresholds."""
    aps = article_aps(segments, counted, activity_of, thresholds)
    return mean(mean(ap[place] for ap in aps.values()) for place in range(len(thresholds)))


def best_rising_choices(scores: Sequence[Sequence[float]]) -> tuple[float, list[tuple[int, ...]]]:
    """The highest sum of any way to give each step (a row) its own second, later steps later, and all that reach it."""
    sums = {
        choice: sum(row[second] for row, second in zip(scores, choice, strict=True))
        for choice in combinations(range(len(scores[0])), len(scores))
    }
    best = max(sums.values())
    return best, [choice for choice, total in sums.items() if total == best]
