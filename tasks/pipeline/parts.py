"""Work that is divided into parts, which run here one after the other, or elsewhere at once.

A part is plain values: a few shards, or a training up to some epoch. Whatever else its work needs is in the store, and
so is all that it leaves. So any process on any machine can run it, and running it twice changes nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tasks.pipeline import progress
from tasks.pipeline.job import Job

Part = dict[str, Any]
Item = TypeVar("Item")


@dataclass(frozen=True)
class PartKind:
    """A kind of parts that a stage declares. Its name travels to other machines in place of the function."""

    name: str
    work: Callable[[Job, Part], None]
    """Do one part."""
    is_whole: bool = False
    """Whether the work is one part, which is not run beside others."""
    shares_devices: bool = False
    """Whether several devices of one machine work on a part together, under torchrun."""
    needs_own_process: bool = False
    """Whether no two parts may run in threads of one process: training seeds torch's global generator."""
    merge: Callable[[Sequence[Part], int | None], list[Part]] = lambda parts, least: list(parts)
    """Merge parts for processes that share each one: each can do something if a part has at least so many items, or
    (None) all parts become one."""


RunParts = Callable[[Job, PartKind, Sequence[Part]], None]
"""Run all parts of a kind, and raise what went wrong."""


def run_here(job: Job, kind: PartKind, parts: Sequence[Part]) -> None:
    """Run the parts in this process, one after the other."""
    for number, part in enumerate(parts):
        with progress.part(number, len(parts)):
            kind.work(job, part)


def cut(items: Sequence[Item], most: int) -> list[list[Item]]:
    """Return the items in order, in at most so many groups of similar size."""
    size = -(-len(items) // most) or 1
    return [list(items[begin : begin + size]) for begin in range(0, len(items), size)]
