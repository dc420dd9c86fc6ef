"""The whole pipeline, in order. `vina run` calls this flow in its own process.

To add a stage: write its work in `tasks/NAME.py` as a function of the store's address and the run's id, and add a
line to STAGES, at its place. Stages pass nothing to each other but what they leave in the store.
"""

from collections.abc import Callable
from typing import NamedTuple

from prefect import flow, get_run_logger, task

from storage import Store
from tasks.catalogue import list_tables
from tasks.run_record import record_run


class Stage(NamedTuple):
    """A named piece of the pipeline: `work(store_uri, run_id)` does it and says what it did."""

    name: str
    work: Callable[[str, str], str]


STAGES = (
    Stage("catalogue", list_tables),
)  # fmt: skip


@flow(name="vina")
def vina(store: str = "vina-store", stages: list[str] | None = None, run_id: str | None = None) -> str:
    """Run the stages (all, or those named, always in the pipeline's order) on a store; returns the run's id."""
    chosen = choose_stages(stages)
    configuration = {"store": store, "stages": [stage.name for stage in chosen]}
    with record_run(Store(store), run_id, configuration["stages"], configuration) as run:
        for stage in chosen:
            report = task(name=stage.name, task_run_name=stage.name)(stage.work)(store, run)
            get_run_logger().info("%s: %s", stage.name, report)
    return run


def choose_stages(names: list[str] | None) -> list[Stage]:
    """The stages of these names in the pipeline's order; None means all."""
    known = [stage.name for stage in STAGES]
    if unknown := [name for name in names or [] if name not in known]:
        raise ValueError(f"there is no stage {unknown[0]!r}; the stages are {', '.join(known)}")
    return [stage for stage in STAGES if names is None or stage.name in names]
