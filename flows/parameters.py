"""What a deployment may be asked, typed, so that Prefect refuses mistakes before anything runs and its UI shows a form.

`Overrides` has a field for every setting of every stage: empty means what the preset says. It is made from the settings
themselves, so that their limits, their words and the presets' values are written down once.
"""

import ast
import inspect
import textwrap
from dataclasses import Field as Setting
from dataclasses import fields
from math import isinf
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from tasks.pipeline.presets import GROUPS, PRESETS
from tasks.pipeline.settings_check import Limited

STRICT = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Execution(BaseModel):
    """Where and how the work is done."""

    model_config = STRICT

    runner: Literal["threads", "processes", "dask", "ray"] = "threads"
    """The task runner that parts are given to; dask and ray are Prefect's integrations."""
    workers: Annotated[int, Field(ge=1, le=1024)] = 1
    """Parts that the task runner works on at once. Workers of a pool have limits of their own."""
    address: str | None = None
    """A running Dask scheduler or Ray cluster (default: one is started for the run)."""
    devices: Annotated[int, Field(ge=1, le=64)] = 1
    """Processes that train and label together under torchrun, one a GPU."""
    retries: Annotated[int, Field(ge=0, le=100)] = 3
    """How often a part is tried again after a passing fault (network, S3), or when its worker is lost."""
    retry_delay_s: Annotated[float, Field(ge=0, le=3600)] = 10
    """Seconds before the first retry; each further one waits twice as long."""
    timeout_minutes: Annotated[float, Field(ge=0)] = 0
    """Minutes after which a part is given up; 0 is never."""


def _descriptions(owner: type) -> dict[str, str]:
    """The docstring under each field of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for node, after in zip(body.body, body.body[1:], strict=False):
        says = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and says:
            found[node.target.id] = " ".join(str(after.value.value).split())  # type: ignore[attr-defined]
    return found


def _override(group: str, owner: type[Limited], setting: Setting[Any], kind: Any, text: str) -> tuple[Any, Any]:
    said = ", ".join(f"{name}: {getattr(getattr(each, group), setting.name)}" for name, each in PRESETS.items())
    low, high = (None if limit is None or isinf(limit) else limit for limit in owner.limits_of(setting.name))
    if choices := owner.CHOICES.get(setting.name):
        kind = Literal[choices]
    return kind | None, Field(None, description=f"{text} (presets: {said})".strip(), ge=low, le=high)


def _model(name: str, text: str, entries: dict[str, Any]) -> type[BaseModel]:
    return create_model(name, __config__=STRICT, __doc__=text, **entries)


def _overrides_of(group: str, owner: type[Limited]) -> type[BaseModel]:
    kinds, texts = get_type_hints(owner), _descriptions(owner)
    entries = {
        setting.name: _override(group, owner, setting, kinds[setting.name], texts.get(setting.name, ""))
        for setting in fields(owner)  # type: ignore[arg-type]
    }
    return _model(f"{group.capitalize()}Overrides", f"Settings of {group}; empty: the preset's.", entries)


_GROUPS = {group: _overrides_of(group, owner) for group, owner in GROUPS.items()}
Overrides = _model(
    "Overrides",
    "Settings that are to differ from the preset's, stage by stage.",
    {group: (kind, Field(default_factory=kind)) for group, kind in _GROUPS.items()},
)


def changes_of(overrides: BaseModel) -> dict[str, dict[str, Any]]:
    """The settings that were given, by group."""
    return {group: own for group, own in overrides.model_dump(exclude_none=True).items() if own}
