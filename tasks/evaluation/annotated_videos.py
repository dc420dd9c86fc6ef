"""Annotated videos with their segments, as the statistics of their temporal shape take them."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage import Store
from storage.catalogue import Catalogue, quoted
from tasks.evaluation.benchmarks.benchmark import ALL

# One row a video of an article. A length that another source knows is used where the benchmark's own has none.
_VIDEOS = """
    WITH lengths AS (SELECT video_id, coalesce(max(duration_s) FILTER (source = {benchmark}), max(duration_s)) AS s
                     FROM videos GROUP BY video_id),
         listed AS (SELECT article_id, count(*) AS steps FROM steps GROUP BY article_id),
         spoken AS (SELECT video_id, list((start_s, end_s) ORDER BY row) AS narrations
                    FROM video_narrations SEMI JOIN (SELECT video_id FROM annotations WHERE benchmark = {benchmark})
                    USING (video_id) GROUP BY video_id)
    SELECT a.video_id, a.article_id, a.split, any_value(v.s)::DOUBLE AS duration_s, any_value(l.steps) AS num_steps,
           list((t.row, a.start_s, a.end_s) ORDER BY a.start_s, a.end_s, t.row) AS segments,
           any_value(n.narrations) AS narrations
    FROM annotations a JOIN steps t USING (article_id, step_id) JOIN listed l USING (article_id)
    LEFT JOIN lengths v USING (video_id) LEFT JOIN spoken n USING (video_id)
    WHERE a.benchmark = {benchmark} AND a.alignable AND {split} IN (a.split, 'all')
    GROUP BY a.video_id, a.article_id, a.split ORDER BY a.video_id, a.article_id"""
_BENCHMARKS = """
    SELECT benchmark, list(DISTINCT split ORDER BY split) AS splits FROM annotations
    WHERE alignable AND step_id IS NOT NULL GROUP BY benchmark ORDER BY benchmark"""


@dataclass(frozen=True)
class AnnotatedVideo:
    """A video, the article it is annotated with, and the segments that show its steps."""

    video_id: str
    article_id: str
    split: str
    duration_s: float | None
    """None if it is not known."""
    num_steps: int
    """Steps of the article, shown or not."""
    segments: tuple[tuple[int, float, float], ...]
    """Row of the step in the article, start and end in seconds."""
    narrations: tuple[tuple[float, float], ...] = ()
    """Start and end in seconds of each sentence."""


def step_benchmarks(store: Store) -> dict[str, list[str]]:
    """Return the benchmarks that a store has annotated steps of, each with its splits."""
    with Catalogue(store) as catalogue:
        return {row["benchmark"]: row["splits"] for row in catalogue.query(_BENCHMARKS).to_pylist()}


def read_annotated_videos(store: Store, benchmark_name: str, split: str = ALL) -> list[AnnotatedVideo]:
    """Return the videos of a benchmark or of one split; a video of two articles is there twice."""
    query = _VIDEOS.format(benchmark=quoted(benchmark_name), split=quoted(split))
    with Catalogue(store) as catalogue:
        rows = catalogue.query(query).to_pylist()
    return [
        AnnotatedVideo(**row | {"segments": _tuples(row["segments"]), "narrations": _tuples(row["narrations"] or ())})
        for row in rows
    ]


def _tuples(records: Sequence[dict[str, float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(record.values()) for record in records)
