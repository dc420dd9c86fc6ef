"""The networks that can make features, by name. Features that a user brings need no entry: any name, any width.

To add one: a function that gives the network for a weights file (or a seed) and a device, and a line in BACKBONES.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from tasks.demo_world import network
from tasks.features.decoding import Frames
from tasks.features.network import Clips, Outputs, Run, read_checkpoint
from vina_model.s3d import S3D, load_state, seeded
from vina_model.s3d_inference import FoldedS3D


class Layer(NamedTuple):
    """A layer whose output is kept."""

    name: str
    width: int


@dataclass(frozen=True)
class Backbone:
    """How one network makes features. What is said here is written beside every vector."""

    name: str
    layer: Layer
    joint_layer: Layer | None
    value_range: str
    frames: Frames
    load: Callable[[Path | None, int, str], Run]
    """(weights' file or None, seed for random weights, device) -> the network."""
    weights: Path | None = None
    """Weights that come with the package, for who gives no others."""


def load_s3d(weights: Path | None, seed: int, device: str) -> Run:
    """S3D with MIL-NCE's published weights, or random ones."""
    model = seeded(seed) if weights is None else S3D()
    if weights is not None:
        load_state(model, read_checkpoint(weights))
    fast = FoldedS3D(model.eval()).to(device)

    def run(clips_BTHWC: Clips) -> Outputs:
        video_BCTHW = torch.from_numpy(clips_BTHWC).to(device).permute(0, 4, 1, 2, 3).float() / 255
        output = fast(video_BCTHW)
        main, joint = (vectors.half().cpu().numpy() for vectors in (output.mixed_5c_BD, output.video_embedding_BE))
        return Outputs(main, joint)

    return run


BACKBONES = {
    backbone.name: backbone
    for backbone in (
        Backbone("s3d-milnce", Layer("mixed_5c", 1024), Layer("fc", 512), "[0, 1]", Frames(16, 224), load_s3d),
        Backbone(
            "demo-concepts",
            Layer("concept", network.WIDTH),
            None,
            "[0, 1]",
            Frames(16, network.SIDE),
            network.load_demo_network,
            network.WEIGHTS,
        ),
    )
}


def backbone_of(name: str) -> Backbone:
    """A backbone by its name."""
    if name not in BACKBONES:
        raise ValueError(f"there is no backbone {name!r}; those that can make features: {', '.join(BACKBONES)}")
    return BACKBONES[name]
