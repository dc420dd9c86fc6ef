"""Settings of the stage `features`."""

from typing import ClassVar

from tasks.pipeline.settings import NotNegative, Positive, Settings


class FeatureSettings(Settings):
    """How features are extracted from video files."""

    group: ClassVar[str] = "features"
    presets: ClassVar = {"demo": {"size_px": 112}}

    backbone: str = "s3d-milnce"
    """Network, by its name in `tasks/features/backbones.py`."""
    weights: str | None = None
    """Weights file. Without one the weights are the package's, or random, and every table row says so."""
    seed: NotNegative = 0
    """Seed of random weights; for demo-concepts, of the demo world."""
    size_px: Positive | None = None
    """Side of the square frames in pixels (default: the network's own, 224 for S3D)."""
    short_side_px: Positive | None = None
    """Length that the short side is scaled to before the square is cut from the middle (default: size_px)."""
    batch_size: Positive = 16
    """Clips (seconds of video) per forward pass."""
    videos_per_shard: Positive = 16
    """Videos per shard. A killed run loses the work on one shard at most."""
    joint: bool = False
    """Keep the joint text-video embeddings too, as the backbone NAME-joint."""
    dictionary: str | None = None
    """Vocabulary of the weights' text tower (default: s3d_dict.npy beside the weights)."""
    device: str | None = None
    """cuda, mps, cpu, ... (default: the best there is)."""
    retry_rejected: bool = False
    """Try videos again that could not be decoded."""
