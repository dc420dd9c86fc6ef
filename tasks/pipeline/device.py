"""Devices and precision."""

import torch


def best_device() -> str:
    """Return the accelerator, if there is one, else the CPU."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return accelerator.type if accelerator else "cpu"


def checked_device(name: str | None) -> str:
    """Return a device by name, or the best one. Raise ValueError if it does not exist."""
    device = name or best_device()
    try:
        torch.empty(0, device=device)
    except Exception as error:  # builds of torch raise different errors for a missing device
        raise ValueError(f"there is no device {device!r} here: {str(error).splitlines()[0]}") from error
    return device


def autocast(device: str) -> torch.autocast:
    """Use half precision on accelerators: bfloat16 where the hardware has it, else float16. CPUs use float32."""
    kind = device.split(":")[0]
    has_bfloat16 = kind != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.autocast(kind, dtype=torch.bfloat16 if has_bfloat16 else torch.float16, enabled=kind != "cpu")
