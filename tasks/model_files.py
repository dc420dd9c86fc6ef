"""Models for use, apart from their training: one small file each, `objects/models/TRAINING.pt`, that needs no store."""

import tempfile
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from storage import MissingFileError, Store
from storage.catalogue import Catalogue
from tasks.demo_world.files import BACKBONE as DEMO
from tasks.importers.demo_corpus import seed_in
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


def find_model(store: Store, run: str | None = None) -> str:
    """The training whose model a run stands for (a training's own name is taken as it is); of the newest run without.

    A run that found its training done stands for the last one before it that had the same settings.
    """
    made = {name.removeprefix("models/").removesuffix(".pt") for name in store.objects.keys("models/")}
    if run is not None and "@" in run:
        return _made(run, made)
    with Catalogue(store) as catalogue:
        runs = catalogue.query(_RUNS).to_pylist()
        logged = catalogue.query(_LOGGED).to_pylist()
    asked = [row for row in runs if row["training"] and run in (None, row["run_id"])]
    settings = {row["run_id"]: row["training"] for row in runs}
    for row in asked:
        own = [log["training"] for log in logged if log["run_id"] == row["run_id"]]
        before = [log for log in logged if log["logged_at"] <= row["started_at"]]
        alike = [log["training"] for log in before if settings.get(log["run_id"]) == row["training"]]
        if found := next((name for name in (*own, *alike) if name in made), None):
            return found
    if run is None:
        raise ValueError(
            f"the store at {store.uri} has no trained model: make one with `vina run`, or name --checkpoint FILE"
        )
    if not asked:
        raise ValueError(f"there is no checkpoint file {run}, and no run of that id: `vina status` lists the runs")
    raise ValueError(f"run {run} has no model of its own; the models there are: {', '.join(sorted(made)) or 'none'}")


_RUNS = """
    SELECT run_id, configuration ->> '$.training' AS training, started_at FROM runs ORDER BY started_at DESC"""
_LOGGED = """
    SELECT _written_by AS run_id, training, max(logged_at) AS logged_at FROM training_log WHERE stage = 'vina'
    GROUP BY ALL ORDER BY max(logged_at) DESC"""


def _made(training: str, made: Collection[str]) -> str:
    if training not in made:
        raise ValueError(f"there is no model {training}; the models there are: {', '.join(sorted(made)) or 'none'}")
    return training


def key(training: str) -> str:
    """Where a model lies among the objects."""
    return f"models/{training}.pt"


def _made_with(store: Store, backbone: str) -> dict[str, Any]:
    """The columns that say how the backbone's features were made; of imported ones nothing is known, but for those of a
    demo world: its seed."""
    snapshot = store.table("features").snapshot().where(backbone=backbone)
    names = snapshot.schema.constants
    rows = [{name: shard.constants[name] for name in names} for shard in snapshot.shards]
    known = (row for row in rows if row["weights_sha256"] is not None)
    found = next(known, rows[0] if rows else {})
    return found if backbone != DEMO else found | {"seed": seed_in(store) or 0}
