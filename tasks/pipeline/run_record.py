"""The table `runs`: one row per run, written when it starts and again when it ends, however it ends."""

import json
import platform
import re
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from storage import Store, fingerprint_of
from tasks.pipeline.job import Interrupted, Job

RECORD_VERSION = "1"
RUN_ID = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


@contextmanager
def record_run(
    store: Store, run_id: str, stages: Sequence[str], configuration: Mapping[str, Any], measures: bool = False
) -> Iterator[None]:
    """Record the run inside the `with`. An error is recorded and raised again.

    `measures` says whether the run measures its models on all benchmarks: the view `measured_runs` lists such runs.
    """
    row: dict[str, Any] = {
        "stages": list(stages),
        "configuration": json.dumps({**configuration, "measures": measures}, sort_keys=True),
        "code_version": code_version(),
        "host": platform.node(),
        "started_at": datetime.now(UTC),
    }
    _write(store, run_id, row, state="running")
    try:
        yield
    except Interrupted as stop:
        _write(store, run_id, row, state="interrupted", error=str(stop))
        raise
    except BaseException as error:
        _write(store, run_id, row, state="failed", error=f"{type(error).__name__}: {error}")
        raise
    _write(store, run_id, row, state="completed")


def name_run(run_id: str | None = None) -> str:
    """Return the id if it is valid; without one, a new id from the time."""
    if run_id is None:
        return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}"
    if not re.fullmatch(RUN_ID, run_id) or run_id.endswith("\n"):
        raise ValueError(f"run id {run_id!r}: use up to 64 letters, digits, dots, dashes and underscores")
    return run_id


def _write(store: Store, run_id: str, row: dict[str, Any], state: str, error: str | None = None) -> None:
    finished_at = None if state == "running" else datetime.now(UTC)
    full_row = row | {"state": state, "finished_at": finished_at, "error": error}
    table = store.table("runs")
    fields = [field for field in table.schema.arrow if field.name in full_row]
    rows = pa.Table.from_pylist([full_row], schema=pa.schema(fields))
    fingerprint = fingerprint_of({name: str(value) for name, value in full_row.items()}, {}, RECORD_VERSION)
    table.commit(rows, {"run_id": run_id}, "run", fingerprint=fingerprint, run_id=run_id)


def job_of_run(store: Store, run_id: str) -> Job:
    """Return the job of a run of the pipeline. Raise ValueError if there is no such run."""
    snapshot = store.table("runs").snapshot().where(run_id=run_id)
    rows = snapshot.read(["configuration"]).to_pylist() if snapshot.shards else []
    configuration = json.loads(rows[0]["configuration"]) if rows else {}
    if "settings" not in configuration:
        raise ValueError(f"there is no run {run_id!r} of the pipeline: `vina status` lists the runs")
    return Job(store=store.uri, run_id=run_id, settings=configuration["settings"])


def code_version() -> str:
    """Return the package's version, with the commit where the code is a checkout."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / ".git").exists():
        return version("vina")
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # git is not installed
        commit = ""
    return f"{version('vina')}+{commit}" if commit else version("vina")
