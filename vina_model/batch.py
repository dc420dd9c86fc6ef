"""What an aligner is given: some videos' features, their narrations, and the steps of their articles."""

# B videos, T seconds, V numbers of a feature vector, M texts of all videos one after the other, L words of a text.

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vina_model.alignment import mask_of
from vina_model.tokenizer import Tokenizer


@dataclass(frozen=True)
class Texts:
    """A list of texts for each video, as word ids; a list may be empty."""

    ids_ML: Tensor
    counts_B: Tensor

    @classmethod
    def of(cls, tokenizer: Tokenizer, lists: Sequence[Sequence[str]]) -> "Texts":
        """Number the words of each video's texts."""
        ids_ML = tokenizer.tan([text for texts in lists for text in texts])
        return cls(ids_ML, torch.tensor([len(texts) for texts in lists]))

    @property
    def mask_BR(self) -> Tensor:
        """True where a video has a text; at least one column."""
        return mask_of(self.counts_B, max(int(self.counts_B.max()), 1))

    def padded(self, values_MD: Tensor) -> Tensor:
        """One row a text as B x R x D, zeros behind the last text of each video."""
        mask_BR = self.mask_BR
        padded_BRD = values_MD.new_zeros(*mask_BR.shape, values_MD.shape[1])
        padded_BRD[mask_BR] = values_MD
        return padded_BRD

    def to(self, device: str | torch.device) -> "Texts":
        """On another device."""
        return Texts(self.ids_ML.to(device), self.counts_B.to(device))


@dataclass(frozen=True)
class Batch:
    """Videos of like length, padded with zeros."""

    video_BTV: Tensor
    seconds_B: Tensor
    """How many seconds each has."""
    narrations: Texts | None = None
    steps: Texts | None = None

    def __post_init__(self) -> None:
        if self.video_BTV.dim() != 3 or not 1 <= int(self.seconds_B.min()) <= int(self.seconds_B.max()):
            raise ValueError(f"videos must be B x T x V, each of one second at least: {list(self.video_BTV.shape)}")
        if int(self.seconds_B.max()) > self.video_BTV.shape[1]:
            raise ValueError(f"a video of {int(self.seconds_B.max())} s in a batch of {self.video_BTV.shape[1]} s")

    @property
    def mask_BT(self) -> Tensor:
        """True where a video has a second."""
        return mask_of(self.seconds_B, self.video_BTV.shape[1])

    def to(self, device: str | torch.device) -> "Batch":
        """On another device."""
        return Batch(
            self.video_BTV.to(device),
            self.seconds_B.to(device),
            self.narrations.to(device) if self.narrations else None,
            self.steps.to(device) if self.steps else None,
        )

    def between(self, begin: int, end: int) -> "Batch":
        """The same texts with a part of the one video."""
        seconds_B = (self.seconds_B.clamp(max=end) - begin).clamp(min=0)
        return Batch(self.video_BTV[:, begin:end], seconds_B, self.narrations, self.steps)
