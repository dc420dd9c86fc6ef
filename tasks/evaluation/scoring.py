"""Score predictions of any model against a benchmark's annotations, by one of its protocols."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.evaluation.benchmarks.benchmark import ALL, Protocol, Role
from tasks.evaluation.truth import Truth
from vina_model.metrics.bootstrap import Estimate, estimate
from vina_model.metrics.columns import Bools, Floats, Ints, Points, ScoredSegments

EXAMPLES = 3


def without_source(article_ids: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the ids that a data set's own files have: an article's id is SOURCE/ID in the store."""
    return pc.replace_substring_regex(article_ids, "^[^/]*/", "")


@dataclass(frozen=True)
class Predictions:
    """Predictions of a model, in columns; `videos` are the videos' numbers in the truth, -1 if they are not in it."""

    videos: Ints
    labels: Ints
    times: tuple[Floats, ...]
    scores: Floats
    names: list[str] = field(default_factory=list)
    """Examples of videos that are not in the truth."""

    @classmethod
    def of(cls, rows: pa.Table, protocol: Protocol, truth: Truth) -> "Predictions":
        """Return the predictions of a checked file, or of the table `predictions` with renamed columns."""
        names, true_names = rows[protocol.video], pa.array(truth.videos, pa.string())
        if (article := protocol.column(Role.ARTICLE)) is not None:
            names = pc.binary_join_element_wise(rows[article], names, "/")
            tasks = without_source(pa.array(truth.tasks, pa.string()))
            true_names = pc.binary_join_element_wise(tasks, true_names, "/")
        videos = pc.fill_null(pc.index_in(names, true_names), -1).to_numpy().astype(np.int64)
        unknown = names.filter(pa.array(videos < 0)).unique()
        score = protocol.column(Role.SCORE)
        scores = np.zeros(len(rows)) if score is None else rows[score].to_numpy()
        times = tuple(rows[name].to_numpy() for name in protocol.times)
        return cls(videos, rows[protocol.label].to_numpy(), times, scores, unknown.slice(0, EXAMPLES).to_pylist())

    def points(self, chosen: Bools) -> Points:
        """Return the chosen predictions as moments."""
        return Points(self.videos[chosen], self.labels[chosen], self.times[0][chosen])

    def segments(self, chosen: Bools) -> ScoredSegments:
        """Return the chosen predictions as segments."""
        starts, ends = self.times
        return ScoredSegments(
            self.videos[chosen], self.labels[chosen], starts[chosen], ends[chosen], self.scores[chosen]
        )  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Predictions and annotations: the argument of a protocol's `measure`."""

    truth: Truth
    predictions: Predictions
    proper: Bools
    """True for predictions of a text that belongs to their video; the others do not count."""
    test_sets: Bools
    """Test sets x videos; one set of all videos if none are drawn."""
    notes: list[str]
    """Notes on what does not count in the numbers."""

    def points(self) -> Points:
        """Return the predictions that count, as moments."""
        return self.predictions.points(self.proper)

    def segments(self) -> ScoredSegments:
        """Return the predictions that count, as segments."""
        return self.predictions.segments(self.proper)


@dataclass(frozen=True)
class Scored:
    """Numbers in percent by metric, and notes on predictions and annotations that do not count in them."""

    protocol: Protocol
    split: str
    num_videos: int
    num_predictions: int
    metrics: dict[str, Estimate]
    notes: list[str]

    def lines(self) -> list[str]:
        """Return the result as lines to print."""
        width = max(len(name) for name in self.metrics)
        title = f"{self.protocol.name}, version {self.protocol.version}"
        return [
            f"{title}: {self.num_predictions:,} predictions on {self.num_videos:,} videos (split {self.split})",
            *(f"  {name:{width}}  {_in_words(number)}" for name, number in self.metrics.items()),
            *(f"  note: {note}" for note in self.notes),
        ]


def _in_words(number: Estimate) -> str:
    if np.isnan(number.value):
        return "nothing to measure"
    return f"{number.value:6.2f} %   (95 % interval {number.low:.2f} to {number.high:.2f})"


def score(
    protocol: Protocol, truth: Truth, predictions: Predictions, draws: int | None = None, seed: int = 0
) -> Scored:
    """Score predictions. `draws` and `seed` are for benchmarks that draw test sets."""
    tests = np.ones((1, truth.num_videos), np.bool_)
    if (drawn := truth.benchmark.test_sets) and truth.split != ALL:
        tests = drawn.draw(truth, drawn.count if draws is None else draws, seed)
    in_truth = predictions.videos >= 0
    proper = in_truth & _is_asked_for(truth, predictions)
    notes = [
        *_unknown(predictions, in_truth, proper, truth),
        *_missing(protocol, truth, predictions, tests),
        *_late(truth, predictions),
    ]
    metric = protocol.measure(Comparison(truth, predictions, proper, tests, notes))
    num_videos, num_predictions = round(tests.sum(1).mean()), len(predictions.labels)
    return Scored(protocol, truth.split, num_videos, num_predictions, estimate(metric, truth.num_videos), notes)


def joint_keys(videos: Ints, labels: Ints) -> Ints:
    """Return one integer for each pair of video and label; labels are below 2^32."""
    return videos << 32 | labels


def _is_asked_for(truth: Truth, predictions: Predictions) -> Bools:
    """Return which predictions are of a text of their video: a step of its article, or one of its narrations."""
    if truth.benchmark.has_narrations:
        allowed = joint_keys(truth.asked.videos, truth.asked.labels)
    else:
        pairs = [(number, label) for number, task in enumerate(truth.tasks) for label in truth.articles.get(task, [])]
        videos, labels = np.array(pairs, np.int64).reshape(-1, 2).T
        allowed = np.union1d(joint_keys(videos, labels), joint_keys(truth.segments.videos, truth.segments.labels))
    return np.isin(joint_keys(predictions.videos, predictions.labels), allowed)


def _unknown(predictions: Predictions, in_truth: Bools, proper: Bools, truth: Truth) -> list[str]:
    """Return notes on predictions that do not count."""
    notes = []
    if count := int((~in_truth).sum()):
        examples = ", ".join(predictions.names)
        notes.append(
            f"{count:,} predictions are for videos that are not annotated in this split, e.g. {examples}: not counted"
        )
    if count := int((in_truth & ~proper).sum()):
        row = int(np.flatnonzero(in_truth & ~proper)[0])
        example = f"{predictions.labels[row]} of {truth.videos[predictions.videos[row]]}"
        what = "narration that their video" if truth.benchmark.has_narrations else "step that their video's article"
        notes.append(f"{count:,} predictions are of a {what} does not have, e.g. {example}: not counted")
    return notes


def _missing(protocol: Protocol, truth: Truth, predictions: Predictions, tests: Bools) -> list[str]:
    """Return notes on tested videos and labels without a prediction."""
    is_narration = truth.benchmark.has_narrations
    tested = truth.asked if is_narration else truth.segments
    tested = tested.take(np.any(tests, axis=0, keepdims=True)[0, tested.videos])
    annotated, notes = np.unique(tested.videos), []
    missing = np.setdiff1d(annotated, predictions.videos)
    if len(missing):
        examples = ", ".join(truth.videos[number] for number in missing[:EXAMPLES])
        notes.append(f"{len(missing):,} of {len(annotated):,} videos have no prediction, e.g. {examples}: missed")
    asked = np.unique(joint_keys(tested.videos, tested.labels))
    unpredicted = np.setdiff1d(asked, joint_keys(predictions.videos, predictions.labels))
    if len(unpredicted):
        video, label = divmod(int(unpredicted[0]), 1 << 32)
        what = "narration" if is_narration else protocol.label
        verdict = ": missed" if protocol.needs_own_label else ""  # else a detection of another step may match it
        notes.append(
            f"{len(unpredicted):,} of {len(asked):,} annotated {what}s have no prediction in their video, "
            f"e.g. {what} {label} of {truth.videos[video]}{verdict}"
        )
    return notes


def _late(truth: Truth, predictions: Predictions) -> list[str]:
    videos = predictions.videos
    late = (videos >= 0) & (predictions.times[-1] > np.ceil(truth.durations_V[videos]) + 1)
    if not late.any():
        return []
    example = truth.videos[int(videos[late][0])]
    return [f"{late.sum():,} predictions are after the end of their video, e.g. in {example}: scored unchanged"]
