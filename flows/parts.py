"""Run the parts of a stage: in this process, by a task runner, under torchrun, or by workers of the GPU pool.

Prefect retries a part only after a transient fault: bad data would fail again. A training uses all devices of a machine
or worker alone.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from prefect import State, flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.states import Crashed
from prefect.task_engine import TaskRunTimeoutError
from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner
from prefect.tasks import Task

from flows.execution import Execution
from flows.pool import PartFailed, run_on_pool
from flows.stages import part_kind
from storage import is_transient
from tasks.pipeline import progress
from tasks.pipeline.job import Interrupted, Job
from tasks.pipeline.parts import Part, PartKind, RunParts

LONGEST_DELAY_S = 600.0
PART = "VINA_PART"
"""Environment variable that describes the part to the processes under torchrun."""
TORCHRUN_PART = "flows.torchrun_part"
"""Module that each process under torchrun runs."""
_OWN_PROCESS = threading.Lock()
"""Held by a part that needs its own process: a Dask worker of several threads runs such parts one after the other."""


class TransientFault(ConnectionError):
    """A process under torchrun met a transient fault: another try may succeed."""


@flow(name="part", flow_run_name="{kind}, part {number}", validate_parameters=True)
def run_part(job: Job, kind: str, part: dict[str, Any], number: int, execution: Execution) -> State[None] | None:
    """Run one part on a worker of the GPU pool."""
    get_run_logger().info("run %s: %s, part %d", job.run_id, kind, number)
    try:
        _run(job, part_kind(kind), part, execution)
    except Interrupted as stop:  # the worker is shutting down: another one continues the part
        return Crashed(message=str(stop))
    return None


def parts_runner(execution: Execution, dispatch: str = "here") -> RunParts:
    """Return the function that stages call to run their parts."""

    def run_parts(job: Job, kind: PartKind, parts: Sequence[Part]) -> None:
        is_shared = kind.shares_devices and execution.devices > 1
        if is_shared:
            parts = kind.merge(parts, execution.devices if dispatch == "pool" else None)
        if dispatch == "pool" and parts:
            run_on_pool(job, kind.name, parts, execution)
        elif kind.is_whole or execution.workers == 1 or is_shared:
            for number, part in enumerate(parts):
                with progress.part(number, len(parts)):
                    _run(job, kind, part, execution)
        elif parts:
            _run_at_once(job, kind, parts, execution)

    return run_parts


def _run(job: Job, kind: PartKind, part: Part, execution: Execution) -> None:
    """Run a part in this process, or in several that torchrun starts."""
    _with_retries(execution)(job, kind.name, part, execution.devices if kind.shares_devices else 1)


@task(name="part", task_run_name="{kind}", cache_policy=NO_CACHE, persist_result=False)
def do_part(job: Job, kind: str, part: Part, devices: int = 1) -> None:
    """Run one part as a Prefect task."""
    if devices > 1:
        _run_torchrun(job, kind, part, devices)
    else:
        _work_here(job, part_kind(kind), part)


def _work_here(job: Job, kind: PartKind, part: Part) -> None:
    with _OWN_PROCESS if kind.needs_own_process else nullcontext():
        kind.work(job, part)


def _with_retries(execution: Execution) -> Task[[Job, str, Part, int], None]:
    return do_part.with_options(
        retries=execution.retries,
        retry_delay_seconds=[
            min(execution.retry_delay_s * 2**number, LONGEST_DELAY_S) for number in range(execution.retries)
        ],
        retry_jitter_factor=0.5,
        retry_condition_fn=_is_transient_failure,
        timeout_seconds=60 * execution.timeout_minutes or None,
    )


def _is_transient_failure(task: Task[Any, Any], run: Any, state: State[Any]) -> bool:
    """Return whether a retry may succeed: after a transient fault, but not after a timeout."""
    error: BaseException = state.result(raise_on_failure=False)
    is_worth_a_retry = not isinstance(error, TaskRunTimeoutError) and is_transient(error)
    if is_worth_a_retry:
        get_run_logger().warning("a transient fault, retrying: %s", error)
    return is_worth_a_retry


def _run_at_once(job: Job, kind: PartKind, parts: Sequence[Part], execution: Execution) -> None:
    """Run several parts at a time; after the first failure start no further ones."""
    chunk = 4 * execution.workers
    do_part_with_retries, done = _with_retries(execution), 0
    with _runner(execution, kind) as runner:
        for begin in range(0, len(parts), chunk):
            parameters = [
                {"job": job, "kind": kind.name, "part": part, "devices": 1} for part in parts[begin : begin + chunk]
            ]
            futures = [runner.submit(do_part_with_retries, parameters=each) for each in parameters]
            for future in futures:
                future.result()
                done += 1
                progress.tell(done / len(parts), f"{kind.name}: {done} of {len(parts)} parts")


def _runner(execution: Execution, kind: PartKind) -> TaskRunner[Any]:
    workers, address = execution.workers, execution.address
    if execution.runner == "threads" and not kind.needs_own_process:
        return ThreadPoolTaskRunner(max_workers=workers)
    if execution.runner in ("threads", "processes"):
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


def _run_torchrun(job: Job, kind: str, part: Part, devices: int) -> None:
    """Run a part with one process per device on this machine. When terminated, they save a checkpoint."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={devices}"]
    with tempfile.TemporaryDirectory() as folder:  # torchrun does not pass on the exit codes of its processes
        described = json.dumps({"job": job.model_dump(), "kind": kind, "part": part, "faults": folder})
        process = subprocess.Popen([*command, "-m", TORCHRUN_PART], env=os.environ | {PART: described})
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        faults = [path.read_text() for path in Path(folder).iterdir()]
    if code and faults:
        raise TransientFault(f"{kind} on {devices} devices: {faults[0]}")
    if code:
        raise PartFailed(f"{kind} on {devices} devices ended with exit code {code}: see its log")
