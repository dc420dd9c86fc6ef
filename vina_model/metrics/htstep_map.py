"""HT-Step's article grounding: mean average precision by activity, as its evaluation server computes it.

A detection is right if it overlaps *any* annotated segment of its video enough, whatever step that shows. Average
precision is interpolated as in VOC 2011: at each right detection, the best precision there or later.
"""

# R draws, V videos, A activities, P right detections of one threshold, W videos of an activity.

import numpy as np

from vina_model.metrics.bootstrap import Values, ratio
from vina_model.metrics.columns import Bools, Floats, Ints, ScoredSegments, Segments
from vina_model.metrics.matching import best_first, match, places_within

THRESHOLDS = np.linspace(0.3, 0.7, 5)
TOLERANCE_S = 1e-3


def without_repetitions(truth: Segments) -> Bools:
    """Return which segments count: not those shorter than a millisecond, nor repetitions of the same step."""
    counted = truth.ends - truth.starts >= TOLERANCE_S
    order = np.lexsort((np.arange(len(counted)), truth.labels, truth.videos))
    keys = np.stack([truth.videos, truth.labels])[:, order]
    cuts = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(0)) + 1
    for group in np.split(order, cuts):
        for position, number in enumerate(group[1:], 1):
            before = group[:position][counted[group[:position]]]
            same = np.abs(truth.starts[before] - truth.starts[number]) <= TOLERANCE_S
            same &= np.abs(truth.ends[before] - truth.ends[number]) <= TOLERANCE_S
            counted[number] &= not same.any()
    return counted


class ArticleMap:
    """`activities_V` is each video's activity. Of the detections, those that count must have been chosen before."""

    def __init__(self, truth: Segments, detections: ScoredSegments, activities_V: Ints) -> None:
        truth, detections = truth.take(without_repetitions(truth)), detections.take(best_first(detections.scores))
        self._num_activities, num_videos = int(activities_V.max(initial=-1)) + 1, len(activities_V)
        self._segments_VA = np.zeros((num_videos, self._num_activities))
        np.add.at(self._segments_VA, (truth.videos, activities_V[truth.videos]), 1)
        self._curves = [
            _Curve(detections.videos, right_N, activities_V)
            for right_N in match(truth, detections, THRESHOLDS, same_label=False)
        ]

    def __call__(self, weights_RV: Floats) -> Values:
        """Return the metric for weights of videos. Activities without annotated segments are left out of the mean."""
        segments_RA = weights_RV @ self._segments_VA
        known_RA = segments_RA > 0
        values = {}
        for threshold, curve in zip(THRESHOLDS, self._curves, strict=True):
            precisions_RA = np.nan_to_num(ratio(curve.areas(weights_RV, self._num_activities), segments_RA))
            mean_R = ratio(np.where(known_RA, precisions_RA, 0).sum(1), known_RA.sum(1).astype(np.float64))
            values[f"mAP IoU {threshold:.1f}"] = mean_R
        return {"mAP": np.mean(list(values.values()), axis=0), **values}


class _Curve:
    """The correct detections of each activity, and the number of detections before each."""

    def __init__(self, videos: Ints, right_N: Bools, activities_V: Ints) -> None:
        """Prepare from all detections, best first."""
        activities = activities_V[videos]
        ranks = places_within(activities)
        right = np.flatnonzero(right_N)
        right = right[np.argsort(activities[right], kind="stable")]
        self._videos_P, self._activities_P = videos[right], activities[right]
        # For each right detection and each video of its activity: that video's detections up to there.
        members_AW, self._exists_AW = _members(activities_V)
        self._members_PW = members_AW[self._activities_P]
        size = len(videos) + 1
        keys = np.sort(videos * size + ranks)
        asked_PW = self._members_PW * size
        counts_PW = np.searchsorted(keys, asked_PW + ranks[right][:, None], side="right") - np.searchsorted(
            keys, asked_PW
        )
        self._counts_PW = np.where(self._exists_AW[self._activities_P], counts_PW, 0).astype(np.float64)

    def areas(self, weights_RV: Floats, num_activities: int) -> Floats:
        """Return the area under each activity's curve times its annotated segments, R x A."""
        weights_RP = weights_RV[:, self._videos_P]
        columns = zip(self._counts_PW.T, self._members_PW.T, strict=True)  # one after the other: R x P x W may be large
        all_RP = sum((counts_P * weights_RV[:, own_P] for counts_P, own_P in columns), np.zeros_like(weights_RP))
        right_RP = _running_totals(weights_RP, self._activities_P)
        precision_RP = _best_from_here(np.nan_to_num(ratio(right_RP, all_RP)), self._activities_P)
        return (weights_RP * precision_RP) @ (self._activities_P[:, None] == np.arange(num_activities))


def _members(activities_V: Ints) -> tuple[Ints, Bools]:
    """Return the videos of each activity, padded, and a mask."""
    places = places_within(activities_V)
    shape = int(activities_V.max(initial=-1)) + 1, int(places.max(initial=-1)) + 1
    members_AW, exists_AW = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    members_AW[activities_V, places] = np.arange(len(activities_V))
    exists_AW[activities_V, places] = True
    return members_AW, exists_AW


def _running_totals(values_RP: Floats, groups_P: Ints) -> Floats:
    """Return cumulative sums within each group, whose elements are contiguous."""
    totals_RP = np.cumsum(values_RP, axis=1)
    firsts_P = np.searchsorted(groups_P, groups_P)
    return totals_RP - (totals_RP - values_RP)[:, firsts_P]


def _best_from_here(precision_RP: Floats, groups_P: Ints) -> Floats:
    """Return the largest value at each element or later within its group; groups are offset so that they do not mix."""
    lift_P = 2.0 * groups_P
    return np.maximum.accumulate((precision_RP - lift_P)[:, ::-1], axis=1)[:, ::-1] + lift_P
