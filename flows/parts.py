"""Pieces of the work, given to others: a task runner's threads or processes, torchrun, or workers of the GPU pool.

A piece is one part of what a stage spreads. Prefect retries it after a passing fault, and only then: what is wrong with
the data stays wrong. Training is never two things at once: it has all devices of a machine, or of one worker.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from prefect import State, flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.states import Crashed
from prefect.task_engine import TaskRunTimeoutError
from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner
from prefect.tasks import Task

from flows.parameters import Execution
from flows.pool import PartFailed, run_on_pool
from storage import is_transient
from tasks.evaluation.stage import measure
from tasks.features.stage import make_shards
from tasks.pairing.stage import embed_range
from tasks.pipeline import progress
from tasks.pipeline.job import Interrupted, Job
from tasks.pipeline.parts import Part, RunParts, Work
from tasks.training.stage import label_shards, train

KINDS: dict[str, Work] = {
    "features": make_shards,
    "embedding": embed_range,
    "training": train,
    "labelling": label_shards,
    "evaluation": measure,
}
"""What can be given to others, by name: a name travels to other machines."""
WHOLE = ("training", "evaluation")
"""Kinds that are one piece of work, not many alike."""
SHARED = ("training", "labelling")
"""Kinds that several devices of one machine do together."""
LONGEST_DELAY_S = 600.0
PART = "VINA_PART"
"""The environment variable that tells the processes of a torchrun what to do."""


@flow(name="part", flow_run_name="{kind}, part {number}", validate_parameters=True)
def run_part(job: Job, kind: str, part: dict[str, Any], number: int, execution: Execution) -> State[None] | None:
    """One part of a stage's work, on a worker of the GPU pool."""
    get_run_logger().info("run %s: %s, part %d", job.run_id, kind, number)
    try:
        _do(job, kind, part, execution)
    except Interrupted as stop:  # the worker was asked to end: another one goes on
        return Crashed(message=str(stop))
    return None


def parts_runner(execution: Execution, dispatch: str = "here") -> RunParts:
    """How the parts of a job are given to others."""

    def run_parts(job: Job, work: Work, parts: Sequence[Part]) -> None:
        kind = next(name for name, known in KINDS.items() if known is work)
        together = kind in SHARED and execution.devices > 1
        if together:
            parts = _merged(parts, execution.devices if dispatch == "pool" else None)
        if dispatch == "pool" and parts:
            run_on_pool(job, kind, parts, execution)
        elif kind in WHOLE or execution.workers == 1 or together:
            for number, part in enumerate(parts):
                with progress.part(number, len(parts)):
                    _do(job, kind, part, execution)
        elif parts:
            _run_at_once(job, kind, parts, execution)

    return run_parts


def _merged(parts: Sequence[Part], least: int | None) -> list[Part]:
    """Parts for processes that share each one: of so many shards at least, or all shards in one."""
    shards = [shard for part in parts for shard in part.get("shards", ())]
    if not shards:
        return list(parts)
    size = len(shards) if least is None else max(least, len(parts[0]["shards"]))
    return [{**parts[0], "shards": shards[begin : begin + size]} for begin in range(0, len(shards), size)]


def _do(job: Job, kind: str, part: Part, execution: Execution) -> None:
    """In this process, or by several that torchrun starts."""
    devices = execution.devices if kind in SHARED else 1
    _patient(execution)(job, kind, part, devices)


@task(name="part", task_run_name="{kind}", cache_policy=NO_CACHE, persist_result=False)
def do_part(job: Job, kind: str, part: Part, devices: int = 1) -> None:
    """The work itself."""
    if devices > 1:
        _by_torchrun(job, kind, part, devices)
    else:
        KINDS[kind](job, part)


def _patient(execution: Execution) -> Task[[Job, str, Part, int], None]:
    return do_part.with_options(
        retries=execution.retries,
        retry_delay_seconds=[
            min(execution.retry_delay_s * 2**number, LONGEST_DELAY_S) for number in range(execution.retries)
        ],
        retry_jitter_factor=0.5,
        retry_condition_fn=_failed_in_passing,
        timeout_seconds=60 * execution.timeout_minutes or None,
    )


def _failed_in_passing(task: Task[Any, Any], run: Any, state: State[Any]) -> bool:
    """Whether it is worth another try: not if it took too long."""
    error: BaseException = state.result(raise_on_failure=False)
    is_passing = not isinstance(error, TaskRunTimeoutError) and is_transient(error)
    if is_passing:
        get_run_logger().warning("a passing fault, tried again: %s", error)
    return is_passing


def _run_at_once(job: Job, kind: str, parts: Sequence[Part], execution: Execution) -> None:
    """Some parts at a time; the first that fails is the last that is begun."""
    chunk = 4 * execution.workers
    patient, done = _patient(execution), 0
    with _runner(execution) as runner:
        for begin in range(0, len(parts), chunk):
            own = [{"job": job, "kind": kind, "part": part, "devices": 1} for part in parts[begin : begin + chunk]]
            futures = [runner.submit(patient, parameters=each) for each in own]
            for future in futures:
                future.result()
                done += 1
                progress.tell(done / len(parts), f"{kind}: {done} of {len(parts)} parts")


def _runner(execution: Execution) -> TaskRunner[Any]:
    workers, address = execution.workers, execution.address
    if execution.runner == "threads":
        return ThreadPoolTaskRunner(max_workers=workers)
    if execution.runner == "processes":
        return ProcessPoolTaskRunner(max_workers=workers)
    try:
        if execution.runner == "dask":
            from prefect_dask.task_runners import DaskTaskRunner

            cluster = None if address else {"n_workers": workers, "threads_per_worker": 1}
            return DaskTaskRunner(address=address, cluster_kwargs=cluster)
        from prefect_ray.task_runners import RayTaskRunner

        return RayTaskRunner(address=address, init_kwargs={} if address else {"num_cpus": workers})
    except ImportError as error:
        name = execution.runner
        raise ValueError(f"execution.runner is {name}, which is not installed: pip install vina[{name}]") from error


def _by_torchrun(job: Job, kind: str, part: Part, devices: int) -> None:
    """One process a device, on this machine. Asked to end, they save what they have."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={devices}"]
    described = json.dumps({"job": asdict(job), "kind": kind, "part": part})
    process = subprocess.Popen([*command, "-m", "flows.torchrun_part"], env=os.environ | {PART: described})
    try:
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if code:
        raise PartFailed(f"{kind} on {devices} devices ended with exit code {code}: its log says why")
