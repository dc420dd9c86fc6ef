"""Show a run in a terminal: one line per stage, with a progress bar while it runs. Outside a terminal: plain lines."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class Terminal:
    """A context manager around a run; `begin`, `tell` and `end` report on its stages."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bars = Progress(
            SpinnerColumn(), TextColumn("{task.description:<11}"), BarColumn(24), TimeElapsedColumn(),
            TextColumn("{task.fields[line]}", style="dim"), console=self._console, disable=not sys.stderr.isatty(),
        )  # fmt: skip
        self._bar: TaskID | None = None
        self._begun = time.monotonic()

    def __enter__(self) -> "Terminal":
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def begin(self, stage: str) -> None:
        """Start the bar of a stage."""
        self._begun = time.monotonic()
        self._bar = self._bars.add_task(stage, total=1.0, line="")

    def tell(self, share: float, line: str) -> None:
        """Update the bar."""
        if self._bar is not None:
            self._bars.update(self._bar, completed=share, line=line)

    def end(self, stage: str, report: str, ran: bool) -> None:
        """Replace the bar by the first line of the report."""
        took = f"{time.monotonic() - self._begun:.1f} s" if ran else ""
        first = next((line for line in report.splitlines() if line), "")
        if self._bar is not None:
            self._bars.remove_task(self._bar)
            self._bar = None
        self._console.print(
            f"{'✓' if ran else '='} {stage:<11} {took:>8}  {first}", highlight=False, markup=False, soft_wrap=True
        )
