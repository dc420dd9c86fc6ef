"""Which model a run stands for, whatever was imported and trained since."""

from pathlib import Path

import pytest

from storage import Store
from tasks.evaluation.results import methods_by_model, student_of
from tasks.pipeline.job import Job
from tasks.pipeline.run_record import record_run
from tasks.training.model_files import find_model, is_calibrated, models_in, read_model, write_model
from tasks.training.settings import TrainingSettings
from tests.trained_store import RUN, SETTINGS, copy_of


@pytest.fixture
def job(trained: Job, tmp_path: Path) -> Job:
    return copy_of(trained, tmp_path)


def recorded(store: Store, run_id: str, job: Job, stages: tuple[str, ...] = ("evaluation",)) -> None:
    with record_run(store, run_id, stages, job.model_dump()):
        pass


def test_a_run_that_found_its_training_done_stands_for_the_model_of_its_own_settings(job: Job) -> None:
    """Another seed's model that was made in between is not it, nor is what an ablation with its settings trained."""
    store = Store(job.store)
    own = find_model(store, RUN)
    other = SETTINGS.changed(seed=1)
    table, name = store.table("models"), own["model_id"]
    write_model(store, "run-2", name, "tan@2", SETTINGS)
    assert models_in(store) == [own] and is_calibrated(store, name)  # the same weights: nothing to do
    write_model(store, "run-2", name, "tan@2", SETTINGS, {})
    assert [row["model_id"] for row in models_in(store)] == [name] and not is_calibrated(store, name)
    checkpoint = store.objects.get(f"checkpoints/{name}/last.pt")
    store.objects.put("checkpoints/vina@other/last.pt", checkpoint)
    write_model(store, "run-3", "vina@other", "tan@3", other)
    recorded(store, "ablation", job, ("ablate main",))
    recorded(store, "run-3", job.changed(other))
    recorded(store, "run-4", job)
    recorded(store, "run-5", job.changed(SETTINGS.changed(device=None)))
    assert table.snapshot().num_rows == 2
    for run, model_id in (("run-4", name), ("run-3", "vina@other"), (RUN, name), ("run-5", name), ("ablation", name)):
        assert find_model(store, run)["model_id"] == model_id, run
    assert find_model(store)["model_id"] == "vina@other"


def test_data_that_came_later_does_not_hide_a_run(job: Job) -> None:
    store = Store(job.store)
    before = methods_by_model(store, job.settings_of(TrainingSettings), RUN)
    store.table("steps").retire({"source": "wikihow"})  # what is trained on is another corpus now
    assert set(methods_by_model(store, job.settings_of(TrainingSettings))) != set(before)
    assert set(methods_by_model(store, job.settings_of(TrainingSettings), RUN)) >= {
        name for name, method in before.items() if method == "vina"
    }
    assert student_of(store, RUN) == student_of(Store(job.store), RUN) == find_model(store, RUN)["model_id"]


def test_what_is_not_there_is_named(job: Job, tmp_path: Path) -> None:
    store = Store(job.store)
    with pytest.raises(ValueError, match="there is no model vina@0; the models there are: vina@"):
        find_model(store, "vina@0")
    recorded(store, "other", job.changed(SETTINGS.changed(gamma=0.1)))
    with pytest.raises(ValueError, match="run other has no model of its own"):
        find_model(store, "other")
    with pytest.raises(ValueError, match="has no model yet"):
        read_model(store, "vina@0", "cpu")
    with pytest.raises(ValueError, match="has no trained model"):
        find_model(Store(tmp_path / "empty"))
