"""The stages of the pipeline, in order. To add one: write its module in `tasks`, and add it here."""

from collections.abc import Sequence

from tasks.ablations.stage import ABLATIONS
from tasks.evaluation.stage import EVALUATION
from tasks.features.stage import FEATURES
from tasks.importers.stage import IMPORT
from tasks.pairing.stage import PAIRING
from tasks.pipeline.parts import PartKind
from tasks.pipeline.settings import Settings
from tasks.pipeline.stage import Stage
from tasks.report.stage import REPORT
from tasks.training.stage import BURN_IN, ROUNDS

STAGES: list[Stage] = [IMPORT, FEATURES, PAIRING, BURN_IN, ROUNDS, EVALUATION, REPORT]


def choose_stages(names: Sequence[str] | None) -> list[Stage]:
    """Return the stages with these names, in the pipeline's order; None means all."""
    stage_names = [stage.name for stage in STAGES]
    if unknown := [name for name in names or [] if name not in stage_names]:
        raise ValueError(f"there is no stage {unknown[0]!r}; the stages are {', '.join(stage_names)}")
    return [stage for stage in STAGES if not names or stage.name in names]


def settings_groups() -> list[type[Settings]]:
    """Return the groups of settings of all stages; training first, because most settings people change are there."""
    groups = [group for stage in STAGES for group in stage.settings]
    return sorted(groups, key=lambda group: group.group != "training")


def part_kind(name: str) -> PartKind:
    """Return the kind of parts with this name."""
    kinds = {kind.name: kind for stage in (*STAGES, ABLATIONS) for kind in stage.parts}
    if name not in kinds:
        raise ValueError(
            f"there is no kind of parts {name!r}; the kinds are {', '.join(kinds)}. Is this worker's package older?"
        )
    return kinds[name]
