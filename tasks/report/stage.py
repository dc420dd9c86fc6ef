"""The stage `report`: one HTML page about the run, `objects/reports/RUN.html`."""

from dataclasses import asdict

from storage import Store
from storage.schemas import TABLES
from tasks.pipeline.job import Job
from tasks.pages.report_page import report_page
from tasks.pipeline.parts import Spread, here
from tasks.pipeline.stage import Ingredients, Stage, versions

CODE_VERSION = "2"


def write_report(job: Job, spread: Spread = here) -> str:
    """The page; returns its address."""
    store = Store(job.store)
    return store.objects.put(f"reports/{job.run_id}.html", report_page(store, job).encode())


def address_of_report(store: Store) -> str:
    """The newest page; nothing if there is none."""
    found = store.table("completions").snapshot().where(stage=REPORT.name)
    rows = found.read(["report"]).to_pylist() if found.shards else []
    return rows[0]["report"] if rows else ""


def ingredients(job: Job) -> Ingredients:
    """What the page shows."""
    shown = [name for name in TABLES if name not in ("runs", "completions")]
    return Ingredients(asdict(job.training), versions(job.opened, *shown))


def undo(job: Job) -> None:
    """A page of another run stays."""


REPORT = Stage("report", write_report, ingredients, undo, CODE_VERSION)
