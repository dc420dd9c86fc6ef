"""The stage `report`: one HTML page about the run, `objects/reports/RUN.html`."""

from dataclasses import asdict

from storage import Store
from storage.schemas import TABLES
from tasks.pages.report_page import report_page
from tasks.pipeline.job import Job
from tasks.pipeline.parts import RunParts, run_here
from tasks.pipeline.stage import Dependencies, Stage, versions

CODE_VERSION = "2"


def write_report(job: Job, run_parts: RunParts = run_here) -> str:
    """The page; returns its address."""
    store = Store(job.store)
    return store.objects.put(f"reports/{job.run_id}.html", report_page(store, job).encode())


def address_of_report(store: Store) -> str:
    """The newest page; nothing if there is none."""
    found = store.table("completions").snapshot().where(stage=REPORT.name)
    rows = found.read(["report"]).to_pylist() if found.shards else []
    return rows[0]["report"] if rows else ""


def dependencies(job: Job) -> Dependencies:
    """What the page shows."""
    shown = [name for name in TABLES if name not in ("runs", "completions")]
    return Dependencies(asdict(job.training), versions(job.open_store(), *shown))


def reset(job: Job) -> None:
    """A page of another run stays."""


REPORT = Stage("report", write_report, dependencies, reset, CODE_VERSION)
