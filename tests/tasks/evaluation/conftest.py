"""A small world that is trained and measured, once for all tests that only look at it."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from storage import Store
from tasks.evaluation.stage import evaluate
from tasks.pipeline.job import Job
from tasks.training.stage import burn_in, rounds
from tests.tasks.conftest import TINY


class Measured(NamedTuple):
    """Its job, what the stage said, and the folder with the data sets that it was made of."""

    job: Job
    report: str
    corpus: Path

    @property
    def store(self) -> Store:
        return Store(self.job.store)


@pytest.fixture(scope="session")
def measured(small_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder = tmp_path_factory.mktemp("measured") / "store"
    shutil.copytree(small_world, folder)
    job = Job.of(str(folder), "run-1", TINY)
    burn_in(job)
    rounds(job)
    return Measured(job, evaluate(job), small_world.parent / "corpus")
