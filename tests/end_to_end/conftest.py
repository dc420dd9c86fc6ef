"""A small cluster on loopback: Prefect's server, a CPU worker, two GPU workers, an S3 server, all real processes."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import free_port, wait_for_port

ROOT = Path(__file__).parents[2]
PREFECT = [sys.executable, "-m", "prefect"]
DEADLINE_S = 400


@dataclass
class Cluster:
    """Its address, its processes, and how it is asked."""

    home: Path
    port: int
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {
            "PREFECT_HOME": str(self.home / "prefect"),
            "PREFECT_API_URL": f"http://127.0.0.1:{self.port}/api",
            "PREFECT_WORKER_QUERY_SECONDS": "2",
            "PREFECT_WORKER_HEARTBEAT_SECONDS": "2",
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "200",
        }

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """A process of its own group, as another machine would have."""
        log = (self.home / f"{name}.log").open("ab")
        return subprocess.Popen(
            [*PREFECT, *arguments], env=self.environment, cwd=self.home, stdout=log, stderr=log, start_new_session=True
        )

    def start_worker(self, pool: str, name: str) -> None:
        self.workers[name] = self.start(name, "worker", "start", "--pool", pool, "--name", name, "--limit", "1")

    def kill_worker(self, name: str) -> None:
        """As a machine that loses its power: the worker, and all that it runs."""
        for process in descendants(self.workers[name].pid):
            os.kill(process, signal.SIGKILL)
        self.workers.pop(name).wait()

    def prefect(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PREFECT, *arguments], env=self.environment, cwd=self.home, capture_output=True, text=True, check=False
        )

    def run(self, deployment: str, *parameters: str) -> subprocess.CompletedProcess[str]:
        """`prefect deployment run`, to its end."""
        options = [word for each in parameters for word in ("--param", each)]
        return self.prefect("deployment", "run", deployment, *options, "--watch", "--watch-timeout", str(DEADLINE_S))

    def ask(self, path: str, **body: Any) -> Any:
        """Prefect's API."""
        url = f"http://127.0.0.1:{self.port}/api/{path}"
        asked = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.loads(answer.read())

    def flow_runs(self, flow: str, **of_runs: Any) -> list[dict[str, Any]]:
        found = self.ask("flow_runs/filter", flows={"name": {"any_": [flow]}}, flow_runs=of_runs or None)
        return [dict(run) for run in found]

    def wait_until(self, happens: Any, what: str) -> Any:
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            if found := happens():
                return found
            time.sleep(0.5)
        raise TimeoutError(f"{what} did not happen; {self.logs()[-3000:]}")

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.home.glob("*.log")))


def descendants(pid: int) -> list[int]:
    """A process and all that come from it."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    own = [int(child) for child in children.read_text().split()] if children.exists() else []
    return [pid, *(each for child in own for each in descendants(child))]


@pytest.fixture(scope="module")
def cluster(s3_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("cluster"), free_port())
    server = found.start("server", "server", "start", "--host", "127.0.0.1", "--port", str(found.port))
    try:
        wait_for_port(found.port, 120)
        for pool in ("vina-cpu", "vina-gpu"):
            made = found.prefect("work-pool", "create", pool, "--type", "process")
            assert made.returncode == 0, made.stderr
        deployed = found.prefect("--no-prompt", "deploy", "--all", "--prefect-file", str(ROOT / "prefect.yaml"))
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        found.start_worker("vina-cpu", "cpu-1")
        found.start_worker("vina-gpu", "gpu-1")
        found.start_worker("vina-gpu", "gpu-2")
        yield found
    finally:
        for process in [*found.workers.values(), server]:
            for each in reversed(descendants(process.pid)):
                os.kill(each, signal.SIGKILL)
            process.wait()
