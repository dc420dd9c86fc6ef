"""Presets of the whole pipeline, and how settings are changed: `paper`, and `demo` for minutes on two cores."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, get_args, get_type_hints

from tasks.features.settings import FeatureSettings
from tasks.pairing.settings import PairingSettings
from tasks.pipeline.settings_check import Limited
from tasks.training.settings import PRESETS as TRAININGS
from tasks.training.settings import TrainingSettings

DEMO_CORPUS = "demo:default"
GROUPS: dict[str, type[Limited]] = {
    "training": TrainingSettings,
    "features": FeatureSettings,
    "pairing": PairingSettings,
}


@dataclass(frozen=True)
class Settings:
    """Of all stages."""

    corpus: str | None = None
    features: FeatureSettings = field(default_factory=FeatureSettings)
    pairing: PairingSettings = field(default_factory=PairingSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)


PRESETS = {
    "paper": Settings(training=TRAININGS["paper"]),
    "demo": Settings(DEMO_CORPUS, FeatureSettings(size_px=112), training=TRAININGS["demo"]),
}


def choose(preset: str, changes: Mapping[str, Mapping[str, Any]]) -> Settings:
    """A preset with some settings of some groups changed."""
    if preset not in PRESETS:
        raise ValueError(f"there is no preset {preset!r}; the presets are {', '.join(PRESETS)}")
    base = PRESETS[preset]
    return replace(base, **{group: replace(getattr(base, group), **own) for group, own in changes.items()})


def parse_changes(texts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Changes as people type them: `gamma=0.5`, or with the group's name, `features.size_px=112`."""
    changes: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set {text}: NAME=VALUE is expected")
        group, name = _place(name)
        changes.setdefault(group, {})[name] = _value(GROUPS[group], name, value)
    return changes


def _place(name: str) -> tuple[str, str]:
    """The group and the setting; a bare name is looked for in all groups, training first."""
    group, dot, own = name.rpartition(".")
    if dot and group not in GROUPS:
        raise ValueError(f"there is no group of settings {group!r}; the groups are {', '.join(GROUPS)}")
    known = {each: [setting.name for setting in fields(owner)] for each, owner in GROUPS.items()}  # type: ignore[arg-type]
    for place in [group] if dot else GROUPS:
        if own in known[place]:
            return place, own
    others = [f"{each}.{setting}" for each in GROUPS if each != "training" for setting in known[each]]
    listed = known[group] if dot else [*known["training"], *others]
    raise ValueError(f"there is no setting {own!r}; the settings are {', '.join(listed)}")


def _value(owner: type[Limited], name: str, text: str) -> Any:
    kind = get_type_hints(owner)[name]
    kind = next((each for each in get_args(kind) if each is not type(None)), kind)
    if kind is bool and text not in ("true", "false"):
        raise ValueError(f"setting {name}: {text!r} is not true or false")
    try:
        return text == "true" if kind is bool else kind(text)
    except ValueError:
        raise ValueError(f"setting {name}: {text!r} is not a number") from None
