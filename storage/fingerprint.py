"""Hashes of shards, rows, files and names. A fingerprint changes exactly when a shard must be computed again."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa


def fingerprint_of(configuration: Mapping[str, Any], inputs: Mapping[str, str], code_version: str) -> str:
    """Return the hash of everything that a shard depends on.

    `inputs` maps a table's name to its content version (`Snapshot.content_version`). `code_version` is a
    number of the stage, raised by hand when its results change: a hash of the source would recompute everything
    after a changed comment.
    """
    text = json.dumps([dict(configuration), dict(inputs), code_version], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def content_hash(tables: Sequence[pa.Table]) -> str:
    """Return the hash of the rows themselves: the fingerprint of imported shards, which depend only on a file."""
    digest = hashlib.blake2b(digest_size=16)
    for rows in tables:
        plain = rows.cast(pa.schema([field.remove_metadata() for field in rows.schema]))  # comments are not content
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, plain.schema) as stream:
            stream.write_table(plain)
        digest.update(sink.getvalue())
    return digest.hexdigest()


def file_hash(path: str | Path) -> str:
    """Return the sha256 of a file, in hexadecimal; an empty text if there is no such file."""
    if not Path(path).is_file():
        return ""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_hash(paths: Iterable[Path]) -> str:
    """Return one hash of the contents of several files, in this order."""
    return hashlib.sha256(b"".join(bytes.fromhex(file_hash(path)) for path in paths)).hexdigest()


def shard_name(ids: Iterable[str]) -> str:
    """Return the name of a shard that holds these ids, in this order."""
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()[:16]
