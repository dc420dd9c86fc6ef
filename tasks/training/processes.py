"""The processes of a training: one, or those that torchrun started, with their devices."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import distributed

from tasks.device import best_device


@dataclass(frozen=True)
class Processes:
    """This process among all."""

    rank: int
    count: int
    device: str

    @property
    def is_first(self) -> bool:
        """Whether this one writes checkpoints and logs."""
        return self.rank == 0

    def wait(self) -> None:
        """Until all are here."""
        if self.count > 1:
            distributed.barrier()

    def total(self, value: torch.Tensor) -> torch.Tensor:
        """The sum of all processes' values."""
        if self.count > 1:
            value = value.clone()
            distributed.all_reduce(value)
        return value


@contextmanager
def joined(device: str | None) -> Iterator[Processes]:
    """Join the others, if torchrun says that there are any."""
    count, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    chosen = device or best_device()
    if chosen == "cuda" and count > 1:
        chosen = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        torch.cuda.set_device(chosen)
    if count == 1:
        yield Processes(0, 1, chosen)
        return
    distributed.init_process_group("nccl" if chosen.startswith("cuda") else "gloo")
    try:
        yield Processes(rank, count, chosen)
    finally:
        distributed.destroy_process_group()
