"""The command that makes the ablation tables."""

import argparse
import logging
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.table import Table as Grid

from flows.commands.shared import Add, existing_store, print_parts
from flows.commands.training_options import add_training_options, training_settings
from tasks.job import Job
from tasks.run_record import name_run, record_run

if TYPE_CHECKING:
    from tasks.ablations.curriculum import Result

TABLES = {
    "step R@1 on held-out videos, %": {
        "": "no narrations",
        " with narrations, direct": "direct",
        " with narrations, indirect": "indirect",
        " with narrations": "fused",
    },
    "labels of the rounds, %": {
        "kept_percent": "kept",
        "kept_right_percent": "right, of the kept",
        "shown_right_percent": "right, of the shown",
    },
}
"""Each table's measures, and what its columns are called."""


def add_commands(add: Add) -> None:
    """Declare it."""
    ablate = add(
        "ablate",
        _ablate,
        "train the method without some of its parts, with several seeds, and show what each part is worth",
        "vina ablate curriculum --seeds 0,1,2 --preset demo",
    )
    ablate.add_argument("table", choices=["curriculum"], help="curriculum: TAN*, burn-in, fixed and iterative labels")
    ablate.add_argument("--seeds", type=_seeds, default=[0, 1, 2, 3, 4], metavar="N,N", help="(default: 0,1,2,3,4)")
    add_training_options(ablate, "demo")


def _seeds(text: str) -> list[int]:
    if not all(part.isdigit() for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers, e.g. 0,1,2")
    return [int(part) for part in text.split(",")]


def _ablate(options: argparse.Namespace) -> int:
    from tasks.ablations.curriculum import ablate_curriculum  # which loads torch

    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("vina").setLevel(logging.INFO)
    store = existing_store(options.store)
    job = Job(store.uri, name_run(), training=training_settings(options))
    with record_run(store, job.run_id, [f"ablate {options.table}"], asdict(job) | {"seeds": options.seeds}):
        results = list(ablate_curriculum(job, options.seeds))
    for title, measures in TABLES.items():
        print_parts(f"{title}: mean and standard deviation of {len(options.seeds)} seeds", _grid(results, measures))
    return 0


def _grid(results: "Sequence[Result]", measures: dict[str, str]) -> Grid:
    grid = Grid("", *measures.values())
    for subject in dict.fromkeys(result.subject for result in results if result.measure in measures):
        cells = []
        for measure in measures:
            values = [found.value for found in results if (found.subject, found.measure) == (subject, measure)]
            spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
            cells.append(f"{statistics.fmean(values):.1f}{spread}" if values else "")
        grid.add_row(subject, *cells)
    return grid
