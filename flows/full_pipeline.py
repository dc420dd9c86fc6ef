"""The whole pipeline, in order. `vina run` calls this flow in its own process; deployments run it on workers.

To add a stage: write its work in `tasks` as a function of a job, say what it is made of, and add it to STAGES, at its
place. Stages pass nothing to each other but what they leave in the store, and what has not changed is not made again.
"""

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from prefect import flow, get_run_logger, runtime, task
from prefect.cache_policies import NO_CACHE
from pydantic import Field

from flows.artifacts import publish, watched
from flows.parameters import Execution, Overrides, changes_of
from flows.parts import parts_runner
from storage import Store
from tasks.evaluation.stage import EVALUATION
from tasks.features.stage import FEATURES
from tasks.importers.sources import IMPORT
from tasks.pairing.stage import PAIRING
from tasks.pipeline.job import Job
from tasks.pipeline.presets import choose
from tasks.pipeline.run_record import RUN_ID, name_run, record_run
from tasks.pipeline.stage import Stage, plan, run_stage
from tasks.report.stage import REPORT
from tasks.training.stage import BURN_IN, ROUNDS

STAGES = (IMPORT, FEATURES, PAIRING, BURN_IN, ROUNDS, EVALUATION, REPORT)
StageName = Literal["import", "features", "pairing", "burn-in", "rounds", "evaluation", "report"]


def _name() -> str:
    """A run has one name, in Prefect and in the store."""
    return name_run(runtime.flow_run.parameters.get("run_id"))


@flow(name="vina", flow_run_name=_name)
def vina(
    preset: Literal["paper", "demo"] = "paper",
    store: str = "",
    corpus: str | None = None,
    overrides: Overrides = Overrides(),  # type: ignore[valid-type]  # noqa: B008
    stages: list[StageName] | None = None,
    run_id: Annotated[str, Field(pattern=RUN_ID)] | None = None,
    force: bool = False,
    dispatch: Literal["here", "pool"] = "here",
    execution: Execution = Execution(),  # noqa: B008
) -> str:
    """Ground the steps of articles in videos: run the stages on a store; returns the run's id.

    Args:
        preset: The paper's numbers, or a demo world and a small model, for minutes on two cores.
        store: A folder (an absolute path, where workers run it) or s3://bucket/prefix. Empty: VINA_STORE of the worker.
        corpus: The folder that is imported, or a demo world such as demo:default,num_videos=200. Empty: the preset's.
        overrides: Settings that differ from the preset's.
        stages: Only these, in the pipeline's order. Empty: all. What has not changed is skipped.
        run_id: The run's name in the table `runs`. Empty: made of the time.
        force: Make the stages' results anew, whether or not anything has changed.
        dispatch: Who does the work: the flow's own process, or all workers of the GPU pool.
        execution: By how many at once, on how many devices, with how much patience.
    """
    job = make_job(preset, store, corpus, changes_of(overrides), run_id or runtime.flow_run.name, force)
    chosen, run_parts = choose_stages(stages), parts_runner(execution, dispatch)
    names = [stage.name for stage in chosen]
    for step in plan(job, chosen):
        get_run_logger().info("%s: %s", step.stage.name, "; ".join(step.reasons) or "nothing to do so far")
    told = {"stages": names, "dispatch": dispatch} | execution.model_dump()
    with record_run(Store(job.store), job.run_id, names, asdict(job) | told):
        for stage in chosen:
            work = task(name=stage.name, task_run_name=stage.name, cache_policy=NO_CACHE)(run_stage)
            with watched(stage.name) as ended:
                report, has_run = work(job, stage, run_parts)
                ended(report, has_run)
            if has_run:
                publish(stage.name, job)
    return job.run_id


def make_job(
    preset: str, store: str, corpus: str | None, changes: dict[str, Any], run_id: str | None, force: bool
) -> Job:
    """What the stages are told; what makes no sense is refused here."""
    settings = choose(preset, changes)
    uri = store or os.environ.get("VINA_STORE", "")
    is_remote = uri.startswith("s3://") or Path(uri).is_absolute()
    if runtime.deployment.id is not None and not is_remote:
        raise ValueError(f"store is {uri!r}: a worker needs an absolute path or s3://bucket/prefix (or its VINA_STORE)")
    settings = replace(settings, corpus=corpus or settings.corpus)
    address = uri if uri.startswith("s3://") else str(Path(uri or "vina-store").resolve())  # workers have other folders
    return Job(address, name_run(run_id), **vars(settings), force=force)


def choose_stages(names: list[Any] | None) -> list[Stage]:
    """The stages of these names in the pipeline's order; None means all."""
    known = [stage.name for stage in STAGES]
    if unknown := [name for name in names or [] if name not in known]:
        raise ValueError(f"there is no stage {unknown[0]!r}; the stages are {', '.join(known)}")
    return [stage for stage in STAGES if not names or stage.name in names]
