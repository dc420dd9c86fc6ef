"""`vina ablate`: make the ablation tables."""

import argparse
import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table as Grid

from flows.cli.commands.results import print_results
from flows.cli.commands.settings_options import add_execution_options, add_settings_options, changes_in
from flows.cli.commands.shared import Add, existing_store, mean_and_deviation, print_parts
from tasks.ablations.tables import TABLES

if TYPE_CHECKING:
    from tasks.ablations.runner import Result


def add_commands(add: Add) -> None:
    """Declare the command."""
    ablate = add(
        "ablate",
        _ablate,
        "train variants of the method with several seeds, and show what each part of it contributes",
        "vina ablate components --seeds 0,1,2 --preset demo",
    )
    listed = "; ".join(f"{name}: {table.about}" for name, table in TABLES.items())
    ablate.add_argument("table", choices=[*TABLES, "all"], metavar="TABLE", help=f"{listed}; all")
    ablate.add_argument("--seeds", type=_seeds, default=[0, 1, 2], metavar="N,N", help="random seeds (default: 0,1,2)")
    ablate.add_argument("--json", action="store_true", help="print all cells as JSON")
    add_execution_options(ablate)
    add_settings_options(ablate, "demo")


def _seeds(text: str) -> list[int]:
    if not all(part.isdigit() for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers, e.g. 0,1,2")
    return list(dict.fromkeys(int(part) for part in text.split(",")))


def _ablate(options: argparse.Namespace) -> int:
    from flows.ablations import ablations  # loads Prefect and torch
    from flows.execution import Execution
    from flows.parameters import Overrides
    from tasks.ablations.runner import Ablation
    from tasks.pipeline.run_record import job_of_run

    store = existing_store(options.store)
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("vina").setLevel(logging.INFO)
    run_id = ablations(
        table=options.table,
        seeds=options.seeds,
        preset=options.preset,
        store=store.uri,
        overrides=Overrides.model_validate(changes_in(options)),
        dispatch=options.dispatch,
        execution=Execution(runner=options.runner, workers=options.workers),
    )
    ablation = Ablation(job_of_run(store, run_id))
    tables = list(TABLES) if options.table == "all" else [options.table]
    results = {table: [cell for seed in options.seeds for cell in ablation.cells(table, seed)] for table in tables}
    if options.json:
        print(json.dumps({table: [vars(cell) for cell in cells] for table, cells in results.items()}, indent=1))
        return 0
    seeds = ", ".join(map(str, options.seeds))
    for table, cells in results.items():
        if table == "main":
            print_results(store, run_id)
            continue
        title = f"{table}: {TABLES[table].about}; %, mean and standard deviation over the seeds {seeds}"
        splits = "; ".join(f"{benchmark.title}: {split}" for benchmark, split in ablation.splits.items())
        print_parts(f"{title}; {splits}", *_grids(cells))
    return 0


def _grids(cells: "Sequence[Result]") -> list[Grid]:
    """Return one grid for each group of rows with the same columns."""
    columns: dict[str, list[str]] = {}
    for cell in cells:
        measures = columns.setdefault(cell.variant, [])
        if cell.measure not in measures:
            measures.append(cell.measure)
    widest = max(columns.values(), key=len)
    groups: list[tuple[list[str], list[str]]] = []
    for variant, measures in columns.items():
        if not groups or not set(groups[-1][1]) & set(measures):
            groups.append(([], []))
        groups[-1][0].append(variant)
        groups[-1][1].extend(measure for measure in measures if measure not in groups[-1][1])
    for _, measures in groups:
        measures.sort(key=lambda measure: widest.index(measure) if measure in widest else 0)
    return [_grid(cells, variants, measures) for variants, measures in groups]


def _grid(cells: "Sequence[Result]", variants: list[str], measures: list[str]) -> Grid:
    in_paper = {cell.measure for cell in cells if cell.paper is not None}
    heads = [head for measure in measures for head in ([measure, "paper"] if measure in in_paper else [measure])]
    grid = Grid("", *heads)
    for variant in variants:
        row = []
        for measure in measures:
            seeds = [cell for cell in cells if (cell.variant, cell.measure) == (variant, measure)]
            row.append(mean_and_deviation([cell.value for cell in seeds]))
            if measure in in_paper:
                row.append(f"{seeds[0].paper:.1f}" if seeds and seeds[0].paper is not None else "")
        grid.add_row(variant, *row)
    return grid
