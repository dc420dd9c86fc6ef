"""The command `vina` in tests: called in this process, or started as a process of its own.

A process takes two seconds to start, so only tests of what a process adds (pipes, terminals, exit codes) start one.
"""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from flows.cli.main import main

ROOT = Path(__file__).parents[3]


def vina(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Call the command in this process; its changes to the environment are reverted."""
    output, errors = _stream(), _stream()
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "stdin", io.StringIO(stdin)),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        try:
            code = main(arguments)
        except SystemExit as stop:  # argparse, for --help and for a wrong command
            code = stop.code if isinstance(stop.code, int) else 0
    return subprocess.CompletedProcess(arguments, code, _text(output), _text(errors))


def vina_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Start the command as a process of its own and wait for its end."""
    return subprocess.run(
        [sys.executable, "-m", "flows.cli", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        check=False,
    )


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()
