import shlex
from pathlib import Path

import pyarrow as pa
import pytest

from flows.cli.main import main
from storage import Store
from tasks.importers.settings import ImportSettings
from tasks.importers.stage import import_corpus
from tasks.pages.report_page import commands, report_page
from tasks.pipeline.job import Job
from tasks.pipeline.parts import run_here
from tasks.pipeline.run_record import record_run
from tasks.pipeline.stage import reasons_to_run, run_stage
from tasks.report.stage import REPORT, address_of_report, write_report


def test_a_page_of_an_empty_store(tmp_path: Path) -> None:
    job = Job.of(str(tmp_path / "store"), "run-1")
    with record_run(Store(job.store), job.run_id, ["report"], job.model_dump()):
        address = write_report(job)
    page = Path(address).read_text()
    assert "VINA, run run-1" in page and "no annotations are imported" in page
    assert (
        page.count("<script") == 1 and "http://" not in page.replace("http://www.w3.org", "") and "https://" not in page
    )


def test_a_page_shows_the_corpus_and_its_videos_and_escapes_what_it_shows(tmp_path: Path) -> None:
    job = Job.of(
        str(tmp_path / "store"),
        "run-1",
        ImportSettings(corpus="demo:short,num_videos=10,num_rendered=1"),
    )
    store = Store(job.store)
    with record_run(store, job.run_id, ["import", "report"], job.model_dump()):
        import_corpus(job)
        rejects = store.table("rejects")
        odd = pa.Table.from_pylist([{"item": "<b>", "reason": "a & b"}], schema=rejects.schema.files)
        rejects.commit(odd, {"stage": "features"}, "odd", fingerprint="f", run_id="r")
        address, has_run = run_stage(job, REPORT, run_here)
    assert has_run and address_of_report(store) == address
    page = Path(address).read_text()
    assert "demo-concepts" in page and "data:image/png;base64," in page
    assert "&lt;b&gt;" in page and "a &amp; b" in page and "<b>" not in page
    assert reasons_to_run(job, REPORT) == ()


def test_questions_can_be_asked_as_they_are_printed(
    trained: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    *asked, last = commands(Store(trained.store))
    assert [command.split()[1] for command in asked] == ["sql", "sql", "sql", "ground"]
    for command in asked:
        program, *arguments = shlex.split(command)
        assert program == "vina" and main(arguments) == 0
    assert (tmp_path / "video.html").is_file() and last == f"vina explore --store {trained.store}"


def test_ablations_are_tables(tmp_path: Path) -> None:
    job = Job.of(str(tmp_path / "store"), "run-1")
    table = Store(job.store).table("ablations")
    row = {"settings": "ab12", "row": 0, "variant": "without narrations", "measure": "R@1", "model_id": "vina@1",
           "seed": 0, "value": 31.25, "paper": 33.5}  # fmt: skip
    rows = pa.Table.from_pylist([row, row | {"seed": 1, "value": 33.25}], schema=table.schema.files)
    table.commit(rows, {"ablation": "components"}, "all", fingerprint="f", run_id="run-1")
    page = report_page(Store(job.store), job)
    assert "components (ab12)" in page and "without narrations" in page and ">32.25<" in page and ">33.5<" in page
