"""Fingerprints: one hash that changes when, and only when, a shard would have to be computed again."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def fingerprint(configuration: Mapping[str, Any], inputs: Mapping[str, str], code_version: str) -> str:
    """Hash of what a shard is made of.

    `inputs` maps a table's name to its content version (`Snapshot.content_version`). `code_version` is the stage's own
    number, raised by hand when its results change: a hash of all the source would redo a month of features for a typo.
    """
    text = json.dumps([dict(configuration), dict(inputs), code_version], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
