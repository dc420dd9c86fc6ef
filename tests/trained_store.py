"""A small demo world in a store, with two videos, paired, trained and measured within seconds: for tests of what is
made of a trained model."""

import shutil
from pathlib import Path

import pyarrow as pa

from flows.stages import STAGES
from storage import Store
from storage.catalogue import Catalogue
from tasks.demo_world.files import BACKBONE
from tasks.features.settings import FeatureSettings
from tasks.importers.settings import ImportSettings
from tasks.pairing.pairs import _named
from tasks.pipeline.job import Job
from tasks.pipeline.parts import run_here
from tasks.pipeline.run_record import record_run
from tasks.pipeline.stage import run_stage
from tasks.training.settings import TrainingSettings

RUN = "run-1"
CORPUS = "demo:short,num_videos=160,num_articles=6,num_rendered=2,steps_per_article=4,feature_noise=0.3"
SETTINGS = TrainingSettings(
    backbone=BACKBONE, selection="metadata", word_width=32, hidden_width=64, text_width=32, width=32, layers=2, heads=2,
    max_seconds=128, tan_epochs=8, epochs=8, burn_in_epochs=4, refresh_epochs=2, keep_share=0.5, batch_size=8,
    learning_rate=2e-3, alignment_share=1.0, device="cpu",
)  # fmt: skip


def job_in(folder: Path) -> Job:
    """The job whose store lies in a folder."""
    return Job.of(str(folder / "store"), RUN, ImportSettings(corpus=CORPUS), FeatureSettings(), SETTINGS)


def make_store(folder: Path) -> None:
    """All stages but `features` and `pairing`; pairs are those of the metadata."""
    job = job_in(folder)
    store = Store(job.store)
    stages = {stage.name: stage for stage in STAGES}
    names = ["import", "burn-in", "rounds", "evaluation", "report"]
    with record_run(store, RUN, names, job.model_dump(), measures=True):
        run_stage(job, stages["import"], run_here)
        _pair(store)
        for name in names[1:]:
            run_stage(job, stages[name], run_here)


def _pair(store: Store) -> None:
    with Catalogue(store) as catalogue:
        named = catalogue.query(_named("wikihow")).to_pylist()
    pairs = store.table("pairs")
    rows = pa.Table.from_pylist(named, schema=pairs.schema.files)
    pairs.commit(rows, {"selection": "metadata"}, "all", fingerprint="f", run_id=RUN)


def copy_of(job: Job, folder: Path) -> Job:
    """The same in another folder, to be changed."""
    shutil.copytree(job.store, folder / "store")
    return job.changed(store=str(folder / "store"))


def video_files(store: Store) -> dict[str, Path]:
    """The files of the videos, by id."""
    rows = store.table("videos").snapshot().read(["video_id", "uri"]).to_pylist()
    uris = {row["video_id"]: row["uri"] for row in rows if (row["uri"] or "").endswith(".mp4")}
    return {video_id: Path(store.objects.resolve(uri)) for video_id, uri in uris.items()}
