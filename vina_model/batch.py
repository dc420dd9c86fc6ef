"""The input of an aligner: the features of some videos, their narrations, and the steps of their articles."""

# B videos, T seconds, V numbers of a feature vector, M texts of all videos one after the other, L words of a text.

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from vina_model.alignment import mask_of, precise
from vina_model.tokenizer import Tokenizer


@dataclass(frozen=True)
class Texts:
    """A list of texts for each video, as word ids; a list may be empty."""

    ids_ML: Tensor
    counts_B: Tensor

    def __post_init__(self) -> None:
        if int(self.counts_B.sum()) != len(self.ids_ML):
            raise ValueError(f"{len(self.ids_ML)} texts, but the videos' counts are {self.counts_B.tolist()}")

    @classmethod
    def of(cls, tokenizer: Tokenizer, lists: Sequence[Sequence[str]]) -> "Texts":
        """Turn the words of each video's texts into ids."""
        ids_ML = tokenizer.tan([text for texts in lists for text in texts])
        return cls(ids_ML, torch.tensor([len(texts) for texts in lists]))

    @property
    def mask_BR(self) -> Tensor:
        """True where a video has a text; at least one column."""
        return mask_of(self.counts_B, max(int(self.counts_B.max()), 1))

    def padded(self, values_MD: Tensor) -> Tensor:
        """Turn one row per text into B x R x D, with zeros after the last text of each video."""
        mask_BR = self.mask_BR
        padded_BRD = values_MD.new_zeros(*mask_BR.shape, values_MD.shape[1])
        padded_BRD[mask_BR] = values_MD
        return padded_BRD

    def to(self, device: str | torch.device) -> "Texts":
        """Return a copy on another device."""
        return Texts(self.ids_ML.to(device), self.counts_B.to(device))


@dataclass(frozen=True)
class Batch:
    """Videos of similar length, padded with zeros. A feature that is not finite is refused here."""

    video_BTV: Tensor
    seconds_B: Tensor
    """Number of seconds of each video."""
    narrations: Texts | None = None
    steps: Texts | None = None

    @classmethod
    def of(
        cls, features: Sequence[npt.NDArray[np.floating]], narrations: Texts | None = None, steps: Texts | None = None
    ) -> "Batch":
        """Pad the features of some videos, T x V each, with zeros."""
        videos = [torch.from_numpy(features_TV.astype(np.float32)) for features_TV in features]
        seconds_B = torch.tensor([len(video_TV) for video_TV in videos])
        return cls(pad_sequence(videos, batch_first=True), seconds_B, narrations, steps)

    def __post_init__(self) -> None:
        shape = list(self.video_BTV.shape)
        if len(shape) != 3 or min(shape) < 1 or not self.video_BTV.is_floating_point():
            raise ValueError(f"videos must be floats B x T x V, not {self.video_BTV.dtype} {shape}")
        counts = {"lengths": self.seconds_B}
        counts |= {"lists of narrations": self.narrations.counts_B} if self.narrations else {}
        counts |= {"lists of steps": self.steps.counts_B} if self.steps else {}
        for name, counts_B in counts.items():
            if counts_B.shape != (shape[0],):
                raise ValueError(f"{shape[0]} videos cannot have {list(counts_B.shape)} {name}: give one to each")
        if not 1 <= int(self.seconds_B.min()) <= int(self.seconds_B.max()) <= shape[1]:
            raise ValueError(f"videos of {self.seconds_B.tolist()} s in a batch of {shape[1]} s: give 1 to {shape[1]}")
        self._refuse_features_that_are_not_finite()

    def _refuse_features_that_are_not_finite(self) -> None:
        if precise(self.video_BTV).sum().isfinite():
            return  # one fast pass; only a sum that overflows, or is not finite, needs the slow one below
        for video, second in (~self.video_BTV.isfinite()).any(2).nonzero().tolist()[:1]:
            raise ValueError(f"the features of second {second} of video {video} of the batch are not finite")

    @property
    def mask_BT(self) -> Tensor:
        """True where a video has a second."""
        return mask_of(self.seconds_B, self.video_BTV.shape[1])

    def to(self, device: str | torch.device) -> "Batch":
        """Return a copy on another device."""
        return Batch(
            self.video_BTV.to(device),
            self.seconds_B.to(device),
            self.narrations.to(device) if self.narrations else None,
            self.steps.to(device) if self.steps else None,
        )

    def between(self, begin: int, end: int) -> "Batch":
        """Return the seconds [begin, end) with the same texts; every video must be longer than `begin`."""
        seconds_B = self.seconds_B.clamp(max=end) - begin
        return Batch(self.video_BTV[:, begin:end], seconds_B, self.narrations, self.steps)


def positions_of_texts(counts_B: Tensor, num_texts: int, size: int) -> Tensor:
    """Return the row of a positional table of `size` that each text takes, B x R.

    Every text has its own row; where a video has more texts than the table has rows, neighbours share one evenly.
    """
    order_R = torch.arange(num_texts, device=counts_B.device)
    shared_BR = order_R * size // counts_B.clamp(min=size)[:, None]
    return shared_BR.clamp(max=size - 1)
