"""The ablation tables: the paper's rows and numbers, every cell of every seed, and nothing trained twice."""

import io
import json
import os
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from prefect import flow, get_client
from prefect.client.schemas.filters import ArtifactCollectionFilter, ArtifactCollectionFilterKey

from flows.ablations import TableName
from flows.cli.main import main
from flows.execution import Execution
from flows.parts import parts_runner
from storage import Store
from storage.catalogue import Catalogue
from tasks.ablations.runner import Ablation, train_and_measure
from tasks.ablations.tables import TABLES, rows_of
from tasks.evaluation.benchmarks.htstep import HTSTEP
from tasks.pipeline.job import Interrupted, Job
from tasks.training import trainer
from tasks.training.settings import TrainingSettings
from tests.flows.cli.command import vina
from tests.tasks.conftest import TINY, MakeJob

pytestmark = pytest.mark.slow

QUICK = {"tan_epochs": 1, "epochs": 2, "burn_in_epochs": 1}
NAMES = ("width", "layers", "heads", "word_width", "hidden_width", "text_width", "batch_size", "device", "keep_share")


@pytest.fixture(scope="session")
def ablated(small_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Ablation:
    """A store that several tables are made in."""
    folder = tmp_path_factory.mktemp("ablated") / "store"
    shutil.copytree(small_world, folder)
    return Ablation(Job.of(str(folder), "run-1", TINY.changed(**QUICK)))


def ask(store: Store, query: str) -> list[dict[str, Any]]:
    with Catalogue(store) as catalogue:
        return list(catalogue.query(query).to_pylist())


def weights(job: Job) -> dict[str, list[Any]]:
    """The weights of every checkpoint, by its key."""
    objects = Store(job.store).objects
    states = {key: torch.load(io.BytesIO(objects.get(key)))["state"] for key in objects.keys("checkpoints/")}
    return {key: [tensor.tolist() for tensor in state.values()] for key, state in states.items()}


def paper(table: str) -> dict[str, list[float]]:
    """The numbers of each row, in the order of the columns."""
    return {row.name: list(row.paper.values()) for row in rows_of(table, TrainingSettings())}


def test_the_papers_numbers() -> None:
    assert list(paper("components").values()) == [
        [30.7, 47.1], [63.2], [34.0], [35.8], [34.3, 36.1, 64.8], [36.9, 39.1, 67.0]
    ]  # fmt: skip
    assert list(paper("pathways").values()) == [[34.3], [30.5], [27.9], [19.0], [36.1]]
    assert list(paper("labels").values()) == [[34.3, 36.5, 24], [36.9, 39.1, 91], [34.1, 35.9, 60], [36.2, 35.5, 88]]
    assert list(paper("selection").values()) == [[34.3], [34.7], [34.3]]
    assert list(paper("architecture").values()) == [
        [33.5, 34.0, 65.8], [34.0, 34.9, 65.9], [33.8, 34.4, 67.0], [34.3, 36.1, 64.8]
    ]  # fmt: skip


def test_the_flow_and_the_command_know_every_table() -> None:
    assert get_args(TableName) == ("all", *TABLES)
    text = " ".join(vina("ablate", "--help").stdout.split())
    assert all(f"{name}: {table.about}" in text for name, table in TABLES.items())


def test_rows_of_the_paper_are_one_training_where_the_paper_says_so() -> None:
    """Row 5 of the components is the last of the architectures, the first of the selections, and all pathways."""
    base = TrainingSettings().changed(selection="metadata")
    changed = {(table, row.name): base.changed(**row.changes) for table in TABLES for row in rows_of(table, base)}
    fifth = changed["components", "(5) N+S"]
    assert changed["architecture", "with step positions, separate MLP"] == changed["selection", "metadata"] == fifth
    assert all(changed["pathways", row.name] == fifth for row in rows_of("pathways", base))
    assert changed["labels", "S -> V, gamma 0.65"] == changed["components", "(6) N+S, iterative"]


def test_every_cell_is_there_and_kept(ablated: Ablation) -> None:
    results = ablated.make("components", [3])
    cells = Counter(found.variant for found in results)
    counts = [cells[row.name] for row in rows_of("components", ablated.job.settings_of(TrainingSettings))]
    assert counts == [2, 2, 1, 1, 3, 3], "TAN* and N know no fusion, S hears nothing"
    assert all(0 <= found.value <= 100 for found in results)
    rows = ablated.store.table("ablations").snapshot().read().to_pylist()
    kept = {(row["row"], row["measure"], row["seed"], row["model_id"], row["value"]) for row in rows}
    assert kept == {(found.row, found.measure, found.seed, found.model_id, found.value) for found in results}
    metrics = ablated.store.table("metrics").snapshot().read().to_pylist()
    names = ("model_id", "protocol", "method", "pathway", "metric", "split")
    by_cell = {tuple(row[name] for name in names): row for row in metrics}
    sixth = next(found for found in results if found.variant == "(6) N+S, iterative" and "w/ nar." in found.measure)
    stored = by_cell[sixth.model_id, "htstep-r1", "vina", "fused", "R@1", "val_seen"]
    assert (stored["value"], stored["seed"]) == (sixth.value, sixth.seed) and ablated.splits[HTSTEP] == "val_seen"


def test_tables_share_trainings_and_nothing_is_trained_twice(ablated: Ablation) -> None:
    ablated.make("components", [3])
    store = ablated.store
    before = {shard.constants["model_id"] for shard in store.table("training_log").snapshot().shards}
    pathways = ablated.make("pathways", [3])
    assert [found.variant for found in pathways] == [row.name for row in rows_of("pathways", TINY)]
    assert {shard.constants["model_id"] for shard in store.table("training_log").snapshot().shards} == before
    versions = {name: store.table(name).snapshot().version for name in ("training_log", "pseudo_labels", "metrics")}
    again = ablated.make("pathways", [3])
    assert again == pathways
    assert versions == {name: store.table(name).snapshot().version for name in versions}, "nothing was to do"


def test_discarded_labels_are_counted(ablated: Ablation) -> None:
    results = ablated.make("labels", [3])
    found = {row.variant: row.value for row in results if row.measure == "max % discarded"}
    store = ablated.store
    assert (
        set(found) == {row.name for row in rows_of("labels", ablated.job.settings_of(TrainingSettings))}
        and len(found) == 5
    )
    labels = store.table("pseudo_labels").snapshot().read(["model_id", "round", "kept", "gamma", "matrix"]).to_pylist()
    own = next(row for row in results if row.variant == "fused, gamma 0.55")
    rounds: dict[int, list[bool]] = {}
    for row in labels:
        if row["model_id"] == own.model_id and row["round"]:
            assert (row["matrix"], row["gamma"]) == ("F", pytest.approx(0.55))
            rounds.setdefault(row["round"], []).append(not row["kept"])
    assert found[own.variant] == pytest.approx(max(100 * sum(flags) / len(flags) for flags in rounds.values()))


def test_the_curriculum_has_burn_in_and_the_labels_of_every_round(ablated: Ablation) -> None:
    results = ablated.make("curriculum", [3])
    variants = list(dict.fromkeys(found.variant for found in results))
    rows = ["TAN*", "burn-in", "fixed labels", "iterative labels", "labels of round 0", "labels of round 1"]
    assert variants == rows
    assert {found.measure for found in results if found.variant == "burn-in"} == {
        "no narrations", "direct", "indirect", "fused"
    }  # fmt: skip


def test_the_command_prints_ours_beside_the_papers(
    prefect_server: None, job: MakeJob, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = job(**QUICK)
    quick = [f"{name}={value}" for name, value in QUICK.items()]
    own = [f"{name}={getattr(TINY, name)}" for name in NAMES]
    changes = [f"--set=training.{change}" for change in (*quick, *own)]
    side_by_side = ["--runner", "processes", "--workers", "2"]
    assert main(["ablate", "pathways", "--store", asked.store, "--seeds", "0,1", *side_by_side, *changes]) == 0
    said = capsys.readouterr().out
    assert "mean and standard deviation over the seeds 0, 1; HT-Step: val_seen; HTM-Align: test" in said
    (line,) = [line for line in said.splitlines() if "S -> N learned, N -> V by ASR times" in line]
    assert line.count("±") == 1 and " 27.9 " in line
    (run,) = Store(asked.store).table("runs").snapshot().read().to_pylist()
    assert (run["stages"], run["state"]) == (["ablate pathways"], "completed")
    (done,) = Store(asked.store).table("completions").snapshot().where(stage="ablations").read().to_pylist()
    assert (done["_shard"], done["report"]) == ("pathways", "10 cells of pathways")
    keys = ArtifactCollectionFilter(key=ArtifactCollectionFilterKey(any_=["progress-ablations", "vina-ablations"]))
    with get_client(sync_client=True) as client:
        shown = {found.key: found for found in client.read_latest_artifacts(artifact_filter=keys)}
    assert float(str(shown["progress-ablations"].data)) == 100 and "S -> N learned" in str(shown["vina-ablations"].data)
    assert main(["ablate", "pathways", "--store", asked.store, "--seeds", "0,1", "--json", *changes]) == 0
    cells = json.loads(capsys.readouterr().out)["pathways"]
    assert len(cells) == 10 and {cell["seed"] for cell in cells} == {0, 1}
    means = ask(Store(asked.store), "SELECT variant, seeds, mean FROM ablation_means ORDER BY row")
    values = [cell["value"] for cell in cells if cell["variant"] == "fused"]
    assert [row["seeds"] for row in means] == [2] * 5
    assert means[-1]["mean"] == pytest.approx(sum(values) / 2, abs=0.01)


@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_models_trained_side_by_side_are_those_of_one_process(prefect_server: None, job: MakeJob, runner: str) -> None:
    one_by_one, side_by_side = job("one", **QUICK), job("two", **QUICK)
    cells = Ablation(one_by_one).make("architecture", [0])
    execution = Execution.model_validate({"runner": runner, "workers": 2})
    flow(name="test")(lambda: Ablation(side_by_side).make("architecture", [0], parts_runner(execution)))()
    assert Ablation(side_by_side).cells("architecture", 0) == cells and len(cells) == 12
    assert weights(side_by_side) == weights(one_by_one)


@pytest.mark.parametrize("methods", [["tan-lc"], ["vina"]])
def test_a_part_that_is_asked_to_end_saves_its_model(
    job: MakeJob, monkeypatch: pytest.MonkeyPatch, methods: list[str]
) -> None:
    step, before = trainer.Trainer._step, signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def ended(self: trainer.Trainer, *given: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return step(self, *given)

    monkeypatch.setattr(trainer.Trainer, "_step", ended)
    asked = job(**QUICK)
    part = {"settings": TINY.changed(**QUICK).model_dump(), "methods": methods, "is_measured": False}
    try:
        with pytest.raises(Interrupted, match="is saved after 1 steps: run it again to go on"):
            train_and_measure(asked, part)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert list(Store(asked.store).objects.keys("checkpoints/"))


def test_what_cannot_be_ablated_is_refused(
    prefect_server: None, job: MakeJob, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="the settings have no round after the burn-in"):
        Ablation(job(refresh_epochs=0)).make("components", [0])
    with pytest.raises(SystemExit):
        main(["ablate", "components", "--seeds", "1,x"])
    assert "'1,x' is not a list of whole numbers, e.g. 0,1,2" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["ablate", "components", "--store", str(tmp_path / "empty")]) == 1
    assert "no held-out video of HT-Step has demo-concepts features: import both" in capsys.readouterr().err
