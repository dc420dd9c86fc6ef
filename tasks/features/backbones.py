"""The registry of backbones: networks that make features, each declared in one file.

To add one: declare a `Backbone` in its own file, and name it in BACKBONES (README.md has an example). Modules are
imported when their backbone is used. Imported features need no entry: they may have any name and any width.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal, NamedTuple, Union

from storage import Store
from storage.vectors import Floats
from tasks.features.decoding import Frames
from tasks.features.network import Run
from tasks.pipeline.text_embedding import Embed

BACKBONES: dict[str, Union[str, "Backbone"]] = {
    "s3d-milnce": "tasks.features.s3d_milnce:S3D_MILNCE",
    "demo-concepts": "tasks.demo_world.network:DEMO_CONCEPTS",
}
"""Backbones by name: the module and the name of its declaration, or the declaration itself."""


class Layer(NamedTuple):
    """A layer whose output is stored."""

    name: str
    width: int


@dataclass(frozen=True)
class TextTowerLoader:
    """The part of a network that embeds texts in the space of its video vectors."""

    load: Callable[[Path, Path | None, str], Embed]
    """(weights' file, dictionary's file, device) -> a function from texts to vectors, B x D float16."""
    dictionary: str | None = None
    """Name of its vocabulary file, expected beside the weights; None if it needs none."""


@dataclass(frozen=True)
class Backbone:
    """How one network makes features. The declaration is recorded with every vector."""

    name: str
    layer: Layer
    """The layer that is stored as the features of the backbone."""
    value_range: str
    """Range of the pixels that the network takes."""
    frames: Frames
    """Frames per second, and their size."""
    load: Callable[[Path | None, int, str], Run]
    """(weights' file or None, seed for random weights, device) -> the network."""
    weights: Path | None = None
    """Weights that come with the package, used if no others are given."""
    joint_layer: Layer | None = None
    """The layer in the space of the text tower, stored as the backbone NAME-joint; None if `layer` is in that space."""
    project: Callable[[Path], Callable[[Floats], Floats]] | None = None
    """(weights' file) -> a function from vectors of `layer` to vectors of `joint_layer`, T x D to T x E."""
    text_tower: TextTowerLoader | None = None
    compares_by: Literal["cosine", "dot product"] = "cosine"
    """How similar a text and a second are in the space of the text tower."""
    seed_in: Callable[[Store], int] | None = None
    """Return the seed of a store's imported features, if vectors of different seeds differ."""

    @property
    def joint_name(self) -> str:
        """Name of the features in the space of the text tower."""
        return f"{self.name}-joint" if self.joint_layer else self.name


def backbone_of(name: str) -> Backbone:
    """Return a backbone by its name."""
    if name not in BACKBONES:
        raise ValueError(f"there is no backbone {name!r}; the backbones are {', '.join(BACKBONES)}")
    registered = BACKBONES[name]
    if isinstance(registered, Backbone):
        return registered
    module, _, declaration = registered.partition(":")
    backbone: Backbone = getattr(import_module(module), declaration)
    assert backbone.name == name, f"{registered} is registered as {name}, and its name is {backbone.name}"
    return backbone


def backbone_of_space(name: str) -> Backbone | None:
    """Return the backbone whose text tower shares the space of these features; None if they can only be imported."""
    candidates = (backbone_of(each) for each in BACKBONES if name.startswith(each))
    return next((backbone for backbone in candidates if backbone.joint_name == name), None)
