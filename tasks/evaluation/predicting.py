"""A method's answers as rows of `predictions`: moments, moments in order, or segments, as each protocol asks."""

# B videos, S texts, T seconds, D detections of a text.

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from storage.schemas import schema_of
from tasks.evaluation.methods import WITH, Answer, Method
from tasks.evaluation.protocols import (
    CROSSTASK,
    CROSSTASK_ARTICLES,
    CROSSTASK_ORDERED,
    HTM_ALIGN,
    HTSTEP_MAP,
    HTSTEP_R1,
    Protocol,
)
from tasks.evaluation.questions import Question
from vina_model.decoding import in_order
from vina_model.detection import detect

PROTOCOLS_OF = {
    "htstep": (HTSTEP_R1, HTSTEP_MAP),
    "htm-align": (HTM_ALIGN,),
    "crosstask": (CROSSTASK, CROSSTASK_ORDERED),
    "crosstask-articles": (CROSSTASK_ARTICLES,),
}
Rows = dict[str, list[Any]]


def predict(method: Method, question: Question) -> dict[tuple[Protocol, str], pa.Table]:
    """Rows of `predictions` by protocol, and by what the method's name goes on with."""
    found: dict[tuple[Protocol, str], list[Rows]] = {}
    for answer in method.answer(question):
        for way, scores_BST in answer.ways.items():
            for protocol in PROTOCOLS_OF[question.benchmark]:
                if protocol is HTSTEP_R1 or way in ("", WITH):  # the ways apart are an ablation of one protocol
                    rows = _rows(protocol, answer, scores_BST, question)
                    found.setdefault((protocol, way), []).append(rows)
    schema = schema_of("predictions").files
    return {
        key: pa.table({name: [v for part in parts for v in part[name]] for name in schema.names}, schema=schema)
        for key, parts in found.items()
    }


def _rows(protocol: Protocol, answer: Answer, scores_BST: Tensor, question: Question) -> Rows:
    if not protocol.is_point:
        return _segments(answer, scores_BST, question)
    hidden_BST = scores_BST.masked_fill(~answer.seconds_BT[:, None, :], -torch.inf)
    sure_BS, peaks_BS = hidden_BST.max(2)
    rows: Rows = {name: [] for name in schema_of("predictions").files.names}
    for row, (video, article) in enumerate(answer.pairs):
        places, labels = _answered(answer, row, question.labels[article])
        peaks = peaks_BS[row, places].tolist()
        sure = (sure_BS if answer.alignable_BS is None else answer.alignable_BS)[row, places].tolist()
        if protocol is CROSSTASK_ORDERED and places:
            own_ST = scores_BST[row, places, : int(answer.seconds_BT[row].sum())].float().cpu().numpy()
            peaks = in_order(own_ST).tolist()
            sure = own_ST[np.arange(len(places)), peaks].tolist()
        _add(rows, video, None if question.is_about_narrations else article, labels, peaks, sure)
    return rows


def _segments(answer: Answer, scores_BST: Tensor, question: Question) -> Rows:
    found = detect(scores_BST, answer.seconds_BT)
    rows: Rows = {name: [] for name in schema_of("predictions").files.names}
    for row, (video, article) in enumerate(answer.pairs):
        places, labels = _answered(answer, row, question.labels[article])
        own, numbers = found.mask[row, places].nonzero(as_tuple=True)
        starts, ends, scores = (part[row, places][own, numbers].tolist() for part in found[:3])
        _add(rows, video, article, [labels[place] for place in own.tolist()], None, scores, starts, ends)
    return rows


def _answered(answer: Answer, row: int, labels: list[int]) -> tuple[list[int], list[int]]:
    """The places and the labels of the texts that a pair has an answer for."""
    known = answer.known_BS
    places = [place for place in range(len(labels)) if known is None or known[row, place]]
    return places, [labels[place] for place in places]


def _add(
    rows: Rows,
    video: str,
    task: str | None,
    labels: list[int],
    peaks: list[int] | None,
    scores: list[float],
    starts: list[float] | None = None,
    ends: list[float] | None = None,
) -> None:
    nothing = [None] * len(labels)
    rows["video_id"] += [video] * len(labels)
    rows["article_id"] += [task] * len(labels)
    rows["label"] += labels
    rows["peak_s"] += peaks or nothing
    rows["start_s"] += starts or nothing
    rows["end_s"] += ends or nothing
    rows["score"] += scores


def as_in_files(rows: pa.Table, protocol: Protocol) -> pa.Table:
    """Rows of `predictions` under the names that the protocol's files have."""
    times = ("peak_s",) if protocol.is_point else ("start_s", "end_s")
    columns = {protocol.video: rows["video_id"], protocol.label: rows["label"]}
    columns |= {name: rows[own].cast(pa.float64()) for name, own in zip(protocol.times, times, strict=True)}
    if protocol.score is not None:
        columns[protocol.score] = rows["score"].cast(pa.float64())
    if protocol.task is not None:
        columns[protocol.task] = pc.replace_substring_regex(rows["article_id"], "^[^/]*/", "")
    return pa.table({name: columns[name] for name in protocol.columns})
