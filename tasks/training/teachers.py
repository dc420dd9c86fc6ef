"""Teachers label the corpus: the candidate segment of every step is a row of `pseudo_labels`, kept or not."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from storage import Store, fingerprint_of
from storage.fingerprint import shard_name
from tasks.pipeline.device import autocast
from tasks.pipeline.job import Interrupted
from tasks.pipeline.progress import say
from tasks.training.batches import read_ahead
from tasks.training.corpus import Corpus
from tasks.training.matrices import Matrices, retire_matrices
from tasks.training.processes import Processes
from tasks.training.settings import TrainingSettings
from vina_model.alignment import Alignment
from vina_model.batch import Batch, Texts
from vina_model.pseudo_labels import CONFIDENCES, candidate_segments
from vina_model.tokenizer import Tokenizer
from vina_model.windows import align_in_windows

CODE_VERSION = "1"
PAIRS_PER_SHARD = 4096
TOKENS_PER_BATCH = 16_384
"""Seconds, narrations and steps of a batch, with padding."""
RULES = ("gamma", "keep_share", "confidence", "zeta", "label_matrix", "alignment_share")
"""Settings that decide which labels are kept: if one changes, shards are labelled again."""
COLUMNS = ("peak_s", "score", "start_s", "end_s", "confidence")
LOG = logging.getLogger("vina.training")
Pair = tuple[str, str]
"""A video and an article."""


class Teacher(NamedTuple):
    """A trained model, ready to align videos with texts."""

    name: str
    """Name in the tables."""
    align: Callable[[Batch], Alignment]
    tokenizer: Tokenizer
    window_s: int
    """Longest video that it aligns at once; longer ones are aligned in windows."""
    unimodal: Callable[[Batch], Alignment] | None = None
    """Aligns narrations and seconds by their unimodal embeddings, if the model has them."""
    version: str = ""
    """Hash of the weights, which may differ after training again."""


class LabelRound:
    """The labels of one round of a student, shard by shard; existing shards are not written again."""

    def __init__(
        self,
        store: Store,
        model_id: str,
        label_round: int,
        teacher_name: str,
        corpus: Corpus,
        settings: TrainingSettings,
    ) -> None:
        self.corpus, self.settings, self.teacher_name = corpus, settings, teacher_name
        self._store, self._title = store, f"{model_id}, round {label_round}"
        self._partition = dict[str, str | int](model_id=model_id, round=label_round)
        pairs = [
            (name, article) for name in corpus.paired for article in corpus.articles[name] if article in corpus.steps
        ]
        self.shards = [pairs[begin : begin + PAIRS_PER_SHARD] for begin in range(0, len(pairs), PAIRS_PER_SHARD)]
        self.names = [shard_name([repr(shard)]) for shard in self.shards]
        rules = {name: getattr(settings, name) for name in RULES}
        self._fingerprint = fingerprint_of(rules | {"teacher": teacher_name}, {"corpus": corpus.version}, CODE_VERSION)

    def missing(self) -> list[int]:
        """Return the numbers of the shards that are not labelled yet, or by other rules."""
        labels = self._store.table("pseudo_labels").snapshot().where(**self._partition)
        fingerprints = {shard.name: shard.fingerprint for shard in labels.shards}
        return [number for number, name in enumerate(self.names) if fingerprints.get(name) != self._fingerprint]

    def make(self, numbers: Sequence[int], teacher: Teacher, run_id: str, processes: Processes) -> None:
        """Label some shards, each by one of the processes."""
        begin, done = time.monotonic(), 0
        total = sum(len(self.shards[number]) for number in numbers)
        for number in numbers[processes.rank :: processes.count]:
            matrices, shard, name = Matrices(self.settings.alignment_share), self.shards[number], self.names[number]
            rows = _label(shard, teacher, self.corpus, self.settings, processes, matrices)
            if rows is None:
                break
            matrices.write(self._store, run_id, self._partition, name, self._fingerprint)
            table = self._store.table("pseudo_labels")
            table.commit(rows, self._partition, name, fingerprint=self._fingerprint, run_id=run_id)
            done = min(done + len(shard) * processes.count, total)
            if processes.is_first:
                rate = done / (time.monotonic() - begin)
                say(LOG, done / total, f"{self._title}: labelled {done:,} of {total:,} pairs, {rate:,.0f} per second")
        if processes.any(processes.asked_to_end.is_set()):
            raise Interrupted(f"{self._title}: the shards that are labelled are saved: run it again to go on")
        processes.wait()

    def settle(self) -> None:
        """Retire shards of pairs that are no longer part of the corpus."""
        table = self._store.table("pseudo_labels")
        shard_names = {shard.name for shard in table.snapshot().where(**self._partition).shards}
        if shard_names - set(self.names):
            table.retire(self._partition, keep=self.names)
            retire_matrices(self._store, self._partition, self.names)


def _label(
    pairs: Sequence[Pair],
    teacher: Teacher,
    corpus: Corpus,
    settings: TrainingSettings,
    processes: Processes,
    matrices: Matrices,
) -> pa.Table | None:
    """Return the rows of a shard; None after SIGTERM."""
    columns: dict[str, list[Any]] = {name: [] for name in ("pair", "step_row", *COLUMNS)}
    batches = list(plan_pairs(pairs, corpus, teacher.window_s))

    def read(numbers: Sequence[int]) -> Batch:
        return read_pairs([pairs[number] for number in numbers], corpus, teacher.tokenizer)

    for numbers, batch in zip(batches, read_ahead(read, batches), strict=True):
        if processes.asked_to_end.is_set():
            return None
        alignment = ask(teacher, batch.to(processes.device))
        values = _candidates(alignment, batch, settings)
        for row, number in enumerate(numbers):
            count = len(corpus.steps[pairs[number][1]])
            columns["pair"] += [number] * count
            columns["step_row"] += range(count)
            for name, value in zip(COLUMNS, values, strict=True):
                columns[name] += value[row, :count].tolist()
        matrices.add([pairs[number] for number in numbers], batch, alignment)
    return _rows(columns, pairs, teacher.name, settings)


def _candidates(alignment: Alignment, batch: Batch, settings: TrainingSettings) -> list[npt.NDArray[Any]]:
    """Return the COLUMNS of each step of each video, B x S each."""
    scores_BST = alignment.fused_BST if settings.label_matrix == "F" else alignment.sv_BST
    assert scores_BST is not None and batch.steps is not None
    segments = candidate_segments(scores_BST, alignment.seconds_BT, settings.zeta)
    steps_BS = batch.steps.mask_BR.to(scores_BST.device)
    confidence_BS = CONFIDENCES[settings.confidence](scores_BST, alignment.seconds_BT, steps_BS, segments)
    return [column.cpu().numpy() for column in (*segments, confidence_BS)]


def _rows(
    columns: dict[str, list[Any]], pairs: Sequence[Pair], teacher_name: str, settings: TrainingSettings
) -> pa.Table:
    """Decide which labels are kept, and return the table of all of them."""
    numbers, confidence = columns.pop("pair"), np.array(columns["confidence"], np.float32)
    gamma = float(np.quantile(confidence, 1 - settings.keep_share)) if settings.keep_share else settings.gamma
    kept, size = confidence >= np.float32(gamma), len(confidence)
    return pa.table(
        {
            "video_id": [pairs[number][0] for number in numbers],
            "article_id": [pairs[number][1] for number in numbers],
            **columns,
            "kept": kept,
            "reason": pa.array(np.where(kept, "confidence reaches gamma", "confidence below gamma")),
            "gamma": pa.array(np.full(size, gamma, np.float32)),
            "matrix": [settings.label_matrix] * size,
            "teacher": [teacher_name] * size,
        }
    )


@torch.inference_mode()
def ask(teacher: Teacher, batch: Batch) -> Alignment:
    """Align a batch with a teacher; a video that is longer than its window must be alone in the batch."""
    with autocast(batch.video_BTV.device.type):
        return align_in_windows(teacher.align, batch, teacher.window_s, teacher.window_s // 4)


def plan_pairs(pairs: Sequence[Pair], corpus: Corpus, window_s: int) -> Iterator[list[int]]:
    """Yield numbers of pairs of similar length, at most TOKENS_PER_BATCH; a video longer than the window is alone."""
    seconds = [corpus.num_seconds[video] for video, _ in pairs]
    batch: list[int] = []
    most_texts = 0
    for number in sorted(range(len(pairs)), key=lambda number: seconds[number]):
        video, article = pairs[number]
        texts = len(corpus.narrations(video).texts) + len(corpus.steps[article])
        is_full = (len(batch) + 1) * (seconds[number] + max(most_texts, texts)) > TOKENS_PER_BATCH
        if batch and (is_full or seconds[number] > window_s):
            yield batch
            batch, most_texts = [], 0
        batch.append(number)
        most_texts = max(most_texts, texts)
    if batch:
        yield batch


def read_pairs(pairs: Sequence[Pair], corpus: Corpus, tokenizer: Tokenizer) -> Batch:
    """Read whole videos with all their narrations and the steps of an article each."""
    narrations = Texts.of(tokenizer, [corpus.narrations(video).texts for video, _ in pairs])
    steps = Texts.of(tokenizer, [corpus.steps[article] for _, article in pairs])
    return Batch.of([corpus.features(video) for video, _ in pairs], narrations, steps)
