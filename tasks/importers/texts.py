"""Embeddings of texts in the space of some network's features: `NAME.parquet` with the columns `text` and `vector`.

With features of the same name (CLIP, InternVideo, ...) they give a zero-shot baseline: every step and narration
with a vector is compared with every second. The hash of the files is part of the encoder's name, so that different
files are never mixed.
"""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.fingerprint import files_hash
from storage.vectors import Floats, encode
from tasks.importers.files import Files
from tasks.importers.import_session import ImportSession
from tasks.importers.text_files import BadFile, clean

EXPECTED = "NAME.parquet with the columns text and vector"


def import_texts(files: Files, session: ImportSession, name: str | None) -> None:
    """Import all Parquet files as the texts of the network `name`; without a name, each file is one network."""
    paths = files.named("*.parquet")
    for encoder, encoder_files in {name: paths}.items() if name else ((path.stem, [path]) for path in paths):
        partition = {"encoder": f"{encoder}@{files_hash(encoder_files)[:8]}"}
        for path in encoder_files:
            with session.file(path):
                _keep(*_read(path), partition, path, session)


def _keep(texts: list[str], vectors: Floats, partition: dict[str, str], path: Path, session: ImportSession) -> None:
    hashes = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    rows = enumerate(hashes)
    new = [row for row, text_hash in rows if session.new("sentence_embeddings", partition, text_hash, path, row + 1)]
    if new:
        new.sort(key=hashes.__getitem__)
        columns = {"text_sha256": [hashes[row] for row in new], "text": [texts[row] for row in new]}
        kept = pa.table({**columns, "vector": encode(vectors[new], "float16")})
        session.keep("sentence_embeddings", partition, kept)


def _read(path: Path) -> tuple[list[str], Floats]:
    try:
        rows = pq.read_table(path, columns=["text", "vector"])
        texts = [clean(text) for text in rows["text"].to_pylist()]
        widths = pc.unique(pc.list_value_length(rows["vector"])).to_pylist()
        flat = pc.list_flatten(rows["vector"]).to_numpy().astype(np.float16)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        raise BadFile(
            "wrong columns", f"{path}: `text` and `vector`, a list of floats, are expected: {error}"
        ) from error
    if len(widths) != 1 or not widths[0]:
        raise BadFile("wrong width", f"{path}: vectors of one width are expected, not of {widths[:5]}")
    vectors = flat.reshape(len(texts), widths[0])
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise BadFile("not finite", f"{path}: the vector of {texts[row][:80]!r} is not finite as float16", row)
    return texts, vectors
