"""`vina stats`: statistics of a benchmark's annotations, beside those of the paper's appendix or of other data."""

import argparse
import json

from rich.markup import escape
from rich.table import Table as Grid

from flows.cli.commands.comparison import compare_shapes
from flows.cli.commands.shared import Add, existing_store, print_parts
from tasks.evaluation.benchmarks.benchmark import ALL, Benchmark
from tasks.evaluation.benchmarks.registry import BENCHMARKS, find_benchmark
from tasks.evaluation.statistics import Row, Statistics, read_statistics

SHOWN = 10
"""Number of best and of worst activities shown, as in the paper."""


def add_commands(add: Add) -> None:
    """Declare the command."""
    stats = add(
        "stats",
        _stats,
        "show statistics of a benchmark's annotations: counts, and coverage of steps and videos",
        "vina stats htstep --split val_seen",
    )
    names = [benchmark.name for benchmark in BENCHMARKS]
    help_text = f"one of: {', '.join(names)}; with --compare any that B has annotated steps of (default: its only one)"
    stats.add_argument("benchmark", metavar="BENCHMARK", nargs="?", help=help_text)
    stats.add_argument(
        "--compare",
        nargs=2,
        metavar=("A", "B"),
        help="compare the temporal shape of annotated videos: each a store, a demo world such as demo:htstep, or a "
        "folder of a data set; B is the reference",
    )
    stats.add_argument("--split", metavar="NAME", default=ALL, help="only this split, e.g. val_seen (default: all)")
    stats.add_argument("--all", action="store_true", help=f"all activities, not the {SHOWN} best and {SHOWN} worst")
    stats.add_argument("--json", action="store_true", help="print JSON, with all activities")
    stats.set_defaults(refuse=stats.error)


def _stats(options: argparse.Namespace) -> int:
    if options.compare:
        return compare_shapes(options)
    names = [benchmark.name for benchmark in BENCHMARKS]
    if options.benchmark not in names:
        options.refuse(f"argument BENCHMARK: choose one of {', '.join(names)}, or compare data with --compare")
    benchmark = find_benchmark(options.benchmark)
    statistics = read_statistics(existing_store(options.store), benchmark, options.split)
    if options.json:
        answer = {
            "benchmark": benchmark.name,
            "counts": [row | {"paper": benchmark.paper_counts.get(row["split"])} for row in statistics.counts],
            "activities": statistics.activities,
            "averages": statistics.averages | {"paper": benchmark.paper_averages or None},
        }
        print(json.dumps(answer, indent=1))
        return 0
    print_parts(f"annotations of {benchmark.name}", _counts(statistics, benchmark))
    if statistics.activities:
        print("steps: number in the articles of the annotated videos; annotated steps: number shown in a video\n")
        print_parts(
            "averages over each activity's videos",
            _activities(statistics, benchmark, len(statistics.activities) if options.all else SHOWN),
        )
        if unknown := statistics.averages["videos_of_unknown_length"]:
            print(f"left out of video coverage, because their length is unknown: {unknown:,} videos")
    return 0


def _counts(statistics: Statistics, benchmark: Benchmark) -> Grid:
    names = list(statistics.counts[0])
    grid = _grid(names)
    for row in statistics.counts:
        grid.add_row(escape(row["split"]), *(f"{row[name]:,}" for name in names[1:]))
        if paper := benchmark.paper_counts.get(row["split"]):
            grid.add_row("  in the paper", *(paper.get(name, "") for name in names[1:]))
    return grid


def _activities(statistics: Statistics, benchmark: Benchmark, shown: int) -> Grid:
    grid = _grid(["activity", "videos", "steps", "step_coverage", "video_coverage"])
    rows = statistics.activities
    worst = rows[max(shown, len(rows) - shown) :]
    for row in rows[:shown]:
        grid.add_row(*_cells(row["activity"], row))
    if (hidden := len(rows) - shown - len(worst)) > 0:
        grid.add_row(f"  {hidden:,} more (--all)")
    for row in worst:
        grid.add_row(*_cells(row["activity"], row))
    grid.add_section()
    grid.add_row(*_cells("average of the activities", statistics.averages))
    if paper := benchmark.paper_averages:
        grid.add_row(f"  in the paper, {benchmark.paper_averages_of}", "", *paper.values())
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
