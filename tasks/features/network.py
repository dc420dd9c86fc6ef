"""The inputs and outputs of networks that make features: the same for all backbones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Clips = npt.NDArray[np.uint8]
Vectors = npt.NDArray[np.float16]


class Outputs(NamedTuple):
    """Outputs of the layers that are stored, B x D each; `joint` is in the space of the text tower."""

    main: Vectors
    joint: Vectors | None


Run = Callable[[Clips], Outputs]
"""A network on its device, as a function of clips."""


def read_checkpoint(path: Path) -> Any:
    """Load a file of weights to the CPU, without running code from it."""
    import torch  # takes a second, which other commands need not wait for

    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many types for damaged files
        raise ValueError(f"{path} cannot be read as a checkpoint: {str(error)[:300]}") from error
