"""The stage `features`: plans what is missing, and makes it shard by shard.

What is to do follows from the tables alone: every video with a file, less those that have features of this backbone,
less those that were rejected before (unless they are to be tried again). A shard of videos is the unit of work and of
commit, so a killed run loses one shard's work at most. All vectors of a backbone come from one network.
"""

import hashlib
import logging
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from storage import MissingFileError, Store, fingerprint
from storage.objects import fetch
from storage.vectors import encode
from tasks.features.backbones import Backbone, Network, Vectors, backbone_of
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
    backbone = backbone_of(settings.backbone)
    shards = plan(store, settings)
    if not shards:
        return "no video file is without features"
    network = load_network(backbone, settings)
    check_same_network(store, backbone, network, frames_of(backbone, settings))
    progress = Progress(sum(len(shard) for shard in shards))
    made = [make_shard(store, job.run_id, videos, backbone, network, settings, progress) for videos in shards]
    if settings.retry_rejected:  # all of them were tried: what was said of them before is out of date
        store.table("rejects").retire({"stage": "features"}, keep=made, prefix=f"{backbone.name}/")
    return progress.line()


def frames_of(backbone: Backbone, settings: FeatureSettings) -> Frames:
    """The backbone's frames, in the size asked for."""
    return Frames(backbone.frames.fps, settings.size_px or backbone.frames.size_px)


def plan(store: Store, settings: FeatureSettings) -> list[list[VideoFile]]:
    """The shards that are to be made, each a list of videos."""
    listed = store.table("videos").snapshot().read(["video_id", "uri"], where=pc.field("uri").is_valid())
    files = {row["video_id"]: VideoFile(row["video_id"], row["uri"]) for row in reversed(listed.to_pylist())}
    done = set.intersection(*made_before(store, settings).values())
    if not settings.retry_rejected:
        done |= _ids(store, "rejects", "item", stage="features")
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
    return {name: _ids(store, "features", "video_id", backbone=name) for name in layers_of(settings)}


def _ids(store: Store, table: str, column: str, **partition: str) -> set[str]:
    snapshot = store.table(table).snapshot().where(**partition)
    ids: set[str] = set()
    with snapshot.errors():
        for batch in snapshot.dataset().to_batches(columns=[column]):
            ids.update(pc.unique(batch.column(column)).to_pylist())
    return ids


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


def make_shard(
    store: Store,
    run_id: str,
    videos: Sequence[VideoFile],
    backbone: Backbone,
    network: Network,
    settings: FeatureSettings,
    progress: "Progress",
) -> str:
    """The features of some videos, in one commit for each layer; those that cannot be decoded become rejects.

    Returns the name of the shard of its rejects.
    """
    frames, before = frames_of(backbone, settings), made_before(store, settings)
    name = hashlib.sha256("\n".join(video.video_id for video in videos).encode()).hexdigest()[:16]
    rejects: list[dict[str, Any]] = []
    with ExitStack() as stack:
        writers = {}
        for partition, layer in layers_of(settings).items():
            constants = how_made(backbone, network, frames, layer)
            mark = fingerprint(constants | {"videos": [video.video_id for video in videos]}, {}, CODE_VERSION)
            table = store.table("features")
            writer = table.writer({"backbone": partition}, name, fingerprint=mark, run_id=run_id, constants=constants)
            writers[partition] = stack.enter_context(writer)
        addresses = _local(videos, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        for done in extract(addresses, network.run, settings.batch_size, frames, progress.add_seconds):
            progress.add_video(is_rejected=done.outputs is None)
            if done.outputs is None:
                rejects.append(_reject(done, videos))
                continue
            for (partition, writer), vectors in zip(writers.items(), done.outputs, strict=False):
                if vectors is not None and done.video_id not in before[partition]:
                    writer.write(_rows(done.video_id, vectors))
    rejects_shard = f"{backbone.name}/{name}"
    _write_rejects(store, run_id, rejects_shard, rejects)
    return rejects_shard


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


def _rows(video_id: str, vectors: Vectors) -> pa.Table:
    return pa.table(
        {
            "video_id": pa.array([video_id] * len(vectors), pa.string()),
            "second": pa.array(np.arange(len(vectors), dtype=np.int32)),
            "vector": encode(vectors, "float16"),
        }
    )


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
