"""Make networks by their settings; load published TANs; hash weights."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from storage.fingerprint import file_hash
from tasks.features.network import read_checkpoint
from tasks.features.s3d_milnce import DICTIONARY, read_dictionary
from tasks.training.settings import TrainingSettings
from tasks.training.teachers import Teacher
from vina_model.aligner import AlignerConfig
from vina_model.alignment import Alignment
from vina_model.batch import Batch
from vina_model.tan import PUBLISHED_WINDOW_S, Tan, TanAligner, TanConfig, load_published
from vina_model.text import BagOfWords
from vina_model.tokenizer import Tokenizer
from vina_model.vina import Vina, VinaConfig


def make_tan(settings: TrainingSettings, video_width: int, text: BagOfWords) -> TanAligner:
    """Make a new TAN* on a text encoder."""
    config = TanConfig(
        **_common_config(settings, video_width),
        text_width=text.fc2.out_features,
        max_tokens=max(settings.max_seconds, 512),
        text_positions=settings.tan_text_positions,
    )
    return TanAligner(Tan(config), text)


def make_vina(settings: TrainingSettings, video_width: int, text: BagOfWords) -> Vina:
    """Make a new VINA on a text encoder."""
    config = VinaConfig(
        **_common_config(settings, video_width),
        max_seconds=settings.max_seconds,
        narrations=settings.narrations,
        steps=settings.steps,
        step_positions=settings.step_positions,
        separate_text_mlps=settings.separate_text_mlps,
    )
    return Vina(config, text)


def _common_config(settings: TrainingSettings, video_width: int) -> dict[str, Any]:
    """Return the fields that TAN* and VINA share."""
    return vars(
        AlignerConfig(
            video_width=video_width,
            width=settings.width,
            layers=settings.layers,
            heads=settings.heads,
            dropout=settings.dropout,
        )
    )


def published_teacher(path: Path, device: str) -> Teacher:
    """Read a published TAN from its file; it aligns videos in windows."""
    name = published_name(path)
    tan = load_published(read_checkpoint(path)).to(device)
    tokenizer = Tokenizer(read_dictionary(path.with_name(DICTIONARY)))
    align = TanAligner(tan, tan.embed).eval()
    return Teacher(name, align, tokenizer, PUBLISHED_WINDOW_S)


def published_name(path: Path) -> str:
    """Return the name of a published TAN in the tables. Raise ValueError if there is no such file."""
    if not path.is_file():
        raise ValueError(f"there is no TAN at {path}: name a published checkpoint, or `train` to train TAN* here")
    return f"{path.name}@{file_hash(path)[:8]}"


def unimodal_narrations(model: Vina) -> Callable[[Batch], Alignment]:
    """Return an aligner that compares narrations and seconds by a student's unimodal embeddings alone."""

    def align(batch: Batch) -> Alignment:
        assert batch.narrations is not None
        return Alignment(None, model.unimodal(batch), None, batch.mask_BT, batch.narrations.mask_BR)

    return align


def version_of(model: nn.Module) -> str:
    """Return a hash of a model's weights."""
    digest = hashlib.sha256()
    for weights in model.state_dict().values():
        digest.update(weights.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:16]
