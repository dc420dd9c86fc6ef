"""What a stage is told: the store it works on, the run it works for, and the run's settings; and how it breaks off."""

import time
from dataclasses import dataclass, field
from functools import lru_cache

from storage import Store
from tasks.features.settings import FeatureSettings
from tasks.pairing.settings import PairingSettings
from tasks.training.settings import TrainingSettings


@dataclass(frozen=True)
class Job:
    """Plain values only: they travel to workers on other machines."""

    store: str
    run_id: str
    corpus: str | None = None
    """The folder that the stage `import` reads."""
    features: FeatureSettings = field(default_factory=FeatureSettings)
    pairing: PairingSettings = field(default_factory=PairingSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    force: bool = False
    """Make anew what is there."""

    def open_store(self) -> Store:
        """Return the store for reading; it is opened again every minute, because its credentials may change."""
        return _open(self.store, int(time.monotonic() // 60))


@lru_cache(1)
def _open(uri: str, minute: int) -> Store:
    return Store(uri)


class Interrupted(Exception):
    """A stage was asked to end (SIGTERM); everything is saved, and the same run again goes on."""
