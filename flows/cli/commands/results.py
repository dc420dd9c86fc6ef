"""`vina results` and `vina export`: show measured results; write predictions for an evaluation server."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table as Grid

from flows.cli.commands.shared import Add, existing_store, mean_and_deviation, print_parts
from storage import Store
from tasks.evaluation.benchmarks.registry import BENCHMARKS, find_benchmark, result_columns
from tasks.evaluation.families import Pathway, label_of

if TYPE_CHECKING:
    from tasks.evaluation.results import ResultKey, Results


def add_commands(add: Add) -> None:
    """Declare the commands."""
    results = add(
        "results",
        _results,
        "show the results of a run beside the paper's and later ones, and say what is missing and why",
        "vina results --json",
    )
    results.add_argument("run", nargs="?", metavar="RUN", help="a run's id (default: the newest with results)")
    results.add_argument(
        "--split", metavar="NAME",
        help="show the results on this split, e.g. test_unseen (default: each benchmark's reported split)",
    )  # fmt: skip
    results.add_argument("--json", action="store_true", help="print JSON")

    export = add(
        "export",
        _export,
        "write a model's predictions as a file for the benchmark's evaluation server",
        "vina export htstep 20261117-225055-1a34 --split test_seen --output submission.csv",
    )
    servers = {each.name: each.server for each in BENCHMARKS if each.server}
    splits = ", ".join(f"{name}: {server.split}" for name, server in servers.items())
    export.add_argument("benchmark", choices=list(servers), metavar="BENCHMARK", help="one of: " + ", ".join(servers))
    export.add_argument("run", metavar="RUN", help="a run's id, or a model's id (vina@...)")
    export.add_argument("--split", metavar="NAME", help=f"which videos (default: {splits})")
    export.add_argument("--method", metavar="NAME", help="default: `vina` if it has predictions")
    export.add_argument(
        "--pathway", choices=[each.value for each in Pathway], metavar="NAME",
        help=f"{', '.join(Pathway)} (default: fused if it has predictions)",
    )  # fmt: skip
    export.add_argument("--output", type=Path, metavar="FILE", help="default: BENCHMARK-SPLIT.csv")


def _results(options: argparse.Namespace) -> int:
    store = existing_store(options.store)
    if not options.json:
        print_results(store, options.run, options.split)
        return 0
    from tasks.evaluation.results import read_results  # loads torch

    print(json.dumps(_as_dict(read_results(store, options.run, options.split)), indent=1))
    return 0


def print_results(store: Store, run_id: str | None = None, split: str | None = None) -> None:
    """Print the main table of results."""
    from tasks.evaluation.results import read_results  # loads torch

    results = read_results(store, run_id, split)
    run = f"run {results.run_id}" if results.run_id else "no run"
    parts: list[str | Grid] = [
        f"{run}; %, mean and standard deviation over seeds; for one seed, the 95 % interval over videos"
    ]
    for group, titles in result_columns().items():
        columns = [part for benchmark in BENCHMARKS for part in benchmark.results if part.group == group]
        if legends := [part.legend for part in columns if part.legend]:
            parts.append(f"{group}: {'; '.join(legends)}")
        parts.append(_grid(results, titles))
    print_parts(*parts, *results.notes)


def print_summary(store: Store, run_id: str) -> None:
    """Print the main results of a run, and commands to try next."""
    from tasks.evaluation.results import SUMMARY, read_results  # loads torch
    from tasks.pages.report_page import commands
    from tasks.report.stage import address_of_report

    results = read_results(store, run_id)
    groups = result_columns(summary_only=True).values()
    titles = {column: title for group in groups for column, title in group.items()}
    grid = Grid("%", *titles.values())
    for row in SUMMARY:
        cells = [_ours(results, (protocol, metric, row)) for protocol, metric in titles]
        if any(cells):
            grid.add_row(row.label, *cells)
    if grid.row_count:
        print_parts(grid)
    print("try:", *(f"  {command}" for command in commands(store)), sep="\n")
    if address := address_of_report(store):
        print(f"report: {address}")


def _grid(results: "Results", titles: Mapping[tuple[str, str], str]) -> Grid:
    """Return a grid with our numbers and the published ones in separate rows."""
    grid = Grid("", *titles.values())
    for line in results.lines(titles):
        if line.kind == "ours":
            grid.add_row(line.label, *(_ours(results, key) for key, _ in line.cells))
        else:
            grid.add_row(f"  {line.label}", *(f"{values[0]:.1f}" if values else "" for _, values in line.cells))
    return grid


def _ours(results: "Results", key: "ResultKey") -> str:
    values = results.ours.get(key, [])
    if len(values) != 1:
        return mean_and_deviation(values)
    low, high = results.intervals[key]
    return f"{values[0]:.1f} [{low:.0f}, {high:.0f}]"


def _as_dict(results: "Results") -> dict[str, object]:
    keys = dict.fromkeys((*results.ours, *results.paper, *results.later))
    rows = [
        {
            "protocol": protocol, "metric": metric, "method": row.label, "pathway": row.pathway,
            "ours": results.ours.get((protocol, metric, row), []),
            "paper": results.paper.get((protocol, metric, row)), "later": results.later.get((protocol, metric, row)),
        }
        for protocol, metric, row in keys
    ]  # fmt: skip
    return {"run_id": results.run_id, "numbers": rows, "notes": results.notes}


def _export(options: argparse.Namespace) -> int:
    from tasks.evaluation.submission import export_predictions  # loads torch

    benchmark = find_benchmark(options.benchmark)
    split = options.split or (benchmark.server.split if benchmark.server else "")
    path = options.output or Path(f"{benchmark.name}-{split}.csv")
    store = existing_store(options.store)
    exported = export_predictions(store, benchmark, options.run, split, path, options.method, options.pathway)
    label = label_of(exported.method, exported.pathway)
    print(f"{path}: {exported.num_rows:,} segments by {label} of {exported.model_id}")
    print(f"  on {exported.num_videos:,} of the {exported.num_listed:,} videos of {split}")
    return 0
