"""Work that is cut into parts, to be done one after the other here, or by others elsewhere.

A part is plain values: a few shards, or a training up to some epoch. All else that its work needs it finds in the
store, and all that it leaves is there; so any process on any machine can do it, and doing it twice changes nothing.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tasks.pipeline import progress
from tasks.pipeline.job import Job

Part = dict[str, Any]
Work = Callable[[Job, Part], None]
RunParts = Callable[[Job, Work, Sequence[Part]], None]
"""Has the work done on every part of a job, and raises what went wrong."""
Item = TypeVar("Item")


def run_here(job: Job, work: Work, parts: Sequence[Part]) -> None:
    """One part after the other, in this process."""
    for number, part in enumerate(parts):
        with progress.part(number, len(parts)):
            work(job, part)


def cut(items: Sequence[Item], most: int) -> list[list[Item]]:
    """The items in order, in at most so many parts of like size."""
    size = -(-len(items) // most) or 1
    return [list(items[begin : begin + size]) for begin in range(0, len(items), size)]
