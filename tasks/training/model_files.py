"""Models for use, apart from their training: one small file each, `objects/models/TRAINING.pt`, that needs no store."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from storage import MissingFileError, Store, fingerprint_of
from tasks.features.backbones import BACKBONES, backbone_of
from tasks.training import checkpoints
from tasks.training.curriculum import settings_hash
from tasks.training.models import version_of
from tasks.training.settings import TrainingSettings
from vina_model.grounder import Grounder
from vina_model.presence import Presence


def write_model(
    store: Store,
    run_id: str,
    model_id: str,
    tan: str,
    settings: TrainingSettings,
    presence: Mapping[str, Presence] | None = None,
) -> None:
    """The student of a training, with how its features are made and its calibration: a file, and a row of `models`.

    Without a calibration, one of the same weights that is there stays as it is.
    """
    state = checkpoints.load(store, model_id, "last")
    if state is None:
        raise ValueError(f"{model_id} has no checkpoint: train it with the stage `rounds`")
    model, place, table = Grounder.of(state), {"model_id": model_id}, store.table("models")
    about = {
        "tan": tan, "settings": settings_hash(settings), "backbone": settings.backbone,
        "version": version_of(model.model),
        "is_calibrated": bool(presence),
    }  # fmt: skip
    judges = {way: vars(own) for way, own in (presence or {}).items()}
    fingerprint = fingerprint_of(about | {"presence": judges}, {}, "1")
    alike = [row for row in models_in(store) if (row["model_id"], row["version"]) == (model_id, about["version"])]
    is_there = key(model_id) in store.objects.keys(key(model_id))
    if is_there and (table.has(place, "model", fingerprint) or (presence is None and alike)):
        return
    made_with = _made_with(store, settings.backbone)
    model = replace(model, name=model_id, backbone=settings.backbone, made_with=made_with, presence=presence or {})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        torch.save(model.saved(), path)
        store.objects.upload(key(model_id), path)
    rows = pa.Table.from_pylist([about | {"made_at": datetime.now(UTC)}], schema=table.schema.files)
    table.commit(rows, place, "model", fingerprint=fingerprint, run_id=run_id, force=True)


def is_calibrated(store: Store, model_id: str) -> bool:
    """Whether a training's model says that a step is not shown."""
    return any(row["is_calibrated"] for row in models_in(store) if row["model_id"] == model_id)


def models_in(store: Store) -> list[dict[str, Any]]:
    """The rows of `models`, the newest first."""
    snapshot = store.table("models").snapshot()
    rows = snapshot.read().to_pylist() if snapshot.shards else []
    return sorted(rows, key=lambda row: row["made_at"], reverse=True)


def read_model(store: Store, model_id: str, device: str) -> Grounder:
    """A training's model; a ValueError if it was never finished."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        try:
            store.objects.download(key(model_id), path)
        except MissingFileError:
            raise ValueError(f"{model_id} has no model yet: `vina run --stages rounds` makes it") from None
        return Grounder.from_checkpoint(path, device)


def find_model(store: Store, run: str | None = None) -> dict[str, Any]:
    """The row of `models` that a run stands for, or a training's name; of the newest that there is without.

    A run stands for what it made itself; if it found its training done, for the newest of its settings at that time.
    """
    made = models_in(store)
    if not made:
        raise ValueError(
            f"the store at {store.uri} has no trained model: make one with `vina run`, or name --checkpoint FILE"
        )
    if run is None:
        return made[0]
    listed = ", ".join(row["model_id"] for row in made)
    if "@" in run:
        named = [row for row in made if row["model_id"] == run]
        if not named:
            raise ValueError(f"there is no model {run}; the models there are: {listed}")
        return named[0]
    snapshot = store.table("runs").snapshot().where(run_id=run)
    if not snapshot.shards:
        raise ValueError(f"there is no checkpoint file {run}, and no run of that id: `vina status` lists the runs")
    (record,) = snapshot.read(["configuration", "finished_at"]).to_pylist()
    settings = _fingerprint_in(json.loads(record["configuration"]))
    alike = [row for row in made if row["settings"] == settings]
    own = [row for row in alike if row["_written_by"] == run]
    before = [row for row in alike if record["finished_at"] is None or row["made_at"] <= record["finished_at"]]
    if not (found := [*own, *before, *alike]):
        raise ValueError(f"run {run} has no model of its own; the models there are: {listed}")
    return found[0]


def _fingerprint_in(configuration: Mapping[str, Any]) -> str:
    """That of a run's training settings; nothing if it has none, or such as are not known any more."""
    try:
        return settings_hash(TrainingSettings(**configuration["training"]))
    except (KeyError, TypeError):
        return ""


def key(model_id: str) -> str:
    """Where a model lies among the objects."""
    return f"models/{model_id}.pt"


def _made_with(store: Store, backbone: str) -> dict[str, Any]:
    """Return the columns that say how the backbone's features were made (none, if they were imported), and the seed."""
    snapshot = store.table("features").snapshot().where(backbone=backbone)
    names = snapshot.schema.constants
    rows = [{name: shard.constants[name] for name in names} for shard in snapshot.shards]
    known = (row for row in rows if row["weights_sha256"] is not None)
    found = next(known, rows[0] if rows else {})
    seed_in = backbone_of(backbone).seed_in if backbone in BACKBONES else None
    return found if seed_in is None else found | {"seed": seed_in(store)}
