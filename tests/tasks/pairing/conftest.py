"""A store, the model that takes no time, and one torch thread: two collapse when another process has a core."""

from pathlib import Path

import pytest
import torch

from storage import Store
from tests.tasks.pairing.corpora import FakeEncoder, random_corpus

torch.set_num_threads(1)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> FakeEncoder:
    return FakeEncoder().install(monkeypatch)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def corpus(store: Store) -> Store:
    random_corpus(store, 1)
    return store
