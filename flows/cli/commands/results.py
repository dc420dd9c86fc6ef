"""Commands that show what was measured, and write it in the form that others take: results, export."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table as Grid

from flows.cli.commands.shared import Add, existing_store, mean_and_spread, print_parts
from storage import Store

if TYPE_CHECKING:
    from tasks.evaluation.results import Results


def add_commands(add: Add) -> None:
    """Declare them."""
    results = add(
        "results",
        _results,
        "show what a run's models reach, beside the paper and what came after it; and what is missing, and why",
        "vina results --json",
    )
    results.add_argument("run", nargs="?", metavar="RUN", help="a run's id (default: the newest that measured)")
    results.add_argument("--json", action="store_true", help="for scripts")

    export = add(
        "export",
        _export,
        "write a model's predictions as the file that a benchmark's evaluation server takes",
        "vina export htstep 20261117-225055-1a34 --split test_seen --output submission.csv",
    )
    export.add_argument("benchmark", choices=["htstep"], metavar="BENCHMARK", help="htstep")
    export.add_argument("run", metavar="RUN", help="a run's id, or a training's name (vina@...)")
    export.add_argument("--split", default="test_seen", metavar="NAME", help="which videos (default: test_seen)")
    export.add_argument("--method", metavar="NAME", help="default: `vina with narrations`, or what there is")
    export.add_argument("--output", type=Path, metavar="FILE", help="default: htstep-SPLIT.csv")


def _results(options: argparse.Namespace) -> int:
    store = existing_store(options.store)
    if not options.json:
        print_results(store, options.run)
        return 0
    from tasks.evaluation.results import read_results  # which loads torch

    print(json.dumps(_as_dict(read_results(store, options.run)), indent=1))
    return 0


def print_results(store: Store, run_id: str | None = None) -> None:
    """The main table, for people."""
    from tasks.evaluation.results import COLUMNS, read_results  # which loads torch

    found = read_results(store, run_id)
    names = list(COLUMNS)
    run = f"run {found.run_id}" if found.run_id else "no run"
    print_parts(
        f"{run}; %, mean and standard deviation over its seeds, or of one seed the 95 % interval over videos",
        _grid(found, names[:5]),
        "article grounding: HT-Step's mAP; on CrossTask, recall of the best 50 and 100 detections by IoU",
        _grid(found, names[5:]),
        *found.notes,
    )


def print_summary(store: Store, run_id: str) -> None:
    """What a run reached, in short, and where to look further."""
    from tasks.evaluation.results import BASELINES, COLUMNS, MODELS, TRUTH, read_results  # which loads torch
    from tasks.pages.report_page import commands
    from tasks.report.stage import address_of_report

    found = read_results(store, run_id)
    columns = list(COLUMNS)[:6]
    grid = Grid("%", *(COLUMNS[column] for column in columns))
    for method in (*BASELINES[::2], *MODELS, TRUTH):
        cells = [_ours(found, (protocol, metric, method)) for protocol, metric in columns]
        if any(cells):
            grid.add_row(method, *cells)
    if grid.row_count:
        print_parts(grid)
    print("try:", *(f"  {command}" for command in commands(store)), sep="\n")
    if address := address_of_report(store):
        print(f"report: {address}")


def _grid(found: "Results", columns: list[tuple[str, str]]) -> Grid:
    """Ours and theirs in rows below each other."""
    from tasks.evaluation.results import COLUMNS

    grid = Grid("", *(COLUMNS[column] for column in columns))
    for method in found.methods:
        keys = [(protocol, metric, method) for protocol, metric in columns]
        rows = {
            method: [_ours(found, key) for key in keys],
            f"  {method}, in the paper": [_theirs(found.paper.get(key)) for key in keys],
            f"  {method}, published later": [_theirs(found.later.get(key)) for key in keys],
        }
        for name, cells in rows.items():
            if any(cells):
                grid.add_row(name, *cells)
    return grid


def _theirs(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _ours(found: "Results", key: tuple[str, str, str]) -> str:
    values = found.ours.get(key, [])
    if len(values) != 1:
        return mean_and_spread(values)
    low, high = found.intervals[key]
    return f"{values[0]:.1f} [{low:.0f}, {high:.0f}]"


def _as_dict(found: "Results") -> dict[str, object]:
    keys = dict.fromkeys((*found.ours, *found.paper, *found.later))
    rows = [
        {
            "protocol": key[0], "metric": key[1], "method": key[2], "ours": found.ours.get(key, []),
            "paper": found.paper.get(key), "later": found.later.get(key),
        }
        for key in keys
    ]  # fmt: skip
    return {"run_id": found.run_id, "numbers": rows, "notes": found.notes}


def _export(options: argparse.Namespace) -> int:
    from tasks.evaluation.submission import export_htstep  # which loads torch

    path = options.output or Path(f"htstep-{options.split}.csv")
    found = export_htstep(existing_store(options.store), options.run, options.split, options.method, path)
    print(f"{path}: {found.num_rows:,} segments by {found.method} of {found.model_id}")
    print(f"  on {found.num_videos:,} of the {found.num_listed:,} videos of {options.split}")
    return 0
