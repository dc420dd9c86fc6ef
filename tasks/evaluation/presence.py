"""The probability that a step is shown at all, calibrated on annotated videos outside the training data, and measured.

The weights are fitted on validation videos, and always measured on videos that they were not fitted on: test videos,
and each half of the validation videos by the weights of the other half.
"""

# B videos, S steps, T seconds, N steps of all videos, E kinds of evidence.

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from storage import Store
from tasks.evaluation.benchmarks.benchmark import Benchmark, WholeArticles
from tasks.evaluation.families import Pathway
from tasks.evaluation.methods import Answer, Method, shown_spans
from tasks.evaluation.queries import BenchmarkQueries
from tasks.training.teachers import Pair
from vina_model.grounder import WITH_NARRATIONS, WITHOUT_NARRATIONS
from vina_model.metrics.bootstrap import estimate
from vina_model.metrics.presence import StepPresence
from vina_model.presence import EVIDENCE, Presence, evidence_of

VERSION = "1"
CALIBRATED = {Pathway.DIRECT: WITHOUT_NARRATIONS, Pathway.FUSED: WITH_NARRATIONS}
"""Pathways that are calibrated, and their names in the model's file."""
PART = "\x1f"
"""Separates an article's id from the name of a part of it."""
LOG = logging.getLogger("vina.evaluation")


@dataclass(frozen=True)
class Judged:
    """Steps of annotated videos: rows of `presences` without the column `presence`, and the evidence of each."""

    rows: list[dict[str, Any]]
    evidence_NE: Tensor

    @property
    def shown_N(self) -> Tensor:
        """True where the step is annotated."""
        return torch.tensor([row["is_shown"] for row in self.rows])

    @property
    def half_N(self) -> Tensor:
        """Which of two halves of all videos each step belongs to."""
        return torch.tensor([_half(row["video_id"]) for row in self.rows], dtype=torch.bool)

    def where(self, chosen_N: Tensor) -> "Judged":
        """Return the chosen steps."""
        rows = [row for row, chosen in zip(self.rows, chosen_N.tolist(), strict=True) if chosen]
        return Judged(rows, self.evidence_NE[chosen_N])

    def __add__(self, other: "Judged") -> "Judged":
        return Judged([*self.rows, *other.rows], torch.cat([self.evidence_NE, other.evidence_NE]))


def calibrate(store: Store, method: Method, queries: BenchmarkQueries) -> dict[Pathway, tuple[Presence, pa.Table]]:
    """Return the weights and the rows of `presences` of each pathway; none if too little is annotated.

    Videos without an annotated step, and those of held-back splits, are left out. Users may ask for other lists than
    whole articles, so weights are also fitted on parts of articles.
    """
    annotated = _Annotated.read(store, queries.benchmark)
    asked = replace(queries, pairs=[pair for pair in queries.pairs if pair in annotated.splits])
    validation = queries.benchmark.validation_split
    base = {pair for pair in asked.pairs if annotated.splits[pair] == validation} or set(asked.pairs)
    parts = _gather(method, _in_parts(asked, sorted(base)), annotated)
    calibrated: dict[Pathway, tuple[Presence, pa.Table]] = {}
    for pathway, judged in _gather(method, asked, annotated).items():
        base_N = torch.tensor([(row["video_id"], row["article_id"]) in base for row in judged.rows], dtype=torch.bool)
        fitted_on = judged.where(base_N) + parts[pathway]
        try:
            whole, first, second = (
                _fit(part) for part in (fitted_on, *(fitted_on.where(h) for h in _halves(fitted_on)))
            )
        except ValueError as error:
            LOG.warning("presence is not calibrated: %s", error)
            continue
        in_first_N, in_second_N = _halves(judged)
        chances_N = whole(judged.evidence_NE)
        chances_N = torch.where(base_N & in_first_N, second(judged.evidence_NE), chances_N)
        chances_N = torch.where(base_N & in_second_N, first(judged.evidence_NE), chances_N)
        rows = [row | {"presence": chance} for row, chance in zip(judged.rows, chances_N.tolist(), strict=True)]
        calibrated[pathway] = whole, pa.Table.from_pylist(rows, schema=store.table("presences").schema.files)
    return calibrated


def measured(
    rows: pa.Table, articles: WholeArticles, method: Method, pathway: Pathway, missing: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return rows of `metrics`: the quality of the presence, and of the peak as a baseline, on each split.

    `missing` is the number of annotated videos without features, by split.
    """
    metrics = []
    for split in sorted(set(rows["split"].to_pylist())):
        in_split = rows.filter(pc.equal(rows["split"], split))
        _, videos = np.unique(in_split["video_id"].to_pylist(), return_inverse=True)
        num_videos, shown = int(videos.max()) + 1, in_split["is_shown"].to_numpy()
        for protocol, column in articles.presence.items():
            scores = in_split[column].to_numpy().astype(np.float64)
            for metric, value in estimate(StepPresence(videos, shown, scores), num_videos).items():
                if np.isfinite(value.value):
                    metrics.append(
                        {
                            "protocol": protocol, "protocol_version": articles.presence_version, "split": split,
                            "method": method.family, "pathway": pathway.value, "metric": metric, **value._asdict(),
                            "num_videos": num_videos, "num_missing": missing[split], "seed": method.seed,
                        }
                    )  # fmt: skip
    return metrics


@dataclass(frozen=True)
class _Annotated:
    """Which steps are shown in which video, and the split of each pair of a video and an article."""

    shown: Mapping[tuple[str, str | None, int], list[tuple[float, float]]]
    splits: Mapping[Pair, str]

    @classmethod
    def read(cls, store: Store, benchmark: Benchmark) -> "_Annotated":
        shown = shown_spans(store, benchmark)
        rows = store.table("annotations").snapshot().where(benchmark=benchmark.name).read(["video_id", "split"])
        splits = dict(zip(rows["video_id"].to_pylist(), rows["split"].to_pylist(), strict=True))
        pairs = {(video, article) for (video, article, _), spans in shown.items() if spans and article is not None}
        return cls(shown, {(video, article): splits[video] for video, article in pairs})


def _in_parts(queries: BenchmarkQueries, pairs: Sequence[Pair]) -> BenchmarkQueries:
    """Return queries for parts of articles: for each pair two single steps, two or three steps, and any number."""
    steps: dict[str, list[str]] = {}
    labels: dict[str, list[int]] = {}
    asked = []
    for video, article in pairs:
        rng = np.random.default_rng(list(hashlib.sha256(f"{video}{PART}{article}".encode()).digest()))
        whole = len(queries.labels[article])
        for number, size in enumerate((1, 1, int(rng.integers(2, 4)), int(rng.integers(1, whole + 1)))):
            name = f"{article}{PART}{video}{PART}{number}"
            step_rows = sorted(rng.choice(whole, min(size, whole), replace=False).tolist())
            steps[name] = [queries.corpus.steps[article][row] for row in step_rows]
            labels[name] = [queries.labels[article][row] for row in step_rows]
            asked.append((video, name))
    return BenchmarkQueries(queries.benchmark, asked, queries.corpus.with_steps(steps), labels)


def _gather(method: Method, queries: BenchmarkQueries, annotated: _Annotated) -> dict[Pathway, Judged]:
    """Return a method's evidence for the steps of annotated videos, by pathway."""
    parts: dict[Pathway, list[Judged]] = {}
    for answer in method.answer(queries):
        for pathway in (pathway for pathway in CALIBRATED if pathway in answer.scores):
            evidence_BSE = _evidence(answer, answer.scores[pathway], queries.labels)
            for (video, name), evidence_SE in zip(answer.pairs, evidence_BSE, strict=True):
                labels, article = queries.labels[name], name.partition(PART)[0]
                evidence_SE = evidence_SE[: len(labels)]
                rows = [
                    {
                        "video_id": video, "article_id": article, "label": label, "peak": peak,
                        "split": annotated.splits[video, article],
                        "is_shown": bool(annotated.shown.get((video, article, label))),
                    }
                    for label, peak in zip(labels, evidence_SE[:, EVIDENCE.index("peak")].tolist(), strict=True)
                ]  # fmt: skip
                parts.setdefault(pathway, []).append(Judged(rows, evidence_SE))
    return {
        pathway: Judged([row for each in judged for row in each.rows], torch.cat([each.evidence_NE for each in judged]))
        for pathway, judged in parts.items()
    }


def _evidence(answer: Answer, scores_BST: Tensor, labels: Mapping[str, list[int]]) -> Tensor:
    counts_B = torch.tensor([len(labels[article]) for _, article in answer.pairs])
    steps_BS = (torch.arange(scores_BST.shape[1]) < counts_B[:, None]).to(scores_BST.device)
    return evidence_of(scores_BST, answer.seconds_BT, steps_BS).cpu()


def _fit(judged: Judged) -> Presence:
    return Presence.fit(judged.evidence_NE, judged.shown_N)


def _halves(judged: Judged) -> tuple[Tensor, Tensor]:
    return judged.half_N, ~judged.half_N


def _half(video_id: str) -> bool:
    return bool(hashlib.sha256(video_id.encode()).digest()[0] & 1)
