"""Shared by the commands: declaration, common arguments, printing."""

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid

from storage import Store, StoreError

Work = Callable[[argparse.Namespace], int]
Add = Callable[[str, Work, str, str], argparse.ArgumentParser]
"""Declare a command: name, function, help, example."""


class WrongCommand(ValueError):
    """The command's arguments make no sense."""


@contextmanager
def wrong_command() -> Iterator[None]:
    """Raise a ValueError about arguments as a WrongCommand, which ends the command with exit code 2."""
    try:
        yield
    except ValueError as error:
        raise WrongCommand(str(error)) from error


def whole_number(text: str) -> int:
    """Parse an integer of 0 or more."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def existing_store(uri: str) -> Store:
    """Return the store at this address. Raise StoreError if there is none."""
    store = Store(uri)
    if store.location.is_s3:
        store.location.check()
    elif not Path(store.uri).is_dir():
        raise StoreError(
            f"there is no store at {store.uri}: create one with `vina run`, or choose another with --store"
        )
    return store


def maybe_store(uri: str) -> Store | None:
    """Return the store at this address; None if there is none."""
    return Store(uri) if uri.startswith("s3://") or Path(uri).is_dir() else None


def print_parts(*parts: str | Grid) -> None:
    """Print lines and tables, as wide as the terminal."""
    console = Console() if sys.stdout.isatty() else Console(width=160)
    with console.capture() as text:
        for part in parts:
            console.print(part, markup=False, highlight=False)
    print(text.get(), end="")


def readable_size(num_bytes: int) -> str:
    """Return a size with its unit, e.g. "1.2 GB"."""
    size = float(num_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def mean_and_deviation(values: Sequence[float]) -> str:
    """Return mean and standard deviation, e.g. "73.2 ± 1.1"; an empty text if there are no values."""
    if not values:
        return ""
    deviation = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}{deviation}"
