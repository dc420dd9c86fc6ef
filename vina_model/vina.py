"""VINA: one transformer over a video's seconds, its narrations and the steps of an article.

A switch for every ablation of the paper: which of the two texts go in, whether steps have positions, and whether they
have a projection of their own. Chosen: texts beyond a positional table share its entries evenly, so that no number of
them fails; the paper does not say. Narrations go in as text in their spoken order, never with their times.
"""

# B videos, T seconds, N narrations, S steps, R texts of either kind, D channels.

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace

import torch
from torch import Tensor, nn

from vina_model.alignment import Alignment, cosine
from vina_model.batch import Batch, Texts, check_width, places
from vina_model.s3d import load_state
from vina_model.text import BagOfWords
from vina_model.transformer import QuickGELU, Transformer


@dataclass(frozen=True)
class VinaConfig:
    """The size and the parts of a VINA; the defaults are the paper's."""

    video_width: int = 1024
    """Numbers in a feature vector."""
    width: int = 512
    """Channels of the transformer."""
    layers: int = 6
    heads: int = 8
    max_seconds: int = 1024
    """Seconds that have a position; longer videos are seen in windows."""
    max_texts: int = 512
    """Narrations, and steps, that have a position of their own."""
    narrations: bool = True
    """Whether narrations go in."""
    steps: bool = True
    """Whether steps go in."""
    step_positions: bool = True
    """Whether the order of the steps is told."""
    separate_text_mlps: bool = True
    """Whether steps and narrations have a projection each."""
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if not (self.narrations or self.steps):
            raise ValueError("a VINA without narrations and without steps has nothing to align")


class Projection(nn.Sequential):
    """A unimodal encoder's MLP."""

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__(nn.Linear(width_in, width), QuickGELU(), nn.Linear(width, width), nn.LayerNorm(width))


class Vina(nn.Module):
    """Call it on a batch: it gives the three matrices, of what the batch and the configuration have."""

    def __init__(self, config: VinaConfig, text: BagOfWords) -> None:
        super().__init__()
        self.config, self.text, width = config, text, config.width
        text_width = text.fc2.out_features
        self.video_mlp, self.video_positions = Projection(config.video_width, width), _table(config.max_seconds, width)
        # What a configuration does not use is not there: data-parallel training needs a gradient for all that is.
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
        """The similarities between all pairs of what goes in."""
        modalities, masks = self._encode(batch)
        tokens_BLD = self.dropout(torch.cat(list(modalities.values()), dim=1))
        tokens_BLD = self.norm(self.encoder(tokens_BLD, torch.cat(list(masks.values()), dim=1))[-1])
        sizes = [part.shape[1] for part in modalities.values()]
        parts = dict(zip(modalities, torch.split(tokens_BLD, sizes, dim=1), strict=True))
        video, narrations, steps = parts["video"], parts.get("narrations"), parts.get("steps")
        return Alignment(
            sv_BST=None if steps is None else cosine(steps, video),
            nv_BNT=None if narrations is None else cosine(narrations, video),
            sn_BSN=None if steps is None or narrations is None else cosine(steps, narrations),
            seconds_BT=batch.mask_BT,
            narrations_BN=masks.get("narrations"),
        )

    def unimodal(self, batch: Batch) -> Tensor:
        """Narrations to seconds before they have seen each other, B x N x T: what alignability is read from."""
        modalities, _ = self._encode(batch)
        if "narrations" not in modalities:
            raise ValueError("no narrations go in: give the batch some, and the configuration `narrations`")
        return cosine(modalities["narrations"], modalities["video"])

    def _encode(self, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The unimodal embeddings H, and where there are any."""
        num_seconds = batch.video_BTV.shape[1]
        if num_seconds > self.config.max_seconds:
            raise ValueError(
                f"{num_seconds} seconds: this model has positions for {self.config.max_seconds}; use windows"
            )
        check_width(batch.video_BTV, self.config.video_width)
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
        return embedded_BRD + positions_PD[places(texts.counts_B, embedded_BRD.shape[1], len(positions_PD))]


def steps_as_narrations(model: nn.Module) -> Callable[[Batch], Alignment]:
    """A student without a place for steps aligns them as if they were narrations, as TAN does."""

    def align(batch: Batch) -> Alignment:
        return replace(model(batch), sv_BST=model(replace(batch, narrations=batch.steps, steps=None)).nv_BNT)

    return align


def _table(size: int, width: int) -> nn.Parameter:
    return nn.Parameter(0.02 * torch.randn(size, width))


def restored(checkpoint: object, config: VinaConfig | None = None, word_dropout: float = 0.0) -> Vina:
    """The model of a checkpoint, in eval mode. One of another configuration is refused; dropout may differ."""
    if not isinstance(checkpoint, Mapping) or not {"config", "state"} <= checkpoint.keys():
        raise ValueError("this is no checkpoint of a VINA: a dict with `config` and `state` is expected")
    found = checkpoint["config"]
    known = {field.name for field in fields(VinaConfig)}
    if found.keys() != known:
        raise ValueError(f"the checkpoint's configuration has other fields: {', '.join(sorted(found.keys() ^ known))}")
    asked = found if config is None else asdict(config)
    differing = [f"{name} is {found[name]}, not {asked[name]}" for name in asked if found[name] != asked[name]]
    differing = [said for said in differing if not said.startswith("dropout ")]
    if differing:
        raise ValueError(f"the checkpoint is of another configuration: {', '.join(differing)}")
    text = BagOfWords.from_state(checkpoint["state"], "text.", word_dropout)
    model = Vina(VinaConfig(**asked), text)
    load_state(model, checkpoint["state"])
    return model.eval()
