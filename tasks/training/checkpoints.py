"""Checkpoints: the whole state of a training, in one object of the store that appears whole or not at all.

They hold tensors, numbers and texts only, so that they load with `weights_only=True`.
"""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from storage import MissingFileError, Store


def save(store: Store, model_id: str, name: str, state: Mapping[str, Any]) -> str:
    """Write a checkpoint, or replace it; return its address."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.pt"
        torch.save(dict(state), path)
        return store.objects.upload(key(model_id, name), path)


def load(store: Store, model_id: str, name: str) -> dict[str, Any] | None:
    """Read a checkpoint, on the CPU; None if there is none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.pt"
        try:
            store.objects.download(key(model_id, name), path)
        except MissingFileError:
            return None
        state = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, dict):
        raise ValueError(
            f"{store.objects.uri(key(model_id, name))} is no checkpoint: it holds a {type(state).__name__}"
        )
    return state


def retire(store: Store, model_id: str, name: str, run_id: str) -> None:
    """Retire a checkpoint; `vina gc` deletes it."""
    store.objects.retire(key(model_id, name), run_id)


def key(model_id: str, name: str) -> str:
    """Return the key of a checkpoint among the objects."""
    return f"checkpoints/{model_id}/{name}.pt"


def check_configuration(state: Mapping[str, Any], expected: Mapping[str, Any], where: str) -> None:
    """Raise ValueError, with the differences, if a checkpoint has other settings."""
    saved = json.loads(state.get("configuration", "{}"))
    differences = [
        f"{name} {saved.get(name)}, not {value}" for name, value in expected.items() if saved.get(name) != value
    ]
    if differences:
        raise ValueError(f"the checkpoint {where} is of another configuration: {', '.join(differences[:5])}")
