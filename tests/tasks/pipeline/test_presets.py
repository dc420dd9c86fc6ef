import pytest

from tasks.pipeline.presets import DEMO_CORPUS, PRESETS, choose, parse_changes


def test_settings_are_changed_by_their_names() -> None:
    changes = parse_changes(
        ["gamma=0.5", "training.steps=false", "features.size_px=64", "pairing.articles=crosstask", "joint=true"]
    )
    assert changes == {
        "training": {"gamma": 0.5, "steps": False},
        "features": {"size_px": 64, "joint": True},
        "pairing": {"articles": "crosstask"},
    }
    chosen = choose("demo", changes)
    assert (chosen.training.gamma, chosen.training.width, chosen.features.size_px) == (0.5, 128, 64)
    assert chosen.corpus == DEMO_CORPUS and choose("paper", {}).corpus is None


def test_a_bare_name_is_the_trainings_if_it_has_it() -> None:
    assert parse_changes(["batch_size=8"]) == {"training": {"batch_size": 8}}
    assert parse_changes(["features.batch_size=8"]) == {"features": {"batch_size": 8}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("gamma", "--set gamma: NAME=VALUE is expected"),
        ("gama=1", "there is no setting 'gama'; the settings are backbone, selection"),
        ("features.gamma=1", "there is no setting 'gamma'; the settings are backbone, weights"),
        ("future.gamma=1", "there is no group of settings 'future'; the groups are training, features, pairing"),
        ("gamma=high", "setting gamma: 'high' is not a number"),
        ("features.size_px=2.5", "setting size_px: '2.5' is not a number"),
        ("joint=yes", "setting joint: 'yes' is not true or false"),
    ],
)
def test_mistakes_are_named(change: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_changes([change])
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": {"batch_size": 0}}, "setting batch_size is 0; it goes from 1 to inf"),
        ({"pairing": {"texts_per_shard": -1}}, "setting texts_per_shard is -1"),
        ({"training": {"gamma": 2.0}}, "setting gamma is 2.0; it goes from -1 to 1"),
        ({"training": {"selection": "best"}}, "setting selection is 'best': choose metadata or top1 or random_top5"),
    ],
)
def test_limits_hold_in_all_groups(changes: dict[str, dict[str, object]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose("paper", changes)


def test_there_are_two_presets() -> None:
    assert list(PRESETS) == ["paper", "demo"]
    with pytest.raises(ValueError, match="there is no preset 'large'; the presets are paper, demo"):
        choose("large", {})
