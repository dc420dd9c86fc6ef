"""Fixtures that all folders share (stores on disk and on a real S3 server), and the marker `slow`, which is derived."""

import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from filelock import FileLock
from playwright.sync_api import Browser

from flows.quiet_end import QuietEnd
from storage import Store
from tasks.pipeline.job import Job
from tests.browser import started
from tests.trained_store import job_in, make_store

END = QuietEnd()
os.environ.update(DO_NOT_TRACK="1", PREFECT_SERVER_ANALYTICS_ENABLED="false", HF_HUB_OFFLINE="1")

BUCKET = "vina-tests"
SLOW_FIXTURES = {"s3_endpoint", "browser", "prefect_server", "cluster", "trained", "measured"}
"""A server, a browser or a training: a test that uses one is slow."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make check` leaves out; other slow tests are marked in their modules."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if fixtures & SLOW_FIXTURES or parameters.get("store_uri") == "s3" or "end_to_end" in item.path.parts:
            item.add_marker(pytest.mark.slow)


def pytest_sessionfinish(exitstatus: int) -> None:
    END.code = int(exitstatus)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """moto's server in a process of its own; the AWS variables point at it for the whole session."""
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    endpoint = f"http://127.0.0.1:{port}"
    settings = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test-key",
        "AWS_SECRET_ACCESS_KEY": "test-secret-never-to-be-seen",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        wait_for_port(port)
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield endpoint
    finally:
        server.terminate()
        server.wait()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real one; it goes when its module's tests are done, for others need asyncio's loop."""
    with started() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Job:
    """The job of a store with videos and a trained model; tests do not change it. The processes of a run share it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "trained"
    with FileLock(f"{folder}.lock"):
        if not (folder / "made").exists():
            make_store(folder)
            (folder / "made").touch()
    return job_in(folder)


@pytest.fixture
def s3_uri(s3_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("VINA_CACHE", str(tmp_path / "cache"))
    return f"s3://{BUCKET}/{uuid.uuid4().hex}/store"


@pytest.fixture(params=["disk", "s3"])
def store_uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store: every test that uses it runs on disk and on S3."""
    if request.param == "disk":
        return str(tmp_path / "store")
    return str(request.getfixturevalue("s3_uri"))


@pytest.fixture
def store(store_uri: str) -> Store:
    return Store(store_uri)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=False)
    if not made or made.returncode:
        pytest.skip("making a small file system takes the right to mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
