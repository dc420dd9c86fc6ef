"""The stage `report`: one HTML page about the run, `objects/reports/RUN.html`."""

from storage import Store
from storage.schemas import TABLES
from tasks.pages.report_page import report_page
from tasks.pipeline.job import Job
from tasks.pipeline.parts import RunParts, run_here
from tasks.pipeline.stage import Dependencies, Stage, versions
from tasks.training.settings import TrainingSettings

CODE_VERSION = "2"


def write_report(job: Job, run_parts: RunParts = run_here) -> str:
    """Write the page, and return its address."""
    store = Store(job.store)
    return store.objects.put(report_key(job.run_id), report_page(store, job).encode())


def report_key(run_id: str) -> str:
    """Return the key of a run's page in the store."""
    return f"reports/{run_id}.html"


def address_of_report(store: Store) -> str:
    """Return the address of the newest page; empty if there is none."""
    completions = store.table("completions").snapshot().where(stage=REPORT.name)
    rows = completions.read(["report"]).to_pylist() if completions.shards else []
    return rows[0]["report"] if rows else ""


def dependencies(job: Job) -> Dependencies:
    """Return what the page depends on."""
    shown = [name for name in TABLES if name not in ("runs", "completions")]
    return Dependencies(job.settings_of(TrainingSettings).model_dump(), versions(job.open_store(), *shown))


REPORT = Stage("report", write_report, dependencies, CODE_VERSION, links=lambda job: {"report": report_key(job.run_id)})
