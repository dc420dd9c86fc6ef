"""`vina up` and `vina status`, with real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prefect import flow, get_client
from prefect.settings import PREFECT_API_URL
from prefect.states import Running

from flows.ablations import ablations
from flows.cli.main import main
from flows.full_pipeline import vina
from flows.parts import run_part
from storage import Store
from tasks.pipeline.job import Job
from tasks.pipeline.parts import run_here
from tasks.pipeline.run_record import record_run
from tasks.pipeline.stage import run_stage
from tasks.report.stage import REPORT
from tests.conftest import free_port


@pytest.mark.slow
def test_up_serves_and_deploys_and_ends_with_all_its_processes(tmp_path: Path) -> None:
    port = free_port()
    environment = os.environ | {"PREFECT_HOME": str(tmp_path / "prefect"), "PYTHONUNBUFFERED": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "flows.cli", "up", "--port", str(port), "--store", str(tmp_path / "store")]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout
        said = ""
        while "prefect deployment run" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        assert f"export PREFECT_API_URL=http://127.0.0.1:{port}/api" in said and str(tmp_path / "store") in said
        client = environment | {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api"}
        asked = [sys.executable, "-m", "prefect", "deployment", "ls"]
        listed = subprocess.run(asked, env=client, capture_output=True, text=True, check=True).stdout
        stages = ("import", "features", "pairing", "burn-in", "rounds", "evaluation", "report")
        assert all(f"vina/{name}" in listed for name in ("full-pipeline", *stages)) and "part/gpu" in listed
        again = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert again.returncode == 1 and "another server answers at" in again.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=90)[0]
    assert process.returncode == 130 and "vina: interrupted" in rest
    time.sleep(0.5)
    left = subprocess.run(["pgrep", "-f", str(port)], capture_output=True, text=True, check=False).stdout
    assert left == "", "all processes have ended"


def test_status_shows_stages_and_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path / "store")
    job = Job.of(store.uri, "run-1")
    with record_run(store, job.run_id, ["report"], job.model_dump()):
        run_stage(job, REPORT, run_here)
    assert main(["status", "--store", store.uri, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (stage,) = found["stages"]
    assert (stage["stage"], stage["run"], stage["report"]) == (
        "report",
        "run-1",
        f"{store.uri}/objects/reports/run-1.html",
    )
    (run,) = found["runs"]
    assert (run["run_id"], run["state"], run["stages"]) == ("run-1", "completed", "report")
    assert main(["status", "--store", store.uri]) == 0
    assert "run-1" in capsys.readouterr().out


def test_status_shows_what_is_active_of_every_flow(
    prefect_server: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with get_client(sync_client=True) as client:
        names = {client.create_flow_run(flow, state=Running()).name for flow in (vina, ablations, run_part, other)}
    monkeypatch.setenv("PREFECT_API_URL", PREFECT_API_URL.value() or "")
    (tmp_path / "store").mkdir()
    assert main(["status", "--store", str(tmp_path / "store"), "--json"]) == 0
    active = [row["run"] for row in json.loads(capsys.readouterr().out)["active"]]
    assert len(names & set(active)) == 3


@flow
def other() -> None: ...


def test_status_of_no_store_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--store", str(tmp_path / "none")]) == 1
    assert "there is no store at" in capsys.readouterr().err
