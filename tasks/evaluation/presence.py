"""Is a step shown at all? A student's answer is calibrated on annotated videos it was not trained on, and measured.

The weights are fitted on validation videos. What is measured is always said of videos that they were not fitted on:
test videos; and each half of the validation videos by the weights of the other half.
"""

# B videos, S steps, T seconds, N steps of all videos, E kinds of evidence.

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from storage import Store
from tasks.evaluation.methods import WITH, Answer, Method, shown_spans
from tasks.evaluation.questions import Question
from vina_model.grounder import SILENT, TOLD
from vina_model.metrics import step_presence
from vina_model.metrics.bootstrap import estimate
from vina_model.presence import EVIDENCE, Presence, evidence_of

BENCHMARK = "htstep"
VERSION = f"1, {step_presence.VERSION}"
PEAK = ", plain peak"
"""What the presence is held against."""
WAYS = {"": SILENT, WITH: TOLD}
LOG = logging.getLogger("vina.evaluation")


@dataclass(frozen=True)
class Judged:
    """The steps of annotated videos: rows of `presences` but for their presence, and the evidence of each."""

    rows: list[dict[str, Any]]
    evidence_NE: Tensor

    @property
    def shown_N(self) -> Tensor:
        """Which of them are annotated."""
        return torch.tensor([row["is_shown"] for row in self.rows])


def calibrate(store: Store, method: Method, question: Question) -> dict[str, tuple[Presence, pa.Table]]:
    """For each way the method's name goes on: the weights, and rows of `presences`; nothing where too little is known.

    Videos without a single annotated step say nothing, nor do those of splits that are held back.
    """
    found: dict[str, tuple[Presence, pa.Table]] = {}
    for way, judged in _gather(store, method, question).items():
        base_N = torch.tensor([row["split"].startswith("val") for row in judged.rows], dtype=torch.bool)
        base_N = base_N if bool(base_N.any()) else ~base_N
        half_N = torch.tensor([_half(row["video_id"]) for row in judged.rows], dtype=torch.bool)
        try:
            whole, first, second = (_fit(judged, chosen_N) for chosen_N in (base_N, base_N & half_N, base_N & ~half_N))
        except ValueError as error:
            LOG.warning("presence is not calibrated: %s", error)
            continue
        chances_N = whole(judged.evidence_NE)
        chances_N = torch.where(base_N & half_N, second(judged.evidence_NE), chances_N)
        chances_N = torch.where(base_N & ~half_N, first(judged.evidence_NE), chances_N)
        rows = [row | {"presence": chance} for row, chance in zip(judged.rows, chances_N.tolist(), strict=True)]
        found[way] = whole, pa.Table.from_pylist(rows, schema=store.table("presences").schema.files)
    return found


def measured(rows: pa.Table, name: str, seed: int | None) -> list[dict[str, Any]]:
    """Rows of `metrics`: of each split how good the presence is, and how good the plain peak would be."""
    metrics = []
    for split in sorted(set(rows["split"].to_pylist())):
        own = rows.filter(pc.equal(rows["split"], split))
        _, videos = np.unique(own["video_id"].to_pylist(), return_inverse=True)
        num_videos, shown = int(videos.max()) + 1, own["is_shown"].to_numpy()
        for judge, method in (("presence", name), ("peak", name + PEAK)):
            scores = own[judge].to_numpy().astype(np.float64)
            for metric, value in estimate(step_presence.StepPresence(videos, shown, scores), num_videos).items():
                if np.isfinite(value.value):
                    metrics.append(
                        {
                            "protocol": step_presence.NAME, "protocol_version": step_presence.VERSION, "split": split,
                            "method": method, "metric": metric, **value._asdict(), "num_videos": num_videos,
                            "num_missing": 0, "seed": seed,
                        }
                    )  # fmt: skip
    return metrics


def _gather(store: Store, method: Method, question: Question) -> dict[str, Judged]:
    shown = shown_spans(store, BENCHMARK)
    annotated = {(video, article) for (video, article, _), spans in shown.items() if spans}
    splits = _splits(store)
    rows: dict[str, list[dict[str, Any]]] = {}
    evidence: dict[str, list[Tensor]] = {}
    for answer in method.answer(question):
        places = [place for place, pair in enumerate(answer.pairs) if pair in annotated]
        for way in (way for way in WAYS if way in answer.ways):
            own_BSE = _evidence(answer, answer.ways[way], question.labels)
            for place in places:
                video, article = answer.pairs[place]
                labels = question.labels[article]
                peaks = own_BSE[place, : len(labels), EVIDENCE.index("peak")].tolist()
                evidence.setdefault(way, []).append(own_BSE[place, : len(labels)])
                rows.setdefault(way, []).extend(
                    {
                        "video_id": video, "task_id": article, "label": label, "split": splits[video], "peak": peak,
                        "is_shown": bool(shown.get((video, article, label))),
                    }
                    for label, peak in zip(labels, peaks, strict=True)
                )  # fmt: skip
    return {way: Judged(own, torch.cat(evidence[way])) for way, own in rows.items()}


def _evidence(answer: Answer, scores_BST: Tensor, labels: Mapping[str, list[int]]) -> Tensor:
    counts_B = torch.tensor([len(labels[article]) for _, article in answer.pairs])
    steps_BS = (torch.arange(scores_BST.shape[1]) < counts_B[:, None]).to(scores_BST.device)
    return evidence_of(scores_BST, answer.seconds_BT, steps_BS).cpu()


def _splits(store: Store) -> dict[str, str]:
    rows = store.table("annotations").snapshot().where(benchmark=BENCHMARK).read(["video_id", "split"])
    return dict(zip(rows["video_id"].to_pylist(), rows["split"].to_pylist(), strict=True))


def _fit(judged: Judged, chosen_N: Tensor) -> Presence:
    return Presence.fit(judged.evidence_NE[chosen_N], judged.shown_N[chosen_N])


def _half(video_id: str) -> bool:
    return bool(hashlib.sha256(video_id.encode()).digest()[0] & 1)
