"""The stage `features`: plan what is missing, and extract it shard by shard.

The work is planned from the tables alone: all videos with a file, except those that have features of this backbone, and
except those that were rejected before (unless `retry_rejected` is set). A shard of videos is the unit of work and of
commit, so a killed run loses at most one shard. All vectors of a backbone come from one network.
"""

import logging
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from storage import MissingFileError, Store, fingerprint_of
from storage.fingerprint import shard_name
from storage.objects import fetch
from storage.vectors import Floats, feature_rows
from tasks.features import rejects
from tasks.features.backbones import Layer
from tasks.features.extraction import Extracted, extract
from tasks.features.joint_texts import dictionary_version, embed_joint_texts
from tasks.features.network import Run
from tasks.features.progress import Progress
from tasks.features.projection import project_features
from tasks.features.recipe import AS_IMPORTED, Recipe, weights_file
from tasks.features.settings import FeatureSettings
from tasks.pipeline.artifacts import CORPUS, REJECTS
from tasks.pipeline.device import best_device
from tasks.pipeline.job import Job
from tasks.pipeline.parts import Part, PartKind, RunParts, cut, run_here
from tasks.pipeline.stage import Dependencies, Stage, versions

CODE_VERSION = "2"
MOST_PARTS = 500
"""Limit, because Prefect's server keeps records of each part."""
NOT_FINGERPRINTED = ("batch_size", "videos_per_shard", "device", "retry_rejected")
"""Settings that do not change the vectors."""
LOG = logging.getLogger("vina.features")


class VideoFile(NamedTuple):
    """A video that has a file."""

    video_id: str
    uri: str
    duration_s: float | None


def make_features(job: Job, run_parts: RunParts = run_here) -> str:
    """Extract features of every video file that has none; return a report."""
    settings, store = job.settings_of(FeatureSettings), Store(job.store)
    recipe = Recipe.of(settings)
    video_files = list_video_files(store)
    projected = project_features(store, job.run_id, recipe, settings) if settings.joint else 0
    done = made_before(store, recipe)
    given_up = set() if settings.retry_rejected else rejects.given_up(store, recipe.backbone.name)
    shards = plan(video_files, done | given_up, settings.videos_per_shard)
    if shards or settings.weights:
        recipe.check(store)
    run_parts(job, EXTRACTION, [{"shards": part} for part in cut(shards, MOST_PARTS)])
    tried = {video_file.video_id for shard in shards for video_file in shard}
    holding = video_files.keys() - (made_before(store, recipe) if shards else done)
    names = {shard_name([video_file.video_id for video_file in shard]) for shard in shards}
    rejects.settle(store, job.run_id, recipe.backbone.name, holding, tried, names)
    rejected = len(tried & holding)
    report = f"{len(tried) - rejected:,} of {len(tried):,} videos got features ({rejected:,} rejected)"
    if not shards:
        other = recipe.difference(store, but="" if settings.weights else "weights_sha256")
        report = "all video files have features" + (f" ({other}: --force extracts them again)" if other else "")
    report += f"; {projected:,} videos were projected into the joint space" if projected else ""
    return f"{report}; {embed_joint_texts(store, job.run_id, recipe, settings)}" if settings.joint else report


def make_shards(job: Job, part: Part) -> None:
    """Extract the features of some shards of videos."""
    shards = [[VideoFile(*video_file) for video_file in shard] for shard in part["shards"]]
    settings = job.settings_of(FeatureSettings)
    recipe = Recipe.of(settings)
    maker = ShardMaker(Store(job.store), job.run_id, settings, recipe, Progress(*_extent(shards)))
    run = load_network(recipe, settings)
    for shard in shards:
        if not maker.is_made(shard):
            maker.make(shard, run)
    LOG.info("%s", maker.progress.line())


def dependencies(job: Job) -> Dependencies:
    """Return what the features depend on."""
    store, settings = job.open_store(), job.settings_of(FeatureSettings)
    recipe = Recipe.of(settings)
    fingerprinted = {name: value for name, value in settings.model_dump().items() if name not in NOT_FINGERPRINTED}
    features = store.table("features").snapshot()
    inputs = versions(store, "videos", *(("steps", "annotations") if settings.joint else ()))
    outputs = {f"features of {name}": features.where(backbone=name).content_version for name in recipe.layers}
    if settings.joint:
        fingerprinted["dictionary"] = dictionary_version(settings)
    must_run_because = "videos that were rejected are tried again" if settings.retry_rejected else ""
    if missing := rejects.missing_files(store, recipe.backbone.name):
        must_run_because = f"{missing:,} video files were missing"
    return Dependencies(
        fingerprinted | {"weights": recipe.weights}, inputs, outputs, recipe.backbone.name, must_run_because
    )


def reset(job: Job) -> None:
    """Retire extracted vectors; imported ones stay."""
    store, recipe = Store(job.store), Recipe.of(job.settings_of(FeatureSettings))
    for name in recipe.layers:
        partition = {"backbone": name}
        store.table("features").retire(partition, only=lambda shard: shard.constants["layer"] != AS_IMPORTED)
    store.table("rejects").retire(rejects.PARTITION, prefix=f"{recipe.backbone.name}/")


EXTRACTION = PartKind("features", make_shards)
FEATURES = Stage(
    "features", make_features, dependencies, CODE_VERSION, reset, (FeatureSettings,), (EXTRACTION,), CORPUS | REJECTS
)


def list_video_files(store: Store) -> dict[str, VideoFile]:
    """Return the videos that have files, by id."""
    listed = store.table("videos").snapshot().read(VideoFile._fields, where=pc.field("uri").is_valid())
    rows = [row | {"uri": store.objects.resolve(row["uri"])} for row in listed.to_pylist()]
    return {row["video_id"]: VideoFile(**row) for row in reversed(rows)}


def made_before(store: Store, recipe: Recipe) -> set[str]:
    """Return the videos that have features of all layers."""
    snapshot = store.table("features").snapshot()
    return set.intersection(*(snapshot.where(backbone=name).distinct("video_id") for name in recipe.layers))


def plan(video_files: Mapping[str, VideoFile], done: Collection[str], videos_per_shard: int) -> list[list[VideoFile]]:
    """Return the shards to extract."""
    todo = [video_files[video_id] for video_id in sorted(video_files.keys() - done)]
    return [todo[begin : begin + videos_per_shard] for begin in range(0, len(todo), videos_per_shard)]


def _extent(shards: Sequence[Sequence[VideoFile]]) -> tuple[int, float]:
    """Return the number of videos and their total length; an unknown length counts as the mean of the others."""
    lengths = [video_file.duration_s for shard in shards for video_file in shard]
    known_lengths = [length for length in lengths if length]
    return len(lengths), sum(known_lengths) * len(lengths) / max(len(known_lengths), 1)


@lru_cache(1)
def load_network(recipe: Recipe, settings: FeatureSettings) -> Run:
    """Load the network once for all parts of this process; warn about random weights."""
    weights = weights_file(settings, recipe.backbone)
    if weights is None:
        LOG.warning(
            "no weights are given: %s has random weights (seed %d), and its features are meaningless.",
            recipe.backbone.name,
            settings.seed,
        )
    return recipe.backbone.load(weights, settings.seed, settings.device or best_device())


@dataclass
class ShardMaker:
    """Extracts shards of one part."""

    store: Store
    run_id: str
    settings: FeatureSettings
    recipe: Recipe
    progress: Progress

    def is_made(self, video_files: Sequence[VideoFile]) -> bool:
        """Return whether an earlier try of this part, or another run, has extracted the shard."""
        name, table = (
            shard_name([video_file.video_id for video_file in video_files]),
            self.store.table("features").snapshot(),
        )
        shard_rejects = rejects.written(self.store, self.recipe.backbone.name, name)
        if shard_rejects is not None and shard_rejects.written_by == self.run_id:
            return True
        return all(table.find({"backbone": partition}, name) for partition in self.recipe.layers)

    def make(self, video_files: Sequence[VideoFile], run: Run) -> None:
        """Extract the features of some videos, one commit per layer; videos that cannot be decoded become rejects."""
        extracted: list[Extracted] = []
        bad: list[dict[str, Any]] = []
        with tempfile.TemporaryDirectory() as folder:
            copies = dict(_copies(video_files, Path(folder)))
            local = _fetched(video_files, copies)
            for done in extract(local, run, self.settings.batch_size, self.recipe.frames, self.progress.add_seconds):
                self.progress.add_video(is_rejected=done.outputs is None)
                if done.outputs is None:
                    bad.append(_reject(done, video_files, copies))
                else:
                    extracted.append(done)
        for number, (partition, layer) in enumerate(self.recipe.layers.items()):
            vectors = {done.video_id: done.outputs[number] for done in extracted if done.outputs is not None}
            self._commit(partition, layer, {name: array for name, array in vectors.items() if array is not None})
        name = shard_name([video_file.video_id for video_file in video_files])
        rejects.write(self.store, self.run_id, self.recipe.backbone.name, name, bad)

    def _commit(self, partition: str, layer: Layer, vectors: Mapping[str, Floats]) -> None:
        """Commit the vectors that the partition lacks: another worker may have committed some of them."""
        table = self.store.table("features")
        stored = table.snapshot().where(backbone=partition)
        wanted = (pc.field("second") == 0) & pc.field("video_id").isin(pa.array(vectors, pa.string()))
        stored_ids = set(stored.read(["video_id"], where=wanted)["video_id"].to_pylist()) if stored.shards else set()
        new = [name for name in vectors if name not in stored_ids]
        if not new:
            return
        constants = self.recipe.columns(layer)
        fingerprint = fingerprint_of(constants | {"videos": new}, {}, CODE_VERSION)
        with table.writer(
            {"backbone": partition}, shard_name(new), fingerprint=fingerprint, run_id=self.run_id, constants=constants
        ) as writer:
            for name in new:
                writer.write(feature_rows(name, vectors[name]))


def _copies(video_files: Sequence[VideoFile], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the temporary paths of videos that are copied from S3."""
    for number, video_file in enumerate(video_files):
        if video_file.uri.startswith("s3://"):
            yield video_file.video_id, folder / f"{number}{Path(video_file.uri).suffix}"


def _fetched(video_files: Sequence[VideoFile], copies: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Yield the address to read each video from: files and URLs unchanged, objects on S3 as a copy."""
    for video_file in video_files:
        copy = copies.get(video_file.video_id)
        if copy is None:
            yield video_file.video_id, video_file.uri
            continue
        try:
            fetch(video_file.uri, copy)
        except MissingFileError as error:  # decoding the missing copy rejects it
            LOG.warning("%s", error)
        yield video_file.video_id, str(copy)
        copy.unlink(missing_ok=True)


def _reject(done: Extracted, video_files: Sequence[VideoFile], copies: Mapping[str, Path]) -> dict[str, Any]:
    reason = done.problem.reason if done.problem else "no frames"
    uri = next(video_file.uri for video_file in video_files if video_file.video_id == done.video_id)
    detail = str(done.problem).replace(str(copies.get(done.video_id, uri)), uri)
    return {"item": done.video_id, "reason": reason, "detail": detail, "file": uri, "line": None}
