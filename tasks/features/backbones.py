"""The networks that can make features, by name. Features that a user brings need no entry: any name, any width.

To add one: a function that gives the network for a weights file (or a seed) and a device, and a line in BACKBONES.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tasks.features.decoding import Frames
from vina_model.s3d import S3D, load_state, seeded
from vina_model.s3d_inference import FoldedS3D

Clips = npt.NDArray[np.uint8]
Vectors = npt.NDArray[np.float16]


class Outputs(NamedTuple):
    """The layers of a network that are kept, B x D each; `joint` is the space shared with its text tower."""

    main: Vectors
    joint: Vectors | None


@dataclass(frozen=True)
class Network:
    """A loaded network: call it on clips."""

    run: Callable[[Clips], Outputs]
    weights: str
    """The sha256 of the weights' file, or random:SEED."""


@dataclass(frozen=True)
class Backbone:
    """How one network makes features. What is said here is written beside every vector."""

    name: str
    layer: str
    joint_layer: str | None
    value_range: str
    frames: Frames
    load: Callable[[Path | None, int, str], Network]
    """(weights' file or None, seed for random weights, device) -> the network."""


def load_s3d(weights: Path | None, seed: int, device: str) -> Network:
    """S3D with MIL-NCE's published weights, or random ones."""
    if weights is None:
        model, name = seeded(seed), f"random:{seed}"
    else:
        model, name = S3D(), _sha256(weights)
        try:
            state = torch.load(weights, map_location="cpu", weights_only=True)
        except Exception as error:  # torch raises whatever a damaged file leads it to
            raise ValueError(f"{weights} cannot be read as a checkpoint: {str(error)[:300]}") from error
        load_state(model, state)
    fast = FoldedS3D(model.eval()).to(device)

    def run(clips_BTHWC: Clips) -> Outputs:
        video_BCTHW = torch.from_numpy(clips_BTHWC).to(device).permute(0, 4, 1, 2, 3).float() / 255
        output = fast(video_BCTHW)
        main, joint = (vectors.half().cpu().numpy() for vectors in (output.mixed_5c_BD, output.video_embedding_BE))
        return Outputs(main, joint)

    return Network(run, name)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


BACKBONES = {
    backbone.name: backbone
    for backbone in (Backbone("s3d-milnce", "mixed_5c", "fc", "[0, 1]", Frames(16, 224), load_s3d),)
}


def backbone_of(name: str) -> Backbone:
    """A backbone by its name."""
    if name not in BACKBONES:
        raise ValueError(f"there is no backbone {name!r}; those that can make features: {', '.join(BACKBONES)}")
    return BACKBONES[name]
