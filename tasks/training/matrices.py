"""The alignment matrices of a sample of the videos, kept beside the labels that were read from them: `alignments`."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
from torch import Tensor

from storage import Store
from vina_model.alignment import Alignment
from vina_model.batch import Batch


class Matrices:
    """Gathers what is kept of one shard. A video is in the sample by its id alone: the same ones in every round."""

    def __init__(self, share: float) -> None:
        """Of all videos, the share that is kept: 0 for none, 1 for all."""
        self._share = share
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def add(self, pairs: Sequence[tuple[str, str]], batch: Batch, found: Alignment) -> None:
        """What a teacher found for some videos and articles."""
        assert batch.narrations is not None and batch.steps is not None
        columns = {"seconds": batch.seconds_B.tolist(), "narrations": batch.narrations.counts_B.tolist()}
        rows = {"narrations": columns["narrations"], "steps": batch.steps.counts_B.tolist()}
        kinds: dict[str, tuple[Tensor | None, str, str]] = {
            "SV": (found.sv_BST, "steps", "seconds"),
            "NV": (found.nv_BNT, "narrations", "seconds"),
            "SN": (found.sn_BSN, "steps", "narrations"),
            "SNV": (found.snv_BST, "steps", "seconds"),
            "F": (found.fused_BST if found.snv_BST is not None else None, "steps", "seconds"),
        }
        for place, (video, article) in enumerate(pairs):
            if not in_sample(video, self._share):
                continue
            for matrix, (values, row, column) in kinds.items():
                if values is None:
                    continue
                own = values[place, : rows[row][place], : columns[column][place]].float().cpu().numpy()
                self._rows.setdefault(matrix, []).extend(
                    {"video_id": video, "article_id": article, "text_row": number, "scores": scores}
                    for number, scores in enumerate(own)
                )

    def write(self, store: Store, run_id: str, partition: Mapping[str, str | int], name: str, fingerprint: str) -> None:
        """One shard a matrix, of the same name as the labels'."""
        table = store.table("alignments")
        for matrix, rows in self._rows.items():
            found = pa.Table.from_pylist(rows, schema=table.schema.files)
            table.commit(found, {**partition, "matrix": matrix}, name, fingerprint=fingerprint, run_id=run_id)


def retire_matrices(store: Store, partition: Mapping[str, str | int], keep: Collection[str]) -> None:
    """Take out the shards of other names."""
    table = store.table("alignments")
    for matrix in {str(shard.constants["matrix"]) for shard in table.snapshot().where(**partition).shards}:
        table.retire({**partition, "matrix": matrix}, keep=keep)


def in_sample(video_id: str, share: float) -> bool:
    """Whether a video's matrices are kept."""
    return int.from_bytes(hashlib.sha256(video_id.encode()).digest()[:4]) < share * 2**32
