"""Settings of the stages: frozen models with limits and a description on each field.

A stage declares its group as a subclass. The flow's form, `--set` and the run record are derived from it. The defaults
are those of the preset `paper`; `presets` holds what another preset changes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

PRESETS = ("paper", "demo")
"""`paper` is the paper's configuration, `demo` is a small model that trains in minutes on two cores."""
Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class Settings(BaseModel):
    """Base of a group of settings."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False, validate_default=True
    )
    group: ClassVar[str]
    """Name of the group, in `--set GROUP.NAME=VALUE`, in the form and in the run record."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Values that a preset changes, by the preset's name."""

    def __init__(self, **values: Any) -> None:
        """Raise a ValueError that names the setting, what was given and what is allowed."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ValueError("; ".join(_explain(problem) for problem in error.errors())) from None

    def changed(self, **changes: Any) -> Self:
        """Return a copy with some settings changed, validated like a new one."""
        return type(self)(**self.model_dump() | changes)

    @classmethod
    def of_preset(cls, preset: str) -> Self:
        """Return the settings of a preset."""
        if preset not in PRESETS:
            raise ValueError(f"there is no preset {preset!r}; the presets are {', '.join(PRESETS)}")
        return cls(**cls.presets.get(preset, {}))


def choose(
    groups: Iterable[type[Settings]], preset: str, changes: Mapping[str, Mapping[str, Any]]
) -> tuple[Settings, ...]:
    """Return the settings of a preset for all groups, with some changed."""
    return tuple(group.of_preset(preset).changed(**changes.get(group.group, {})) for group in groups)


def parse_changes(groups: Iterable[type[Settings]], texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """Parse `gamma=0.5`, or with the group's name `features.size_px=112`.

    A bare name must be that of one setting alone. The values stay texts: the settings convert them.
    """
    by_name = {group.group: group for group in groups}
    changes: dict[str, dict[str, str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set {text}: NAME=VALUE is expected")
        group = _group_of(name, by_name)
        setting = name.rpartition(".")[2]
        changes.setdefault(group.group, {})[setting] = value
    return changes


def _group_of(name: str, groups: Mapping[str, type[Settings]]) -> type[Settings]:
    group_name, dot, setting = name.rpartition(".")
    if dot and group_name not in groups:
        raise ValueError(f"there is no group of settings {group_name!r}; the groups are {', '.join(groups)}")
    candidates = [groups[group_name]] if dot else list(groups.values())
    matches = [group for group in candidates if setting in group.model_fields]
    if len(matches) > 1:
        qualified = ", ".join(f"{group.group}.{setting}" for group in matches)
        raise ValueError(f"several settings are named {setting!r}: choose one of {qualified}")
    if matches:
        return matches[0]
    fields = Counter(field for group in candidates for field in group.model_fields)
    listed = [
        field if fields[field] == 1 else f"{group.group}.{field}"
        for group in candidates
        for field in group.model_fields
    ]
    raise ValueError(f"there is no setting {setting!r}; the settings are {', '.join(listed)}")


def _explain(problem: Any) -> str:
    """Return one sentence about a validation error."""
    name = ".".join(map(str, problem["loc"]))
    if not name:
        return str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        return f"there is no setting {name!r}"
    reason = str(problem["msg"]).removeprefix("Input should be ").removeprefix("Value error, ")
    return f"setting {name} is {problem['input']!r}: it must be {reason}"
