"""Work that is divided into parts, which run one after the other in this process, or in parallel elsewhere.

A part is plain values: a few shards, or a training up to some epoch. All other inputs
and all outputs are in the store. So any process on any machine can run it, and running it twice changes nothing.
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
    """A kind of parts that a stage declares. Its name is sent to other machines in place of the function."""

    name: str
    work: Callable[[Job, Part], None]
    """Function that runs one part."""
    is_whole: bool = False
    """Whether the work is a single part, which runs alone."""
    shares_devices: bool = False
    """Whether several devices of one machine work on a part together, under torchrun."""
    needs_own_process: bool = False
    """Whether no two parts may run in threads of one process: training seeds torch's global generator."""
    merge: Callable[[Sequence[Part], int | None], list[Part]] = lambda parts, least: list(parts)
    """Merge parts that several processes share: at least so many items in each part, or all in one if it is None."""


RunParts = Callable[[Job, PartKind, Sequence[Part]], None]
"""Function that runs all parts of a kind, and raises the first error."""


def run_here(job: Job, kind: PartKind, parts: Sequence[Part]) -> None:
    """Run the parts in this process, one after the other."""
    for number, part in enumerate(parts):
        with progress.part(number, len(parts)):
            kind.work(job, part)


def cut(items: Sequence[Item], most: int) -> list[list[Item]]:
    """Divide the items, in order, into at most `most` groups of similar size."""
    size = -(-len(items) // most) or 1
    return [list(items[begin : begin + size]) for begin in range(0, len(items), size)]
