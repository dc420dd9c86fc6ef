"""Fingerprints: one hash that changes when, and only when, a shard would have to be computed again."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa


def fingerprint_of(configuration: Mapping[str, Any], inputs: Mapping[str, str], code_version: str) -> str:
    """Hash of what a shard is made of.

    `inputs` maps a table's name to its content version (`Snapshot.content_version`). `code_version` is the stage's own
    number, raised by hand when its results change: a hash of all the source would redo a month of features for a typo.
    """
    text = json.dumps([dict(configuration), dict(inputs), code_version], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def content_hash(tables: Sequence[pa.Table]) -> str:
    """Hash of rows that are what they are, whatever made them: what an importer brings."""
    digest = hashlib.blake2b(digest_size=16)
    for rows in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        digest.update(sink.getvalue())
    return digest.hexdigest()
