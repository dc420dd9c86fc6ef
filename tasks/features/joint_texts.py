"""The text half of a joint text-video space: every step and annotated text, in `sentence_embeddings`.

With the video half (`features` of s3d-milnce-joint) it is what the zero-shot baseline compares, by dot product.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from storage import Store
from tasks.features.network import read_checkpoint
from tasks.features.recipe import Recipe
from tasks.features.settings import FeatureSettings
from tasks.pipeline.device import best_device
from tasks.pipeline.text_embedding import embed_texts
from vina_model.s3d import S3D, load_state
from vina_model.tokenizer import Tokenizer

DICTIONARY = "s3d_dict.npy"
TEXTS = "SELECT headline AS text FROM steps UNION ALL SELECT text FROM annotations"
TEXTS_PER_SHARD = 50_000


def embed_joint_texts(store: Store, run_id: str, recipe: Recipe, settings: FeatureSettings) -> str:
    """Embed what is new; returns what was done, or why nothing was."""
    if settings.weights is None:
        return "texts have no joint embeddings: that takes weights, random ones say nothing"
    dictionary = Path(settings.dictionary or Path(settings.weights).with_name(DICTIONARY))
    if not dictionary.is_file():
        if settings.dictionary:
            raise ValueError(f"there is no dictionary at {dictionary}")
        return f"texts have no joint embeddings: there is no {DICTIONARY} beside the weights (or name it: --dictionary)"
    tokenizer, model = Tokenizer(read_dictionary(dictionary)), S3D()
    load_state(model, read_checkpoint(Path(settings.weights)))
    device = settings.device or best_device()
    tower = model.text_module.eval().to(device)

    @torch.inference_mode()
    def embed(texts: Sequence[str]) -> npt.NDArray[np.float16]:
        return np.asarray(tower(tokenizer.milnce(texts).to(device)).half().cpu())

    name = f"{recipe.backbone.name}-joint@{recipe.weights[:8]}"
    count = embed_texts(store, run_id, name, embed, TEXTS, TEXTS_PER_SHARD)
    return f"{count:,} texts embedded by {name}"


def dictionary_version(settings: FeatureSettings) -> str:
    """A hash of the dictionary that will be used; nothing if there is none."""
    path = settings.dictionary or (Path(settings.weights).with_name(DICTIONARY) if settings.weights else "")
    if not path or not Path(path).is_file():
        return ""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_dictionary(path: Path) -> list[str]:
    """The words that MIL-NCE's text tower, and TAN's, know, in their order."""
    try:
        return np.load(path, allow_pickle=False).tolist()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as an array of words: {error}") from error
