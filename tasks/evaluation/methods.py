"""Models and baselines: each answers a benchmark's queries with matrices of scores, texts by seconds."""

# B videos, S texts, T seconds, N narrations.

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from storage import Store
from tasks.evaluation.benchmarks.benchmark import Benchmark
from tasks.evaluation.families import CENTRE, MAIN_PATHWAYS, RANDOM, STUDENTS, TRUTH, UNIFORM, Pathway
from tasks.evaluation.queries import BenchmarkQueries
from tasks.pipeline.device import checked_device
from tasks.training.corpus import Corpus
from tasks.training.settings import TrainingSettings
from tasks.training.teachers import Pair, Teacher, ask, plan_pairs, read_pairs
from vina_model.alignment import Alignment, indirect_pathway, mask_of
from vina_model.batch import Batch
from vina_model.objective import spans_to_positives

RULES = "rules"
"""The `model_id` of methods without a model."""


@dataclass(frozen=True)
class Answer:
    """The matrices of some pairs, B x S x T, by pathway; for narrations also the alignability of each."""

    pairs: list[Pair]
    scores: dict[Pathway, Tensor]
    seconds_BT: Tensor
    alignable_BS: Tensor | None = None
    answered_BS: Tensor | None = None
    """True for texts that have an answer; None means all."""

    @classmethod
    def plain(
        cls,
        pairs: list[Pair],
        scores_BST: Tensor,
        lengths: list[int],
        queries: BenchmarkQueries,
        answered_BS: Tensor | None = None,
        pathway: Pathway = Pathway.DIRECT,
    ) -> "Answer":
        """Return an answer with one pathway; the alignability of a narration is its highest score."""
        seconds_BT = mask_of(torch.tensor(lengths), max(lengths))
        best_BS = scores_BST.masked_fill(~seconds_BT[:, None, :], -torch.inf).amax(2)
        alignable_BS = best_BS if queries.is_about_narrations else None
        return cls(pairs, {pathway: scores_BST}, seconds_BT, alignable_BS, answered_BS)


@dataclass(frozen=True)
class Method:
    """A model or baseline to measure."""

    model_id: str
    family: str
    """Value of the column `method`: see `families`."""
    version: str
    """Changes when its answers change."""
    corpus: Corpus
    """The corpus whose features it is given."""
    answer: Callable[[BenchmarkQueries], Iterator[Answer]]
    seed: int | None = None
    reads: tuple[str, ...] = ()
    """Tables that it reads in addition to annotations, steps and features."""
    takes_narrations: bool = True
    """Whether it can align narrations with the video."""
    main_pathways: tuple[Pathway, ...] = MAIN_PATHWAYS
    """Pathways that every protocol measures."""


def rules(corpus: Corpus) -> list[Method]:
    """Return the rules: a random second, the centre of the video, and the texts in order at equal distances."""

    def rule(family: str, score_video: Callable[[str, int, int], Tensor]) -> Method:
        def answer(queries: BenchmarkQueries) -> Iterator[Answer]:
            for pairs, lengths, counts in queries.batches():
                scores_BST = torch.zeros(len(pairs), max(counts), max(lengths))
                for row, (video, _) in enumerate(pairs):
                    scores_BST[row, : counts[row], : lengths[row]] = score_video(video, counts[row], lengths[row])
                yield Answer.plain(pairs, scores_BST, lengths, queries)

        return Method(RULES, family, "1", corpus, answer)

    return [rule(RANDOM, _random), rule(CENTRE, _centre), rule(UNIFORM, _uniform)]


def _random(video: str, count: int, length: int) -> Tensor:
    rng = np.random.default_rng(list(hashlib.sha256(video.encode()).digest()))
    return torch.from_numpy(rng.random((count, length), np.float32))


def _centre(video: str, count: int, length: int) -> Tensor:
    return -(torch.arange(length) + 0.5 - length / 2).abs().expand(count, length)


def _uniform(video: str, count: int, length: int) -> Tensor:
    middles_S1 = (torch.arange(count)[:, None] + 0.5) / count * length
    return -(torch.arange(length) + 0.5 - middles_S1).abs()


def oracle(store: Store, corpus: Corpus) -> Method:
    """Return a method that predicts the annotations: the upper bound of each protocol and of the detector."""

    def answer(queries: BenchmarkQueries) -> Iterator[Answer]:
        spans_by_text = shown_spans(store, queries.benchmark)
        for pairs, lengths, counts in queries.batches():
            scores_BST = torch.zeros(len(pairs), max(counts), max(lengths))
            answered_BS = torch.zeros(len(pairs), max(counts), dtype=torch.bool)
            for row, (video, article) in enumerate(pairs):
                for text_row, label in enumerate(queries.labels[article]):
                    spans = spans_by_text.get((video, None if queries.is_about_narrations else article, label))
                    answered_BS[row, text_row] = spans is not None
                    for start, end in spans or ():
                        scores_BST[row, text_row, int(start) : max(math.ceil(end), int(start) + 1)] = 1
            yield Answer.plain(pairs, scores_BST, lengths, queries, answered_BS)

    return Method(RULES, TRUTH, "1", corpus, answer)


def shown_spans(store: Store, benchmark: Benchmark) -> dict[tuple[str, str | None, int], list[tuple[float, float]]]:
    """Return the times when each text is shown, by video, article and label; none if it is not alignable."""
    annotated = store.table("annotations").snapshot().where(benchmark=benchmark.name)
    spans_by_text: dict[tuple[str, str | None, int], list[tuple[float, float]]] = {}
    for row in annotated.read().to_pylist():
        label = row["narration_row"] if row["step_id"] is None else row["step_id"]
        if label is not None:
            spans = spans_by_text.setdefault((row["video_id"], row["article_id"], int(label)), [])
            if row["alignable"]:
                spans.append((row["start_s"], row["end_s"]))
    return spans_by_text


def trained(model_id: str, family: str, teacher: Teacher, corpus: Corpus, settings: TrainingSettings) -> Method:
    """Return a trained model as a method. A model that takes narrations answers without and with them."""
    device = checked_device(settings.device)

    def answer(queries: BenchmarkQueries) -> Iterator[Answer]:
        for numbers in plan_pairs(queries.pairs, queries.corpus, teacher.window_s):
            pairs = [queries.pairs[number] for number in numbers]
            batch = read_pairs(pairs, queries.corpus, teacher.tokenizer).to(device)
            if queries.is_about_narrations:
                yield _answer_narrations(pairs, teacher, replace(batch, narrations=batch.steps, steps=None))
            else:
                yield _answer_steps(pairs, teacher, batch, queries)

    version, takes_narrations = f"{model_id} {teacher.version}", settings.narrations or family not in STUDENTS
    return Method(model_id, family, version, corpus, answer, settings.seed, ("narrations",), takes_narrations)


def _answer_narrations(pairs: list[Pair], teacher: Teacher, batch: Batch) -> Answer:
    aligned = ask(teacher, batch)
    assert aligned.nv_BNT is not None
    unimodal = aligned if teacher.unimodal is None else ask(teacher._replace(align=teacher.unimodal), batch)
    assert unimodal.nv_BNT is not None
    padding_B1T = ~aligned.seconds_BT[:, None, :]
    alignable_BS = unimodal.nv_BNT.masked_fill(padding_B1T, -torch.inf).amax(2)
    return Answer(pairs, {Pathway.DIRECT: aligned.nv_BNT}, aligned.seconds_BT, alignable_BS)


def _answer_steps(pairs: list[Pair], teacher: Teacher, batch: Batch, queries: BenchmarkQueries) -> Answer:
    without = ask(teacher, replace(batch, narrations=None))
    assert without.sv_BST is not None
    scores = {Pathway.DIRECT: without.sv_BST}
    if (
        teacher.unimodal is not None and queries.has_speech
    ):  # TAN, and a student trained on steps alone, take no narrations
        fused = ask(teacher, batch)
        if fused.snv_BST is not None and fused.fused_BST is not None and fused.sv_BST is not None:
            scores[Pathway.FUSED] = fused.fused_BST
            scores[Pathway.DIRECT_WITH_NARRATIONS] = fused.sv_BST
            scores[Pathway.INDIRECT] = fused.snv_BST
            scores[Pathway.INDIRECT_BY_ASR] = _by_asr_times(fused, [video for video, _ in pairs], queries.corpus)
    return Answer(pairs, scores, without.seconds_BT)


def _by_asr_times(aligned: Alignment, videos: list[str], corpus: Corpus) -> Tensor:
    """Return the indirect pathway with learned steps to narrations, and narrations to seconds by ASR times."""
    assert aligned.sn_BSN is not None and aligned.narrations_BN is not None
    num_narrations, num_seconds = aligned.narrations_BN.shape[1], aligned.seconds_BT.shape[1]
    times_BNT = asr_times(videos, corpus, num_narrations, num_seconds).to(aligned.sn_BSN)
    return indirect_pathway(aligned.sn_BSN, times_BNT, aligned.narrations_BN)


def asr_times(videos: list[str], corpus: Corpus, num_narrations: int, num_seconds: int) -> Tensor:
    """Return a mask B x N x T of the seconds in which each narration is spoken."""
    lengths = [corpus.num_seconds[video] for video in videos]
    spans = [
        [span if span[0] < length else None for span in corpus.narrations(video).spans]
        for video, length in zip(videos, lengths, strict=True)
    ]
    return spans_to_positives(spans, lengths, num_narrations, num_seconds)
