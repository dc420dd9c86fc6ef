"""The backbone `s3d-milnce`: S3D with MIL-NCE's published weights, its joint space and its text tower."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from storage.vectors import Floats
from tasks.features.backbones import Backbone, Layer, TextTowerLoader
from tasks.features.decoding import Frames
from tasks.features.network import Clips, Outputs, Run, read_checkpoint
from tasks.pipeline.text_embedding import Embed
from vina_model.s3d import S3D, load_state, seeded
from vina_model.s3d_inference import FoldedS3D
from vina_model.tokenizer import Tokenizer

DICTIONARY = "s3d_dict.npy"


def load_s3d(weights: Path | None, seed: int, device: str) -> Run:
    """Return S3D with the weights of a file, or random ones."""
    model = seeded(seed) if weights is None else _read_model(weights)
    folded = FoldedS3D(model.eval()).to(device)

    def run(clips_BTHWC: Clips) -> Outputs:
        video_BCTHW = torch.from_numpy(clips_BTHWC).to(device).permute(0, 4, 1, 2, 3).float() / 255
        output = folded(video_BCTHW)
        main, joint = (vectors.half().cpu().numpy() for vectors in (output.mixed_5c_BD, output.video_embedding_BE))
        return Outputs(main, joint)

    return run


def load_projection(weights: Path) -> Callable[[Floats], Floats]:
    """Return S3D's last layer, from `mixed_5c` to the joint space."""
    model = _read_model(weights)

    @torch.inference_mode()
    def project(vectors_TD: Floats) -> Floats:
        return model.fc(torch.from_numpy(vectors_TD.astype(np.float32))).half().numpy()

    return project


def load_text_tower(weights: Path, dictionary: Path | None, device: str) -> Embed:
    """Return MIL-NCE's text tower with the vocabulary of a dictionary file."""
    assert dictionary is not None
    tokenizer = Tokenizer(read_dictionary(dictionary))
    tower = _read_model(weights).text_module.eval().to(device)

    @torch.inference_mode()
    def embed(texts: Sequence[str]) -> npt.NDArray[np.float16]:
        return np.asarray(tower(tokenizer.milnce(texts).to(device)).half().cpu())

    return embed


def read_dictionary(path: Path) -> list[str]:
    """Return the vocabulary of MIL-NCE's and TAN's text towers, in order."""
    try:
        return np.load(path, allow_pickle=False).tolist()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as an array of words: {error}") from error


def _read_model(weights: Path) -> S3D:
    model = S3D()
    load_state(model, read_checkpoint(weights))
    return model


S3D_MILNCE = Backbone(
    name="s3d-milnce",
    layer=Layer("mixed_5c", 1024),
    value_range="[0, 1]",
    frames=Frames(16, 224),
    load=load_s3d,
    joint_layer=Layer("fc", 512),
    project=load_projection,
    text_tower=TextTowerLoader(load_text_tower, DICTIONARY),
    compares_by="dot product",
)
