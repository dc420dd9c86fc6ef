"""A small world in a store, paired by its metadata, and settings that train in seconds on one thread."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch

from storage import Store
from storage.catalogue import Catalogue
from tasks.demo_world.corpus import world_of
from tasks.demo_world.files import BACKBONE, write_world
from tasks.importers.settings import ImportSettings
from tasks.importers.stage import import_corpus
from tasks.pairing.pairs import _named
from tasks.pipeline.job import Job
from tasks.training.settings import TrainingSettings

torch.set_num_threads(1)
TINY = TrainingSettings(
    backbone=BACKBONE, selection="metadata", word_width=16, hidden_width=32, text_width=16, width=32, layers=2, heads=2,
    max_seconds=128, tan_epochs=2, epochs=4, burn_in_epochs=2, refresh_epochs=1, keep_share=0.5, batch_size=8,
    learning_rate=1e-3, dropout=0.1, word_dropout=0.1, feature_noise=0.3, device="cpu",
)  # fmt: skip
MakeJob = Callable[..., Job]


@pytest.fixture(scope="session")
def small_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 40 videos, 32 of them for training."""
    folder = tmp_path_factory.mktemp("training")
    world = world_of("demo:short,num_videos=40,num_articles=5,num_rendered=0,feature_width=16,feature_noise=0.3")
    write_world(world, folder / "corpus")
    store = Store(folder / "store")
    import_corpus(Job.of(store.uri, "import", ImportSettings(corpus=str(folder / "corpus"))))
    with Catalogue(store) as catalogue:
        named = catalogue.query(_named("wikihow")).to_pylist()
    pairs = store.table("pairs")
    rows = pa.Table.from_pylist(named, schema=pairs.schema.files)  # columns that are not given are empty
    pairs.commit(rows, {"selection": "metadata"}, "all", fingerprint="f", run_id="import")
    return folder / "store"


@pytest.fixture
def job(small_world: Path, tmp_path: Path) -> MakeJob:
    """A job on a copy of that store, with some settings changed."""

    def make(name: str = "store", **changes: Any) -> Job:
        if not (tmp_path / name).exists():
            shutil.copytree(small_world, tmp_path / name)
        return Job.of(str(tmp_path / name), "run-1", TINY.changed(**changes))

    return make
