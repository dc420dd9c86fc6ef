"""Parts under Prefect's task runners and under torchrun: the same results, patience with passing faults only."""

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from prefect import flow
from prefect.client.schemas.objects import FlowRun
from prefect.states import Cancelled, Completed, Crashed, Failed, Running
from prefect.task_runners import ProcessPoolTaskRunner

from flows import parts, pool
from flows.execution import Execution
from flows.parts import parts_runner
from flows.pool import PartFailed
from storage import Store
from tasks.features.settings import FeatureSettings
from tasks.features.stage import make_features
from tasks.importers.settings import ImportSettings
from tasks.importers.stage import import_corpus
from tasks.pairing.stage import make_pairs
from tasks.pipeline.job import Interrupted, Job
from tasks.pipeline.parts import Part, PartKind, run_here
from tasks.training.settings import TrainingSettings
from tasks.training.stage import LABELLING, burn_in
from tasks.training.stage import TRAINING as TRAIN

SMALL = FeatureSettings(size_px=32, videos_per_shard=1)
TRAINING = TrainingSettings.of_preset("demo").changed(
    tan_epochs=1, epochs=2, burn_in_epochs=1, refresh_epochs=1, selection="metadata", device="cpu"
)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported") / "store"
    import_corpus(Job.of(str(folder), "import", ImportSettings(corpus="demo:short,num_videos=30,num_rendered=3")))
    return folder


@pytest.fixture
def job(imported: Path, tmp_path: Path) -> Job:
    shutil.copytree(imported, tmp_path / "store")
    store = Store(tmp_path / "store")
    videos = store.table("videos").snapshot().where(source="videos").read().to_pylist()
    assert len(videos) == 3
    return Job.of(store.uri, "run", SMALL, TRAINING)


def features(job: Job) -> dict[str, list[Any]]:
    found = Store(job.store).table("features").snapshot().where(backbone="s3d-milnce")
    rows = found.read(["video_id", "second", "vector"])
    return dict(rows.sort_by([("video_id", "ascending"), ("second", "ascending")]).to_pydict())


def run_in_flow(work: Callable[[], Any]) -> Any:
    """As a stage is: inside a flow."""
    return flow(name="test", validate_parameters=False)(work)()


@pytest.mark.parametrize("runner", ["threads", "processes", "dask"])
def test_task_runners_make_what_one_process_makes(
    prefect_server: None, job: Job, imported: Path, tmp_path: Path, runner: str
) -> None:
    execution = Execution.model_validate({"runner": runner, "workers": 2})
    report = run_in_flow(lambda: make_features(job, parts_runner(execution)))
    assert report == "3 of 3 videos got features (0 rejected)"
    shutil.copytree(imported, tmp_path / "other")
    alone = job.changed(store=str(tmp_path / "other"))
    make_features(alone, run_here)
    found, expected = features(job), features(alone)
    assert found["video_id"] == expected["video_id"] and len(found["second"]) > 30
    assert found["vector"] == expected["vector"]


def test_a_runner_that_is_not_installed_is_named(prefect_server: None, job: Job) -> None:
    execution = Execution(runner="ray", workers=2)
    with pytest.raises(ValueError, match=r"execution.runner is ray, which is not installed: pip install vina\[ray\]"):
        run_in_flow(lambda: make_features(job, parts_runner(execution)))


def test_torchrun_trains_and_labels_where_several_devices_are_asked_for(prefect_server: None, job: Job) -> None:
    make_pairs(job)
    report = run_in_flow(lambda: burn_in(job, parts_runner(Execution(devices=2))))
    assert "labelled 24 videos" in report
    store = Store(job.store)
    labels = store.table("pseudo_labels").snapshot()
    assert {shard.constants["round"] for shard in labels.shards} == {0} and labels.num_rows
    names = {key.split("/")[1].split("@")[0] for key in store.objects.keys("checkpoints/")}
    assert names == {"tan", "vina"}


def test_shards_are_put_together_for_processes_that_share_them() -> None:
    labelling: list[Part] = [{"round": 1, "shards": [number]} for number in range(5)]
    assert LABELLING.merge(labelling, None) == [{"round": 1, "shards": [0, 1, 2, 3, 4]}]
    assert [part["shards"] for part in LABELLING.merge(labelling, 2)] == [[0, 1], [2, 3], [4]]
    assert LABELLING.merge([], 2) == LABELLING.merge([], None) == []
    assert TRAIN.merge([{"model": "tan"}], None) == [{"model": "tan"}]


def test_a_worker_that_is_asked_to_end_leaves_its_part_to_others(
    prefect_server: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(job: Job, part: Part) -> None:
        raise Interrupted("saved after 3 steps")

    monkeypatch.setattr(parts, "part_kind", lambda name: PartKind(name, ends))
    state = parts.run_part(Job.of("nowhere", "run"), "training", {}, 0, Execution(), return_state=True)
    assert state.is_crashed() and state.message == "saved after 3 steps"


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseException | None]]:
    """What the work raises, time after time; None where it succeeds."""
    coming: list[BaseException | None] = []

    def work(job: Job, part: Part) -> None:
        if error := coming.pop(0):
            raise error

    monkeypatch.setattr(parts, "part_kind", lambda name: PartKind(name, work))
    yield coming


def run_faulty(**execution: Any) -> None:
    patience = Execution(retry_delay_s=0, **execution)
    job, kind = Job.of("nowhere", "run"), parts.part_kind("faulty")
    run_in_flow(lambda: parts_runner(patience)(job, kind, [{}]))


def test_passing_faults_are_tried_again(prefect_server: None, faults: list[BaseException | None]) -> None:
    faults += [ConnectionResetError("reset"), TimeoutError("slow"), None]
    run_faulty(retries=2)
    assert faults == []


def test_patience_ends(prefect_server: None, faults: list[BaseException | None]) -> None:
    faults += [ConnectionResetError("first"), ConnectionResetError("second"), None]
    with pytest.raises(ConnectionResetError, match="second"):
        run_faulty(retries=1)
    assert faults == [None]


def test_what_is_wrong_is_not_tried_again(prefect_server: None, faults: list[BaseException | None]) -> None:
    faults += [ValueError("features of video x are not finite"), None]
    with pytest.raises(ValueError, match="not finite"):
        run_faulty(retries=5)
    assert faults == [None]


@pytest.mark.parametrize(("fault", "tries"), [("network", 2), ("data", 1)])
def test_under_torchrun_too_passing_faults_alone_are_tried_again(
    prefect_server: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, tries: int
) -> None:
    monkeypatch.setattr(parts, "TORCHRUN_PART", "tests.flows.faulty_part")
    kind, execution = PartKind("faulty", lambda job, part: None, shares_devices=True), Execution(devices=2)
    run_parts = parts_runner(execution.model_copy(update={"retry_delay_s": 0}))
    with nullcontext() if fault == "network" else pytest.raises(PartFailed, match="faulty on 2 devices ended with"):
        run_in_flow(lambda: run_parts(Job.of(str(tmp_path), "run"), kind, [{"fault": fault}]))
    assert (tmp_path / "tries").read_text() == "x" * tries


def test_the_first_part_that_fails_is_the_last_that_is_begun(
    prefect_server: None, faults: list[BaseException | None]
) -> None:
    faults += [ValueError("no"), *[None] * 99]
    job, kind = Job.of("nowhere", "run"), parts.part_kind("faulty")
    with pytest.raises(ValueError, match="no"):
        run_in_flow(lambda: parts_runner(Execution(workers=2, retries=0))(job, kind, [{}] * 100))
    assert len(faults) >= 92, "of a hundred parts a handful was begun"


def test_a_part_that_takes_too_long_is_given_up(prefect_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[float] = []

    def sleep(job: Job, part: Part) -> None:
        begun.append(time.monotonic())
        time.sleep(30)

    monkeypatch.setattr(parts, "part_kind", lambda name: PartKind(name, sleep))
    with pytest.raises(TimeoutError):
        run_faulty(retries=2, timeout_minutes=0.02)
    assert len(begun) == 1, "it would take as long again"


def run_with(state: Any, worker: str | None = None) -> FlowRun:
    labels = {"prefect.worker.name": worker} if worker else {}
    return FlowRun(flow_id=JOB_FLOW, state=state, state_type=state.type, state_name=state.name, name="p", labels=labels)


JOB_FLOW = "00000000-0000-0000-0000-000000000001"


def test_a_child_that_failed_fails_its_parent() -> None:
    assert pool._is_done(run_with(Completed()), Execution())
    assert not pool._is_done(run_with(Running()), Execution())
    for state in (Failed(message="no features"), Cancelled(message="by hand")):
        with pytest.raises(PartFailed, match=r"no features|by hand"):
            pool._is_done(run_with(state), Execution())


def test_a_child_is_lost_if_it_crashed_or_its_worker_is_silent() -> None:
    assert pool._is_lost(run_with(Crashed()), set())
    assert pool._is_lost(run_with(Running(), "gpu-1"), {"gpu-1"})
    assert not pool._is_lost(run_with(Running(), "gpu-2"), {"gpu-1"})
    assert not pool._is_lost(run_with(Completed(), "gpu-1"), {"gpu-1"})


def test_parts_that_need_their_own_process_never_share_one() -> None:
    training = PartKind("training", lambda job, part: None, needs_own_process=True)
    assert isinstance(parts._runner(Execution(workers=2), training), ProcessPoolTaskRunner)
    active: list[int] = []

    def work(job: Job, part: Part) -> None:
        active.append(1)
        time.sleep(0.05)
        assert len(active) == 1, "another part runs in this process"
        active.pop()

    alone = PartKind("alone", work, needs_own_process=True)
    with ThreadPoolExecutor(4) as threads:  # as a Dask worker of several threads
        list(threads.map(lambda number: parts._work_here(Job.of("nowhere", "run"), alone, {}), range(8)))
