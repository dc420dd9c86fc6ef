"""Show a run in Prefect's UI and in the terminal: progress and report of each stage, and tables of the results.

A run does not fail because an artifact could not be written.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import cast
from uuid import UUID

from prefect import get_run_logger
from prefect.artifacts import (
    create_link_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)

from flows.terminal import Terminal
from storage import Store
from tasks.evaluation.benchmarks.sql import open_catalogue
from tasks.pipeline import progress
from tasks.pipeline.job import Job
from tasks.pipeline.stage import Stage

LOG = logging.getLogger("vina")
UPDATE_EVERY_S = 2.0

DISPLAY: ContextVar[Terminal | None] = ContextVar("display", default=None)
"""The terminal that shows the run, in addition to the log."""


@contextmanager
def watched(stage: str) -> Iterator[Callable[[str, bool], None]]:
    """Show the progress of a stage inside the `with`; call the yielded function with its report at the end."""
    display, artifact = DISPLAY.get(), _Progress(stage)

    def tell(share: float, line: str) -> None:
        artifact.tell(share, line)
        if display:
            display.tell(share, line)

    def end(report: str, ran: bool) -> None:
        get_run_logger().info("%s: %s", stage, report)
        artifact.tell(1.0, report, at_once=True)
        if display:
            display.end(stage, report, ran)

    if display:
        display.begin(stage)
    with progress.listening(tell):
        yield end


class _Progress:
    """Progress artifact of a stage."""

    def __init__(self, stage: str) -> None:
        self._updated_at = time.monotonic()
        self._id: UUID | None = None
        with _errors_logged():
            self._id = cast(UUID, create_progress_artifact(0.0, key=f"progress-{stage}", description=stage))

    def tell(self, share: float, line: str, at_once: bool = False) -> None:
        if self._id is None or not (at_once or time.monotonic() - self._updated_at > UPDATE_EVERY_S):
            return
        self._updated_at = time.monotonic()
        with _errors_logged():
            update_progress_artifact(self._id, 100 * share, description=line[:1000] or None)


def publish(stage: Stage, job: Job) -> None:
    """Publish the stage's tables and links as artifacts."""
    with _errors_logged():
        store = Store(job.store)
        with open_catalogue(store) as catalogue:
            tables = {key: catalogue.query(sql).to_pylist() for key, sql in stage.artifacts.items()}
        for key, rows in tables.items():
            create_table_artifact(rows, key=f"vina-{key}", description=f"{key}, after {stage.name} of run {job.run_id}")
        for key, name in stage.links(job).items():
            create_link_artifact(store.objects.uri(name), key, key=f"vina-{key}")


@contextmanager
def _errors_logged() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # from Prefect's API, or from a view of a store that is not filled yet
        LOG.warning("an artifact was not written: %s", error)
