"""Detections matched with annotated segments: best score first, each segment once, in all videos at the same time.

Ranks are processed one after the other; the detections of one rank, one per video, are processed together. So the
loop is as long as the longest list of a video, not as all lists together.
"""

# V videos, G segments of a video, H thresholds, N detections.

import numpy as np

from vina_model.metrics.columns import Bools, Floats, Ints, ScoredSegments, Segments, overlaps


def best_first(scores: Floats) -> Ints:
    """Return the order of detections by score. Of equal ones the later comes first, as in the public evaluators."""
    return np.argsort(scores, kind="stable")[::-1]


def places_within(groups: Ints) -> Ints:
    """Return the position of each element within its group."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    places = np.empty_like(groups)
    places[order] = np.arange(len(groups)) - np.searchsorted(ordered, ordered)
    return places


def match(truth: Segments, detections: ScoredSegments, thresholds: Floats, same_label: bool) -> Bools:
    """Which detections are right at each threshold, H x N. They must be in their order, best first.

    A detection takes the segment of its video (and of its label, if `same_label`) that it overlaps most among those
    that no better one has taken, if their intersection over union reaches the threshold.
    """
    right_HN = np.zeros((len(thresholds), len(detections.scores)), np.bool_)
    videos, numbers = np.unique(truth.videos, return_inverse=True)
    if not len(videos) or not len(detections.scores):
        return right_HN
    places = places_within(truth.videos)
    shape = len(videos), int(places.max()) + 1
    starts_VG, ends_VG, labels_VG = np.zeros(shape), np.zeros(shape), np.full(shape, -1)
    starts_VG[numbers, places], ends_VG[numbers, places] = truth.starts, truth.ends
    labels_VG[numbers, places] = truth.labels
    free_HVG = np.broadcast_to(labels_VG >= 0, (len(thresholds), *shape)).copy()

    annotated = np.flatnonzero(np.isin(detections.videos, videos))
    rows, ranks = np.searchsorted(videos, detections.videos[annotated]), places_within(detections.videos[annotated])
    for chosen in np.split(np.argsort(ranks, kind="stable"), np.cumsum(np.bincount(ranks))[:-1]):
        numbers_of_rank, row = annotated[chosen], rows[chosen]
        iou_VG = overlaps(
            detections.starts[numbers_of_rank, None],
            detections.ends[numbers_of_rank, None],
            starts_VG[row],
            ends_VG[row],
        )
        allowed_HVG = free_HVG[:, row] & (iou_VG >= thresholds[:, None, None])
        if same_label:
            allowed_HVG &= labels_VG[row] == detections.labels[numbers_of_rank, None]
        best_HV = _last_largest(np.where(allowed_HVG, iou_VG, -1.0))
        right_HV = allowed_HVG.any(2)
        right_HN[:, numbers_of_rank] = right_HV
        level, video = np.nonzero(right_HV)
        free_HVG[level, row[video], best_HV[level, video]] = False
    return right_HN


def _last_largest(values: Floats) -> Ints:
    """Return the position of the largest value along the last axis; of equal ones the last."""
    return values.shape[-1] - 1 - values[..., ::-1].argmax(-1)
