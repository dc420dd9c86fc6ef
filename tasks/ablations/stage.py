"""The stage `ablations`, which is no part of the pipeline: `vina ablate` and the flow `ablations` run it alone."""

from typing import ClassVar

from tasks.ablations.runner import ABLATION, Ablation
from tasks.ablations.tables import TABLES
from tasks.pipeline import progress
from tasks.pipeline.job import Job
from tasks.pipeline.parts import RunParts, run_here
from tasks.pipeline.settings import NotNegative, Settings
from tasks.pipeline.stage import Dependencies, Stage


class AblationSettings(Settings):
    """Which tables are made, and with which seeds."""

    group: ClassVar[str] = "ablations"

    tables: tuple[str, ...] = tuple(TABLES)
    """Names of the tables."""
    seeds: tuple[NotNegative, ...] = (0, 1, 2)
    """Random seeds; every variant is trained once with each."""


def make_tables(job: Job, run_parts: RunParts = run_here) -> str:
    """Make the tables, one after the other."""
    settings, num_cells = job.settings_of(AblationSettings), 0
    for number, table in enumerate(settings.tables):
        with progress.part(number, len(settings.tables)):
            num_cells += len(Ablation(job).make(table, settings.seeds, run_parts))
    return f"{num_cells} cells of {', '.join(settings.tables)}"


def dependencies(job: Job) -> Dependencies:
    """Return why it always runs; what has been trained and measured is not done again."""
    settings = job.settings_of(AblationSettings)
    return Dependencies(
        settings.model_dump(mode="json"),
        scope=" ".join(settings.tables),
        must_run_because="each part finds what is missing",
    )


ABLATIONS = Stage(
    "ablations", make_tables, dependencies, "1", parts=(ABLATION,),
    artifacts={"ablations": "FROM ablation_means LIMIT 500"},
)  # fmt: skip
