"""TAN (Han et al., CVPR 2022): one transformer over a video's seconds and a list of texts, with its published names.

TAN*, which labels the burn-in, is its joint encoder trained with a long context: with positions of the texts ("PE+LC")
or without ("LC"). Given an article's steps in place of narrations it aligns those. Chosen: the weights that only the
dual encoder uses are there so that a published checkpoint loads key for key; they are not computed.
"""

# B videos, T seconds, R texts, L = T + R tokens, D channels.

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vina_model.aligner import AlignerConfig
from vina_model.alignment import Alignment, cosine
from vina_model.batch import Batch, Texts, positions_of_texts
from vina_model.s3d import load_state
from vina_model.s3d_text import TextTower
from vina_model.transformer import Transformer

PUBLISHED_WINDOW_S = 64


@dataclass(frozen=True)
class TanConfig(AlignerConfig):
    """The size of a TAN; the defaults are the published ones."""

    text_width: int = 512
    """Numbers in a text's embedding."""
    max_tokens: int = 1024
    """Rows of each positional table: the most seconds, and texts with a position of their own."""
    text_positions: bool = False
    """Whether texts have positions (PE)."""


class Tan(nn.Module):
    """The joint encoder: the similarity of each text to each second."""

    def __init__(self, config: TanConfig) -> None:
        super().__init__()
        self.config, width = config, config.width
        self.temporal_pos_embed = nn.Parameter(0.02 * torch.randn(config.max_tokens, width))
        if config.text_positions:
            self.text_temporal_pos_embed = nn.Parameter(0.02 * torch.randn(config.max_tokens, width))
        self.joint_temporal_encoder = Transformer(width, config.layers, config.heads, config.dropout)
        self.video_pre_proj = nn.Linear(config.video_width, width, bias=False)
        self.text_pre_proj = nn.Linear(config.text_width, width, bias=False)
        self.ln_text_init, self.ln_video_init = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ln_position_init, self.ln_joint_post_enc = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, video_BTV: Tensor, seconds_BT: Tensor, texts_BRE: Tensor, texts_BR: Tensor) -> Tensor:
        """Return cosine similarities B x R x T of the last layer; masks are true where there is a second, or a text."""
        return self.layer_similarities(video_BTV, seconds_BT, texts_BRE, texts_BR, last=1)[-1]

    def layer_similarities(
        self, video_BTV: Tensor, seconds_BT: Tensor, texts_BRE: Tensor, texts_BR: Tensor, last: int = 0
    ) -> list[Tensor]:
        """Return the similarities of every layer, or of the `last` ones: in training every layer has a loss."""
        num_seconds, num_texts = video_BTV.shape[1], texts_BRE.shape[1]
        self.config.check_video(video_BTV, self.config.max_tokens)
        video_BTD = self.ln_video_init(self.video_pre_proj(video_BTV.to(self.temporal_pos_embed.dtype)))
        video_BTD = video_BTD + self.ln_position_init(self.temporal_pos_embed[:num_seconds])
        texts_BRD = self.ln_text_init(self.text_pre_proj(texts_BRE))
        if self.config.text_positions:
            positions_PD = self.ln_position_init(self.text_temporal_pos_embed)
            texts_BRD = texts_BRD + positions_PD[positions_of_texts(texts_BR.sum(1), num_texts, len(positions_PD))]
        tokens_BLD = torch.cat([video_BTD, texts_BRD], dim=1)
        layers = self.joint_temporal_encoder(tokens_BLD, torch.cat([seconds_BT, texts_BR], dim=1))
        outputs = (self.ln_joint_post_enc(layer_BLD) for layer_BLD in layers[-last:])
        return [cosine(output_BLD[:, num_seconds:], output_BLD[:, :num_seconds]) for output_BLD in outputs]


class TanAligner(nn.Module):
    """TAN with its text encoder and the signature of VINA; narrations and steps are aligned one after the other."""

    def __init__(self, tan: Tan, text: Callable[[Tensor], Tensor]) -> None:
        """`text` maps word ids M x L to embeddings M x E; if it is a module, it is trained too."""
        super().__init__()
        self.tan, self.text, self.config = tan, text, tan.config

    def forward(self, batch: Batch) -> Alignment:
        """Return the similarities of the texts that the batch has; in training those of all layers."""
        nv = self._similarities(batch, batch.narrations) if batch.narrations is not None else [None]
        sv = self._similarities(batch, batch.steps) if batch.steps is not None else [None]
        return Alignment(
            sv_BST=sv[-1],
            nv_BNT=nv[-1],
            sn_BSN=None,
            seconds_BT=batch.mask_BT,
            narrations_BN=batch.narrations.mask_BR if batch.narrations is not None else None,
            earlier_nv=tuple(layer for layer in nv[:-1] if layer is not None),
        )

    def _similarities(self, batch: Batch, texts: Texts) -> Sequence[Tensor | None]:
        embedded_BRE = texts.padded(self.text(texts.ids_ML))
        last = 0 if self.training else 1
        return self.tan.layer_similarities(batch.video_BTV, batch.mask_BT, embedded_BRE, texts.mask_BR, last)


class PublishedTan(Tan):
    """TAN with all the weights of a published checkpoint: its text tower, and the dual encoder, which is not used."""

    def __init__(self) -> None:
        config = TanConfig()
        super().__init__(config)
        self.text_temporal_pos_embed = nn.Parameter(0.02 * torch.randn(config.max_tokens, config.width))
        self.bert = TextTower()
        self.video_temporal_encoder = Transformer(config.width, config.layers, config.heads)
        self.ln_video_post_enc = nn.LayerNorm(config.width)
        self.mlp = nn.Linear(config.width, config.width)
        self.binary_head = nn.Linear(config.width, 1)

    def embed(self, ids_ML: Tensor) -> Tensor:
        """Embed word ids of `tokenizer.tan`, M x L, as M x 512."""
        return self.bert(ids_ML, mask_zeros=True)


def published_state(checkpoint: object) -> Mapping[str, object]:
    """Return the state dict of a published file, under one set of names.

    Two-model checkpoints are read as their `online.` model; the text module is called `bert.` or `lang_model.`.
    """
    state = checkpoint.get("state_dict", checkpoint) if isinstance(checkpoint, Mapping) else checkpoint
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        raise ValueError("this is no TAN checkpoint: a dict with `state_dict`, or a state dict itself, is expected")
    named = {name.removeprefix("module."): value for name, value in state.items()}
    if any(name.startswith("online.") for name in named):
        named = {name.removeprefix("online."): value for name, value in named.items() if name.startswith("online.")}
    return {
        f"bert.{name.removeprefix('lang_model.')}" if name.startswith("lang_model.") else name: value
        for name, value in named.items()
    }


def load_published(checkpoint: object) -> PublishedTan:
    """Return TAN with the weights of a published file, in eval mode; other names are refused."""
    model = PublishedTan()
    load_state(model, published_state(checkpoint))
    return model.eval()
