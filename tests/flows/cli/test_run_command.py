"""`vina run` where it is one of several processes, or is asked to end."""

from dataclasses import replace
from pathlib import Path

import pytest

from flows import stages
from flows.cli.main import main
from storage import Store
from tasks.pipeline.job import Interrupted, Job
from tasks.pipeline.parts import RunParts
from tasks.pipeline.stage import Dependencies
from tasks.training import processes
from tasks.training.settings import TrainingSettings
from tests.flows.test_full_pipeline import stage_of


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (
            "pairing,burn-in",
            "pairing runs in one process only: under torchrun choose stages that can be shared (--stages burn-in)",
        ),
        ("burn-in", "under torchrun all processes need the same run id: give one with --run-id ID"),
    ],
)
def test_torchrun_is_for_stages_that_are_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stages: str, message: str
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert main(["run", "--store", str(tmp_path / "store"), "--stages", stages]) == 1
    assert message in capsys.readouterr().err


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are no other processes to agree with: each test is one of them. The first one decides to run."""
    monkeypatch.setattr(processes, "first_decides", lambda flag, device: flag or not processes.is_first())


def test_a_process_that_is_not_the_first_works_and_keeps_no_record(
    decided: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Job] = []
    stage = stage_of("burn-in", lambda job, run_parts: seen.append(job) or "done")  # type: ignore[func-returns-value]
    monkeypatch.setattr(stages, "STAGES", (replace(stage, settings=(TrainingSettings,)),))
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "elastic-7")
    assert main(["run", "--store", str(tmp_path / "store"), "--stages", "burn-in", "--set", "gamma=0.5"]) == 0
    (job,) = seen
    assert (job.run_id, job.settings_of(TrainingSettings).gamma) == ("elastic-7", 0.5)
    store = Store(tmp_path / "store")
    assert not store.table("runs").snapshot().shards and not store.table("completions").snapshot().shards


def test_the_first_process_keeps_the_records_and_skips_what_is_complete(
    decided: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Job] = []
    stage = stage_of("burn-in", lambda job, run_parts: seen.append(job) or "done")  # type: ignore[func-returns-value]
    stage = replace(stage, dependencies=lambda job: Dependencies())
    monkeypatch.setattr(stages, "STAGES", (stage,))
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    command = ["run", "--store", str(tmp_path / "store"), "--stages", "burn-in", "--run-id", "shared"]
    for _ in range(2):
        assert main(command) == 0
    (run,) = Store(tmp_path / "store").table("runs").snapshot().read().to_pylist()
    assert len(seen) == 1 and (run["run_id"], run["state"]) == ("shared", "completed")
    assert capsys.readouterr().out == "burn-in: done\nburn-in: skipped: nothing has changed\n"
    assert main([*command, "--force"]) == 1


def test_a_stage_that_was_asked_to_end_is_no_failure(
    prefect_server: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ends(job: Job, run_parts: RunParts) -> str:
        raise Interrupted("saved after 3 steps: run it again to go on")

    monkeypatch.setattr(stages, "STAGES", (stage_of("burn-in", ends),))
    assert main(["run", "--store", str(tmp_path / "store")]) == 130
    assert "vina: saved after 3 steps: run it again to go on" in capsys.readouterr().err
    (run,) = Store(tmp_path / "store").table("runs").snapshot().read().to_pylist()
    assert run["state"] == "interrupted"
