"""The settings of the stage `features`."""

import math
from dataclasses import dataclass
from typing import ClassVar

from tasks.pipeline.settings_check import Limited


@dataclass(frozen=True)
class FeatureSettings(Limited):
    """What may be asked of the stage."""

    LIMITS: ClassVar = {
        (1, math.inf): "size_px short_side_px batch_size videos_per_shard",
        (0, math.inf): "seed",
    }

    backbone: str = "s3d-milnce"
    """The network, by its name in `backbones.py`."""
    weights: str | None = None
    """The file of its weights; without one they are the package's, or random, and every table row says so."""
    seed: int = 0
    """Of random weights; for demo-concepts, of the demo world."""
    size_px: int | None = None
    """Side of the frames (default: the network's own, 224 for S3D)."""
    short_side_px: int | None = None
    """What the short side is scaled to before the frame is cut from the middle (default: the frame's side)."""
    batch_size: int = 16
    """Clips (seconds of video) that go through the network at once."""
    videos_per_shard: int = 16
    """A killed run loses the work on this many at most."""
    joint: bool = False
    """Keep the joint text-video embeddings too, as the backbone NAME-joint."""
    dictionary: str | None = None
    """The words that the weights' text half knows (default: s3d_dict.npy beside the weights)."""
    device: str | None = None
    """cuda, mps, cpu, ... (default: the best there is)."""
    retry_rejected: bool = False
    """Try the videos again that could not be decoded."""
