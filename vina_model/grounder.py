"""The public API: a trained model that finds the steps of an article in a video, and those it does not show.

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
from vina_model.vina import Vina, load_vina, steps_as_narrations
from vina_model.windows import align_in_windows

Matrix = npt.NDArray[np.float32]
WITHOUT_NARRATIONS, WITH_NARRATIONS = "without narrations", "with narrations"
"""Presence is calibrated for both, because the matrix of step scores differs with narrations."""


@dataclass(frozen=True)
class GroundedStep:
    """The best segment of a step, and whether the step is shown at all."""

    text: str
    start_s: float
    end_s: float
    score: float
    """How much better the segment fits the step than its surroundings."""
    presence: float | None
    """Probability that the step is shown at all; None if the model is not calibrated."""
    num_known_words: int
    """Number of its words in the model's vocabulary; if 0, the segment is meaningless."""

    @property
    def is_shown(self) -> bool | None:
        """Whether the step is more likely shown than not; None if the model is not calibrated."""
        return None if self.presence is None else self.presence >= SHOWN


@dataclass(frozen=True)
class Grounding:
    """A model's answer for one video and one list of steps."""

    steps: list[GroundedStep]
    num_seconds: int
    matrices: dict[str, Matrix]
    """Steps to seconds: `direct`, and with narrations `indirect` and `fused`; `narrations` to seconds."""


@dataclass(frozen=True)
class Grounder:
    """A trained model that works without a store."""

    model: Vina
    presence: Mapping[str, Presence] = field(default_factory=dict)
    """By WITHOUT_NARRATIONS and WITH_NARRATIONS; empty if the model is not calibrated."""
    backbone: str = ""
    """The network whose features it takes."""
    made_with: Mapping[str, Any] = field(default_factory=dict)
    """How those features were made: columns of the table `features`."""
    name: str = ""
    """The model's id."""

    @classmethod
    def from_checkpoint(cls, path: FileLike, device: str = "cpu") -> "Grounder":
        """Read a model's file, or a checkpoint of its training; without running code from it."""
        try:
            saved = torch.load(path, map_location="cpu", weights_only=True)
        except FileNotFoundError:
            raise ValueError(f"there is no checkpoint at {path}: name the file of a trained model") from None
        except Exception as error:  # torch raises many types for damaged files
            raise ValueError(f"{path} cannot be read as a checkpoint: {str(error)[:300]}") from error
        try:
            return cls.of(saved, device)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def of(cls, saved: Mapping[str, Any], device: str = "cpu") -> "Grounder":
        """Make a model of a checkpoint's content."""
        model = load_vina(saved).to(device)
        about = json.loads(saved.get("about", "{}"))
        settings = json.loads(saved.get("configuration", "{}"))
        presence = {name: Presence.read(fitted) for name, fitted in about.get("presence", {}).items()}
        backbone = about.get("backbone") or settings.get("backbone", "")
        return cls(model, presence, backbone, about.get("made_with", {}), about.get("name", ""))

    def saved(self) -> dict[str, Any]:
        """Return a dict for `torch.save`: the file that `from_checkpoint` reads."""
        about = {
            "name": self.name,
            "backbone": self.backbone,
            "made_with": dict(self.made_with),
            "presence": {name: vars(fitted) for name, fitted in self.presence.items()},
        }
        config = dict(vars(self.model.config))
        return {"config": config, "state": self.model.state_dict(), "about": json.dumps(about)}

    @torch.inference_mode()
    def ground(self, features: npt.ArrayLike, steps: Sequence[str], narrations: Sequence[str] = ()) -> Grounding:
        """Find the steps in features T x V of the model's backbone, one row per second; narrations in spoken order."""
        features_TV = np.asarray(features, np.float32)
        if not steps:
            raise ValueError("there are no steps: give at least one")
        if features_TV.ndim != 2 or not len(features_TV):
            raise ValueError(f"features must be seconds x numbers, at least one second, not {features_TV.shape}")
        tokenizer = self.model.text.tokenizer
        step_texts = Texts.of(tokenizer, [steps])
        narration_texts = Texts.of(tokenizer, [narrations]) if narrations else None
        device = next(self.model.parameters()).device
        video_BTV, seconds_B = torch.from_numpy(features_TV)[None], torch.tensor([len(features_TV)])
        alignment = self._align(Batch(video_BTV, seconds_B, narration_texts, step_texts).to(device))
        assert alignment.fused_BST is not None
        condition = WITHOUT_NARRATIONS if alignment.snv_BST is None else WITH_NARRATIONS
        scores_BST = precise(alignment.fused_BST)
        best = detect(scores_BST, alignment.seconds_BT, limit=1)
        presences: list[float] | list[None] = [None] * len(steps)
        if presence := self.presence.get(condition):
            evidence = evidence_of(scores_BST, alignment.seconds_BT, step_texts.mask_BR.to(device))
            presences = presence(evidence)[0].tolist()
        columns = [values_BSD[0, :, 0].tolist() for values_BSD in (best.starts, best.ends, best.scores)]
        num_known_words = (step_texts.ids_ML > 0).sum(1).tolist()
        return Grounding(
            [GroundedStep(*row) for row in zip(steps, *columns, presences, num_known_words, strict=True)],
            len(features_TV),
            _matrices(alignment),
        )

    def _align(self, batch: Batch) -> Alignment:
        align = self.model if self.model.config.steps else steps_as_narrations(self.model)
        window_s = self.model.config.max_seconds
        return align_in_windows(align, batch, window_s, window_s // 4)


def _matrices(alignment: Alignment) -> dict[str, Matrix]:
    indirect = alignment.snv_BST
    matrices = {
        "direct": alignment.sv_BST,
        "indirect": indirect,
        "fused": None if indirect is None else alignment.fused_BST,
        "narrations": alignment.nv_BNT,
    }
    return {name: _numbers(matrix_BRT) for name, matrix_BRT in matrices.items() if matrix_BRT is not None}


def _numbers(matrix_BRT: Tensor) -> Matrix:
    return precise(matrix_BRT)[0].cpu().numpy()
