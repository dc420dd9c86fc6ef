"""What Prefect's UI and API are told about the parameters: it must be what the settings and presets say."""

from dataclasses import fields
from typing import Any

import pytest
from pydantic import ValidationError

from flows.full_pipeline import STAGES, StageName, vina
from flows.parameters import Execution, Overrides, changes_of
from tasks.pipeline.presets import GROUPS, PRESETS, choose

SCHEMA: dict[str, Any] = vina.parameters.model_dump()
PROPERTIES, DEFINITIONS = SCHEMA["properties"], SCHEMA["definitions"]


def test_every_parameter_is_described_and_has_a_default() -> None:
    assert list(PROPERTIES) == [
        "preset", "store", "corpus", "overrides", "stages", "run_id", "force", "dispatch", "execution",
    ]  # fmt: skip
    assert SCHEMA["required"] == []
    assert all(entry["description"] and "default" in entry for entry in PROPERTIES.values())
    assert PROPERTIES["preset"]["enum"] == list(PRESETS) and PROPERTIES["preset"]["default"] == "paper"
    names = [stage.name for stage in STAGES]
    assert PROPERTIES["stages"]["anyOf"][0]["items"]["enum"] == names == list(StageName.__args__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("group", GROUPS)
def test_an_override_exists_for_every_setting_and_says_what_the_presets_say(group: str) -> None:
    declared = DEFINITIONS[f"{group.capitalize()}Overrides"]
    assert declared["additionalProperties"] is False
    assert list(declared["properties"]) == [setting.name for setting in fields(GROUPS[group])]  # type: ignore[arg-type]
    for name, entry in declared["properties"].items():
        said = ", ".join(f"{preset}: {getattr(getattr(each, group), name)}" for preset, each in PRESETS.items())
        assert entry["description"].endswith(f"(presets: {said})")
        assert len(entry["description"]) > len(f" (presets: {said})"), f"{group}.{name} is not explained"
        assert entry["default"] is None, "empty means the preset's"
        low, high = GROUPS[group].limits_of(name)
        limits = entry["anyOf"][0]
        assert limits.get("minimum") == low
        assert limits.get("maximum") == (None if high == float("inf") else high)


def test_defaults_are_the_presets_own() -> None:
    assert Overrides() == Overrides.model_validate(PROPERTIES["overrides"]["default"])
    assert changes_of(Overrides()) == {}
    for preset, settings in PRESETS.items():
        assert choose(preset, changes_of(Overrides())) == settings
    assert Execution.model_validate(PROPERTIES["execution"]["default"]) == Execution()


def test_only_what_is_given_is_changed() -> None:
    given = Overrides.model_validate({"training": {"gamma": 0.5, "steps": False}})
    assert changes_of(given) == {"training": {"gamma": 0.5, "steps": False}}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"training": {"gamma": 1.5}}, "training.gamma"),
        ({"training": {"selection": "best"}}, "training.selection"),
        ({"training": {"gama": 0.5}}, "training.gama"),
        ({"features": {"batch_size": 0}}, "features.batch_size"),
        ({"features": {"size_px": "wide"}}, "features.size_px"),
        ({"future": {}}, "future"),
    ],
)
def test_mistakes_name_their_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as error:
        Overrides.model_validate(given)
    assert field in {".".join(map(str, each["loc"])) for each in error.value.errors()}
