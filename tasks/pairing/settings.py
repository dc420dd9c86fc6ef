"""The settings of the stage `pairing`."""

import math
from dataclasses import dataclass
from typing import ClassVar

from tasks.pipeline.settings_check import Limited

MPNET = "sentence-transformers/all-mpnet-base-v2"


@dataclass(frozen=True)
class PairingSettings(Limited):
    """What may be asked of the stage."""

    LIMITS: ClassVar = {(1, math.inf): "batch_size texts_per_shard"}

    encoder: str | None = None
    """A sentence-transformers model: a folder, or a name on the hub (default: MPNet, or the packaged model offline)."""
    articles: str | None = None
    """The source whose articles the videos are paired with (default: wikihow)."""
    correct_hubs: bool = False
    """Take from each title what it is similar to everything by, so that none steals votes."""
    batch_size: int = 64
    """Sentences that go through the model at once."""
    texts_per_shard: int = 8192
    """A killed run loses the embedding of this many at most."""
    device: str | None = None
    """cuda, mps, cpu, ... (default: the best there is)."""
