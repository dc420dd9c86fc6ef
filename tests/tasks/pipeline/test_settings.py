import pytest

from flows.stages import settings_groups
from tasks.features.settings import FeatureSettings
from tasks.importers.settings import ImportSettings
from tasks.pipeline.job import Job
from tasks.pipeline.settings import PRESETS, choose, parse_changes
from tasks.training.settings import TrainingSettings

GROUPS = settings_groups()


def test_settings_are_changed_by_their_names() -> None:
    changes = parse_changes(
        GROUPS, ["gamma=0.5", "training.steps=false", "features.size_px=64", "pairing.articles=crosstask", "joint=true"]
    )
    assert changes == {
        "training": {"gamma": "0.5", "steps": "false"},
        "features": {"size_px": "64", "joint": "true"},
        "pairing": {"articles": "crosstask"},
    }
    job = Job.of("store", "run", *choose(GROUPS, "demo", changes))
    training, features = job.settings_of(TrainingSettings), job.settings_of(FeatureSettings)
    assert (training.gamma, training.steps, training.width, features.size_px, features.joint) == (
        0.5, False, 128, 64, True,
    )  # fmt: skip
    assert job.settings_of(ImportSettings).corpus == "demo:default"
    assert Job.of("store", "run", *choose(GROUPS, "paper", {})).settings_of(ImportSettings).corpus is None


def test_a_name_that_several_groups_have_needs_its_group() -> None:
    with pytest.raises(ValueError) as error:
        parse_changes(GROUPS, ["batch_size=8"])
    choices = "training.batch_size, features.batch_size, pairing.batch_size"
    assert str(error.value) == f"several settings are named 'batch_size': choose one of {choices}"
    for group in ("training", "features", "pairing"):
        assert parse_changes(GROUPS, [f"{group}.batch_size=8"]) == {group: {"batch_size": "8"}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("gamma", "--set gamma: NAME=VALUE is expected"),
        ("gama=1", "there is no setting 'gama'; the settings are training.backbone, selection"),
        ("features.gamma=1", "there is no setting 'gamma'; the settings are backbone, weights"),
        (
            "future.gamma=1",
            "there is no group of settings 'future'; the groups are training, import, features, pairing",
        ),
        ("gamma=high", "setting gamma is 'high': it must be a valid number"),
        ("features.size_px=2.5", "setting size_px is '2.5': it must be a valid integer"),
        ("joint=perhaps", "setting joint is 'perhaps': it must be a valid boolean"),
    ],
)
def test_mistakes_are_named(change: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        choose(GROUPS, "paper", parse_changes(GROUPS, [change]))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": {"batch_size": 0}}, "setting batch_size is 0: it must be greater than or equal to 1"),
        ({"pairing": {"texts_per_shard": -1}}, "setting texts_per_shard is -1"),
        ({"training": {"gamma": 2.0}}, "setting gamma is 2.0: it must be less than or equal to 1"),
        ({"training": {"gamma": float("nan")}}, "setting gamma is nan: it must be a finite number"),
        ({"training": {"selection": "best"}}, "setting selection is 'best': it must be 'metadata', 'top1' or 'random"),
        ({"training": {"gama": 1}}, "there is no setting 'gama'"),
        ({"training": {"width": 100}}, "setting width is 100: choose a multiple of heads, 8"),
    ],
)
def test_limits_hold_in_all_groups(changes: dict[str, dict[str, object]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose(GROUPS, "paper", changes)


def test_settings_cannot_be_changed_in_place() -> None:
    settings = TrainingSettings()
    with pytest.raises(ValueError, match="frozen"):
        settings.gamma = 0.5  # type: ignore[misc]
    assert settings.changed(gamma=0.5).gamma == 0.5 and settings.gamma == 0.65


def test_there_are_two_presets() -> None:
    assert PRESETS == ("paper", "demo")
    with pytest.raises(ValueError, match="there is no preset 'large'; the presets are paper, demo"):
        choose(GROUPS, "large", {})
