"""The whole pipeline, in order. `vina run` calls this flow in its own process.

To add a stage: write its work in `tasks` as a function of a job, and add a line to STAGES, at its place. Stages pass
nothing to each other but what they leave in the store.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import NamedTuple

from prefect import flow, get_run_logger, task

from storage import Store
from tasks.catalogue import list_tables
from tasks.evaluation.stage import evaluate
from tasks.features.settings import FeatureSettings
from tasks.features.stage import make_features
from tasks.importers.sources import import_corpus
from tasks.job import Job
from tasks.pairing.settings import PairingSettings
from tasks.pairing.stage import make_pairs
from tasks.run_record import name_run, record_run
from tasks.training.settings import TrainingSettings
from tasks.training.stage import burn_in, rounds


class Stage(NamedTuple):
    """A named piece of the pipeline: `work(job)` does it and says what it did.

    One that is `shared` is done by all processes of a torchrun together; the others know one process only.
    """

    name: str
    work: Callable[[Job], str]
    is_shared: bool = False


STAGES = (
    Stage("import", import_corpus),
    Stage("features", make_features),
    Stage("pairing", make_pairs),
    Stage("burn-in", burn_in, is_shared=True),
    Stage("rounds", rounds, is_shared=True),
    Stage("evaluation", evaluate),
    Stage("catalogue", list_tables),
)  # fmt: skip


@flow(name="vina")
def vina(
    store: str = "vina-store",
    corpus: str | None = None,
    features: FeatureSettings | None = None,
    pairing: PairingSettings | None = None,
    training: TrainingSettings | None = None,
    stages: list[str] | None = None,
    run_id: str | None = None,
) -> str:
    """Run the stages (all, or those named, always in the pipeline's order) on a store; returns the run's id.

    `corpus` is the folder that the stage `import` reads; the others are settings of the stages.
    """
    chosen = choose_stages(stages)
    names = [stage.name for stage in chosen]
    settings = features or FeatureSettings(), pairing or PairingSettings(), training or TrainingSettings()
    job = Job(store, name_run(run_id), corpus, *settings)
    with record_run(Store(store), job.run_id, names, asdict(job) | {"stages": names}):
        for stage in chosen:
            report = task(name=stage.name, task_run_name=stage.name)(stage.work)(job)
            get_run_logger().info("%s: %s", stage.name, report)
    return job.run_id


def choose_stages(names: list[str] | None) -> list[Stage]:
    """The stages of these names in the pipeline's order; None means all."""
    known = [stage.name for stage in STAGES]
    if unknown := [name for name in names or [] if name not in known]:
        raise ValueError(f"there is no stage {unknown[0]!r}; the stages are {', '.join(known)}")
    return [stage for stage in STAGES if names is None or stage.name in names]
