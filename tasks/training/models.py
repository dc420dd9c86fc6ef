"""The models of a training by its settings, and what each is asked to learn."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from storage.fingerprint import file_hash
from tasks.features.network import read_checkpoint
from tasks.features.s3d_milnce import DICTIONARY, read_dictionary
from tasks.training.batches import Example
from tasks.training.settings import TrainingSettings
from tasks.training.teachers import Teacher
from tasks.training.trainer import Losses
from vina_model.alignment import Alignment
from vina_model.batch import Batch
from vina_model.objective import alignment_loss
from vina_model.tan import PUBLISHED_WINDOW_S, TanAligner, TanConfig, load_published
from vina_model.tokenizer import Tokenizer
from vina_model.vina import Vina, VinaConfig


def published_teacher(path: Path, device: str) -> Teacher:
    """A published TAN, by its file; its windows are slid over the video."""
    name = name_published(path)
    tan = load_published(read_checkpoint(path)).to(device)
    tokenizer = Tokenizer(read_dictionary(path.with_name(DICTIONARY)))
    align = TanAligner(tan, tan.embed).eval()
    return Teacher(name, align, tokenizer, PUBLISHED_WINDOW_S)


def version_of(model: nn.Module) -> str:
    """A hash of a model's weights."""
    digest = hashlib.sha256()
    for weights in model.state_dict().values():
        digest.update(weights.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:16]


def name_published(path: Path) -> str:
    """What tables call a published TAN; a ValueError if there is none."""
    if not path.is_file():
        raise ValueError(f"there is no TAN at {path}: name a published checkpoint, or `train` to train TAN* here")
    return f"{path.name}@{file_hash(path)[:8]}"


def unimodal_narrations(model: Vina) -> Callable[[Batch], Alignment]:
    """What a student's encoders say of narrations and seconds by themselves."""

    def align(batch: Batch) -> Alignment:
        assert batch.narrations is not None
        return Alignment(None, model.unimodal(batch), None, batch.mask_BT, batch.narrations.mask_BR)

    return align


def tan_config(settings: TrainingSettings, video_width: int, text_width: int) -> TanConfig:
    """TAN* of the size asked for, on texts of the width that their encoder gives."""
    return TanConfig(
        video_width=video_width,
        text_width=text_width,
        width=settings.width,
        layers=settings.layers,
        heads=settings.heads,
        max_tokens=max(settings.max_seconds, 512),
        text_positions=settings.tan_text_positions,
        dropout=settings.dropout,
    )


def vina_config(settings: TrainingSettings, video_width: int) -> VinaConfig:
    """VINA of the size and with the parts asked for."""
    return VinaConfig(
        video_width=video_width,
        width=settings.width,
        layers=settings.layers,
        heads=settings.heads,
        max_seconds=settings.max_seconds,
        narrations=settings.narrations,
        steps=settings.steps,
        step_positions=settings.step_positions,
        separate_text_mlps=settings.separate_text_mlps,
        dropout=settings.dropout,
    )


def tan_objective(model: nn.Module, example: Example) -> Losses:
    """The narrations' times, asked of every layer."""
    found = model(example.batch)
    seconds = example.batch.mask_BT
    layers = [*found.earlier_nv, found.nv_BNT]
    nv_B = torch.stack([alignment_loss(layer, example.narration_positives, seconds) for layer in layers]).mean(0)
    return Losses(nv_B, nv_B, None)


def vina_objective(model: nn.Module, example: Example) -> Losses:
    """The narrations' times and the steps' pseudo-labels, as far as the model has both."""
    found, seconds = model(example.batch), example.batch.mask_BT
    nv_B = sv_B = None
    if found.nv_BNT is not None:
        nv_B = alignment_loss(found.nv_BNT, example.narration_positives, seconds)
    if found.sv_BST is not None and example.step_positives is not None:
        sv_B = alignment_loss(found.sv_BST, example.step_positives, seconds)
    return Losses(sum(part for part in (nv_B, sv_B) if part is not None), nv_B, sv_B)  # type: ignore[arg-type]
