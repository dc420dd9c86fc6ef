"""The curriculum: labels of every round, checkpoints that go on, processes that share the work, errors with names."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from storage import Store
from tasks.pipeline.job import Interrupted, Job
from tasks.training import checkpoints, trainer
from tasks.training.batches import Example
from tasks.training.curriculum import Curriculum, Phase
from tasks.training.processes import Processes, alone
from tasks.training.settings import TrainingSettings
from tasks.training.stage import BURN_IN, ROUNDS, burn_in, rounds
from tests.tasks.conftest import MakeJob
from vina_model.alignment import Alignment
from vina_model.objective import Losses, vina_objective

pytestmark = pytest.mark.slow

ALONE = Processes(0, 1, "cpu")


def train(job: Job) -> Curriculum:
    burn_in(job)
    rounds(job)
    return Curriculum(job, ALONE)


def weights(job: Job) -> dict[str, torch.Tensor]:
    work = Curriculum(job, ALONE)
    state = checkpoints.load(work.store, work.student_id, "last")
    assert state is not None
    return state["state"]


def assert_same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name


def test_every_round_labels_every_step_and_says_why(job: MakeJob) -> None:
    asked = job()
    work = train(asked)
    snapshot = work.store.table("pseudo_labels").snapshot()
    steps = sum(
        len(work.corpus.steps[article]) for name in work.corpus.paired for article in work.corpus.articles[name]
    )
    for number, teacher in enumerate([work.tan_id, f"{work.student_id}/teacher-1", f"{work.student_id}/teacher-2"]):
        rows = snapshot.where(model_id=work.student_id, round=number).read().to_pylist()
        assert len(rows) == steps and {row["teacher"] for row in rows} == {teacher}
        assert 0.4 < np.mean([row["kept"] for row in rows]) < 0.6
        for row in rows:
            assert 0 <= row["start_s"] <= row["peak_s"] < row["end_s"] <= work.corpus.num_seconds[row["video_id"]]
            assert row["kept"] == (row["score"] >= row["gamma"])
            assert row["reason"] == ("confidence reaches gamma" if row["kept"] else "confidence below gamma")
    log = work.store.table("training_log").snapshot().read().to_pylist()
    assert {(row["model_id"], row["stage"]) for row in log} == {(work.tan_id, "tan"), (work.student_id, "vina")}
    assert [row["round"] for row in log if row["stage"] == "vina"][-1] == 2
    assert all((row["loss_sv"] is None) == (row["stage"] == "tan") for row in log)
    assert all(row["loss"] == pytest.approx(row["loss_nv"] + (row["loss_sv"] or 0), rel=1e-5) for row in log)
    versions = {table.name: table.snapshot().version for table in work.store.tables()}
    train(asked)
    assert versions == {table.name: table.snapshot().version for table in work.store.tables()}, "nothing was to do"


def test_a_term_that_is_not_trained_has_no_loss(job: MakeJob) -> None:
    for name, setting in (("loss_nv", "narrations"), ("loss_sv", "steps")):
        work = train(job(setting, tan_epochs=1, epochs=2, burn_in_epochs=1, **{setting: False}))
        log = work.store.table("training_log").snapshot().where(model_id=work.student_id).read().to_pylist()
        assert len(log) > 1 and all(row[name] is None and row["loss"] > 0 for row in log)


def test_a_training_that_broke_off_ends_with_the_same_weights(job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = job("whole")
    train(whole)
    broken = job("broken")
    calls = 0

    def fails(alignment: Alignment, narrations_BNT: torch.Tensor, steps_BST: torch.Tensor | None) -> Losses:
        nonlocal calls
        calls += 1
        if calls in (3, 9):
            raise KeyboardInterrupt
        return vina_objective(alignment, narrations_BNT, steps_BST)

    monkeypatch.setattr("tasks.training.curriculum.vina_objective", fails)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train(broken)
    train(broken)
    assert_same(weights(whole), weights(broken))


COMMAND = """
import json, sys, torch
torch.set_num_threads(1)
from tasks.pipeline.job import Job
from tasks.training.settings import TrainingSettings
from tasks.training.stage import burn_in, rounds
from tasks.training import trainer
job = json.loads(sys.argv[1])
job = Job(**job)
if len(sys.argv) > 2:
    slow = trainer.Trainer._step
    def step(self, *arguments):
        import time
        time.sleep(float(sys.argv[2]))
        return slow(self, *arguments)
    trainer.Trainer._step = step
burn_in(job)
rounds(job)
"""


def command(job: Job, *arguments: str) -> list[str]:
    return ["-c", COMMAND, json.dumps(job.model_dump()), *arguments]


def wait_for_steps(job: Job, count: int) -> None:
    """Until the student has saved after so many steps."""
    work = Curriculum(job, ALONE)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        state = checkpoints.load(work.store, work.student_id, "last")
        if state is not None and state["position"]["step"] >= count:
            return
        time.sleep(0.1)
    raise TimeoutError


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_training_ends_with_the_same_weights(job: MakeJob, signal_: signal.Signals) -> None:
    whole, killed = job("whole"), job("killed", checkpoint_minutes=0.0)
    train(whole)
    process = subprocess.Popen([sys.executable, *command(killed, "0.1")], stderr=subprocess.PIPE, text=True)
    wait_for_steps(killed, 3)
    process.send_signal(signal_)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode != 0
    if signal_ == signal.SIGTERM:
        assert "run it again to go on" in stderr
    train(killed)
    assert_same(weights(whole), weights(killed))


def test_two_processes_learn_what_one_learns(job: MakeJob) -> None:
    """torchrun on the command itself, which also accumulates."""
    plain = {"dropout": 0.0, "word_dropout": 0.0, "feature_noise": 0.0}
    alone, shared = job("alone", **plain), job("shared", accumulate=2, **plain)
    work = train(alone)
    changes = [
        f"--set=training.{name}={str(value).lower()}"
        for name, value in shared.settings_of(TrainingSettings).model_dump().items()
        if value != ""
    ]
    changes = [change.replace("=sv", "=SV") for change in changes]
    command = ["-m", "flows.cli", "run", "--store", shared.store, "--stages", "burn-in,rounds", *changes]
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    launched = [sys.executable, *launch, *command]
    subprocess.run(launched, check=True, env=environment, timeout=300)
    done = Store(shared.store).table("completions").snapshot().shards
    assert {shard.constants["stage"] for shard in done} == {"burn-in", "rounds"}

    def losses(store: str) -> list[float]:
        rows = Store(store).table("training_log").snapshot().where(model_id=work.student_id).read().to_pylist()
        return [row["loss"] for row in sorted(rows, key=lambda row: row["step"])]

    assert len(losses(alone.store)) == 16
    np.testing.assert_allclose(losses(shared.store), losses(alone.store), atol=1e-3)
    (run,) = Store(shared.store).table("runs").snapshot().read().to_pylist()
    assert run["state"] == "completed"
    labels = Store(shared.store).table("pseudo_labels").snapshot()
    assert {shard.written_by for shard in labels.shards} == {run["run_id"]}
    again = subprocess.run(launched, check=True, env=environment, timeout=300, capture_output=True, text=True).stdout
    assert again == "burn-in: skipped: nothing has changed\nrounds: skipped: nothing has changed\n"


def test_a_loss_that_is_not_finite_names_the_videos(job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = job()
    bad = Curriculum(asked, ALONE).corpus.narrated[5]

    def losses_of(self: trainer.Trainer, example: Example) -> Losses:
        losses = torch.tensor([torch.nan if name == bad else 1.0 for name in example.video_ids], requires_grad=True)
        return Losses(losses, losses, None)

    monkeypatch.setattr(trainer.Trainer, "_losses", losses_of)
    with pytest.raises(ValueError, match=f"loss is not finite in epoch 0, step .*for the videos {bad}: look at"):
        burn_in(asked)


def test_features_that_are_not_finite_are_named(job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Curriculum(job(), ALONE)
    name = work.corpus.narrated[3]
    read = work.corpus.reader.read

    def damaged(video_id: str) -> np.ndarray:
        vectors = read(video_id)
        if video_id == name:
            vectors[7, 2] = np.nan
        return vectors

    monkeypatch.setattr(work.corpus.reader, "read", damaged)
    with pytest.raises(ValueError, match=f"features of video '{name}' are not finite in second 7"):
        work.train_tan()


def test_a_checkpoint_of_another_configuration_is_refused(job: MakeJob) -> None:
    work = Curriculum(job(), ALONE)
    work.train_tan()
    state = checkpoints.load(work.store, work.tan_id, "last")
    assert state is not None
    state["configuration"] = state["configuration"].replace('"width": 32', '"width": 64')
    checkpoints.save(work.store, work.tan_id, "last", state)
    with pytest.raises(ValueError, match="is of another configuration: width 64, not 32"):
        work.train_tan()


def test_other_settings_are_another_model(job: MakeJob) -> None:
    works = [
        Curriculum(job(**changes), ALONE) for changes in ({}, {"gamma": 0.4}, {"seed": 1}, {"checkpoint_minutes": 1.0})
    ]
    assert len({work.student_id for work in works}) == 3 and works[0].student_id == works[3].student_id
    assert works[0].tan_id == works[1].tan_id != works[2].tan_id, "TAN* has no gamma"


def test_phases_end_where_the_next_round_of_labels_begins(job: MakeJob) -> None:
    assert Curriculum(job(epochs=12, burn_in_epochs=3, refresh_epochs=4), ALONE).phases() == [
        Phase(label_round=0, last_epoch=3),
        Phase(label_round=1, last_epoch=7),
        Phase(label_round=2, last_epoch=11),
        Phase(label_round=3, last_epoch=12),
    ]
    assert Curriculum(job(epochs=4, burn_in_epochs=2, refresh_epochs=0), ALONE).phases() == [Phase(0, 2), Phase(0, 4)]
    assert Curriculum(job(epochs=2, burn_in_epochs=2), ALONE).phases() == [Phase(0, 2)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 0}, "setting batch_size is 0: it must be greater than or equal to 1"),
        ({"learning_rate": float("nan")}, "setting learning_rate is nan: it must be a finite number"),
        ({"keep_share": 1.5}, "setting keep_share is 1.5: it must be less than or equal to 1"),
        ({"selection": "top2"}, "setting selection is 'top2': it must be 'metadata', 'top1' or 'random_top5'"),
        ({"confidence": "sure"}, "setting confidence is 'sure': it must be 'peak' or 'mutual'"),
        ({"heads": 5}, "setting width is 32: choose a multiple of heads, 5"),
        ({"burn_in_epochs": 9}, "setting burn_in_epochs is 9, more than all epochs, 4"),
        ({"narrations": False, "steps": False}, "settings narrations and steps are both false"),
    ],
)
def test_settings_that_make_no_sense_are_refused(job: MakeJob, change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        job(**change)


def test_a_device_and_a_backbone_that_are_not_there_are_named(job: MakeJob) -> None:
    with pytest.raises(ValueError, match="there is no device 'gpu' here"):
        burn_in(job(device="gpu"))
    with pytest.raises(ValueError, match="no features of backbone 's3d', only of demo-concepts: choose one"):
        burn_in(job(backbone="s3d"))


def test_without_narrations_tan_cannot_be_trained(job: MakeJob) -> None:
    asked = job()
    table = Store(asked.store).table("narrations")
    for source in {shard.constants["source"] for shard in table.snapshot().shards}:
        table.retire({"source": source})
    with pytest.raises(
        ValueError, match=r"no video to train on has narrations: TAN\* needs some, or name a published one"
    ):
        burn_in(asked)


def test_another_file_of_words_at_the_same_path_is_another_model(job: MakeJob, tmp_path: Path) -> None:
    path, names = tmp_path / "words.txt", []
    for value in (1, 2):
        path.write_text(f"1 2\nthe {value} 0\n")
        names.append(Curriculum(job(words=str(path)), ALONE).student_id)
    assert names[0] != names[1]


def test_a_gradient_that_is_not_finite_names_the_videos(job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    def losses_of(self: trainer.Trainer, example: Example) -> Losses:
        (weight, *_) = self.learner.model.parameters()
        losses = (weight.sum() * 0).sqrt().expand(len(example.video_ids))  # 0, with a gradient of infinity times 0
        return Losses(losses, losses, None)

    monkeypatch.setattr(trainer.Trainer, "_losses", losses_of)
    with pytest.raises(ValueError, match=r"the gradient is not finite in epoch 0, step 0, for the videos .*: look at"):
        burn_in(job())


def test_nothing_to_train_on_is_said(tmp_path: Path) -> None:
    assert "no video with s3d-milnce features is paired" in burn_in(Job.of(str(tmp_path / "store"), "run-1"))


def test_asked_to_end_it_saves_and_says_so(job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    step = trainer.Trainer._step

    def ended(self: trainer.Trainer, examples: list[Example], weight: float) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGTERM)
        return step(self, examples, weight)

    monkeypatch.setattr(trainer.Trainer, "_step", ended)
    with pytest.raises(Interrupted, match="is saved after 1 steps: run it again to go on"):
        burn_in(job())


def test_what_is_put_aside_is_trained_again_with_the_same_outcome(job: MakeJob) -> None:
    asked = job(burn_in_epochs=1, epochs=2, refresh_epochs=1)
    burn_in(asked)
    rounds(asked)
    work = Curriculum(asked, alone("cpu"))

    def outcome() -> str:
        return {model.model_id: model.teacher.version for model in work.trained()}[work.student_id]

    before = outcome()
    ROUNDS.reset(asked)
    assert [model.model_id for model in work.trained()] == [work.tan_id], "the student is as it was after burn-in"
    rounds(asked)
    assert outcome() == before
    BURN_IN.reset(asked)
    assert list(work.trained()) == []
    burn_in(asked)
    rounds(asked)
    assert outcome() == before


def test_without_rounds_nothing_is_put_aside_for_them(job: MakeJob) -> None:
    asked = job(burn_in_epochs=1, epochs=1)
    burn_in(asked)
    ROUNDS.reset(asked)
    work = Curriculum(asked, alone("cpu"))
    assert work.student_id in [model.model_id for model in work.trained()]
