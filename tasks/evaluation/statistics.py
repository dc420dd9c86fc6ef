"""Statistics of a benchmark's annotations, as in the paper's appendix: counts by split, and averages by activity.

A video counts if it shows a step of its article; a few do not. The articles of an activity are its variations; the
coverage of a video is that of its own article. Averages of a benchmark are over activities, not videos. `steps` counts
the steps of the articles, `annotated_steps` those that are annotated. Narrations are only counted.
"""

from dataclasses import dataclass
from typing import Any

from storage import Store
from storage.catalogue import Catalogue, quoted
from tasks.evaluation.benchmarks.benchmark import ALL, Benchmark

Row = dict[str, Any]

_COUNTS = """
    SELECT coalesce(v.split, 'all') AS split, count(DISTINCT v.video_id) AS videos,
           count(DISTINCT v.activity) AS activities, count(DISTINCT (s.article_id, s.step_id)) AS steps,
           count(DISTINCT (s.article_id, s.step_id)) FILTER (s.step_id = a.step_id) AS annotated_steps,
           count(*) FILTER (s.step_id = a.step_id) AS segments
    FROM annotated_videos v JOIN steps s USING (article_id)
    JOIN annotations a ON (a.benchmark, a.video_id, a.article_id) = (v.benchmark, v.video_id, v.article_id)
    WHERE v.benchmark = {benchmark} GROUP BY GROUPING SETS (v.split, ()) ORDER BY grouping(v.split), v.split"""
_NARRATION_COUNTS = """
    SELECT coalesce(split, 'all') AS split, count(DISTINCT video_id) AS videos, count(*) AS narrations,
           count(*) FILTER (alignable) AS alignable_narrations
    FROM annotations WHERE benchmark = {benchmark} GROUP BY GROUPING SETS (split, ()) ORDER BY grouping(split), split"""
_ACTIVITIES = """
    SELECT * EXCLUDE (benchmark, split) FROM activity_statistics WHERE benchmark = {benchmark} AND split = {split}
    ORDER BY step_coverage DESC, activity"""
_AVERAGES = """
    SELECT avg(steps) AS steps, avg(step_coverage) AS step_coverage, avg(video_coverage) AS video_coverage,
           sum(videos_of_unknown_length)::BIGINT AS videos_of_unknown_length
    FROM activity_statistics WHERE benchmark = {benchmark} AND split = {split}"""


@dataclass(frozen=True)
class Statistics:
    """The tables, one dictionary per row."""

    counts: list[Row]
    """One row per split; if there are several, also one for all."""
    activities: list[Row]
    """Best step coverage first; empty if narrations are annotated."""
    averages: Row
    """Averages over the activities; empty if there are none."""


def read_statistics(store: Store, benchmark: Benchmark, split: str = ALL) -> Statistics:
    """Return the statistics of a benchmark's imported annotations, or of one split of them."""
    names = {"benchmark": quoted(benchmark.name), "split": quoted(split)}
    with Catalogue(store) as catalogue:

        def ask(query: str) -> list[Row]:
            return catalogue.query(query.format(**names)).to_pylist()

        counts = _choose_split(ask(_NARRATION_COUNTS if benchmark.has_narrations else _COUNTS), benchmark, split)
        if benchmark.has_narrations:
            return Statistics(counts, [], {})
        return Statistics(counts, ask(_ACTIVITIES), ask(_AVERAGES)[0])


def _choose_split(counts: list[Row], benchmark: Benchmark, split: str) -> list[Row]:
    """Return the rows to show; the last of `counts` is for all splits."""
    splits, remedy = [row["split"] for row in counts[:-1]], f"`vina import {benchmark.source} PATH`"
    if not splits:
        raise ValueError(f"the store has no annotations of {benchmark.name}: import them with {remedy}")
    if split not in (*splits, ALL):
        listed = ", ".join(splits)
        raise ValueError(
            f"{benchmark.name} has no split {split!r} in the store, only {listed}: import more with {remedy}"
        )
    return [row for row in counts if split in (row["split"], ALL)] if len(splits) > 1 else counts[:1]
