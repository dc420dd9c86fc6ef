"""The selections: rules that say which article each video is trained with."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc


def _by_metadata(metadata: pa.Table, voted: pa.Table) -> pa.Table:
    return metadata


def _top1(metadata: pa.Table, voted: pa.Table) -> pa.Table:
    return voted.filter(pc.equal(voted["rank"], 1))


def _random_top5(metadata: pa.Table, voted: pa.Table) -> pa.Table:
    """Training draws one of these rows each time it sees a video."""
    return voted


SELECTIONS: dict[str, Callable[[pa.Table, pa.Table], pa.Table]] = {
    "metadata": _by_metadata,
    "top1": _top1,
    "random_top5": _random_top5,
}
"""Selections by name: (pairs by metadata, each video's TOP articles by votes) -> the pairs to train with."""
