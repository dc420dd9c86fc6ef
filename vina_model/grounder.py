"""The model, for use: where a video shows the steps of an article, and which of them it does not show.

Grounder.from_checkpoint("vina.pt").ground(features, steps, narrations)
"""

# T seconds, V numbers of a feature vector, S steps, N narrations; B = 1 video.

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.types import FileLike

from vina_model.alignment import Alignment, precise
from vina_model.batch import Batch, Texts
from vina_model.detection import detect
from vina_model.presence import SHOWN, Presence, evidence_of
from vina_model.vina import Vina, restored, steps_as_narrations
from vina_model.windows import align_in_windows

Matrix = npt.NDArray[np.float32]
SILENT, TOLD = "without narrations", "with narrations"
"""Presence is judged by the matrix at hand, which is another one if something is said."""


@dataclass(frozen=True)
class GroundedStep:
    """Where a step is, if it is anywhere."""

    text: str
    start_s: float
    end_s: float
    score: float
    """How much better the segment fits the step than what is around it."""
    presence: float | None
    """The probability that the step is shown at all; None where the model was never calibrated."""
    num_known_words: int
    """Words of it that the model knows; without any it is blind to the step."""

    @property
    def is_shown(self) -> bool | None:
        """Whether it is more likely shown than not; None where that is not known."""
        return None if self.presence is None else self.presence >= SHOWN


@dataclass(frozen=True)
class Grounding:
    """What a model says of one video and one list of steps."""

    steps: list[GroundedStep]
    num_seconds: int
    matrices: dict[str, Matrix]
    """Steps to seconds: `direct`, and with narrations `indirect` and `fused`; `narrations` to seconds."""


@dataclass(frozen=True)
class Grounder:
    """A trained model, and what it needs to be used on its own."""

    model: Vina
    presence: Mapping[str, Presence] = field(default_factory=dict)
    """By SILENT and TOLD; empty if it was never calibrated."""
    backbone: str = ""
    """The network whose features it takes."""
    made_with: Mapping[str, Any] = field(default_factory=dict)
    """How those features were made: columns of the table `features`."""
    name: str = ""
    """The training's."""

    @classmethod
    def from_checkpoint(cls, path: FileLike, device: str = "cpu") -> "Grounder":
        """A model's file, or a checkpoint of its training; no code in it is run."""
        try:
            saved = torch.load(path, map_location="cpu", weights_only=True)
        except FileNotFoundError:
            raise ValueError(f"there is no checkpoint at {path}: name the file of a trained model") from None
        except Exception as error:  # torch raises whatever a damaged file leads it to
            raise ValueError(f"{path} cannot be read as a checkpoint: {str(error)[:300]}") from error
        try:
            return cls.of(saved, device)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def of(cls, saved: Mapping[str, Any], device: str = "cpu") -> "Grounder":
        """What a checkpoint holds, as a model."""
        model = restored(saved).to(device)
        about = json.loads(saved.get("about", "{}"))
        trained = json.loads(saved.get("configuration", "{}"))
        presence = {way: Presence.read(own) for way, own in about.get("presence", {}).items()}
        backbone = about.get("backbone") or trained.get("backbone", "")
        return cls(model, presence, backbone, about.get("made_with", {}), about.get("name", ""))

    def saved(self) -> dict[str, Any]:
        """For `torch.save`: a file that `from_checkpoint` reads."""
        about = {
            "name": self.name,
            "backbone": self.backbone,
            "made_with": dict(self.made_with),
            "presence": {way: vars(own) for way, own in self.presence.items()},
        }
        config = dict(vars(self.model.config))
        return {"config": config, "state": self.model.state_dict(), "about": json.dumps(about)}

    @torch.inference_mode()
    def ground(self, features: npt.ArrayLike, steps: Sequence[str], narrations: Sequence[str] = ()) -> Grounding:
        """`features` are T x V, a vector a second, of the model's own backbone; `narrations` in their spoken order."""
        features_TV = np.asarray(features, np.float32)
        if not steps:
            raise ValueError("there are no steps: give at least one")
        if features_TV.ndim != 2 or not len(features_TV):
            raise ValueError(f"features must be seconds x numbers, at least one second, not {features_TV.shape}")
        tokenizer = self.model.text.tokenizer
        texts = Texts.of(tokenizer, [steps])
        said = Texts.of(tokenizer, [narrations]) if narrations else None
        device = next(self.model.parameters()).device
        batch = Batch(torch.from_numpy(features_TV)[None], torch.tensor([len(features_TV)]), said, texts).to(device)
        found = self._align(batch)
        assert found.fused_BST is not None
        way = SILENT if found.snv_BST is None else TOLD
        scores_BST = precise(found.fused_BST)
        best = detect(scores_BST, found.seconds_BT, limit=1)
        likely: list[float] | list[None] = [None] * len(steps)
        if presence := self.presence.get(way):
            likely = presence(evidence_of(scores_BST, found.seconds_BT, texts.mask_BR.to(device)))[0].tolist()
        columns = [part[0, :, 0].tolist() for part in best[:3]]
        known = (texts.ids_ML > 0).sum(1).tolist()
        return Grounding(
            [GroundedStep(*row) for row in zip(steps, *columns, likely, known, strict=True)],
            len(features_TV),
            {name: own for name, own in _matrices(found).items() if own is not None},
        )

    def _align(self, batch: Batch) -> Alignment:
        align = self.model if self.model.config.steps else steps_as_narrations(self.model)
        window_s = self.model.config.max_seconds
        return align_in_windows(align, batch, window_s, window_s // 4)


def _matrices(found: Alignment) -> dict[str, Matrix | None]:
    fused = found.fused_BST if found.snv_BST is not None else None
    parts = {"direct": found.sv_BST, "indirect": found.snv_BST, "fused": fused, "narrations": found.nv_BNT}
    return {name: None if own is None else _numbers(own) for name, own in parts.items()}


def _numbers(matrix_BRT: Tensor) -> Matrix:
    return precise(matrix_BRT)[0].cpu().numpy()
