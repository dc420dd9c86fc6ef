"""A benchmark's annotations in the form that metrics take: videos and labels as numbers.

If a video may have several articles (CrossTask), each pair of video and task counts as a video. Labels are the id of a
step, the position of a headline, or the position of a narration.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage import Store
from tasks.evaluation.benchmarks.benchmark import ALL, TEST, VALIDATION, Benchmark
from vina_model.metrics.columns import Bools, Floats, Ints, Segments

_COLUMNS = ("video_id", "article_id", "step_id", "narration_row", "start_s", "end_s", "alignable", "split")


@dataclass(frozen=True)
class Truth:
    """Annotations of one benchmark and split."""

    benchmark: Benchmark
    split: str
    videos: list[str]
    """Ids by number; a video of two tasks is listed twice."""
    tasks: list[str]
    """The article (CrossTask: the task) of each video; an empty text for narrations."""
    segments: Segments
    """Segments of alignable labels."""
    asked: Segments
    """All annotated labels, alignable or not."""
    alignable: Bools
    """Which labels of `asked` are alignable."""
    is_validation_V: Bools
    durations_V: Floats
    """NaN if unknown."""
    articles: dict[str, list[int]]
    """The labels of each article, in order."""
    activities: dict[str, str]
    """The title of each article."""

    @property
    def num_videos(self) -> int:
        """Number of annotated videos."""
        return len(self.videos)

    @cached_property
    def activities_V(self) -> Ints:
        """The activity of each video, numbered."""
        return _numbered([self.activities.get(task, task) for task in self.tasks])[1]

    @cached_property
    def tasks_V(self) -> Ints:
        """The task of each video, numbered."""
        return _numbered(self.tasks)[1]

    def only(self, video_ids: Collection[str]) -> "Truth":
        """Return the annotations of these videos."""
        kept_V = np.array([video in video_ids for video in self.videos], np.bool_)
        number_V = np.cumsum(kept_V) - 1

        def part(segments: Segments) -> Segments:
            chosen = segments.take(kept_V[segments.videos])
            return chosen._replace(videos=number_V[chosen.videos])

        return replace(
            self,
            videos=[video for video, kept in zip(self.videos, kept_V, strict=True) if kept],
            tasks=[task for task, kept in zip(self.tasks, kept_V, strict=True) if kept],
            segments=part(self.segments),
            asked=part(self.asked),
            alignable=self.alignable[kept_V[self.asked.videos]],
            is_validation_V=self.is_validation_V[kept_V],
            durations_V=self.durations_V[kept_V],
        )


def splits_of(store: Store, benchmark: Benchmark) -> list[str]:
    """Return the splits of a benchmark's annotations, without held-back ones."""
    snapshot = store.table("annotations").snapshot().where(benchmark=benchmark.name)
    splits = snapshot.distinct("split") if snapshot.shards else set()
    return sorted(splits - set(benchmark.held_back))


def read_truth(store: Store, benchmark: Benchmark, split: str) -> Truth:
    """Return the annotations of a split (`all`: of all splits)."""
    rows = store.table("annotations").snapshot().where(benchmark=benchmark.name).read(_COLUMNS)
    wanted = pc.invert(pc.is_in(rows["split"], pa.array(benchmark.held_back, pa.string())))
    if split != ALL and not (benchmark.test_sets and split == TEST):  # test sets are drawn from all
        wanted = pc.and_(wanted, pc.equal(rows["split"], split))
    label = rows["narration_row"] if benchmark.has_narrations else rows["step_id"]
    rows = rows.append_column("label", label.cast(pa.int64())).filter(pc.and_(wanted, label.is_valid()))
    tasks = pc.fill_null(rows["article_id"], "")
    names = rows["video_id"]
    if benchmark.several_articles:
        names = pc.binary_join_element_wise(names, tasks, "\x1f")
    keys, numbers = _numbered(names.to_pylist())
    firsts = np.unique(numbers, return_index=True)[1]
    videos, video_tasks = (column.take(pa.array(firsts)).to_pylist() for column in (rows["video_id"], tasks))
    validation = np.zeros(len(keys), np.bool_)
    validation[numbers] = pc.equal(rows["split"], VALIDATION).to_numpy()
    asked = Segments(numbers, rows["label"].to_numpy(), rows["start_s"].to_numpy(), rows["end_s"].to_numpy())
    alignable = rows["alignable"].to_numpy().astype(np.bool_)
    durations = _durations(store, benchmark.name)
    return Truth(
        benchmark, split, videos, video_tasks, asked.take(alignable), asked, alignable, validation,
        np.array([durations.get(video, np.nan) for video in videos], np.float64), *_articles(store, benchmark.name),
    )  # fmt: skip


def _numbered(names: list[str]) -> tuple[list[str], Ints]:
    """Return the distinct names, sorted, and the position of each name among them."""
    distinct, numbers = np.unique(names, return_inverse=True)
    return distinct.tolist(), numbers.astype(np.int64)


def _durations(store: Store, source: str) -> dict[str, float]:
    rows = _rows(store, "videos", source, "video_id", "duration_s")
    return {row["video_id"]: row["duration_s"] for row in rows if row["duration_s"] is not None}


def _articles(store: Store, source: str) -> tuple[dict[str, list[int]], dict[str, str]]:
    steps = _rows(store, "steps", source, "article_id", "row", "step_id")
    labels: dict[str, list[int]] = {}
    for step in sorted(steps, key=lambda step: (step["article_id"], step["row"])):
        labels.setdefault(step["article_id"], []).append(int(step["step_id"]))
    titles = {row["article_id"]: row["title"] for row in _rows(store, "articles", source, "article_id", "title")}
    return labels, titles


def _rows(store: Store, table: str, source: str, *columns: str) -> list[dict[str, Any]]:
    snapshot = store.table(table).snapshot().where(source=source)
    return list(snapshot.read(columns).to_pylist()) if snapshot.shards else []
