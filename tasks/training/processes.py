"""The processes of a training: one, or those that torchrun started, with their devices; and whether they are to end."""

import atexit
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import torch
from torch import distributed

from tasks.pipeline.device import checked_device


@dataclass(frozen=True)
class Processes:
    """This process among all."""

    rank: int
    count: int
    device: str
    asked_to_end: threading.Event = field(default_factory=threading.Event)
    """Set by SIGTERM: what is done is to be saved, and then an Interrupted raised."""

    @property
    def is_first(self) -> bool:
        """Whether this one writes checkpoints and logs."""
        return self.rank == 0

    def wait(self) -> None:
        """Until all are here."""
        if self.count > 1:
            distributed.barrier()

    def any(self, is_so: bool) -> bool:
        """Whether it is so in one of them; all know it then."""
        return bool(self.total(torch.tensor([float(is_so)], device=self.device)).item())

    def total(self, value: torch.Tensor) -> torch.Tensor:
        """The sum of all processes' values, in the place of this one's."""
        if self.count > 1:
            distributed.all_reduce(value)
        return value


def alone(device: str | None) -> Processes:
    """One process."""
    return Processes(0, 1, checked_device(device))


@contextmanager
def joined(device: str | None) -> Iterator[Processes]:
    """Join the others, if torchrun says that there are any, and listen to SIGTERM."""
    count, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    chosen = checked_device(device)
    if chosen == "cuda" and count > 1:
        chosen = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        torch.cuda.set_device(chosen)
    if count > 1 and not distributed.is_initialized():
        # Once a process: a group that is made again would meet what the first one left behind.
        # A process may wait for another one's shard of labels, or for its words.
        distributed.init_process_group("nccl" if chosen.startswith("cuda") else "gloo", timeout=timedelta(hours=12))
        atexit.register(distributed.destroy_process_group)
    with _end_signals() as asked_to_end:
        yield Processes(rank, count, chosen, asked_to_end)


@contextmanager
def _end_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM sets while this lasts; in the main thread only, where Python allows it."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: asked.set())
    try:
        yield asked
    finally:
        signal.signal(signal.SIGTERM, before)


def is_first() -> bool:
    """Whether this is the first process of a torchrun, or the only one."""
    return int(os.environ.get("RANK", "0")) == 0
