"""The report about a run, in a real browser."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from flows.cli.main import main
from storage import Store
from tasks.evaluation.benchmarks.sql import open_catalogue
from tasks.pages.report_page import report_page
from tasks.pipeline.job import Job
from tasks.report.stage import address_of_report
from tasks.training.model_files import models_in
from tests.browser import NARROW, WIDE, findings, is_too_wide, opened, until
from tests.trained_store import RUN, video_files

PARTS = ("results", "videos", "presence", "labels", "training", "pairing", "corpus", "ablations", "ran", "settings")


@pytest.fixture(scope="module")
def address(trained: Job) -> str:
    return Path(address_of_report(Store(trained.store))).as_uri()


def test_all_parts_are_there_with_plots_and_three_videos(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        expect(page.locator("h1")).to_have_text(f"VINA, run {RUN}")
        for name in PARTS:
            assert page.locator(f"h2#{name}").count() == 1, name
        assert page.locator("svg[role=img]").count() >= 3  # presence, labels, losses
        assert page.locator("section.video").count() == 3
        assert page.locator(".map img").count() >= 9
        headings = page.locator("h2#videos ~ h3").all_inner_texts()[:3]
        counts = [re.findall(r"(\d+) of its (\d+)", text)[0] for text in headings]
        found = [int(right) / int(asked) for right, asked in counts]
        assert found == sorted(found, reverse=True)
        page.locator("section.video").nth(2).locator("button.step").nth(1).click()
        assert page.locator(".now").nth(0).inner_text() == "0:00"  # each video has a time of its own


def test_videos_play_within_the_report(
    trained: Job, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(trained.store)
    with open_catalogue(store) as catalogue:
        rows = catalogue.query("SELECT DISTINCT model_id, video_id, article_id FROM video_recall").to_pylist()
    made = {row["model_id"] for row in models_in(store)}
    rows = [row for row in rows if row["video_id"] in video_files(store) and row["model_id"] in made]
    shown = [row | {"found": 1, "steps": 2, "place": "best"} for row in rows]
    monkeypatch.setattr("tasks.pages.report_page._Answers.examples", lambda self: shown)
    (tmp_path / "report.html").write_text(report_page(store, trained))
    with opened(browser, (tmp_path / "report.html").as_uri()) as page:
        assert page.locator("video").count() == len(shown) > 1
        for place in range(len(shown)):
            until(page, f"document.querySelectorAll('video')[{place}].readyState >= 1")


@pytest.mark.parametrize(("width", "dark"), [(WIDE, False), (WIDE, True), (NARROW, False), (NARROW, True)])
def test_everybody_can_read_it(browser: Browser, address: str, width: int, dark: bool) -> None:
    with opened(browser, address, width, dark) as page:
        assert findings(page) == [] and not is_too_wide(page)


def test_the_command_writes_it_anywhere(trained: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.html"
    assert main(["report", RUN, "--output", str(path), "--store", trained.store]) == 0
    assert capsys.readouterr().out.strip() == str(path) and f"VINA, run {RUN}" in path.read_text()
    assert main(["report", "--output", str(path), "--store", trained.store]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "nobody"], "there is no run 'nobody' of the pipeline"),
        (["report", "--output", "no/such/folder/x.html"], "there is no folder no/such/folder"),
    ],
)
def test_what_cannot_be_reported(
    trained: Job, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--store", trained.store]) == 1
    assert message in capsys.readouterr().err


def test_a_store_without_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "store").mkdir()
    assert main(["report", "--store", str(tmp_path / "store")]) == 1
    assert "has no complete run to report on" in capsys.readouterr().err
