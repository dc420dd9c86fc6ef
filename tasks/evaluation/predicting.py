"""Decode a method's answers into rows of `predictions`: moments, moments in order, or segments."""

# B videos, S texts, T seconds, D detections of a text.

from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from storage.schemas import schema_of
from tasks.evaluation.benchmarks.benchmark import Decoding, Protocol, Role
from tasks.evaluation.families import Pathway
from tasks.evaluation.methods import Answer, Method
from tasks.evaluation.queries import BenchmarkQueries
from tasks.evaluation.scoring import without_source
from vina_model.decoding import in_order
from vina_model.detection import detect

Rows = dict[str, list[Any]]


def predict(method: Method, queries: BenchmarkQueries) -> dict[tuple[Protocol, Pathway], pa.Table]:
    """Return rows of `predictions` by protocol and pathway."""
    parts: dict[tuple[Protocol, Pathway], list[Rows]] = {}
    for answer in method.answer(queries):
        for pathway, scores_BST in answer.scores.items():
            for protocol in queries.benchmark.protocols:
                if protocol.measures_all_pathways or pathway in method.main_pathways:
                    rows = _rows(protocol, answer, scores_BST, queries)
                    parts.setdefault((protocol, pathway), []).append(rows)
    schema = schema_of("predictions").files
    return {
        key: pa.table({name: [v for rows in each for v in rows[name]] for name in schema.names}, schema=schema)
        for key, each in parts.items()
    }


def _rows(protocol: Protocol, answer: Answer, scores_BST: Tensor, queries: BenchmarkQueries) -> Rows:
    if not protocol.is_point:
        return _segments(answer, scores_BST, queries)
    masked_BST = scores_BST.masked_fill(~answer.seconds_BT[:, None, :], -torch.inf)
    best_BS, peaks_BS = masked_BST.max(2)
    rows: Rows = {name: [] for name in schema_of("predictions").files.names}
    for row, (video, article) in enumerate(answer.pairs):
        text_rows, labels = _answered(answer, row, queries.labels[article])
        peaks = peaks_BS[row, text_rows].tolist()
        scores = (best_BS if answer.alignable_BS is None else answer.alignable_BS)[row, text_rows].tolist()
        if protocol.decoding is Decoding.ORDERED and text_rows:
            scores_ST = scores_BST[row, text_rows, : int(answer.seconds_BT[row].sum())].float().cpu().numpy()
            peaks = in_order(scores_ST).tolist()
            scores = scores_ST[np.arange(len(text_rows)), peaks].tolist()
        _add(rows, video, None if queries.is_about_narrations else article, labels, peaks, scores)
    return rows


def _segments(answer: Answer, scores_BST: Tensor, queries: BenchmarkQueries) -> Rows:
    detections = detect(scores_BST, answer.seconds_BT)
    rows: Rows = {name: [] for name in schema_of("predictions").files.names}
    for row, (video, article) in enumerate(answer.pairs):
        text_rows, labels = _answered(answer, row, queries.labels[article])
        texts, numbers = detections.mask[row, text_rows].nonzero(as_tuple=True)
        starts, ends, scores = (part[row, text_rows][texts, numbers].tolist() for part in detections[:3])
        _add(rows, video, article, [labels[text] for text in texts.tolist()], None, scores, starts, ends)
    return rows


def _answered(answer: Answer, row: int, labels: list[int]) -> tuple[list[int], list[int]]:
    """Return the rows and labels of the texts of a pair that have an answer."""
    answered_BS = answer.answered_BS
    text_rows = [text for text in range(len(labels)) if answered_BS is None or answered_BS[row, text]]
    return text_rows, [labels[text] for text in text_rows]


def _add(
    rows: Rows,
    video: str,
    article: str | None,
    labels: list[int],
    peaks: list[int] | None,
    scores: list[float],
    starts: list[float] | None = None,
    ends: list[float] | None = None,
) -> None:
    nulls = [None] * len(labels)
    rows["video_id"] += [video] * len(labels)
    rows["article_id"] += [article] * len(labels)
    rows["label"] += labels
    rows["peak_s"] += peaks or nulls
    rows["start_s"] += starts or nulls
    rows["end_s"] += ends or nulls
    rows["score"] += scores


def as_in_files(rows: pa.Table, protocol: Protocol) -> pa.Table:
    """Rename the columns of `predictions` to those of the protocol's files."""
    return pa.table({name: _column(rows, role) for name, role in protocol.columns.items()})


def _column(rows: pa.Table, role: Role) -> pa.ChunkedArray:
    column = rows[role.value]
    if role is Role.ARTICLE:
        return without_source(column)
    return column if role in (Role.VIDEO, Role.LABEL) else column.cast(pa.float64())
