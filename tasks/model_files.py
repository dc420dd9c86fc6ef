"""Models for use, apart from their training: one small file each, `objects/models/TRAINING.pt`, that needs no store."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from storage import MissingFileError, Store
from tasks.training import checkpoints
from vina_model.grounder import Grounder
from vina_model.presence import Presence


def write_model(store: Store, training: str, backbone: str, presence: Mapping[str, Presence]) -> str:
    """The student of a training, with how its features are made and its calibration; returns the file's address."""
    state = checkpoints.load(store, training, "last")
    if state is None:
        raise ValueError(f"{training} has no checkpoint: train it with the stage `rounds`")
    model = replace(
        Grounder.of(state), name=training, backbone=backbone, made_with=_made_with(store, backbone), presence=presence
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        torch.save(model.saved(), path)
        return store.objects.upload(key(training), path)


def read_model(store: Store, training: str, device: str) -> Grounder:
    """A training's model; a ValueError if it was never finished."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        try:
            store.objects.download(key(training), path)
        except MissingFileError:
            raise ValueError(f"{training} has no model yet: `vina run --stages evaluation` makes it") from None
        return Grounder.from_checkpoint(path, device)


def key(training: str) -> str:
    """Where a model lies among the objects."""
    return f"models/{training}.pt"


def _made_with(store: Store, backbone: str) -> dict[str, Any]:
    """The columns that say how the backbone's features were made; of imported ones nothing is known."""
    snapshot = store.table("features").snapshot().where(backbone=backbone)
    names = snapshot.schema.constants
    rows = [{name: shard.constants[name] for name in names} for shard in snapshot.shards]
    known = (row for row in rows if row["weights_sha256"] is not None)
    return next(known, rows[0] if rows else {})
