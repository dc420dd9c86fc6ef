"""VINA: one transformer over a video's seconds, its narrations and the steps of an article.

It has a switch for every ablation of the paper: which of the two texts are inputs, whether steps have positions, and
whether they have an MLP of their own. Chosen, as the paper does not say: a video with more texts than its positional
table has rows shares them evenly, so that no number of texts fails. Narrations are text in spoken order, without times.
"""

# B videos, T seconds, N narrations, S steps, R texts of either kind, D channels.

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor, nn

from vina_model.aligner import AlignerConfig
from vina_model.alignment import Alignment, cosine
from vina_model.batch import Batch, Texts, positions_of_texts
from vina_model.s3d import load_state
from vina_model.text import BagOfWords
from vina_model.transformer import QuickGELU, Transformer


@dataclass(frozen=True)
class VinaConfig(AlignerConfig):
    """The size and the switches of a VINA; the defaults are the paper's."""

    max_seconds: int = 1024
    """Rows of the video's positional table; longer videos are aligned in windows."""
    max_texts: int = 512
    """Rows of the positional tables of narrations and of steps."""
    narrations: bool = True
    """Whether narrations are an input."""
    steps: bool = True
    """Whether steps are an input."""
    step_positions: bool = True
    """Whether steps have positions."""
    separate_text_mlps: bool = True
    """Whether steps and narrations have an MLP each."""

    def __post_init__(self) -> None:
        if not (self.narrations or self.steps):
            raise ValueError("a VINA without narrations and without steps has nothing to align")


class Projection(nn.Sequential):
    """The MLP of a unimodal encoder, with a norm at its end."""

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__(nn.Linear(width_in, width), QuickGELU(), nn.Linear(width, width), nn.LayerNorm(width))


class Vina(nn.Module):
    """Call it on a batch: it returns the matrices between the inputs that the batch and the configuration have."""

    def __init__(self, config: VinaConfig, text: BagOfWords) -> None:
        super().__init__()
        self.config, self.text, width = config, text, config.width
        text_width = text.fc2.out_features
        self.video_mlp, self.video_positions = Projection(config.video_width, width), _table(config.max_seconds, width)
        # A configuration has only the weights it uses: data-parallel training needs a gradient for every weight.
        if config.narrations or not config.separate_text_mlps:
            self.narration_mlp = Projection(text_width, width)
        if config.narrations:
            self.narration_positions = _table(config.max_texts, width)
        if config.steps and config.separate_text_mlps:
            self.step_mlp = Projection(text_width, width)
        if config.steps and config.step_positions:
            self.step_positions = _table(config.max_texts, width)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Transformer(width, config.layers, config.heads, config.dropout)
        self.norm = nn.LayerNorm(width)

    def forward(self, batch: Batch) -> Alignment:
        """Return the similarities between all pairs of inputs."""
        modalities, masks = self._encode(batch)
        tokens_BLD = self.dropout(torch.cat(list(modalities.values()), dim=1))
        tokens_BLD = self.norm(self.encoder(tokens_BLD, torch.cat(list(masks.values()), dim=1))[-1])
        sizes = [tokens.shape[1] for tokens in modalities.values()]
        outputs = dict(zip(modalities, torch.split(tokens_BLD, sizes, dim=1), strict=True))
        video, narrations, steps = outputs["video"], outputs.get("narrations"), outputs.get("steps")
        return Alignment(
            sv_BST=None if steps is None else cosine(steps, video),
            nv_BNT=None if narrations is None else cosine(narrations, video),
            sn_BSN=None if steps is None or narrations is None else cosine(steps, narrations),
            seconds_BT=batch.mask_BT,
            narrations_BN=masks.get("narrations"),
        )

    def unimodal(self, batch: Batch) -> Tensor:
        """Return narrations to seconds, B x N x T, by the unimodal embeddings alone: the measure of alignability."""
        modalities, _ = self._encode(batch)
        if "narrations" not in modalities:
            raise ValueError("no narrations go in: give the batch some, and the configuration `narrations`")
        return cosine(modalities["narrations"], modalities["video"])

    def _encode(self, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the unimodal embeddings H of each input, and their masks."""
        num_seconds = batch.video_BTV.shape[1]
        self.config.check_video(batch.video_BTV, self.config.max_seconds)
        video_BTV = batch.video_BTV.to(self.video_positions.dtype)  # stored features may be float16
        modalities = {"video": self.video_mlp(video_BTV) + self.video_positions[:num_seconds]}
        masks = {"video": batch.mask_BT}
        if self.config.narrations and batch.narrations is not None:
            modalities["narrations"] = self._texts(batch.narrations, self.narration_mlp, self.narration_positions)
            masks["narrations"] = batch.narrations.mask_BR
        if self.config.steps and batch.steps is not None:
            mlp = self.step_mlp if self.config.separate_text_mlps else self.narration_mlp
            positions = self.step_positions if self.config.step_positions else None
            modalities["steps"], masks["steps"] = self._texts(batch.steps, mlp, positions), batch.steps.mask_BR
        return modalities, masks

    def _texts(self, texts: Texts, mlp: Projection, positions_PD: Tensor | None) -> Tensor:
        embedded_BRD = texts.padded(mlp(self.text(texts.ids_ML)))
        if positions_PD is None:
            return embedded_BRD
        rows_BR = positions_of_texts(texts.counts_B, embedded_BRD.shape[1], len(positions_PD))
        return embedded_BRD + positions_PD[rows_BR]


def steps_as_narrations(model: nn.Module) -> Callable[[Batch], Alignment]:
    """Return an aligner for a VINA without step input, which aligns steps in place of narrations, as TAN does."""

    def align(batch: Batch) -> Alignment:
        return replace(model(batch), sv_BST=model(replace(batch, narrations=batch.steps, steps=None)).nv_BNT)

    return align


def _table(size: int, width: int) -> nn.Parameter:
    return nn.Parameter(0.02 * torch.randn(size, width))


def load_vina(checkpoint: object) -> Vina:
    """Return the model of a checkpoint, a dict with its `config` and its `state`, in eval mode."""
    if not isinstance(checkpoint, Mapping) or not {"config", "state"} <= checkpoint.keys():
        raise ValueError("this is no checkpoint of a VINA: a dict with `config` and `state` is expected")
    config, expected = checkpoint["config"], {field.name for field in fields(VinaConfig)}
    if config.keys() != expected:
        names = ", ".join(sorted(config.keys() ^ expected))
        raise ValueError(f"the checkpoint's configuration has other fields: {names}")
    model = Vina(VinaConfig(**config), BagOfWords.from_state(checkpoint["state"], "text."))
    load_state(model, checkpoint["state"])
    return model.eval()
