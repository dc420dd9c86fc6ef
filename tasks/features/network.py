"""What a network that makes features is called on, and what it gives: shared by all backbones, wherever they are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

Clips = npt.NDArray[np.uint8]
Vectors = npt.NDArray[np.float16]


class Outputs(NamedTuple):
    """The layers of a network that are kept, B x D each; `joint` is the space shared with its text tower."""

    main: Vectors
    joint: Vectors | None


Run = Callable[[Clips], Outputs]
"""A network on its device: call it on clips."""


def read_checkpoint(path: Path) -> Any:
    """What a weights' file holds, on the CPU; no code in it is run."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises whatever a damaged file leads it to
        raise ValueError(f"{path} cannot be read as a checkpoint: {str(error)[:300]}") from error
