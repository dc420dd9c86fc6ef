"""A fifth benchmark: one module, as the README writes it, and one line in the registry. Nothing else knows its name."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flows.cli.main import main
from storage import Store
from tasks.evaluation.benchmarks.registry import BENCHMARKS
from tasks.evaluation.benchmarks.sql import open_catalogue
from tasks.evaluation.results import ResultRow, read_results
from tasks.evaluation.stage import evaluate
from tasks.importers.files import Files
from tasks.importers.import_session import ImportSession
from tasks.importers.sources import SOURCES, Options, Source, import_source
from tasks.pages.report_page import report_page
from tests.tasks.conftest import MakeJob

GUIDE = Path(__file__).parents[3] / "tasks/evaluation/README.md"
MODULE = '''\
"""Kitchen: which action of a recipe is shown when, in videos of a kitchen."""

from tasks.evaluation.benchmarks.benchmark import (
    STEP_LOCALIZATION,
    Benchmark,
    Decoding,
    Metric,
    Protocol,
    PublishedNumber,
    ResultColumns,
    Role,
)
from tasks.evaluation.scoring import Comparison
from vina_model.metrics.htstep_r1 import StepRecall


def _recall(comparison: Comparison) -> Metric:
    truth = comparison.truth
    return StepRecall(truth.segments, comparison.points(), truth.num_videos)


KITCHEN_R1 = Protocol(
    name="kitchen-r1",
    version=1,
    columns={"clip": Role.VIDEO, "action": Role.LABEL, "second": Role.PEAK},
    decoding=Decoding.ARGMAX,
    measure=_recall,
)
KITCHEN = Benchmark(
    name="kitchen",
    title="Kitchen",
    source="kitchen",
    protocols=(KITCHEN_R1,),
    results=(ResultColumns(STEP_LOCALIZATION, {("kitchen-r1", "R@1"): "Kitchen R@1"}),),
    paper=(PublishedNumber("kitchen-r1", "R@1", "vina", 12.5),),
    paper_counts={"test": {"videos": "2"}},
)
'''
SHOWN = {"10": (2.0, 4.0), "11": (6.0, 8.0)}
"""Segments of the actions, the same in both videos."""


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module, the line, and an importer of its data set, which is listed where data sets are."""
    module = ModuleType("kitchen")
    exec(MODULE, module.__dict__)
    monkeypatch.setitem(SOURCES, "kitchen", Source("kitchen", read_kitchen, "kitchen.json"))
    BENCHMARKS.append(module.KITCHEN)
    yield
    BENCHMARKS.remove(module.KITCHEN)


def read_kitchen(files: Files, session: ImportSession, store: Store, options: Options) -> None:
    (path,) = files.named("kitchen.json")
    with session.file(path):
        videos = json.loads(path.read_text())
    source = {"source": "kitchen"}
    session.keep("articles", source, [{"article_id": "kitchen/1", "title": "Make Tea"}])
    steps = [
        {"article_id": "kitchen/1", "row": row, "step_id": step, "headline": f"Do {step}"}
        for row, step in enumerate((*SHOWN, "12"))
    ]
    session.keep("steps", source, steps)
    rows: list[dict[str, Any]] = [
        {"video_id": video, "article_id": "kitchen/1", "step_id": step, "text": f"Do {step}", "start_s": start}
        | {"end_s": end, "alignable": True, "split": "test"}
        for video in videos
        for step, (start, end) in SHOWN.items()
    ]
    session.keep("annotations", {"benchmark": "kitchen"}, rows)


def write_annotations(folder: Path, videos: list[str]) -> Path:
    folder.mkdir()
    (folder / "kitchen.json").write_text(json.dumps(videos))
    return folder


def test_the_module_is_the_one_of_the_guide() -> None:
    assert MODULE in GUIDE.read_text()


@pytest.mark.usefixtures("registered")
def test_it_is_measured_and_shown_beside_the_others(
    job: MakeJob, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = job()
    store = Store(asked.store)
    with open_catalogue(store) as catalogue:
        videos = catalogue.query("SELECT video_id FROM features GROUP BY ALL HAVING count(*) > 9 ORDER BY 1 LIMIT 2")
    folder = write_annotations(tmp_path / "kitchen", [*videos["video_id"].to_pylist(), "not seen"])
    assert import_source(store, "run-1", "kitchen", folder).kept["annotations"] == 6
    assert "crosstask-articles, kitchen: `vina results`" in evaluate(asked)

    results = read_results(store)
    key = "kitchen-r1", "R@1"
    assert results.ours[(*key, ResultRow("truth"))] == [100.0]
    assert 0 <= results.ours[(*key, ResultRow("uniform"))][0] <= 100
    assert results.paper[(*key, ResultRow("vina"))] == 12.5
    assert "kitchen: measured on test, 2 videos (1 have no features)" in results.notes
    capsys.readouterr()
    assert main(["results", "--store", asked.store]) == 0
    assert "Kitchen R@1" in capsys.readouterr().out
    assert main(["results", "--store", asked.store, "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)["numbers"]
    assert [row["ours"] for row in numbers if (row["protocol"], row["method"]) == ("kitchen-r1", "truth")] == [[100.0]]
    assert "Kitchen R@1" in report_page(store, asked)

    assert main(["stats", "kitchen", "--store", asked.store, "--json"]) == 0
    (counts,) = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["videos"], counts["steps"], counts["paper"]) == (3, 3, {"videos": "2"})
    query = "SELECT paper FROM metrics_beside_paper WHERE benchmark = 'kitchen' AND method = 'vina'"
    with open_catalogue(store) as catalogue:
        assert catalogue.query(query).to_pylist() == [{"paper": 12.5}]


@pytest.mark.usefixtures("registered")
def test_anyones_predictions_are_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_annotations(tmp_path / "kitchen", ["a", "b"])
    predictions = tmp_path / "mine.csv"
    predictions.write_text("clip,action,second\na,10,3\na,11,1\nb,10,4\n")
    asked = ["score", "kitchen-r1", "--data", str(data), "--predictions", str(predictions)]
    assert main([*asked, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["protocol"], answer["split"], answer["num_videos"]) == ("kitchen-r1", "test", 2)
    assert answer["metrics"]["R@1"]["value"] == 50
    with pytest.raises(SystemExit):
        main(["score", "--help"])
    assert "  kitchen-r1: clip,action,second" in capsys.readouterr().out.splitlines()


def test_without_its_line_it_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["score", "kitchen-r1", "--data", ".", "--predictions", "x"])
    assert "invalid choice: 'kitchen-r1'" in capsys.readouterr().err
