"""A stage added as `tasks/README.md` says: one module, and one line in `flows/stages.py`."""

import importlib
import textwrap
from pathlib import Path
from typing import Any

import pytest

from flows import full_pipeline, parameters, stages
from flows.cli.main import main
from storage import Store
from tests.samples import commit_votes

GUIDE = Path(__file__).parents[2] / "tasks/README.md"
IMPORTS = """
from typing import ClassVar
from storage import Store
from tasks.pipeline.job import Job
from tasks.pipeline.parts import Part, PartKind, RunParts, run_here
from tasks.pipeline.settings import Settings
from tasks.pipeline.stage import Dependencies, Stage, versions
"""


def module_of_the_guide() -> str:
    text = GUIDE.read_text()
    start, end = text.index("       class CountSettings"), text.index("2. Add `COUNT`")
    return textwrap.dedent(text[start:end])


@pytest.fixture
def count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stage of the guide, added to the pipeline by one line."""
    (tmp_path / "count_stage.py").write_text(IMPORTS + module_of_the_guide())
    monkeypatch.syspath_prepend(tmp_path)
    stage = importlib.import_module("count_stage").COUNT
    monkeypatch.setattr(stages, "STAGES", [*stages.STAGES, stage])
    return stage


def test_it_runs_is_planned_and_is_skipped(
    prefect_server: None, count: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "store")
    commit_votes(store, "0", "v1", "v2")
    job = full_pipeline.make_job("paper", store.uri, None, {"count": {"table": "votes"}}, "first", False)
    assert job.settings["count"] == {"table": "votes"}
    command = ["--stages", "count", "--set", "count.table=votes", "--store", store.uri]
    assert main(["plan", *command]) == 0
    assert "run   count       it was never completed" in capsys.readouterr().out
    overrides = parameters.make_overrides(stages.settings_groups())
    assert "Table to count. (presets: paper: videos, demo: videos)" in str(overrides.model_json_schema())
    names = [stage.name for stage in stages.choose_stages(["count"])]
    assert names == ["count"] and stages.part_kind("counting") is count.parts[0]
    flow = full_pipeline.vina.with_options(validate_parameters=False)  # its form lists the stages as they were imported
    flow(store=store.uri, stages=["count"], overrides=overrides(count={"table": "votes"}), run_id="first")
    (run,) = store.table("runs").snapshot().read().to_pylist()
    assert (run["state"], run["stages"]) == ("completed", ["count"])
    assert Path(store.objects.uri("counts.txt")).read_text() == "votes: 2"
    assert main(["plan", *command]) == 0
    assert "skip  count       nothing has changed" in capsys.readouterr().out
    commit_votes(store, "1", "v3")
    assert main(["plan", *command]) == 0
    assert "run   count       votes changed" in capsys.readouterr().out
