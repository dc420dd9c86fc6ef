"""Parameters of the deployments, typed: Prefect refuses mistakes before anything runs, and its UI shows a form.

`Overrides` has a field for every setting of every stage; empty means the preset's value. It is derived from the
settings themselves, so that limits, meanings and presets are written down once.
"""

from typing import Annotated, Any, Literal, Optional

from pydantic import BaseModel, ConfigDict, Field, create_model

from flows.stages import settings_groups
from tasks.pipeline.settings import PRESETS, Settings

STRICT = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Execution(BaseModel):
    """Where and how the parts run."""

    model_config = STRICT

    runner: Literal["threads", "processes", "dask", "ray"] = "threads"
    """Task runner of the parts; dask and ray are Prefect's integrations. Trainings run in processes, not threads."""
    workers: Annotated[int, Field(ge=1, le=1024)] = 1
    """Parts that the task runner runs at once. Workers of a pool have limits of their own."""
    address: str | None = None
    """Address of a running Dask scheduler or Ray cluster (default: one is started for the run)."""
    devices: Annotated[int, Field(ge=1, le=64)] = 1
    """Processes that train and label together under torchrun, one per GPU."""
    retries: Annotated[int, Field(ge=0, le=100)] = 3
    """Retries of a part after a transient fault (network, S3), or when its worker is lost."""
    retry_delay_s: Annotated[float, Field(ge=0, le=3600)] = 10
    """Seconds before the first retry; each further one waits twice as long."""
    timeout_minutes: Annotated[float, Field(ge=0)] = 0
    """Minutes after which a part is given up; 0 is never."""


def _override(group: type[Settings], name: str) -> tuple[Any, Any]:
    """Return a setting's type and field, where None means the preset's value."""
    field = group.model_fields[name]
    values = ", ".join(f"{preset}: {getattr(group.of_preset(preset), name)}" for preset in PRESETS)
    limited = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    description = " ".join((field.description or "").split())
    return Optional[limited], Field(None, description=f"{description} (presets: {values})".strip())  # noqa: UP045


def make_overrides(groups: list[type[Settings]]) -> type[BaseModel]:
    """Return the model of all settings that a run may change."""
    models = {
        group.group: create_model(
            f"{group.group.capitalize()}Overrides",
            __config__=STRICT,
            __doc__=f"Settings of {group.group}; empty: the preset's.",
            **{name: _override(group, name) for name in group.model_fields},  # type: ignore[call-overload]
        )
        for group in groups
    }
    return create_model(
        "Overrides",
        __config__=STRICT,
        __doc__="Settings that differ from the preset's, by group.",
        **{name: (model, Field(default_factory=model)) for name, model in models.items()},  # type: ignore[call-overload]
    )


Overrides = make_overrides(settings_groups())


def changes_of(overrides: BaseModel) -> dict[str, dict[str, Any]]:
    """Return the settings that were given, by group."""
    return {group: values for group, values in overrides.model_dump(exclude_none=True).items() if values}
