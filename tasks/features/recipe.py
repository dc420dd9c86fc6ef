"""How features are made: backbone, weights and frames. It is recorded with every vector; recipes are never mixed."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storage import Store
from storage.fingerprint import file_hash
from tasks.features.backbones import Backbone, Layer, backbone_of
from tasks.features.decoding import Frames
from tasks.features.settings import FeatureSettings

AS_IMPORTED = "as imported"
"""Value of the column `layer` for imported vectors."""


@dataclass(frozen=True)
class Recipe:
    """One backbone with its weights and frames, and the layers that are stored."""

    backbone: Backbone
    frames: Frames
    weights: str
    """The sha256 of the file of weights, or random:SEED."""
    layers: dict[str, Layer] = field(hash=False)
    """Layers by the partition of `features` that each is written to."""

    @classmethod
    def of(cls, settings: FeatureSettings) -> "Recipe":
        """Return the recipe of some settings. Raise ValueError, before any work, if they are wrong."""
        backbone = backbone_of(settings.backbone)
        side = backbone.frames.size_px if settings.size_px is None else settings.size_px
        frames = Frames(backbone.frames.fps, side, settings.short_side_px or 0)
        layers = {backbone.name: backbone.layer}
        if settings.joint and backbone.joint_layer:
            layers[backbone.joint_name] = backbone.joint_layer
        return cls(backbone, frames, _name_weights(settings, backbone), layers)

    def columns(self, layer: Layer) -> dict[str, Any]:
        """Return the columns of `features` that record how a vector was made."""
        return {
            "fps": float(self.frames.fps),
            "frames_per_clip": self.frames.fps,
            "frame_px": self.frames.size_px,
            "short_side_px": self.frames.short_side_px,
            "stride_s": 1.0,
            "layer": layer.name,
            "value_range": self.backbone.value_range,
            "weights_sha256": self.weights,
        }

    def check(self, store: Store) -> None:
        """Raise ValueError if the store has vectors of this backbone that were made by another recipe."""
        if problem := self.difference(store):
            raise ValueError(
                f"{problem}: use the settings that they were made with (weights, size_px), or remove them with "
                f"`vina forget features --backbone {self.backbone.name}`"
            )

    def difference(self, store: Store, but: str = "") -> str:
        """Return how stored vectors differ from this recipe, except in the column `but`; an empty text if equal."""
        for partition, layer in self.layers.items():
            snapshot = store.table("features").snapshot().where(backbone=partition)
            expected = self.columns(layer) | {"width": layer.width}
            width = {"width": snapshot.vector_width()}
            for stored in ({**shard.constants, **width} for shard in snapshot.shards if shard.num_rows):
                for name, value in expected.items():
                    if name != but and not _fits(name, stored[name], value):
                        stored_value = stored[name] or "unknown (imported)"
                        return f"stored features of {partition} have {name} {stored_value}, new ones would have {value}"
        return ""


def _fits(name: str, stored: Any, expected: Any) -> bool:
    if stored is None:  # imported, and accepted; but vectors by random weights would be noise among them
        return not (name == "weights_sha256" and expected.startswith("random:"))
    return stored == expected or (name, stored) == ("layer", AS_IMPORTED)


def weights_file(settings: FeatureSettings, backbone: Backbone) -> Path | None:
    """Return the weights that the settings name, or those of the package; None if weights are random."""
    return Path(settings.weights) if settings.weights is not None else backbone.weights


def _name_weights(settings: FeatureSettings, backbone: Backbone) -> str:
    weights = weights_file(settings, backbone)
    if weights is None:
        return f"random:{settings.seed}"
    if not weights.is_file():
        raise ValueError(f"there are no weights at {weights}: name the file of {backbone.name}'s weights")
    return file_hash(weights)
