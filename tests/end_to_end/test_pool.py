"""The whole pipeline as users run it: deployments, workers, a store on S3; workers die, runs are cancelled."""

import json
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.full_pipeline import make_job
from storage import Store
from storage.schemas import PROVENANCE, TABLES
from tasks.ablations.runner import Ablation
from tests.conftest import BUCKET
from tests.end_to_end.conftest import DEADLINE_S, Cluster

CORPUS = "demo:short,num_videos=40,num_rendered=4"
OVERRIDES: dict[str, dict[str, Any]] = {
    "features": {"size_px": 64, "videos_per_shard": 1, "batch_size": 4},
    "training": {
        "tan_epochs": 1,
        "epochs": 2,
        "burn_in_epochs": 1,
        "refresh_epochs": 1,
        "selection": "metadata",
        "alignment_share": 0.5,
    },
}
FEATURES_AGAIN = {"stages": ["features"], "force": True}
ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
OF_THE_RUN = {column.name for column in PROVENANCE} | {"logged_at", "made_at", "videos_per_s", "waiting_percent"}


def asked(store: str, **more: Any) -> list[str]:
    told = {"preset": "demo", "store": store, "corpus": CORPUS, "overrides": json.dumps(OVERRIDES), **more}
    return [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in told.items()]


def new_store() -> str:
    return f"s3://{BUCKET}/{uuid.uuid4().hex}/store"


def contents(uri: str) -> dict[str, list[str]]:
    """All rows of all tables but who wrote them, when and how fast."""
    found = {}
    for name in TABLES:
        if name in ("runs", "completions", "rejects"):  # rejects: of the import, they name its temporary folder
            continue
        snapshot = Store(uri).table(name).snapshot()
        rows = snapshot.read().to_pylist() if snapshot.shards else []
        own = ({key: value for key, value in row.items() if key not in OF_THE_RUN} for row in rows)
        found[name] = sorted(str(row).replace(uri, "STORE") for row in own)
    return found


def versions(uri: str) -> dict[str, int]:
    return {name: Store(uri).table(name).snapshot().version for name in TABLES if name != "runs"}


def start(cluster: Cluster, store: str, **more: Any) -> None:
    options = [word for each in asked(store, **more) for word in ("--param", each)]
    started = cluster.prefect("deployment", "run", "vina/full-pipeline", *options)
    assert started.returncode == 0, started.stdout + started.stderr


def parts_of(cluster: Cluster, run_id: str, *states: str) -> list[dict[str, Any]]:
    chosen = {"state": {"type": {"any_": list(states)}}} if states else {}
    return [run for run in cluster.flow_runs("part", **chosen) if run["parameters"]["job"]["run_id"] == run_id]


def wait_for_end(cluster: Cluster, run_id: str) -> dict[str, Any]:
    def ended() -> list[dict[str, Any]]:
        return [run for run in cluster.flow_runs("vina", name={"any_": [run_id]}) if run["state_type"] in ENDED]

    (run,) = cluster.wait_until(ended, f"the end of the run {run_id}")
    return dict(run)


@pytest.fixture(scope="module")
def begun(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A store on disk that the whole pipeline runs on, in one process, meanwhile."""
    store = str(tmp_path_factory.mktemp("undisturbed") / "store")
    changes = [f"{group}.{name}={value}" for group, own in OVERRIDES.items() for name, value in own.items()]
    command = [sys.executable, "-m", "flows.cli", "run", "--preset", "demo", "--corpus", CORPUS, "--store", store]
    command += [word for change in changes for word in ("--set", change)]
    environment = cluster.environment | {"PREFECT_API_URL": "", "PREFECT_HOME": str(cluster.home / "ephemeral")}
    with (cluster.home / "undisturbed.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    yield store, process
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def survived(cluster: Cluster, begun: object) -> tuple[str, dict[str, Any]]:
    """A store on S3 that the whole pipeline ran on, by workers of whom one was killed; and the part that it lost."""
    store = new_store()
    start(cluster, store, run_id="disturbed")

    def working() -> list[dict[str, Any]]:
        runs = parts_of(cluster, "disturbed", "RUNNING")
        return [run for run in runs if run["labels"].get("prefect.worker.name") == "gpu-2"]

    (victim,) = cluster.wait_until(working, "a part on gpu-2")
    at_work = {"flow_run_id": {"any_": [victim["id"]]}, "state": {"type": {"any_": ["RUNNING"]}}}
    cluster.wait_until(lambda: cluster.ask("task_runs/filter", task_runs=at_work), "work on gpu-2")
    cluster.kill_worker("gpu-2")
    cluster.start_worker("vina-gpu", "gpu-3")
    run = wait_for_end(cluster, "disturbed")
    assert run["state_type"] == "COMPLETED", cluster.logs()
    return store, victim


@pytest.fixture(scope="module")
def undisturbed(cluster: Cluster, begun: tuple[str, subprocess.Popen[bytes]]) -> str:
    """The address of a store that the whole pipeline ran on, in one process."""
    store, process = begun
    assert process.wait(DEADLINE_S) == 0, cluster.logs()
    return store


def test_a_worker_that_is_killed_changes_nothing_in_the_end(
    cluster: Cluster, survived: tuple[str, dict[str, Any]], undisturbed: str
) -> None:
    store, victim = survived
    (lost,) = cluster.flow_runs("part", id={"any_": [victim["id"]]})
    assert lost["name"].startswith("features") and lost["state_type"] == "CRASHED"
    assert "its worker is gone" in lost["state"]["message"]
    expected, found = contents(undisturbed), contents(store)
    filled = ("features", "votes", "pairs", "pseudo_labels", "alignments", "training_log", "predictions", "metrics")
    assert all(expected[name] for name in filled)
    for name, rows in expected.items():
        assert found[name] == rows, f"table {name} differs"


def test_the_parts_were_shared_by_the_workers(cluster: Cluster, survived: tuple[str, dict[str, Any]]) -> None:
    (run,) = Store(survived[0]).table("runs").snapshot().read().to_pylist()
    assert (run["run_id"], run["state"], run["error"]) == ("disturbed", "completed", None)
    parts = parts_of(cluster, "disturbed")
    of_features = [run for run in parts if run["name"].startswith("features")]
    assert sorted(run["state_type"] for run in of_features) == ["COMPLETED"] * 4 + ["CRASHED"]
    assert {run["labels"]["prefect.worker.name"] for run in of_features} >= {"gpu-1", "gpu-2"}
    lines = cluster.ask("logs/filter", logs={"flow_run_id": {"any_": [run["id"] for run in of_features]}})
    assert "vina.features" in {line["name"] for line in lines}, "the stage's own lines are in Prefect's log"
    kinds = {run["parameters"]["kind"] for run in parts}
    assert kinds == {"features", "embedding", "training", "labelling", "evaluation"}


def test_artifacts_show_the_run(cluster: Cluster, survived: tuple[str, dict[str, Any]]) -> None:
    found = {artifact["key"]: artifact for artifact in cluster.ask("artifacts/latest/filter", limit=200)}
    stages = ("import", "features", "pairing", "burn-in", "rounds", "evaluation", "report")
    assert {f"progress-{stage}" for stage in stages} <= found.keys()
    assert all(float(found[f"progress-{stage}"]["data"]) == 100 for stage in stages)
    assert {"vina-corpus", "vina-rejects", "vina-pairs", "vina-labels", "vina-metrics", "vina-report"} <= found.keys()
    labels = json.loads(found["vina-labels"]["data"])
    assert [row["round"] for row in labels] == [0, 1] and all(row["kept_percent"] > 0 for row in labels)
    assert "objects/reports/disturbed.html" in found["vina-report"]["data"]
    page = Store(survived[0]).objects.get("reports/disturbed.html").decode()
    assert "vina with narrations, in the paper" in page


def test_nothing_changed_means_nothing_done(cluster: Cluster, survived: tuple[str, dict[str, Any]]) -> None:
    before = versions(survived[0])
    done = cluster.run("vina/full-pipeline", *asked(survived[0], run_id="again"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert versions(survived[0]) == before


def test_a_stage_reruns_alone(cluster: Cluster, survived: tuple[str, dict[str, Any]]) -> None:
    before = versions(survived[0])
    done = cluster.run("vina/report", *asked(survived[0], run_id="told-anew", force=True))
    assert done.returncode == 0, done.stdout + done.stderr
    assert {name for name, version in versions(survived[0]).items() if version != before[name]} == {"completions"}
    assert Store(survived[0]).objects.get("reports/told-anew.html")


@pytest.mark.parametrize(
    ("parameter", "field"),
    [
        ("preset=large", "preset"),
        ('overrides={"training": {"gamma": 7}}', "gamma"),
        ('overrides={"training": {"gama": 0.5}}', "gama"),
        ('stages=["features", "nothing"]', "stages"),
        ('execution={"workers": 0}', "workers"),
        ("run_id=a b", "run_id"),
    ],
)
def test_a_wrong_parameter_is_refused_before_anything_starts(cluster: Cluster, parameter: str, field: str) -> None:
    before = len(cluster.flow_runs("vina"))
    refused = cluster.prefect("deployment", "run", "vina/full-pipeline", "--param", parameter)
    assert refused.returncode != 0
    assert field in refused.stdout + refused.stderr
    assert len(cluster.flow_runs("vina")) == before


def test_secrets_are_nowhere(cluster: Cluster, survived: tuple[str, dict[str, Any]]) -> None:
    secrets = ["test-secret-never-to-be-seen", "test-key"]
    told = cluster.logs()
    database = sqlite3.connect(f"file:{cluster.home / 'prefect/prefect.db'}?mode=ro", uri=True)
    told += "\n".join(database.iterdump())
    told += "\n".join(str(Store(survived[0]).table(name).snapshot().read().to_pylist()) for name in TABLES)
    told += Store(survived[0]).objects.get("reports/disturbed.html").decode()
    assert "disturbed" in told and not [secret for secret in secrets if secret in told]


def test_a_relative_store_is_refused_where_a_worker_would_throw_it_away(cluster: Cluster) -> None:
    done = cluster.run("vina/import", "store=here", "run_id=lost")
    assert done.returncode != 0
    (run,) = cluster.flow_runs("vina", name={"any_": ["lost"]})
    assert "a worker needs an absolute path" in run["state"]["message"]
    assert not Path("here").exists()


def test_ablations_are_trained_by_the_pool(
    cluster: Cluster, survived: tuple[str, dict[str, Any]], undisturbed: str
) -> None:
    """TAN* and a student for each seed: four parts. The table is the one that a single process computes."""
    told = {"table": "pathways", "seeds": [0, 1], "overrides": OVERRIDES, "run_id": "ablated", "store": survived[0]}
    done = cluster.run("ablations/tables", *[f"{name}={json.dumps(value)}" for name, value in told.items()])
    assert done.returncode == 0, done.stdout + done.stderr
    parts = parts_of(cluster, "ablated")
    assert [(run["parameters"]["kind"], run["state_type"]) for run in parts] == [("ablation", "COMPLETED")] * 4
    job = make_job("demo", undisturbed, None, OVERRIDES, "ablated-here", force=False)
    cells = Ablation(job).make("pathways", [0, 1])
    assert len(cells) == 10
    by_pool = Ablation(job.changed(store=survived[0]))
    assert [cell for seed in (0, 1) for cell in by_pool.cells("pathways", seed)] == cells


def test_a_child_that_fails_fails_its_parent(cluster: Cluster, survived: tuple[str, dict[str, Any]]) -> None:
    """With a device that nobody has; forced, so that there is something to do."""
    wrong = json.dumps({**OVERRIDES, "features": {**OVERRIDES["features"], "device": "abacus"}})
    done = cluster.run("vina/full-pipeline", *asked(survived[0], run_id="wrong", overrides=wrong, **FEATURES_AGAIN))
    assert done.returncode != 0
    (run,) = cluster.flow_runs("vina", name={"any_": ["wrong"]})
    assert run["state_type"] == "FAILED" and "features, part" in run["state"]["message"]
    (row,) = [row for row in Store(survived[0]).table("runs").snapshot().read().to_pylist() if row["run_id"] == "wrong"]
    assert row["state"] == "failed" and "abacus" in row["error"]


def test_a_cancelled_run_leaves_a_readable_store_and_goes_on(
    cluster: Cluster, survived: tuple[str, dict[str, Any]], undisturbed: str
) -> None:
    store, _ = survived
    start(cluster, store, run_id="cancelled", **FEATURES_AGAIN)
    cluster.wait_until(lambda: parts_of(cluster, "cancelled", "RUNNING"), "a part of the run")
    (parent,) = cluster.flow_runs("vina", name={"any_": ["cancelled"]})
    assert cluster.prefect("flow-run", "cancel", parent["id"]).returncode == 0
    assert wait_for_end(cluster, "cancelled")["state_type"] == "CANCELLED"
    cluster.wait_until(
        lambda: {run["state_type"] for run in parts_of(cluster, "cancelled")} <= ENDED, "the end of its pieces"
    )
    assert "CANCELLED" in {run["state_type"] for run in parts_of(cluster, "cancelled")}
    assert len(contents(store)["features"]) < len(contents(undisturbed)["features"]), "readable, and not all is there"
    done = cluster.run("vina/full-pipeline", *asked(store, run_id="continued", stages=["features"]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert contents(store)["features"] == contents(undisturbed)["features"]
