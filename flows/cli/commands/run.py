"""Commands that run the pipeline or plan a run."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from flows.cli.commands.results import print_summary
from flows.cli.commands.settings_options import (
    add_execution_number,
    add_execution_options,
    add_settings_options,
    changes_in,
)
from flows.cli.commands.shared import Add, wrong_command
from storage import Store
from tasks.pipeline.parts import run_here
from tasks.pipeline.run_record import name_run, record_run
from tasks.training.settings import TrainingSettings

if TYPE_CHECKING:
    from tasks.pipeline.job import Job
    from tasks.pipeline.stage import Stage


def add_commands(add: Add) -> None:
    """Declare the commands."""
    run = add("run", _run, "run the pipeline in this process", "vina run --preset demo --store demo-store")
    _add_options(run)
    add_execution_options(run)
    add_execution_number(run, "devices", "GPUs to train on")
    _add_options(
        add("plan", _plan, "show which stages `vina run` would run, and why", "vina plan --preset demo --set epochs=20")
    )


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--stages", type=_stages, metavar="A,B", help="run only these stages")
    command.add_argument(
        "--run-id", type=_run_id, metavar="ID", help="id of the run in `runs` (default: made from the time)"
    )
    command.add_argument("--force", action="store_true", help="run the stages again even if nothing has changed")
    command.add_argument("--corpus", metavar="FOLDER", help="corpus folder to import, or demo:default")
    add_settings_options(command, "paper")


def _stages(text: str) -> list[str]:
    from flows.stages import choose_stages

    try:
        return [stage.name for stage in choose_stages(text.split(","))]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _run_id(text: str) -> str:
    try:
        return name_run(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _job(options: argparse.Namespace) -> "Job":
    from flows.full_pipeline import make_job

    run_id = _run_id_of_all(options) if int(os.environ.get("WORLD_SIZE", "1")) > 1 else options.run_id
    with wrong_command():
        job = make_job(options.preset, options.store, options.corpus, changes_in(options), run_id, options.force)
    Store(job.store).location.check()
    return job


def _plan(options: argparse.Namespace) -> int:
    from flows.stages import choose_stages
    from tasks.pipeline.stage import plan

    for step in plan(_job(options), choose_stages(options.stages)):
        if step.reasons:
            print(f"run   {step.stage.name:<11} {'; '.join(step.reasons)}")
        elif step.waits_for:
            print(f"maybe {step.stage.name:<11} if its input is changed by {', '.join(step.waits_for)}")
        else:
            print(f"skip  {step.stage.name:<11} nothing has changed")
    return 0


def _run(options: argparse.Namespace) -> int:
    from flows.stages import choose_stages

    job = _job(options)
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("vina").setLevel(logging.WARNING if sys.stderr.isatty() else logging.INFO)  # bars, or lines
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        _run_together(job, choose_stages(options.stages))
        return 0
    _run_flow(options, job)
    if not options.stages or {"evaluation", "report"} & set(options.stages):
        print_summary(Store(job.store), job.run_id)
    print(f"run {job.run_id} completed; `vina tables --store {job.store}` lists its tables")
    return 0


def _run_together(job: "Job", stages: "Sequence[Stage]") -> None:
    """Run as one process of a torchrun that the user started. The first one plans, keeps the records and logs."""
    from tasks.pipeline.stage import SKIPPED, complete_stage, reasons_to_run
    from tasks.training import processes

    if job.force:
        raise ValueError("--force works in one process only: `vina run --devices N --force` starts torchrun itself")
    is_first, device = processes.is_first(), job.settings_of(TrainingSettings).device
    names = [stage.name for stage in stages]
    measures = any(stage.measures for stage in stages)
    if not is_first:
        logging.getLogger("vina").setLevel(logging.WARNING)
    record = record_run(Store(job.store), job.run_id, names, job.model_dump() | {"stages": names}, measures)
    with record if is_first else nullcontext():
        for stage in stages:
            is_due = processes.first_decides(is_first and bool(reasons_to_run(job, stage)), device)
            if is_first:
                print(f"{stage.name}: {complete_stage(job, stage, run_here) if is_due else SKIPPED}", flush=True)
            elif is_due:
                stage.work(job, run_here)


def _run_flow(options: argparse.Namespace, job: "Job") -> None:
    from flows.artifacts import DISPLAY
    from flows.execution import Execution
    from flows.full_pipeline import vina
    from flows.parameters import Overrides
    from flows.terminal import Terminal

    limits = {name: getattr(options, name) for name in ("runner", "workers", "devices")}
    with Terminal() as terminal:
        DISPLAY.set(terminal)
        vina(
            preset=options.preset,
            store=job.store,
            corpus=options.corpus,
            overrides=Overrides.model_validate(changes_in(options)),
            stages=options.stages,
            run_id=job.run_id,
            force=job.force,
            dispatch=options.dispatch,
            execution=Execution(**limits),
        )


def _run_id_of_all(options: argparse.Namespace) -> str:
    """Return the run id that all torchrun processes share. Raise ValueError if a stage runs in one process only."""
    from flows.stages import choose_stages

    alone = [stage.name for stage in choose_stages(options.stages) if not stage.is_shared]
    if alone:
        raise ValueError(
            f"{alone[0]} runs in one process only: under torchrun choose stages that can be shared (--stages burn-in)"
        )
    run_id = options.run_id or os.environ.get("TORCHELASTIC_RUN_ID", "none")
    if run_id == "none":
        raise ValueError("under torchrun all processes need the same run id: give one with --run-id ID")
    return str(run_id)
