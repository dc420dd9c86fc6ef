"""The flow `ablations`: the paper's ablation tables, each model a part that runs here or on the GPU pool."""

from typing import Annotated, Literal

from prefect import flow, runtime
from pydantic import Field

from flows.execution import Dispatch, Execution, Preset
from flows.full_pipeline import make_job, run_and_show
from flows.parameters import Overrides, changes_of
from flows.parts import parts_runner
from storage import Store
from tasks.ablations.stage import ABLATIONS, AblationSettings
from tasks.ablations.tables import TABLES, on_all_benchmarks
from tasks.pipeline.run_record import RUN_ID, name_run, record_run

TableName = Literal["all", *TABLES]  # type: ignore[valid-type]


def _name() -> str:
    return name_run(runtime.flow_run.parameters.get("run_id"))


@flow(name="ablations", flow_run_name=_name)
def ablations(
    table: TableName = "all",
    seeds: list[int] = [0, 1, 2],  # noqa: B006
    preset: Preset = "demo",
    store: str = "",
    overrides: Overrides = Overrides(),  # type: ignore[valid-type]  # noqa: B008
    run_id: Annotated[str, Field(pattern=RUN_ID)] | None = None,
    dispatch: Dispatch = "here",
    execution: Execution = Execution(),  # noqa: B008
) -> str:
    """Train and measure the variants of an ablation table, store its cells in `ablations`, and return the run's id.

    Args:
        table: The table, or all of them.
        seeds: Random seeds; every variant is trained once with each.
        preset: The paper's configuration, or a small model that trains in minutes on two cores.
        store: A folder (an absolute path, where workers run) or s3://bucket/prefix. Empty: VINA_STORE of the worker.
        overrides: Settings that differ from the preset's. training.selection is metadata unless it is overridden.
        run_id: The run's id in the table `runs`. Empty: a new id made from the current time.
        dispatch: Where the models are trained: in the flow's process, or on all workers of the GPU pool.
        execution: How many parts run at once, and how often they are retried.
    """
    changes = changes_of(overrides)
    changes["training"] = {"selection": "metadata", **changes.get("training", {})}
    job = make_job(preset, store, None, changes, run_id or runtime.flow_run.name, force=False)
    job = job.changed(AblationSettings(tables=tuple(TABLES) if table == "all" else (table,), seeds=tuple(seeds)))
    configuration = job.model_dump() | {"seeds": seeds, "dispatch": dispatch}
    measures = any(on_all_benchmarks(name) for name in job.settings_of(AblationSettings).tables)
    with record_run(Store(job.store), job.run_id, [f"ablate {table}"], configuration, measures):
        run_and_show(job, ABLATIONS, parts_runner(execution, dispatch))
    return job.run_id
