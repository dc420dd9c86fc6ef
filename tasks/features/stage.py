"""The stage `features`: plans what is missing, and makes it shard by shard.

What is to do follows from the tables alone: every video with a file, less those that have features of this backbone,
less those that were rejected before (unless they are to be tried again). A shard of videos is the unit of work and of
commit, so a killed run loses one shard's work at most. All vectors of a backbone come from one network.
"""

import hashlib
import logging
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import torch

from storage import MissingFileError, Store, fingerprint
from storage.objects import fetch
from storage.shard_writer import ShardWriter
from storage.vectors import feature_rows
from tasks.features.backbones import Backbone, Network, backbone_of
from tasks.features.decoding import Frames
from tasks.features.extraction import Extracted, extract
from tasks.features.settings import FeatureSettings
from tasks.job import Job

CODE_VERSION = "1"
LOG = logging.getLogger("vina.features")


class VideoFile(NamedTuple):
    """A video that has a file."""

    video_id: str
    uri: str


def make_features(job: Job) -> str:
    """Features for every video file that has none; returns what was done."""
    settings, store = job.features, Store(job.store)
    before = made_before(store, settings)
    shards = plan(store, settings, before)
    if not shards:
        return "no video file is without features"
    backbone = backbone_of(settings.backbone)
    network, frames = load_network(backbone, settings), frames_of(backbone, settings)
    check_same_network(store, backbone, network, frames)
    progress = Progress(sum(len(shard) for shard in shards))
    maker = ShardMaker(store, job.run_id, settings, backbone, network, frames, before, progress)
    made = [maker.make(videos) for videos in shards]
    if settings.retry_rejected:  # all of them were tried: what was said of them before is out of date
        store.table("rejects").retire({"stage": "features"}, keep=made, prefix=f"{backbone.name}/")
    return progress.line()


def frames_of(backbone: Backbone, settings: FeatureSettings) -> Frames:
    """The backbone's frames, in the size asked for."""
    return Frames(backbone.frames.fps, settings.size_px or backbone.frames.size_px)


def plan(store: Store, settings: FeatureSettings, before: Mapping[str, set[str]]) -> list[list[VideoFile]]:
    """The shards that are to be made, each a list of videos. `before` has the videos of each partition."""
    listed = store.table("videos").snapshot().read(["video_id", "uri"], where=pc.field("uri").is_valid())
    files = {row["video_id"]: VideoFile(row["video_id"], row["uri"]) for row in reversed(listed.to_pylist())}
    done = set.intersection(*before.values())
    if not settings.retry_rejected:
        done |= store.table("rejects").snapshot().where(stage="features").distinct("item")
    todo = [files[video_id] for video_id in sorted(files.keys() - done)]
    size = settings.videos_per_shard
    return [todo[begin : begin + size] for begin in range(0, len(todo), size)]


def layers_of(settings: FeatureSettings) -> dict[str, str]:
    """The partitions of `features` that are asked for, each with the layer it holds."""
    backbone = backbone_of(settings.backbone)
    layers = {backbone.name: backbone.layer}
    if settings.joint and backbone.joint_layer:
        layers[f"{backbone.name}-joint"] = backbone.joint_layer
    return layers


def made_before(store: Store, settings: FeatureSettings) -> dict[str, set[str]]:
    """The videos that each of these partitions has."""
    snapshot = store.table("features").snapshot()
    return {name: snapshot.where(backbone=name).distinct("video_id") for name in layers_of(settings)}


def load_network(backbone: Backbone, settings: FeatureSettings) -> Network:
    """The network on its device; random weights are said aloud."""
    device = settings.device or _best_device()
    if settings.weights is None:
        LOG.warning(
            "no weights are given: %s has random ones (seed %d). Its features tell videos apart, and mean nothing.",
            backbone.name,
            settings.seed,
        )
    elif not Path(settings.weights).is_file():
        raise ValueError(f"there are no weights at {settings.weights}: name the file of {backbone.name}'s weights")
    return backbone.load(Path(settings.weights) if settings.weights else None, settings.seed, device)


def _best_device() -> str:
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return accelerator.type if accelerator else "cpu"


def how_made(backbone: Backbone, network: Network, frames: Frames, layer: str) -> dict[str, Any]:
    """The columns of `features` that say how a vector was made."""
    return {
        "fps": float(frames.fps),
        "frames_per_clip": frames.fps,
        "frame_px": frames.size_px,
        "stride_s": 1.0,
        "layer": layer,
        "value_range": backbone.value_range,
        "weights_sha256": network.weights,
    }


def check_same_network(store: Store, backbone: Backbone, network: Network, frames: Frames) -> None:
    """Vectors of different networks are not to be compared: a backbone has one."""
    ours = how_made(backbone, network, frames, backbone.layer)
    for shard in store.table("features").snapshot().where(backbone=backbone.name).shards:
        for name, value in ours.items():
            theirs = shard.constants[name]
            if theirs is not None and theirs != value and (name, theirs) != ("layer", "as imported"):
                raise ValueError(
                    f"the store's features of {backbone.name} have {name} {theirs}, these would have {value}: use what"
                    f" they were made with, or take them out with `vina forget features --backbone {backbone.name}`"
                )


@dataclass(frozen=True)
class ShardMaker:
    """All that the shards of a run have in common."""

    store: Store
    run_id: str
    settings: FeatureSettings
    backbone: Backbone
    network: Network
    frames: Frames
    before: Mapping[str, set[str]]
    """The videos that each partition had when the run began."""
    progress: "Progress"

    def make(self, videos: Sequence[VideoFile]) -> str:
        """The features of some videos, in one commit for each layer; those that cannot be decoded become rejects.

        Returns the name of the shard of its rejects.
        """
        name = hashlib.sha256("\n".join(video.video_id for video in videos).encode()).hexdigest()[:16]
        rejects: list[dict[str, Any]] = []
        with ExitStack() as stack:
            layers = layers_of(self.settings).items()
            writers = [
                (partition, stack.enter_context(self._writer(partition, layer, name, videos)))
                for partition, layer in layers
            ]
            addresses = _local(videos, Path(stack.enter_context(tempfile.TemporaryDirectory())))
            run, batch_size = self.network.run, self.settings.batch_size
            for done in extract(addresses, run, batch_size, self.frames, self.progress.add_seconds):
                self.progress.add_video(is_rejected=done.outputs is None)
                if done.outputs is None:
                    rejects.append(_reject(done, videos))
                    continue
                for (partition, writer), vectors in zip(writers, done.outputs, strict=False):
                    if vectors is not None and done.video_id not in self.before[partition]:
                        writer.write(feature_rows(done.video_id, vectors))
        shard = f"{self.backbone.name}/{name}"
        _write_rejects(self.store, self.run_id, shard, rejects)
        return shard

    def _writer(self, partition: str, layer: str, name: str, videos: Sequence[VideoFile]) -> ShardWriter:
        constants = how_made(self.backbone, self.network, self.frames, layer)
        mark = fingerprint(constants | {"videos": [video.video_id for video in videos]}, {}, CODE_VERSION)
        features = self.store.table("features")
        return features.writer({"backbone": partition}, name, fingerprint=mark, run_id=self.run_id, constants=constants)


def _local(videos: Sequence[VideoFile], folder: Path) -> Iterator[tuple[str, str]]:
    """Where to read each video: files and web addresses as they are, objects on S3 from a copy, one at a time."""
    for video_id, uri in videos:
        if not uri.startswith("s3://"):
            yield video_id, uri
            continue
        copy = folder / f"video{Path(uri).suffix}"
        try:
            fetch(uri, copy)
        except MissingFileError as error:  # what is not there is decoded as such, and rejected
            LOG.warning("%s", error)
        yield video_id, str(copy)
        copy.unlink(missing_ok=True)


def _reject(done: Extracted, videos: Sequence[VideoFile]) -> dict[str, Any]:
    reason = done.problem.reason if done.problem else "no frames"
    uri = next(video.uri for video in videos if video.video_id == done.video_id)
    return {"item": done.video_id, "reason": reason, "detail": str(done.problem), "file": uri, "line": None}


def _write_rejects(store: Store, run_id: str, shard: str, rejects: list[dict[str, Any]]) -> None:
    table, partition = store.table("rejects"), {"stage": "features"}
    if rejects or table.snapshot().find(partition, shard):
        rows = pa.Table.from_pylist(rejects, schema=table.schema.files)
        mark = fingerprint({"rejects": rejects}, {}, CODE_VERSION)
        table.commit(rows, partition, shard, fingerprint=mark, run_id=run_id)


class Progress:
    """Counts videos and seconds, and says so every few seconds."""

    def __init__(self, num_videos: int, every_s: float = 5.0) -> None:
        self._num_videos, self._every_s = num_videos, every_s
        self._videos = self._rejected = self._seconds = 0
        self._begin = self._said = time.monotonic()

    def add_seconds(self, seconds: int) -> None:
        """Seconds of video that went through the network."""
        self._seconds += seconds
        if time.monotonic() - self._said >= self._every_s:
            self._said = time.monotonic()
            LOG.info(self.line())

    def add_video(self, is_rejected: bool) -> None:
        """A video that is done with."""
        self._videos += 1
        self._rejected += is_rejected

    def line(self) -> str:
        """E.g. `12 of 40 videos (1 rejected), 812 s of video at 34.1 s a second, 1 min 20 s left`."""
        elapsed = max(time.monotonic() - self._begin, 1e-9)
        text = f"{self._videos:,} of {self._num_videos:,} videos ({self._rejected:,} rejected)"
        text += f", {self._seconds:,} s of video at {self._seconds / elapsed:.1f} s a second"
        if 0 < self._videos < self._num_videos:
            left = elapsed / self._videos * (self._num_videos - self._videos)
            text += f", {int(left // 60)} min {int(left % 60)} s left"
        return text
