"""The whole pipeline. `vina run` calls this flow in its own process; deployments run it on workers.

Stages communicate only through the tables and objects of the store. A stage whose dependencies have not changed is
skipped.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from prefect import flow, get_run_logger, runtime, task
from prefect.cache_policies import NO_CACHE
from pydantic import Field

from flows.artifacts import publish, watched
from flows.execution import Dispatch, Execution, Preset
from flows.parameters import Overrides, changes_of
from flows.parts import parts_runner
from flows.stages import STAGES, choose_stages, settings_groups
from storage import Store
from tasks.pipeline.job import Job
from tasks.pipeline.parts import RunParts
from tasks.pipeline.run_record import RUN_ID, name_run, record_run
from tasks.pipeline.settings import choose
from tasks.pipeline.stage import Stage, plan, run_stage

StageName = Literal[tuple(stage.name for stage in STAGES)]  # type: ignore[valid-type]


def _name() -> str:
    """Return the name of the flow run, which is also the run's id in the store."""
    return name_run(runtime.flow_run.parameters.get("run_id"))


@flow(name="vina", flow_run_name=_name)
def vina(
    preset: Preset = "paper",
    store: str = "",
    corpus: str | None = None,
    overrides: Overrides = Overrides(),  # type: ignore[valid-type]  # noqa: B008
    stages: list[StageName] | None = None,  # type: ignore[valid-type]
    run_id: Annotated[str, Field(pattern=RUN_ID)] | None = None,
    force: bool = False,
    dispatch: Dispatch = "here",
    execution: Execution = Execution(),  # noqa: B008
) -> str:
    """Ground the steps of articles in videos: run the stages on a store, and return the run's id.

    Args:
        preset: The paper's configuration, or a demo world and a small model, which takes minutes on two cores.
        store: A folder (an absolute path, where workers run) or s3://bucket/prefix. Empty: VINA_STORE of the worker.
        corpus: The folder to import, or a demo world such as demo:default,num_videos=200. Empty: the preset's.
        overrides: Settings that differ from the preset's.
        stages: The stages to run, in the pipeline's order. Empty: all. A stage that has not changed is skipped.
        run_id: The run's id in the table `runs`. Empty: a new id made from the current time.
        force: Run the stages again, whether or not anything has changed.
        dispatch: Where parts run: in the flow's process, or on all workers of the GPU pool.
        execution: How many parts run at once, on how many devices, and how often they are retried.
    """
    job = make_job(preset, store, corpus, changes_of(overrides), run_id or runtime.flow_run.name, force)
    chosen_stages, run_parts = choose_stages(stages), parts_runner(execution, dispatch)
    names = [stage.name for stage in chosen_stages]
    for step in plan(job, chosen_stages):
        get_run_logger().info("%s: %s", step.stage.name, "; ".join(step.reasons) or "nothing has changed so far")
    configuration = job.model_dump() | {"stages": names, "dispatch": dispatch} | execution.model_dump()
    with record_run(Store(job.store), job.run_id, names, configuration, any(stage.measures for stage in chosen_stages)):
        for stage in chosen_stages:
            run_and_show(job, stage, run_parts)
    return job.run_id


def run_and_show(job: Job, stage: Stage, run_parts: RunParts) -> None:
    """Run a stage as a task of this flow if it must run; show its progress, report and results."""
    work = task(name=stage.name, task_run_name=stage.name, cache_policy=NO_CACHE)(run_stage)
    with watched(stage.name) as ended:
        report, has_run = work(job, stage, run_parts)
        ended(report, has_run)
    if has_run:
        publish(stage, job)


def make_job(
    preset: str, store: str, corpus: str | None, changes: dict[str, dict[str, Any]], run_id: str | None, force: bool
) -> Job:
    """Return the job of a run. Raise ValueError if the store or a setting is wrong."""
    if corpus and "corpus" in changes.get("import", {}):
        raise ValueError(f"the corpus is given twice, as {corpus!r} and as the setting import.corpus: leave one out")
    if corpus:
        changes = changes | {"import": {**changes.get("import", {}), "corpus": corpus}}
    uri = store or os.environ.get("VINA_STORE", "")
    is_remote = uri.startswith("s3://") or Path(uri).is_absolute()
    if runtime.deployment.id is not None and not is_remote:
        raise ValueError(f"store is {uri!r}: a worker needs an absolute path or s3://bucket/prefix (or its VINA_STORE)")
    address = (
        uri if uri.startswith("s3://") else str(Path(uri or "vina-store").resolve())
    )  # workers have other working directories
    return Job.of(address, name_run(run_id), *choose(settings_groups(), preset, changes), force=force)
