"""What a benchmark's annotations hold, as in the paper's appendix: its splits counted, and its activities averaged.

A video is counted if it shows a step of its article; of `crosstask-articles` a few do not. The articles of an activity
are its variations, and a video is held against its own. Averages of a benchmark are over activities, not videos.
HTM-Align has narrations in place of steps: it is counted only.
"""

from dataclasses import dataclass
from typing import Any

from storage import Store
from storage.catalogue import Catalogue, quoted
from tasks.evaluation.protocols import ALL, SOURCES
from tasks.importers import crosstask, htm_align, htstep, youwikihow

Row = dict[str, Any]
# The paper's 1,204 and 1,242 steps are no count of the published files: the articles that the validation videos were
# annotated with have 1,395 steps, 983 of which are annotated; one article for each activity would have 1,183 to 1,243,
# by the choice of it. The taxonomy has lost steps since: Make Pap's 2.0 steps were 0.12 of an article, now 0.22.
# `steps` are those of the articles, as CrossTask's 133 are, and `annotated_steps` stand beside them.
PAPER_COUNTS: dict[tuple[str, str], dict[str, str]] = {
    (htstep.SOURCE, "val_seen"): {"videos": "600", "activities": "120", "steps": "1,204", "segments": "3,441"},
    (htstep.SOURCE, "test_seen"): {"videos": "600", "activities": "120", "steps": "1,242", "segments": "3,631"},
    (crosstask.SOURCE, ALL): {"videos": "2.8k", "activities": "18", "steps": "133", "segments": "20.9k"},
    (youwikihow.BENCHMARK, "test"): {"videos": "2407", "activities": "15"},
    (htm_align.SOURCE, "test"): {"videos": "80"},
}
"""Benchmark and split -> the paper's counts, as it prints them."""
PAPER_AVERAGES = {htstep.SOURCE: {"steps": "4.0", "step_coverage": "0.42", "video_coverage": "0.24"}}
"""Of validation and test videos together, 177 activities."""

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
    """The tables, one dictionary a row."""

    counts: list[Row]
    """One row a split; if there are several, one for all."""
    activities: list[Row]
    """Best step coverage first; none for HTM-Align."""
    averages: Row
    """Of the activities; empty if there are none."""


def read_statistics(store: Store, benchmark: str, split: str = ALL) -> Statistics:
    """The statistics of a benchmark's imported annotations, or of one split of them."""
    has_steps = benchmark != htm_align.SOURCE
    names = {"benchmark": quoted(benchmark), "split": quoted(split)}
    with Catalogue(store) as catalogue:

        def ask(query: str) -> list[Row]:
            return catalogue.query(query.format(**names)).to_pylist()

        counts = _choose_split(ask(_COUNTS if has_steps else _NARRATION_COUNTS), benchmark, split)
        if not has_steps:
            return Statistics(counts, [], {})
        return Statistics(counts, ask(_ACTIVITIES), ask(_AVERAGES)[0])


def _choose_split(counts: list[Row], benchmark: str, split: str) -> list[Row]:
    """The rows to show, of those of every split and, last, of all."""
    splits, remedy = [row["split"] for row in counts[:-1]], f"`vina import {SOURCES[benchmark]} PATH`"
    if not splits:
        raise ValueError(f"the store has no annotations of {benchmark}: bring them in with {remedy}")
    if split not in (*splits, ALL):
        known = ", ".join(splits)
        raise ValueError(f"{benchmark} has no split {split!r} in the store, only {known}: {remedy} brings in more")
    return [row for row in counts if split in (row["split"], ALL)] if len(splits) > 1 else counts[:1]
