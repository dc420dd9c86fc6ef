"""The table `alignments`: the matrices that a round's labels were read from, of a sample of the videos."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
from torch import Tensor

from storage import Store
from vina_model.alignment import Alignment
from vina_model.batch import Batch


class Matrices:
    """Collects the matrices of one shard. A video's id decides whether it is in the sample: the same in every round."""

    def __init__(self, share: float) -> None:
        """Start without matrices; `share` is the share of videos in the sample."""
        self._share = share
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def add(self, pairs: Sequence[tuple[str, str]], batch: Batch, alignment: Alignment) -> None:
        """Add the matrices of the pairs whose videos are in the sample."""
        assert batch.narrations is not None and batch.steps is not None
        sizes = {
            "seconds": batch.seconds_B.tolist(),
            "narrations": batch.narrations.counts_B.tolist(),
            "steps": batch.steps.counts_B.tolist(),
        }
        matrices: dict[str, tuple[Tensor | None, str, str]] = {
            "SV": (alignment.sv_BST, "steps", "seconds"),
            "NV": (alignment.nv_BNT, "narrations", "seconds"),
            "SN": (alignment.sn_BSN, "steps", "narrations"),
            "SNV": (alignment.snv_BST, "steps", "seconds"),
            "F": (alignment.fused_BST if alignment.snv_BST is not None else None, "steps", "seconds"),
        }
        for number, (video, article) in enumerate(pairs):
            if not in_sample(video, self._share):
                continue
            for name, (values, rows, columns) in matrices.items():
                if values is None:
                    continue
                unpadded = values[number, : sizes[rows][number], : sizes[columns][number]].float().cpu().numpy()
                self._rows.setdefault(name, []).extend(
                    {"video_id": video, "article_id": article, "text_row": row, "scores": scores}
                    for row, scores in enumerate(unpadded)
                )

    def write(self, store: Store, run_id: str, partition: Mapping[str, str | int], name: str, fingerprint: str) -> None:
        """Write one shard per matrix, with the name of the shard of labels."""
        table = store.table("alignments")
        for matrix, rows in self._rows.items():
            content = pa.Table.from_pylist(rows, schema=table.schema.files)
            table.commit(content, {**partition, "matrix": matrix}, name, fingerprint=fingerprint, run_id=run_id)


def retire_matrices(store: Store, partition: Mapping[str, str | int], keep: Collection[str]) -> None:
    """Retire the shards of a partition, except those to keep."""
    table = store.table("alignments")
    for matrix in {str(shard.constants["matrix"]) for shard in table.snapshot().where(**partition).shards}:
        table.retire({**partition, "matrix": matrix}, keep=keep)


def in_sample(video_id: str, share: float) -> bool:
    """Return whether a video is in the sample."""
    return int.from_bytes(hashlib.sha256(video_id.encode()).digest()[:4]) < share * 2**32
