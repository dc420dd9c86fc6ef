"""What Prefect's UI and API are told about the parameters: it must be what the settings and presets say."""

from typing import Any

import pytest
from pydantic import ValidationError

from flows.execution import Execution
from flows.full_pipeline import vina
from flows.parameters import Overrides, changes_of
from flows.stages import STAGES, settings_groups
from tasks.pipeline.settings import PRESETS, Settings, choose

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
    assert PROPERTIES["stages"]["anyOf"][0]["items"]["enum"] == names


@pytest.mark.parametrize("group", settings_groups(), ids=lambda group: group.group)
def test_an_override_exists_for_every_setting_and_names_the_values_of_the_presets(group: type[Settings]) -> None:
    declared = DEFINITIONS[f"{group.group.capitalize()}Overrides"]
    own = group.model_json_schema()["properties"]
    assert declared["additionalProperties"] is False
    assert list(declared["properties"]) == list(group.model_fields)
    for name, entry in declared["properties"].items():
        values = ", ".join(f"{preset}: {getattr(group.of_preset(preset), name)}" for preset in PRESETS)
        assert entry["description"].endswith(f"(presets: {values})")
        assert len(entry["description"]) > len(f" (presets: {values})"), f"{group.group}.{name} is not explained"
        assert entry["default"] is None, "empty means the preset's"
        limits, expected = entry["anyOf"][0], own[name].get("anyOf", [own[name]])[0]
        for limit in ("minimum", "maximum", "enum"):
            assert limits.get(limit) == expected.get(limit), f"{group.group}.{name}"


def test_limits_reach_the_form() -> None:
    training = DEFINITIONS["TrainingOverrides"]["properties"]
    assert training["gamma"]["anyOf"][0] == {"type": "number", "minimum": -1, "maximum": 1}
    assert training["selection"]["anyOf"][0]["enum"] == ["metadata", "top1", "random_top5"]
    assert training["batch_size"]["anyOf"][0] == {"type": "integer", "minimum": 1}


def test_defaults_are_the_presets_own() -> None:
    assert Overrides() == Overrides.model_validate(PROPERTIES["overrides"]["default"])
    assert changes_of(Overrides()) == {}
    for preset in PRESETS:
        settings = choose(settings_groups(), preset, changes_of(Overrides()))
        assert settings == tuple(group.of_preset(preset) for group in settings_groups())
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
