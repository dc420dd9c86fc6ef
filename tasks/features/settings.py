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
    """Weights file (default: the package's weights, or random ones; every row of `features` records which)."""
    seed: NotNegative = 0
    """Seed of random weights; for demo-concepts, of the demo world."""
    size_px: Positive | None = None
    """Side of the square frames in pixels (default: that of the network, 224 for S3D)."""
    short_side_px: Positive | None = None
    """Length that the short side is scaled to before the square is cut from the middle (default: size_px)."""
    batch_size: Positive = 16
    """Clips (seconds of video) per forward pass."""
    videos_per_shard: Positive = 16
    """Videos per shard. A killed run loses at most the work on one shard."""
    joint: bool = False
    """Keep the joint text-video embeddings too, as the backbone NAME-joint."""
    dictionary: str | None = None
    """Vocabulary of the weights' text tower (default: s3d_dict.npy beside the weights)."""
    device: str | None = None
    """cuda, mps, cpu, ... (default: the best available)."""
    retry_rejected: bool = False
    """Retry videos that could not be decoded."""
