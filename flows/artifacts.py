"""What Prefect's UI and a terminal show of a run: how far each stage is, what it did, and tables of what there is.

Artifacts are for people: a run does not fail because one could not be written.
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

from flows.cli.terminal import Terminal
from storage import Store
from storage.catalogue import Catalogue
from tasks.pipeline import progress
from tasks.pipeline.job import Job

LOG = logging.getLogger("vina")
UPDATE_EVERY_S = 2.0
CORPUS = {"corpus": "FROM corpus"}
REJECTS = {"rejects": "FROM rejects_by_reason LIMIT 100"}
LABELS = {
    "labels": """SELECT model_id, round, sum(labels)::BIGINT AS labels,
        round(100.0 * sum(kept) / sum(labels), 1) AS kept_percent FROM label_keep_rate GROUP BY ALL ORDER BY ALL"""
}
TABLES = {
    "import": CORPUS
    | REJECTS
    | {"missing": "SELECT what, count(*) AS items, min(item) AS example FROM missing GROUP BY what ORDER BY what"},
    "features": CORPUS | REJECTS,
    "pairing": REJECTS
    | {"pairs": "SELECT selection, count(DISTINCT video_id) AS videos, count(*) AS pairs FROM pairs GROUP BY ALL"},
    "burn-in": LABELS,
    "rounds": LABELS,
    "evaluation": {
        "metrics": """SELECT benchmark, protocol, split, method, metric, round(ours, 1) AS ours, paper
            FROM metrics_beside_paper LIMIT 500"""
    },
}
"""What is shown after each stage: an artifact's key, and its query."""


DISPLAY: ContextVar[Terminal | None] = ContextVar("display", default=None)
"""Where a run is shown while it goes on, beside the log."""


@contextmanager
def watched(stage: str) -> Iterator[Callable[[str, bool], None]]:
    """Show how far a stage is, while it lasts; call what is given with its report at the end."""
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
    """A stage's progress artifact."""

    def __init__(self, stage: str) -> None:
        self._said = time.monotonic()
        self._id: UUID | None = None
        with _unimportant():
            self._id = cast(UUID, create_progress_artifact(0.0, key=f"progress-{stage}", description=stage))

    def tell(self, share: float, line: str, at_once: bool = False) -> None:
        if self._id is None or not (at_once or time.monotonic() - self._said > UPDATE_EVERY_S):
            return
        self._said = time.monotonic()
        with _unimportant():
            update_progress_artifact(self._id, 100 * share, description=line[:1000] or None)


def publish(stage: str, job: Job) -> None:
    """Tables of what there is after a stage; a link to the report after that."""
    with _unimportant():
        store = Store(job.store)
        with Catalogue(store) as catalogue:
            found = {key: catalogue.query(sql).to_pylist() for key, sql in TABLES.get(stage, {}).items()}
        for key, rows in found.items():
            create_table_artifact(rows, key=f"vina-{key}", description=f"{key}, after {stage} of run {job.run_id}")
        if stage == "report":
            create_link_artifact(store.objects.uri(f"reports/{job.run_id}.html"), "report", key="vina-report")


@contextmanager
def _unimportant() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # whatever Prefect's API, or a view of a store half filled, may raise
        LOG.warning("an artifact was not written: %s", error)
