"""A pipeline that ran is run again: nothing changed, one parameter changed, forced, planned."""

from pathlib import Path
from typing import Any

import pytest

from flows.cli.main import main
from flows.full_pipeline import vina
from storage import Store
from storage.schemas import TABLES
from tasks.importers.sources import forget_source

CORPUS = "demo:short,num_videos=24,num_rendered=2"
TRAINING = {"tan_epochs": 1, "epochs": 2, "burn_in_epochs": 1, "refresh_epochs": 1, "selection": "metadata"}
SETTINGS: dict[str, dict[str, Any]] = {"features": {"size_px": 32}, "training": TRAINING}


def run(store: Store, run_id: str, settings: dict[str, dict[str, Any]] = SETTINGS, **more: Any) -> None:
    vina(preset="demo", store=store.uri, corpus=CORPUS, overrides=settings, run_id=run_id, **more)


def versions(store: Store) -> dict[str, int]:
    return {name: store.table(name).snapshot().version for name in TABLES if name != "runs"}


def changed(store: Store, before: dict[str, int]) -> set[str]:
    return {name for name, version in versions(store).items() if version != before[name]}


def planned(store: Store, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, list[str]]:
    """What `vina plan` says of each stage: run, skip or maybe, and why."""
    flat = [f"{group}.{name}={value}" for group, own in SETTINGS.items() for name, value in own.items()]
    given = [word for change in flat for word in ("--set", change)]
    capsys.readouterr()
    assert main(["plan", "--preset", "demo", "--corpus", CORPUS, "--store", store.uri, *given, *options]) == 0
    lines = [line.split(None, 2) for line in capsys.readouterr().out.splitlines()]
    return {name: [word, why] for word, name, why in lines}


@pytest.fixture(scope="module")
def ran(prefect_server: None, tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("ran") / "store")
    run(store, "first")
    return store


def test_nothing_changed_means_nothing_done(ran: Store, capsys: pytest.CaptureFixture[str]) -> None:
    before = versions(ran)
    assert {word for word, _ in planned(ran, capsys).values()} == {"skip"}
    run(ran, "second")
    assert versions(ran) == before
    runs = ran.table("runs").snapshot().read(["run_id", "state"]).to_pylist()
    assert {row["run_id"]: row["state"] for row in runs} == {"first": "completed", "second": "completed"}


def test_a_parameter_of_rounds_leaves_features_and_pairing_alone(
    ran: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(ran, capsys, "--set", "zeta=0.6")
    assert [plan[name][0] for name in ("import", "features", "pairing")] == ["skip"] * 3
    assert all(plan[name] == ["run", "zeta: 0.7 -> 0.6"] for name in ("burn-in", "rounds", "evaluation", "report"))
    before = versions(ran)
    run(ran, "other", {**SETTINGS, "training": {**TRAINING, "zeta": 0.6}})
    touched = changed(ran, before)
    assert touched.isdisjoint({"videos", "features", "sentence_embeddings", "text_votes", "votes", "pairs"})
    assert {"pseudo_labels", "metrics", "completions"} <= touched
    model_ids = {shard.constants["model_id"] for shard in ran.table("training_log").snapshot().shards}
    assert sum(name.startswith("tan@") for name in model_ids) == 1, "TAN* knows nothing of it"
    assert {word for word, _ in planned(ran, capsys).values()} <= {"skip", "run"}
    assert [planned(ran, capsys)[name][0] for name in ("burn-in", "rounds", "evaluation")] == ["skip"] * 3


@pytest.mark.parametrize(
    ("stage", "made"),
    [
        ("features", {"features"}),
        ("pairing", {"sentence_embeddings", "text_votes", "votes", "pairs"}),
        ("rounds", {"pseudo_labels", "training_log"}),
        ("evaluation", {"metrics", "predictions"}),
    ],
)
def test_force_makes_one_stage_anew_and_keeps_the_old_version(ran: Store, stage: str, made: set[str]) -> None:
    before = versions(ran)
    contents = {name: rows_of(ran, name) for name in made - {"training_log", "sentence_embeddings"}}
    run(ran, f"forced-{stage}", stages=[stage], force=True)
    touched = changed(ran, before) - {"completions", "rejects", "alignments"}
    assert made <= touched <= made | {"training_log", "sentence_embeddings"}, "embeddings are shared by two stages"
    for name, rows in contents.items():
        assert rows_of(ran, name) == rows, f"the same {name}"
        assert rows_of(ran, name, before[name]) == rows, "the old version is still there"
    if stage == "rounds":
        assert any(key.startswith("retired/forced-rounds/checkpoints/") for key in ran.objects.keys("retired/"))


def rows_of(store: Store, name: str, version: int | None = None) -> list[str]:
    rows = store.table(name).snapshot(version).read().to_pylist()
    return sorted(str({key: value for key, value in row.items() if key != "_written_by"}) for row in rows)


def test_what_was_taken_out_is_made_again(
    prefect_server: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "store")
    run(store, "first", stages=["import", "features"])
    forget_source(store, "features", "s3d-milnce")
    plan = planned(store, capsys, "--stages", "import,features,pairing")
    assert plan["features"] == ["run", "features of s3d-milnce, which it wrote, changed"]
    assert plan["pairing"] == ["run", "it was never completed"]
    run(store, "second", stages=["import", "features"])
    assert store.table("features").snapshot().where(backbone="s3d-milnce").num_rows
