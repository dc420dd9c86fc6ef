"""The command that tells what a benchmark's annotations hold, beside the paper's appendix."""

import argparse
import json

from rich.markup import escape
from rich.table import Table as Grid

from flows.cli.commands.shared import Add, existing_store, print_parts
from tasks.evaluation.protocols import ALL, SOURCES
from tasks.evaluation.statistics import PAPER_AVERAGES, PAPER_COUNTS, Row, Statistics, read_statistics

SHOWN = 10
"""How many of the best activities are shown, and of the worst: as many as in the paper."""


def add_commands(add: Add) -> None:
    """Declare it."""
    stats = add(
        "stats",
        _stats,
        "count what a benchmark's annotations hold, and show how much of their articles its videos cover",
        "vina stats htstep --split val_seen",
    )
    stats.add_argument("benchmark", metavar="BENCHMARK", choices=list(SOURCES), help="one of: " + ", ".join(SOURCES))
    stats.add_argument("--split", metavar="NAME", default=ALL, help="only this one, e.g. val_seen (default: all)")
    stats.add_argument("--all", action="store_true", help=f"all activities, not the {SHOWN} best and {SHOWN} worst")
    stats.add_argument("--json", action="store_true", help="for scripts; it has all activities")


def _stats(options: argparse.Namespace) -> int:
    benchmark = options.benchmark
    found = read_statistics(existing_store(options.store), benchmark, options.split)
    if options.json:
        answer = {
            "benchmark": benchmark,
            "counts": [row | {"paper": PAPER_COUNTS.get((benchmark, row["split"]))} for row in found.counts],
            "activities": found.activities,
            "averages": found.averages | {"paper": PAPER_AVERAGES.get(benchmark)},
        }
        print(json.dumps(answer, indent=1))
        return 0
    print_parts(f"what is annotated in {benchmark}", _counts(found, benchmark))
    if found.activities:
        print("steps: of the articles that the videos are annotated with; annotated steps: those that a video shows\n")
        print_parts(
            "averages over each activity's videos",
            _activities(found, benchmark, len(found.activities) if options.all else SHOWN),
        )
        if unknown := found.averages["videos_of_unknown_length"]:
            print(f"left out of video coverage, for their length is not known: {unknown:,} of the videos")
    return 0


def _counts(found: Statistics, benchmark: str) -> Grid:
    names = list(found.counts[0])
    grid = _grid(names)
    for row in found.counts:
        grid.add_row(escape(row["split"]), *(f"{row[name]:,}" for name in names[1:]))
        if paper := PAPER_COUNTS.get((benchmark, row["split"])):
            grid.add_row("  in the paper", *(paper.get(name, "") for name in names[1:]))
    return grid


def _activities(found: Statistics, benchmark: str, shown: int) -> Grid:
    grid = _grid(["activity", "videos", "steps", "step_coverage", "video_coverage"])
    rows = found.activities
    worst = rows[max(shown, len(rows) - shown) :]
    for row in rows[:shown]:
        grid.add_row(*_cells(row["activity"], row))
    if (hidden := len(rows) - shown - len(worst)) > 0:
        grid.add_row(f"  {hidden:,} more, by --all")
    for row in worst:
        grid.add_row(*_cells(row["activity"], row))
    grid.add_section()
    grid.add_row(*_cells("average of the activities", found.averages))
    if paper := PAPER_AVERAGES.get(benchmark):
        grid.add_row("  in the paper, val and test", "", *paper.values())
    return grid


def _cells(name: str, row: Row) -> tuple[str, ...]:
    videos = f"{row['videos']:,}" if "videos" in row else ""
    coverage = "unknown" if row["video_coverage"] is None else f"{row['video_coverage']:.2f}"
    return escape(name), videos, f"{row['steps']:.1f}", f"{row['step_coverage']:.2f}", coverage


def _grid(names: list[str]) -> Grid:
    grid = Grid(*(name.replace("_", " ") for name in names))
    for column in grid.columns[1:]:
        column.justify = "right"
    return grid
