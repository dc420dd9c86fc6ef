"""Model files, `objects/models/MODEL_ID.pt`: everything that `Grounder` needs, in one file, without a store."""

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
from tasks.training.model_ids import settings_hash
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
    """Write a student's file and its row of `models`: weights, how its features were made, and its calibration.

    `tan` is the id of its TAN*. Without a calibration (None), a file of the same weights stays as it is.
    """
    state = checkpoints.load(store, model_id, "last")
    if state is None:
        raise ValueError(f"{model_id} has no checkpoint: train it with the stage `rounds`")
    model, partition, table = Grounder.of(state), {"model_id": model_id}, store.table("models")
    row = {
        "tan": tan, "settings": settings_hash(settings), "backbone": settings.backbone,
        "version": version_of(model.model),
        "is_calibrated": bool(presence),
    }  # fmt: skip
    calibration = {name: vars(fitted) for name, fitted in (presence or {}).items()}
    fingerprint = fingerprint_of(row | {"presence": calibration}, {}, "1")
    has_row = any((other["model_id"], other["version"]) == (model_id, row["version"]) for other in models_in(store))
    has_file = key(model_id) in store.objects.keys(key(model_id))
    if has_file and (table.has(partition, "model", fingerprint) or (presence is None and has_row)):
        return
    made_with = _made_with(store, settings.backbone)
    model = replace(model, name=model_id, backbone=settings.backbone, made_with=made_with, presence=presence or {})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        torch.save(model.saved(), path)
        store.objects.upload(key(model_id), path)
    rows = pa.Table.from_pylist([row | {"made_at": datetime.now(UTC)}], schema=table.schema.files)
    table.commit(rows, partition, "model", fingerprint=fingerprint, run_id=run_id, force=True)


def is_calibrated(store: Store, model_id: str) -> bool:
    """Return whether a model's file has a calibrated presence of steps."""
    return any(row["is_calibrated"] for row in models_in(store) if row["model_id"] == model_id)


def models_in(store: Store) -> list[dict[str, Any]]:
    """Return the rows of `models`, the newest first."""
    snapshot = store.table("models").snapshot()
    rows = snapshot.read().to_pylist() if snapshot.shards else []
    return sorted(rows, key=lambda row: row["made_at"], reverse=True)


def read_model(store: Store, model_id: str, device: str) -> Grounder:
    """Read a model's file. Raise ValueError if its training is not finished."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        try:
            store.objects.download(key(model_id), path)
        except MissingFileError:
            raise ValueError(f"{model_id} has no model yet: `vina run --stages rounds` makes it") from None
        return Grounder.from_checkpoint(path, device)


def find_model(store: Store, run: str | None = None) -> dict[str, Any]:
    """Return the row of `models` of a run or of a model id; without either, of the newest model.

    A run's model is the one it trained; if that was trained before, the newest of its settings when it finished.
    """
    models = models_in(store)
    if not models:
        raise ValueError(
            f"the store at {store.uri} has no trained model: make one with `vina run`, or name --checkpoint FILE"
        )
    if run is None:
        return models[0]
    listed = ", ".join(row["model_id"] for row in models)
    if "@" in run:
        named = [row for row in models if row["model_id"] == run]
        if not named:
            raise ValueError(f"there is no model {run}; the models there are: {listed}")
        return named[0]
    snapshot = store.table("runs").snapshot().where(run_id=run)
    if not snapshot.shards:
        raise ValueError(f"there is no checkpoint file {run}, and no run of that id: `vina status` lists the runs")
    (record,) = snapshot.read(["configuration", "finished_at"]).to_pylist()
    settings = _settings_hash_of(json.loads(record["configuration"]))
    of_settings = [row for row in models if row["settings"] == settings]
    of_run = [row for row in of_settings if row["_written_by"] == run]
    earlier = [row for row in of_settings if record["finished_at"] is None or row["made_at"] <= record["finished_at"]]
    if not (choices := [*of_run, *earlier, *of_settings]):
        raise ValueError(f"run {run} has no model of its own; the models there are: {listed}")
    return choices[0]


def _settings_hash_of(configuration: Mapping[str, Any]) -> str:
    """Return the hash of a run's training settings; empty if it has none, or has settings that no longer exist."""
    try:
        return settings_hash(TrainingSettings(**configuration["settings"].get("training", {})))
    except (KeyError, ValueError):
        return ""


def key(model_id: str) -> str:
    """Return the key of a model's file among the objects."""
    return f"models/{model_id}.pt"


def _made_with(store: Store, backbone: str) -> dict[str, Any]:
    """Return the columns that say how the backbone's features were made (none, if they were imported), and the seed."""
    snapshot = store.table("features").snapshot().where(backbone=backbone)
    names = snapshot.schema.constants
    rows = [{name: shard.constants[name] for name in names} for shard in snapshot.shards]
    extracted = (row for row in rows if row["weights_sha256"] is not None)
    columns = next(extracted, rows[0] if rows else {})
    seed_in = backbone_of(backbone).seed_in if backbone in BACKBONES else None
    return columns if seed_in is None else columns | {"seed": seed_in(store)}
