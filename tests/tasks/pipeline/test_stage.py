from dataclasses import replace
from pathlib import Path

import pytest

from storage import Store
from tasks.pipeline.job import Job
from tasks.pipeline.parts import RunParts, cut, run_here
from tasks.pipeline.stage import Dependencies, Stage, plan, reasons_to_run, run_stage


class Kitchen:
    """A stage whose dependencies can be changed, and which counts its calls."""

    def __init__(self, name: str = "soup", code_version: str = "1") -> None:
        self.dependencies = Dependencies({"salt": 1, "pepper": 2}, {"water": "w1"}, {"soup": "s1"})
        self.cooked = self.was_reset = 0
        self.stage = Stage(name, self._cook, lambda job: self.dependencies, code_version, self._reset)

    def _cook(self, job: Job, run_parts: RunParts) -> str:
        self.cooked += 1
        return f"cooked by {job.run_id}"

    def _reset(self, job: Job) -> None:
        self.was_reset += 1


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job.of(str(tmp_path / "store"), "run-1")


def test_a_stage_whose_dependencies_have_not_changed_is_skipped(job: Job) -> None:
    kitchen = Kitchen()
    assert reasons_to_run(job, kitchen.stage) == ("it was never completed",)
    assert run_stage(job, kitchen.stage, run_here) == ("cooked by run-1", True)
    assert reasons_to_run(job, kitchen.stage) == ()
    assert run_stage(job.changed(run_id="run-2"), kitchen.stage, run_here) == ("skipped: nothing has changed", False)
    assert (kitchen.cooked, kitchen.was_reset) == (1, 0)
    (row,) = Store(job.store).table("completions").snapshot().read().to_pylist()
    assert (row["stage"], row["report"], row["_written_by"]) == ("soup", "cooked by run-1", "run-1")


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        ({"settings": {"salt": 3, "pepper": 2}}, ("salt: 1 -> 3",)),
        ({"settings": {"salt": 1}}, ("pepper: 2 -> None",)),
        ({"inputs": {"water": "w2"}}, ("water changed",)),
        ({"outputs": {"soup": "s2"}}, ("soup, which it wrote, changed",)),
        ({"must_run_because": "a guest is late"}, ("a guest is late",)),
        ({"settings": {"salt": 3, "pepper": 2}, "inputs": {"water": "w2"}}, ("salt: 1 -> 3", "water changed")),
    ],
)
def test_a_plan_says_why(job: Job, change: dict[str, object], reasons: tuple[str, ...]) -> None:
    kitchen = Kitchen()
    run_stage(job, kitchen.stage, run_here)
    kitchen.dependencies = replace(kitchen.dependencies, **change)  # type: ignore[arg-type]
    assert reasons_to_run(job, kitchen.stage) == reasons
    assert run_stage(job, kitchen.stage, run_here)[1] and kitchen.cooked == 2


def test_newer_code_runs_again(job: Job) -> None:
    run_stage(job, Kitchen().stage, run_here)
    assert reasons_to_run(job, Kitchen(code_version="2").stage) == ("its code is newer",)


def test_force_resets_and_runs(job: Job) -> None:
    kitchen = Kitchen()
    run_stage(job, kitchen.stage, run_here)
    forced = job.changed(force=True)
    assert reasons_to_run(forced, kitchen.stage) == ("it is forced",)
    assert run_stage(forced, kitchen.stage, run_here)[1]
    assert (kitchen.cooked, kitchen.was_reset) == (2, 1)
    assert reasons_to_run(job, kitchen.stage) == ()


def test_a_forced_run_that_broke_off_is_not_taken_for_complete(job: Job) -> None:
    kitchen = Kitchen()
    run_stage(job, kitchen.stage, run_here)

    def burn(job: Job, run_parts: RunParts) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stage(job.changed(force=True), replace(kitchen.stage, work=burn), run_here)
    assert reasons_to_run(job, kitchen.stage) == ("it was never completed",)


def test_scopes_do_not_replace_each_other(job: Job) -> None:
    kitchen = Kitchen()
    first = replace(kitchen.dependencies, scope="first")
    second = replace(kitchen.dependencies, settings={"salt": 5, "pepper": 2}, scope="second")
    for kitchen.dependencies in (first, second):
        run_stage(job, kitchen.stage, run_here)
    for kitchen.dependencies in (first, second):
        assert reasons_to_run(job, kitchen.stage) == ()
    kitchen.dependencies = replace(first, settings={"salt": 1, "pepper": 9}, scope="third")
    assert reasons_to_run(job, kitchen.stage) == ("pepper: 2 -> 9", "salt: 5 -> 1"), "since the last one"


def test_a_stage_that_fails_is_not_completed(job: Job) -> None:
    kitchen = Kitchen()

    def burn(job: Job, run_parts: RunParts) -> str:
        raise RuntimeError("burnt")

    with pytest.raises(RuntimeError, match="burnt"):
        run_stage(job, replace(kitchen.stage, work=burn), run_here)
    assert reasons_to_run(job, kitchen.stage) == ("it was never completed",)


def test_what_changes_while_a_stage_runs_is_seen_by_the_next_run(job: Job) -> None:
    kitchen = Kitchen()

    def cook(job: Job, run_parts: RunParts) -> str:
        kitchen.dependencies = replace(kitchen.dependencies, inputs={"water": "w2"}, outputs={"soup": "s2"})
        return "cooked"

    run_stage(job, replace(kitchen.stage, work=cook), run_here)
    assert reasons_to_run(job, kitchen.stage) == ("water changed",)


def test_a_plan_names_what_a_stage_waits_for(job: Job) -> None:
    first, second, third = Kitchen("a"), Kitchen("b"), Kitchen("c")
    for kitchen in (first, third):
        run_stage(job, kitchen.stage, run_here)
    steps = list(plan(job, [first.stage, second.stage, third.stage]))
    assert [(step.stage.name, bool(step.reasons), step.waits_for) for step in steps] == [
        ("a", False, ()),
        ("b", True, ()),
        ("c", False, ("b",)),
    ]


@pytest.mark.parametrize(("count", "most", "sizes"), [(0, 3, []), (2, 3, [1, 1]), (7, 3, [3, 3, 1]), (6, 3, [2, 2, 2])])
def test_parts_are_few_and_of_like_size(count: int, most: int, sizes: list[int]) -> None:
    parts = cut(range(count), most)
    assert [len(part) for part in parts] == sizes
    assert [item for part in parts for item in part] == list(range(count))
