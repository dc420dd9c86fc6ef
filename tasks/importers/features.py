"""Features made with other tools: a folder of `VIDEO.npy` or `VIDEO.pth.tar`, T x D, one row per second, any width.

`VIDEO.mp4.npy` and `VIDEO.webm.npy`, HowTo100M's names, are the same. All vectors of a backbone have one width, that of
the first. Vectors are stored as float16; the columns that say how they were made are null.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from storage.schemas import TABLES
from storage.vectors import feature_rows
from tasks.features.recipe import AS_IMPORTED
from tasks.importers.files import Files
from tasks.importers.import_session import ImportSession
from tasks.importers.text_files import BadFile
from tasks.importers.videos import MEDIA

TENSORS = (".pth.tar", ".pth", ".pt")
EXPECTED = f"files ending in .npy, {', '.join(TENSORS)}"
HOW = dict.fromkeys(TABLES["features"].constants) | {"stride_s": 1.0, "layer": AS_IMPORTED}


def import_features(files: Files, session: ImportSession, backbone: str, width: int | None = None) -> None:
    """Import every file as the features of one video. `width` is that of the backbone's stored features, if any."""
    partition = {"backbone": backbone}
    for path in files.ending(".npy", *TENSORS):
        with session.file(path, one_item=True):
            video_id = video_id_of(path)
            if session.is_stored("features", partition, video_id):
                session.new("features", partition, video_id, path)  # counts it, without loading it
                continue
            try:
                vectors = _checked(path, _load(path), width)
            except BadFile:
                session.summary.read["features"] += 1
                raise
            if session.new("features", partition, video_id, path):
                width = vectors.shape[1]
                session.keep("features", partition, feature_rows(video_id, vectors), constants=HOW)


def video_id_of(path: Path) -> str:
    """Return the name of a file without its endings."""
    name = path.name
    for endings in ((".npy", *TENSORS), MEDIA):
        name = next((name[: -len(ending)] for ending in endings if name.lower().endswith(ending)), name)
    return name


def _load(path: Path) -> npt.NDArray[np.generic]:
    try:
        if path.name.lower().endswith(".npy"):
            return np.asarray(np.load(path, allow_pickle=False))
        return _load_tensor(path)
    except BadFile:
        raise
    except Exception as error:  # both loaders raise many types for damaged files
        raise BadFile("not an array", f"{path} cannot be read as an array: {str(error)[:300]}") from error


def _load_tensor(path: Path) -> npt.NDArray[np.generic]:
    import torch  # takes seconds to load, and most folders hold no tensors

    content = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(content, dict) and len(content) == 1:
        content = next(iter(content.values()))
    if not isinstance(content, torch.Tensor):
        raise BadFile("not an array", f"{path} holds a {type(content).__name__}; one tensor is expected")
    plain = content.detach()
    return np.asarray((plain.float() if plain.is_floating_point() else plain).numpy())


def _checked(path: Path, array: npt.NDArray[np.generic], width: int | None) -> npt.NDArray[np.float16]:
    if array.ndim == 3 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != 2 or 0 in array.shape or not np.issubdtype(array.dtype, np.floating):
        raise BadFile("wrong shape", f"{path}: seconds x width of floats is expected, not {array.dtype} {array.shape}")
    if width is not None and array.shape[1] != width:
        raise BadFile(
            "wrong width",
            f"{path}: width {array.shape[1]}, but this backbone's is {width}: import it under another --backbone",
        )
    with np.errstate(over="ignore"):
        vectors = array.astype(np.float16)
    if not np.isfinite(vectors).all():
        second = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise BadFile("not finite", f"{path}: second {second} has a value that is not finite as float16")
    return vectors
