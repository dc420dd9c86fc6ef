"""`vina up` and `vina status`: run the pipeline as a service on one machine, and show what is running."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.table import Table as Grid

from flows.cli.commands.shared import Add, existing_store, print_parts, whole_number
from storage import Store
from storage.catalogue import Catalogue

PREFECT = [sys.executable, "-m", "prefect"]
DECLARED = Path(__file__).resolve().parents[3] / "prefect.yaml"
POOLS = {"vina-cpu": [], "vina-gpu": ["--limit", "1"]}
"""The pools, and the options of their worker on this machine: a GPU runs one part at a time."""
START_S = 120
ACTIVE = ["PENDING", "RUNNING", "CANCELLING", "SCHEDULED"]


def add_commands(add: Add) -> None:
    """Declare the commands."""
    up = add(
        "up",
        _up,
        "start Prefect's server and a worker for each pool on this machine, and deploy; stop with Ctrl-C",
        "vina up --store s3://bucket/prefix",
    )
    up.add_argument("--port", type=whole_number, default=4200, help="loopback port of the server (default: 4200)")
    status = add(
        "status",
        _status,
        "show the last completion of each stage, recent runs, and what is running now",
        "vina status --json",
    )
    status.add_argument("--json", action="store_true", help="print JSON")


def _up(options: argparse.Namespace) -> int:
    store = Store(options.store)
    store.location.check()
    if not DECLARED.is_file():
        raise ValueError(
            f"there is no {DECLARED}: `vina up` needs a checkout of the repository (workers need only the package)"
        )
    address = options.store if store.location.is_s3 else str(Path(options.store).resolve())
    url = f"http://127.0.0.1:{options.port}/api"
    environment = os.environ | {"PREFECT_API_URL": url, "VINA_STORE": address, "PREFECT_WORKER_QUERY_SECONDS": "2"}
    environment["PREFECT_LOGGING_LEVEL"] = "INFO"  # there are no progress bars
    logs = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser() / "vina-up"
    logs.mkdir(parents=True, exist_ok=True)
    if _answers(url):
        raise ValueError(f"another server answers at {url}: use it, or choose another --port")
    with _processes(logs, environment) as start:
        server = start("server", ["server", "start", "--host", "127.0.0.1", "--port", str(options.port)])
        _wait_for(url, server, logs)
        for pool in POOLS:
            _prefect(environment, "work-pool", "create", pool, "--type", "process", "--overwrite")
        _prefect(environment, "--no-prompt", "deploy", "--all", "--prefect-file", str(DECLARED))
        workers = [
            start(pool, ["worker", "start", "--pool", pool, "--name", f"{pool} here", *limits])
            for pool, limits in POOLS.items()
        ]
        print(
            f"up: {url.removesuffix('/api')} shows runs, forms and artifacts; logs are in {logs}\n"
            f"store: {address}\nin another terminal:\n  export PREFECT_API_URL={url}\n"
            "  prefect deployment run vina/full-pipeline --param preset=demo",
            flush=True,
        )
        while not (ended := [process for process in (server, *workers) if process.poll() is not None]):
            time.sleep(1)
    print(f"vina: a process ended with exit code {ended[0].returncode}: see its log in {logs}", file=sys.stderr)
    return 1


@contextmanager
def _processes(logs: Path, environment: dict[str, str]) -> Iterator[Any]:
    """Yield a function that starts processes; terminate them at the end of the `with`."""
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, arguments: list[str]) -> subprocess.Popen[bytes]:
        with (logs / f"{name}.log").open("wb") as log:
            running.append(
                subprocess.Popen([*PREFECT, *arguments], env=environment, stdout=log, stderr=subprocess.STDOUT)
            )
        return running[-1]

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield start
    finally:
        signal.signal(signal.SIGTERM, before)
        for process in reversed(running):  # the server last: workers report to it when they stop
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def _prefect(environment: dict[str, str], *arguments: str) -> None:
    done = subprocess.run(
        [*PREFECT, *arguments], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        raise ValueError(f"`prefect {' '.join(arguments)}` failed: {(done.stderr or done.stdout).strip()[-1000:]}")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _wait_for(url: str, server: subprocess.Popen[bytes], logs: Path) -> None:
    deadline = time.monotonic() + START_S
    while not _answers(url):
        if server.poll() is not None or time.monotonic() > deadline:
            raise ValueError(f"Prefect's server did not start: see {logs / 'server.log'}")
        time.sleep(0.2)


def _status(options: argparse.Namespace) -> int:
    tables = {"stages": _stages(existing_store(options.store)), "runs": _runs(existing_store(options.store))}
    if os.environ.get("PREFECT_API_URL"):
        tables["active"] = _active()
    if options.json:
        print(json.dumps(tables, indent=1, default=str))
        return 0
    for title, rows in tables.items():
        print_parts(f"{title}: none" if not rows else title, *([_grid(rows)] if rows else []))
    return 0


def _stages(store: Store) -> list[dict[str, Any]]:
    with Catalogue(store) as catalogue:
        return catalogue.query("""
            SELECT stage, _shard AS scope, _written_by AS run, strftime(finished_at, '%Y-%m-%d %H:%M:%S') AS finished,
                   round(took_s, 1) AS took_s, split_part(trim(report, E'\\n '), E'\\n', 1) AS report
            FROM completions ORDER BY finished_at""").to_pylist()


def _runs(store: Store) -> list[dict[str, Any]]:
    with Catalogue(store) as catalogue:
        return catalogue.query("""
            SELECT run_id, state, strftime(started_at, '%Y-%m-%d %H:%M:%S') AS started, host,
                   array_to_string(stages, ', ') AS stages, coalesce(error, '') AS error
            FROM runs ORDER BY started_at DESC LIMIT 10""").to_pylist()


def _active() -> list[dict[str, Any]]:
    """Return the runs that are active on Prefect's server, with state and progress."""
    from prefect import get_client
    from prefect.client.schemas import filters

    from flows.ablations import ablations
    from flows.full_pipeline import vina
    from flows.parts import run_part

    states = filters.FlowRunFilterState(type=filters.FlowRunFilterStateType.model_validate({"any_": ACTIVE}))
    flows = filters.FlowFilter(name=filters.FlowFilterName(any_=[vina.name, ablations.name, run_part.name]))
    rows = []
    with get_client(sync_client=True) as client:
        for run in client.read_flow_runs(flow_filter=flows, flow_run_filter=filters.FlowRunFilter(state=states)):
            run_filter = filters.ArtifactFilterFlowRunId(any_=[run.id])
            artifacts = client.read_artifacts(artifact_filter=filters.ArtifactFilter(flow_run_id=run_filter))
            shares = {str(a.key): a for a in artifacts if a.type == "progress"}
            last = max(shares.values(), key=lambda artifact: str(artifact.updated), default=None)
            share = f"{str(last.key).removeprefix('progress-')} {float(str(last.data)):.0f} %" if last else ""
            rows.append({"run": run.name, "state": run.state_name, "since": run.start_time, "progress": share})
    return rows


def _grid(rows: list[dict[str, Any]]) -> Grid:
    grid = Grid(*rows[0])
    for row in rows:
        grid.add_row(*("" if value is None else str(value) for value in row.values()))
    return grid
