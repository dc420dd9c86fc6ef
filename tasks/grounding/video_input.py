"""The video to ground in: an imported one by its id, or any file. Features are read from the store, or extracted."""

import logging
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from storage import MissingFileError, Store
from storage.catalogue import Catalogue, quoted
from storage.feature_reader import FeatureReader
from storage.fingerprint import file_hash
from storage.objects import fetch
from tasks.features.backbones import BACKBONES, backbone_of
from tasks.features.extraction import extract
from tasks.features.progress import Progress
from tasks.features.recipe import Recipe
from tasks.features.settings import FeatureSettings
from tasks.features.stage import load_network
from tasks.grounding.narration_files import read_narrations
from tasks.importers.captions import Sentence
from tasks.importers.text_files import BadFile
from tasks.importers.videos import MEDIA, probe_duration_s
from tasks.pipeline.progress import say
from vina_model.grounder import Grounder

LOG = logging.getLogger("vina.grounding")
RANDOM = re.compile(r"random:(\d+)")


@dataclass(frozen=True)
class VideoInput:
    """A video with its features (T x V) and narrations."""

    name: str
    video_id: str | None
    """Id of an imported video."""
    video_file: str | None
    """A path or s3://..., if the video has a file."""
    features_TV: npt.NDArray[np.floating]
    narrations: list[Sentence]


def read_video(
    video: str, model: Grounder, store: Store | None, narrations: Path | None, weights: str | None, device: str
) -> VideoInput:
    """Read a video file, if it exists, or else an imported video by its id. Raise ValueError if there is neither."""
    sentences = read_narrations(narrations) if narrations else None
    if video.startswith("s3://") or Path(video).exists() or Path(video).suffix.lower() in MEDIA:
        with tempfile.TemporaryDirectory() as folder:
            vectors = features_of(local_video(video, Path(folder)), model, store, weights, device)
        video_id = _id_of(store, video) if store else None
        if sentences is None and store is not None and video_id is not None:
            sentences = narrations_in(store, video_id)
        return VideoInput(Path(video).stem, video_id, video, vectors, sentences or [])
    if store is None:
        raise ValueError(f"there is no file {video}, and no store to look for a video with that id in (--store)")
    uri = stored_video(store, video)["uri"]
    reader = FeatureReader(store, model.backbone)
    if video in reader.num_seconds:
        vectors = reader.read(video)
    elif uri is None:
        raise ValueError(f"video {video!r} has no {model.backbone} features, and no file to extract them from")
    else:
        with tempfile.TemporaryDirectory() as folder:
            vectors = features_of(local_video(uri, Path(folder)), model, store, weights, device)
    return VideoInput(video, video, uri, vectors, narrations_in(store, video) if sentences is None else sentences)


def local_video(uri: str, folder: Path) -> Path:
    """Return the file of a video; an object on S3 is copied into the folder."""
    if not uri.startswith("s3://"):
        return Path(uri)
    copy = folder / f"video{Path(uri).suffix}"
    try:
        fetch(uri, copy)
    except MissingFileError as error:
        raise ValueError(str(error)) from error
    return copy


def features_of(
    path: Path, model: Grounder, store: Store | None, weights: str | None, device: str
) -> npt.NDArray[np.floating]:
    """Extract the features of a file, T x V, as those of the model's training data were."""
    if not path.is_file():
        raise ValueError(f"there is no video file at {path}" + (": it is a folder" if path.is_dir() else ""))
    try:
        expected_s = probe_duration_s(path)
    except BadFile as error:
        raise ValueError(str(error)) from error
    settings = _settings(model, store, weights, device)
    recipe = Recipe.of(settings)
    trained_on = model.made_with.get("weights_sha256")
    if trained_on is not None and trained_on != recipe.weights:
        raise ValueError(
            f"the model was trained on {model.backbone} features with weights {trained_on[:16]}, "
            f"not {recipe.weights[:16]}: give the file of those weights (--weights)"
        )
    progress = Progress(1, expected_s or 0.0)
    say(LOG, 0.0, f"{path.name}: {model.backbone} features of {expected_s or 0:.0f} s of video")
    video_files = [(path.stem, str(path))]
    network = load_network(recipe, settings)
    (done,) = extract(video_files, network, settings.batch_size, recipe.frames, progress.add_seconds)
    if done.outputs is None:
        raise ValueError(f"{path} cannot be used: {done.problem or 'it has no frames'}")
    return done.outputs.main


def _settings(model: Grounder, store: Store | None, weights: str | None, device: str) -> FeatureSettings:
    """Return the settings of the model's features. Raise ValueError if they cannot be extracted here."""
    made_with = model.made_with
    if model.backbone not in BACKBONES:
        raise ValueError(
            f"the model takes {model.backbone!r} features, which cannot be made here (only {', '.join(BACKBONES)}): "
            "import them with `vina import features`, and give the id of the video"
        )
    weights_hash = str(made_with.get("weights_sha256"))
    is_random = RANDOM.fullmatch(weights_hash)
    is_packaged = backbone_of(model.backbone).weights is not None
    chosen_weights = weights or (None if is_random or is_packaged else _used_weights(store, weights_hash))
    if chosen_weights is None and not is_random and not is_packaged:
        raise ValueError(
            f"the model takes features of {model.backbone} with its trained weights: give their file with --weights"
        )
    seed = int(is_random[1]) if is_random else int(made_with.get("seed", 0))
    return FeatureSettings(
        backbone=model.backbone,
        weights=chosen_weights,
        seed=seed,
        size_px=made_with.get("frame_px"),
        short_side_px=made_with.get("short_side_px"),
        device=device,
    )


def _used_weights(store: Store | None, sha256: str) -> str | None:
    """Return the file of these weights, if a run of the store has used it and it still exists."""
    if store is None:
        return None
    with Catalogue(store) as catalogue:
        rows = catalogue.query("""
            SELECT configuration ->> '$.settings.features.weights' AS weights
            FROM runs ORDER BY started_at DESC""").to_pylist()
    paths = dict.fromkeys(row["weights"] for row in rows if row["weights"])
    return next((path for path in paths if file_hash(path) == sha256), None)


def _id_of(store: Store, video_file: str) -> str | None:
    """Return the id of an imported video by its file."""
    address = video_file if video_file.startswith("s3://") else str(Path(video_file).resolve())
    uris = quoted(address), quoted(store.objects.relative(address))
    with Catalogue(store) as catalogue:
        rows = catalogue.query(f"SELECT video_id FROM videos WHERE uri IN ({', '.join(uris)}) LIMIT 1")
    return next(iter(rows["video_id"].to_pylist()), None)


def stored_video(store: Store, video_id: str) -> Mapping[str, Any]:
    """Return the id and the address (or None) of an imported video. Raise ValueError if the store has no such video."""
    with Catalogue(store) as catalogue:
        rows = (
            catalogue.query(f"""
            SELECT video_id, uri FROM videos WHERE video_id = {quoted(video_id)} ORDER BY uri NULLS LAST LIMIT 1
            """).to_pylist()
            or catalogue.query(f"""
            SELECT video_id, NULL AS uri FROM features WHERE video_id = {quoted(video_id)} LIMIT 1""").to_pylist()
        )
        if not rows:
            near = catalogue.query(f"""
                SELECT DISTINCT video_id FROM videos
                ORDER BY levenshtein(video_id, {quoted(video_id)}), video_id LIMIT 3""")["video_id"].to_pylist()
            hint = f"; the nearest ids: {', '.join(near)}" if near else ""
            raise ValueError(
                f"there is no file {video_id}, and no video with that id in the store at {store.uri}{hint}"
            )
    row = rows[0]
    return row if row["uri"] is None else row | {"uri": store.objects.resolve(row["uri"])}


def narrations_in(store: Store, video_id: str) -> list[Sentence]:
    """Return the narrations of an imported video, in spoken order."""
    with Catalogue(store) as catalogue:
        rows = catalogue.query(f"""
            SELECT text, start_s, end_s FROM video_narrations WHERE video_id = {quoted(video_id)}
            ORDER BY row""").to_pylist()
    return [Sentence(row["text"], row["start_s"], row["end_s"]) for row in rows]
