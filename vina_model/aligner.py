"""Shared by TAN and VINA: the fields of their configurations, and the check of their features.

The transformer itself is in `transformer`; an aligner is a module that turns a Batch into an Alignment.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class AlignerConfig:
    """The size of an aligner; the defaults are those of both papers."""

    video_width: int = 1024
    """Width of a feature vector."""
    width: int = 512
    """Channels of the transformer."""
    layers: int = 6
    """Blocks of the transformer."""
    heads: int = 8
    """Attention heads of a block; they divide the width."""
    dropout: float = 0.0
    """Share of the activations that are dropped in training."""

    def check_video(self, video_BTV: Tensor, max_seconds: int) -> None:
        """Refuse a video that is longer than the positional table, and features of another backbone."""
        num_seconds, width = video_BTV.shape[1:]
        if num_seconds > max_seconds:
            raise ValueError(f"{num_seconds} seconds: this model has positions for {max_seconds}; use windows")
        if width != self.video_width:
            raise ValueError(f"features of {width} numbers: this model takes {self.video_width}, from its own backbone")
