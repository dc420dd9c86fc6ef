"""Where networks run."""

import torch


def best_device() -> str:
    """The accelerator there is, else the CPU."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return accelerator.type if accelerator else "cpu"
