from pathlib import Path

import pytest

from storage import Store
from tasks.pipeline.job import Interrupted
from tasks.pipeline.run_record import code_version, record_run


def state(store: Store) -> list[tuple[object, ...]]:
    rows = store.table("runs").snapshot().read().to_pylist()
    return [(row["run_id"], row["state"], row["error"], row["finished_at"] is None) for row in rows]


def test_a_run_is_recorded_while_it_runs_and_when_it_ends(store: Store) -> None:
    with record_run(store, "a", ["x"], {"k": 1}):
        assert state(store) == [("a", "running", None, True)]
    assert state(store) == [("a", "completed", None, False)]


def test_an_interrupt_is_recorded_too(store: Store) -> None:
    with pytest.raises(KeyboardInterrupt), record_run(store, "a", ["x"], {}):
        raise KeyboardInterrupt
    assert state(store) == [("a", "failed", "KeyboardInterrupt: ", False)]


def test_a_run_that_saved_and_ended_is_interrupted(store: Store) -> None:
    with pytest.raises(Interrupted), record_run(store, "a", ["x"], {}):
        raise Interrupted("saved after 3 steps")
    assert state(store) == [("a", "interrupted", "saved after 3 steps", False)]


def test_the_version_is_known_without_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_git = code_version()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert with_git.startswith(code_version()) and code_version() == "0.1.0"
