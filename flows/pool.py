"""Run parts as flow runs on the GPU pool: any number of workers, on any machines, take them.

Prefect neither fails a parent flow run when its child fails, nor restarts a run whose worker is gone. This module does
both: a failed child fails its parent; a child that crashed, or whose worker has missed three heartbeats, is sent again,
and continues from the shards that are already committed.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from prefect import get_client, get_run_logger
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed

from flows.execution import Execution
from tasks.pipeline import progress
from tasks.pipeline.job import Job
from tasks.pipeline.parts import Part

DEPLOYMENT = "part/gpu"
POLL_S = 2.0
RUNS_AT_ONCE = 200
"""Flow runs per request: Prefect's server lists no more at once."""
MISSED_HEARTBEATS = 3


class PartFailed(ValueError):
    """A part on the pool failed."""


@dataclass
class Child:
    """A part, and the flow run that runs it."""

    number: int
    part: Part
    run_id: UUID
    tries: int = 1


def run_on_pool(job: Job, kind: str, parts: Sequence[Part], execution: Execution) -> None:
    """Send all parts to the pool and wait for them; cancel them if this is interrupted."""
    with get_client(sync_client=True) as client, _children() as waiting:
        for number, part in enumerate(parts):
            waiting.append(Child(number, part, _send(job, kind, part, number, execution)))
        get_run_logger().info("%s: %d parts are on the pool", kind, len(parts))
        while waiting:
            time.sleep(POLL_S)
            before = len(waiting)
            lost = _lost_workers(client, waiting)
            for child, run in _read(client, waiting):
                if run is not None and _is_done(run, execution):
                    waiting.remove(child)
                elif run is None or _is_lost(run, lost):
                    _send_again(client, job, kind, child, run, execution)
            if len(waiting) < before:
                done = len(parts) - len(waiting)
                progress.tell(done / len(parts), f"{kind}: {done} of {len(parts)} parts")


@contextmanager
def _children() -> Iterator[list[Child]]:
    waiting: list[Child] = []
    try:
        yield waiting
    except BaseException:
        with get_client(sync_client=True) as client:
            for child in waiting:
                try:
                    client.set_flow_run_state(child.run_id, State(type=StateType.CANCELLING))
                except Exception as error:  # the others must be cancelled too
                    get_run_logger().warning("part %d was not cancelled: %s", child.number, error)
        raise


def _send(job: Job, kind: str, part: Part, number: int, execution: Execution) -> UUID:
    part_execution = execution.model_copy(update={"workers": 1})
    parameters = {
        "job": job.model_dump(),
        "kind": kind,
        "part": part,
        "number": number,
        "execution": part_execution.model_dump(),
    }
    try:
        return run_deployment(DEPLOYMENT, parameters=parameters, timeout=0).id  # type: ignore[union-attr]
    except ObjectNotFound as error:
        raise PartFailed(f"there is no deployment {DEPLOYMENT}: run `prefect deploy --all`") from error


def _send_again(
    client: SyncPrefectClient, job: Job, kind: str, child: Child, run: FlowRun | None, execution: Execution
) -> None:
    if child.tries > execution.retries:
        message = run.state.message if run and run.state else "it was deleted"
        raise PartFailed(f"{kind}, part {child.number}, was lost {child.tries} times; the last time: {message}")
    if run and run.state_type != StateType.CRASHED:
        client.set_flow_run_state(run.id, Crashed(message="its worker is gone"), force=True)
    get_run_logger().warning("%s, part %d, is lost; sending it again", kind, child.number)
    child.run_id, child.tries = _send(job, kind, child.part, child.number, execution), child.tries + 1


def _read(client: SyncPrefectClient, children: Sequence[Child]) -> list[tuple[Child, FlowRun | None]]:
    """Return the flow run of each part; None if it was deleted."""
    runs_by_id: dict[UUID, FlowRun] = {}
    for begin in range(0, len(children), RUNS_AT_ONCE):
        ids = [child.run_id for child in children[begin : begin + RUNS_AT_ONCE]]
        runs = client.read_flow_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=ids)), limit=RUNS_AT_ONCE)
        runs_by_id |= {run.id: run for run in runs}
    return [(child, runs_by_id.get(child.run_id)) for child in children]


def _is_done(run: FlowRun, execution: Execution) -> bool:
    """Return whether the run completed. Raise PartFailed if it failed, was cancelled or takes too long."""
    if run.state_type == StateType.COMPLETED:
        return True
    if run.state_type in (StateType.FAILED, StateType.CANCELLED):
        message = run.state.message if run.state else ""
        raise PartFailed(f"the flow run {run.name!r} on the pool was {run.state_name}: {message}")
    limit = timedelta(minutes=execution.timeout_minutes)
    if limit and run.start_time and datetime.now(UTC) - run.start_time > limit + timedelta(minutes=1):
        raise PartFailed(f"the flow run {run.name!r} on the pool took more than {execution.timeout_minutes} minutes")
    return False


def _is_lost(run: FlowRun, lost: set[str]) -> bool:
    is_begun = run.state_type in (StateType.RUNNING, StateType.PENDING)
    return run.state_type == StateType.CRASHED or (is_begun and str(run.labels.get("prefect.worker.name")) in lost)


def _lost_workers(client: SyncPrefectClient, children: Sequence[Child]) -> set[str]:
    """Return the names of the workers that have missed too many heartbeats."""
    pools = {run.work_pool_name for _, run in _read(client, children[:1]) if run and run.work_pool_name}
    workers = [worker for pool in pools for worker in client.read_workers_for_work_pool(pool, offset=0, limit=200)]
    heartbeats = {
        worker.name: (worker.last_heartbeat_time, worker.heartbeat_interval_seconds or 30) for worker in workers
    }
    now = datetime.now(UTC)
    return {
        name
        for name, (last, every_s) in heartbeats.items()
        if last and now - last > MISSED_HEARTBEATS * timedelta(seconds=every_s)
    }
