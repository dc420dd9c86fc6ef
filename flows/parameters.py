"""Parameters of the deployments, typed: Prefect refuses mistakes before anything runs, and its UI shows a form.

`Overrides` has a field for every setting of every stage; empty means the preset's value. It is derived from the
settings themselves, so that limits, descriptions and presets are written down once.
"""

from typing import Annotated, Any, Optional

from pydantic import BaseModel, Field, create_model

from flows.execution import STRICT
from flows.stages import settings_groups
from tasks.pipeline.settings import PRESETS, Settings


def _override(group: type[Settings], name: str) -> tuple[Any, Any]:
    """Return the type and the field of one setting; None means the preset's value."""
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
