"""Where networks run, and in which precision."""

import torch


def best_device() -> str:
    """The accelerator there is, else the CPU."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return accelerator.type if accelerator else "cpu"


def checked_device(name: str | None) -> str:
    """A device by its name, the best one without; a ValueError if there is none of that name."""
    device = name or best_device()
    try:
        torch.empty(0, device=device)
    except Exception as error:  # torch raises whatever a build without that device leads it to
        raise ValueError(f"there is no device {device!r} here: {str(error).splitlines()[0]}") from error
    return device


def autocast(device: str) -> torch.autocast:
    """Half precision on accelerators: bfloat16 where the hardware has it, else float16. CPUs gain nothing from it."""
    kind = device.split(":")[0]
    has_bfloat16 = kind != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.autocast(kind, dtype=torch.bfloat16 if has_bfloat16 else torch.float16, enabled=kind != "cpu")
