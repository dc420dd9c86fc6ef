"""The processes of a training: one, or those that torchrun started; their devices, sums and requests to end."""

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
    """This process, and how it works with the others."""

    rank: int
    count: int
    device: str
    asked_to_end: threading.Event = field(default_factory=threading.Event)
    """Set by SIGTERM: save what is done, then raise Interrupted."""

    @property
    def is_first(self) -> bool:
        """Whether this process writes checkpoints and logs."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until all processes have reached this point."""
        if self.count > 1:
            distributed.barrier()

    def any(self, flag: bool) -> bool:
        """Return, in every process, whether the flag is true in one of them."""
        return bool(self.total(torch.tensor([float(flag)], device=self.device)).item())

    def total(self, value: torch.Tensor) -> torch.Tensor:
        """Return the sum of all processes' values; the tensor itself is changed."""
        if self.count > 1:
            distributed.all_reduce(value)
        return value


def alone(device: str | None) -> Processes:
    """Return a single process, without torchrun."""
    return Processes(0, 1, checked_device(device))


@contextmanager
def joined(device: str | None) -> Iterator[Processes]:
    """Join the other processes under torchrun, if there are any, and handle SIGTERM."""
    count, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    chosen = checked_device(device)
    if chosen == "cuda" and count > 1:
        chosen = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        torch.cuda.set_device(chosen)
    if count > 1 and not distributed.is_initialized():
        # Once per process: a second group would receive messages left by the first.
        # A process may wait long for another one's shard of labels, or for its word vectors.
        distributed.init_process_group("nccl" if chosen.startswith("cuda") else "gloo", timeout=timedelta(hours=12))
        atexit.register(distributed.destroy_process_group)
    with _end_signals() as asked_to_end:
        yield Processes(rank, count, chosen, asked_to_end)


@contextmanager
def _end_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM sets; in the main thread only, where Python allows it."""
    asked_to_end = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked_to_end
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: asked_to_end.set())
    try:
        yield asked_to_end
    finally:
        signal.signal(signal.SIGTERM, before)


def first_decides(flag: bool, device: str | None) -> bool:
    """Return, in every process of a torchrun, the flag of the first one."""
    with joined(device) as processes:
        return processes.any(flag and processes.is_first)


def is_first() -> bool:
    """Return whether this is the first process under torchrun, or the only one."""
    return int(os.environ.get("RANK", "0")) == 0
