"""Settings of the stage `pairing`."""

from typing import ClassVar

from tasks.pipeline.settings import Positive, Settings

MPNET = "sentence-transformers/all-mpnet-base-v2"


class PairingSettings(Settings):
    """How narrations vote for articles."""

    group: ClassVar[str] = "pairing"

    encoder: str | None = None
    """Sentence encoder: a sentence-transformers folder, or a name on the hub (default: MPNet, offline the packaged
    MiniLM)."""
    articles: str | None = None
    """Source of the articles that videos are paired with (default: wikihow)."""
    correct_hubs: bool = False
    """Subtract each title's mean similarity to all narrations, so that generic titles win fewer votes."""
    batch_size: Positive = 64
    """Sentences per forward pass of the encoder."""
    texts_per_shard: Positive = 8192
    """Texts per shard. A killed run loses at most the embedding of one shard."""
    device: str | None = None
    """cuda, mps, cpu, ... (default: the best available)."""
