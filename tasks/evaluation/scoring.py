"""Predictions of any model held against a benchmark's annotations, by one of the protocols."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.evaluation.protocols import (
    ALL,
    CROSSTASK,
    CROSSTASK_ARTICLES,
    CROSSTASK_ORDERED,
    HTM_ALIGN,
    HTSTEP_MAP,
    HTSTEP_R1,
    TEST_SETS,
    Protocol,
)
from tasks.evaluation.truth import Truth
from vina_model.metrics.bootstrap import Estimate, Values, estimate
from vina_model.metrics.columns import Bools, Detections, Floats, Ints, Points
from vina_model.metrics.crosstask import LEFT_OUT, StepLocalization, draw_test_sets
from vina_model.metrics.crosstask_articles import ArticleRecall
from vina_model.metrics.htm_align import NarrationAlignment
from vina_model.metrics.htstep_map import ArticleMap, without_repetitions
from vina_model.metrics.htstep_r1 import StepRecall

EXAMPLES = 3


@dataclass(frozen=True)
class Predictions:
    """A model's answers in columns; `videos` are the truth's numbers of them, -1 for others."""

    videos: Ints
    labels: Ints
    times: tuple[Floats, ...]
    scores: Floats
    names: list[str] = field(default_factory=list)
    """Of videos that the truth does not have, some examples."""

    @classmethod
    def of(cls, rows: pa.Table, protocol: Protocol, truth: Truth) -> "Predictions":
        """Rows of a checked file (`prediction_files`), or of the table `predictions` under the same names."""
        names = rows[protocol.video]
        known = truth.videos
        if protocol.task is not None:
            names = pc.binary_join_element_wise(rows[protocol.task], names, "/")
            known = [f"{task.partition('/')[2]}/{video}" for task, video in zip(truth.tasks, known, strict=True)]
        videos = pc.fill_null(pc.index_in(names, pa.array(known, pa.string())), -1).to_numpy().astype(np.int64)
        unknown = names.filter(pa.array(videos < 0)).unique()
        scores = np.zeros(len(rows)) if protocol.score is None else rows[protocol.score].to_numpy()
        times = tuple(rows[name].to_numpy() for name in protocol.times)
        return cls(videos, rows[protocol.label].to_numpy(), times, scores, unknown.slice(0, EXAMPLES).to_pylist())

    def points(self, chosen: Bools) -> Points:
        """Some of them, as moments."""
        return Points(self.videos[chosen], self.labels[chosen], self.times[0][chosen])

    def detections(self, chosen: Bools) -> Detections:
        """Some of them, as segments."""
        starts, ends = self.times
        return Detections(
            self.videos[chosen], self.labels[chosen], starts[chosen], ends[chosen], self.scores[chosen]
        )  # fmt: skip


@dataclass(frozen=True)
class Scored:
    """Numbers in percent by metric, and what of the predictions and the annotations had no part in them."""

    protocol: Protocol
    split: str
    num_videos: int
    num_predictions: int
    metrics: dict[str, Estimate]
    notes: list[str]

    def lines(self) -> list[str]:
        """For people."""
        width = max(len(name) for name in self.metrics)
        named = f"{self.protocol.name}, version {self.protocol.version}"
        return [
            f"{named}: {self.num_predictions:,} predictions on {self.num_videos:,} videos (split {self.split})",
            *(f"  {name:{width}}  {_said(found)}" for name, found in self.metrics.items()),
            *(f"  note: {note}" for note in self.notes),
        ]


def _said(found: Estimate) -> str:
    if np.isnan(found.value):
        return "nothing to measure"
    return f"{found.value:6.2f} %   (95 % interval {found.low:.2f} to {found.high:.2f})"


def score(protocol: Protocol, truth: Truth, found: Predictions, draws: int = TEST_SETS, seed: int = 0) -> Scored:
    """Measure. `draws` and `seed` are those of CrossTask's test sets."""
    tests = np.ones((1, truth.num_videos), np.bool_)
    if truth.benchmark == "crosstask" and truth.split != ALL:
        tests = draw_test_sets(truth.tasks_V, ~truth.is_validation_V, draws, seed)
    known = found.videos >= 0
    proper = known & _is_asked_for(truth, found)
    notes = [*_unknown(found, known, proper, truth), *_missing(protocol, truth, found, tests), *_late(truth, found)]
    values: Callable[[Floats], Values]
    if protocol is HTSTEP_R1:
        values = StepRecall(truth.segments, found.points(proper), truth.num_videos)
    elif protocol is HTSTEP_MAP:
        occurring = np.unique(truth.segments.take(without_repetitions(truth.segments)).labels)
        counted = proper & np.isin(found.labels, occurring)
        if rare := int((proper & ~counted).sum()):
            notes.append(f"{rare:,} predictions have a label that is nowhere annotated in this split: not counted")
        values = ArticleMap(truth.segments, found.detections(counted), truth.activities_V)
    elif protocol is HTM_ALIGN:
        values = _narrations(truth, found, proper)
    elif protocol in (CROSSTASK, CROSSTASK_ORDERED):
        values = StepLocalization(truth.segments, found.points(proper), truth.tasks_V, tests)
        sizes = np.bincount(truth.tasks_V[~truth.is_validation_V])
        if small := int(((sizes > 0) & (sizes <= LEFT_OUT)).sum()) if truth.split != ALL else 0:
            notes.append(f"{small} tasks have no more than {LEFT_OUT} videos: they are tested on all of them")
    else:
        assert protocol is CROSSTASK_ARTICLES
        values = ArticleRecall(truth.segments, found.detections(proper), truth.num_videos)
    num_videos, num_predictions = round(tests.sum(1).mean()), len(found.labels)
    return Scored(protocol, truth.split, num_videos, num_predictions, estimate(values, truth.num_videos), notes)


def _narrations(truth: Truth, found: Predictions, proper: Bools) -> NarrationAlignment:
    """Each narration with its score; one that has none has the lowest."""
    keys, asked = _keys(found.videos[proper], found.labels[proper]), _keys(truth.asked.videos, truth.asked.labels)
    scores = np.full(len(asked), -np.inf)
    order = np.argsort(keys)
    if len(order):
        places = order[np.searchsorted(keys[order], asked).clip(max=len(order) - 1)]
        scores = np.where(keys[places] == asked, found.scores[proper][places], -np.inf)
    return NarrationAlignment(
        truth.segments, found.points(proper), truth.asked.videos, truth.alignable, scores, truth.num_videos
    )  # fmt: skip


def _keys(videos: Ints, labels: Ints) -> Ints:
    """One number for both; labels are below 2^32."""
    return videos << 32 | labels


def _is_asked_for(truth: Truth, found: Predictions) -> Bools:
    """Which predictions are about a text of their video: a step of its own article, or one of its narrations."""
    if truth.benchmark == "htm-align":
        allowed = _keys(truth.asked.videos, truth.asked.labels)
    else:
        pairs = [(number, label) for number, task in enumerate(truth.tasks) for label in truth.articles.get(task, [])]
        videos, labels = np.array(pairs, np.int64).reshape(-1, 2).T
        allowed = np.union1d(_keys(videos, labels), _keys(truth.segments.videos, truth.segments.labels))
    return np.isin(_keys(found.videos, found.labels), allowed)


def _unknown(found: Predictions, known: Bools, proper: Bools, truth: Truth) -> list[str]:
    """Predictions that have no part in the numbers."""
    notes = []
    if count := int((~known).sum()):
        examples = ", ".join(found.names)
        notes.append(
            f"{count:,} predictions are for videos that are not annotated in this split, e.g. {examples}: not counted"
        )
    if count := int((known & ~proper).sum()):
        row = int(np.flatnonzero(known & ~proper)[0])
        example = f"{found.labels[row]} of {truth.videos[found.videos[row]]}"
        what = "narration that their video" if truth.benchmark == "htm-align" else "step that their video's article"
        notes.append(f"{count:,} predictions are of a {what} does not have, e.g. {example}: not counted")
    return notes


def _missing(protocol: Protocol, truth: Truth, found: Predictions, tests: Bools) -> list[str]:
    """Videos and labels that have no prediction, among those that are tested."""
    own = truth.asked if protocol is HTM_ALIGN else truth.segments
    own = own.take(np.any(tests, axis=0, keepdims=True)[0, own.videos])
    annotated, notes = np.unique(own.videos), []
    missing = np.setdiff1d(annotated, found.videos)
    if len(missing):
        examples = ", ".join(truth.videos[number] for number in missing[:EXAMPLES])
        notes.append(f"{len(missing):,} of {len(annotated):,} videos have no prediction, e.g. {examples}: missed")
    asked = np.unique(_keys(own.videos, own.labels))
    left = np.setdiff1d(asked, _keys(found.videos, found.labels))
    if len(left):
        video, label = divmod(int(left[0]), 1 << 32)
        what = "narration" if protocol is HTM_ALIGN else protocol.label
        so = "" if protocol is HTSTEP_MAP else ": missed"  # there, another step's detection may have found it
        notes.append(
            f"{len(left):,} of {len(asked):,} annotated {what}s have no prediction in their video, "
            f"e.g. {what} {label} of {truth.videos[video]}{so}"
        )
    return notes


def _late(truth: Truth, found: Predictions) -> list[str]:
    late = (found.videos >= 0) & (found.times[-1] > np.ceil(truth.durations_V[found.videos]) + 1)
    if not late.any():
        return []
    example = truth.videos[int(found.videos[late][0])]
    return [f"{late.sum():,} predictions lie past the end of their video, e.g. in {example}: taken as they are"]
