"""Models and baselines: each answers a question with matrices, how well each text fits each second."""

# B videos, S texts, T seconds, N narrations.

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from storage import Store
from tasks.evaluation.questions import Question
from tasks.pipeline.device import checked_device
from tasks.training.corpus import Corpus
from tasks.training.settings import TrainingSettings
from tasks.training.teachers import Pair, Teacher, ask, plan_pairs, read_pairs
from vina_model.alignment import Alignment, indirect_pathway, mask_of
from vina_model.batch import Batch
from vina_model.objective import spans_to_positives

RULES = "rules"
"""Where a training's name would stand, for methods that learn nothing."""
WITH = " with narrations"
DIRECT, INDIRECT, BY_ASR = (f"{WITH}, {way}" for way in ("direct", "indirect", "indirect by ASR times"))


@dataclass(frozen=True)
class Answer:
    """Some pairs' matrices, by what the method's name goes on with; of narrations also how alignable each is, B x S."""

    pairs: list[Pair]
    ways: dict[str, Tensor]
    seconds_BT: Tensor
    alignable_BS: Tensor | None = None
    known_BS: Tensor | None = None
    """Which texts there is an answer for; None: for all."""

    @classmethod
    def plain(
        cls,
        pairs: list[Pair],
        found_BST: Tensor,
        lengths: list[int],
        question: Question,
        known_BS: Tensor | None = None,
    ) -> "Answer":
        """One matrix; a narration is as alignable as its best second."""
        seconds_BT = mask_of(torch.tensor(lengths), max(lengths))
        best_BS = found_BST.masked_fill(~seconds_BT[:, None, :], -torch.inf).amax(2)
        return cls(pairs, {"": found_BST}, seconds_BT, best_BS if question.is_about_narrations else None, known_BS)


@dataclass(frozen=True)
class Method:
    """`training` and `name` are what tables call it; `version` changes with what it would answer."""

    model_id: str
    name: str
    version: str
    corpus: Corpus
    """Whose features it sees."""
    answer: Callable[[Question], Iterator[Answer]]
    seed: int | None = None
    reads: tuple[str, ...] = ()
    """Tables that it reads beside annotations, steps and features."""
    knows_narrations: bool = True
    """Whether it can be asked about narrations."""


def rules(corpus: Corpus) -> list[Method]:
    """What needs no model: any second, the middle of the video, the texts spread evenly in their order."""

    def rule(name: str, scores: Callable[[str, int, int], Tensor]) -> Method:
        def answer(question: Question) -> Iterator[Answer]:
            for own, lengths, counts in question.batches():
                found_BST = torch.zeros(len(own), max(counts), max(lengths))
                for row, (video, _) in enumerate(own):
                    found_BST[row, : counts[row], : lengths[row]] = scores(video, counts[row], lengths[row])
                yield Answer.plain(own, found_BST, lengths, question)

        return Method(RULES, name, "1", corpus, answer)

    return [rule("random", _random), rule("centre", _centre), rule("uniform", _uniform)]


def _random(video: str, count: int, length: int) -> Tensor:
    rng = np.random.default_rng(list(hashlib.sha256(video.encode()).digest()))
    return torch.from_numpy(rng.random((count, length), np.float32))


def _centre(video: str, count: int, length: int) -> Tensor:
    return -(torch.arange(length) + 0.5 - length / 2).abs().expand(count, length)


def _uniform(video: str, count: int, length: int) -> Tensor:
    middles_S1 = (torch.arange(count)[:, None] + 0.5) / count * length
    return -(torch.arange(length) + 0.5 - middles_S1).abs()


def oracle(store: Store, corpus: Corpus) -> Method:
    """The annotations themselves, as a model would answer: what a protocol, and the detector, give who knows all."""

    def answer(question: Question) -> Iterator[Answer]:
        shown = shown_spans(store, question.benchmark)
        for own, lengths, counts in question.batches():
            found_BST = torch.zeros(len(own), max(counts), max(lengths))
            known_BS = torch.zeros(len(own), max(counts), dtype=torch.bool)
            for row, (video, article) in enumerate(own):
                for place, label in enumerate(question.labels[article]):
                    spans = shown.get((video, None if question.is_about_narrations else article, label))
                    known_BS[row, place] = spans is not None
                    for start, end in spans or ():
                        found_BST[row, place, int(start) : max(math.ceil(end), int(start) + 1)] = 1
            yield Answer.plain(own, found_BST, lengths, question, known_BS)

    return Method(RULES, "truth", "1", corpus, answer)


def shown_spans(store: Store, benchmark: str) -> dict[tuple[str, str | None, int], list[tuple[float, float]]]:
    """When each annotated text is seen, by video, article and label; never, where it is not alignable."""
    annotated = store.table("annotations").snapshot().where(benchmark=benchmark)
    found: dict[tuple[str, str | None, int], list[tuple[float, float]]] = {}
    for row in annotated.read().to_pylist():
        label = row["narration_row"] if row["step_id"] is None else row["step_id"]
        if label is not None:
            spans = found.setdefault((row["video_id"], row["article_id"], int(label)), [])
            if row["alignable"]:
                spans.append((row["start_s"], row["end_s"]))
    return found


def trained(model_id: str, name: str, teacher: Teacher, corpus: Corpus, settings: TrainingSettings) -> Method:
    """A model that was trained. One that knows narrations is asked without them, and with them in several ways."""
    device = checked_device(settings.device)

    def answer(question: Question) -> Iterator[Answer]:
        for numbers in plan_pairs(question.pairs, question.corpus, teacher.window_s):
            own = [question.pairs[number] for number in numbers]
            batch = read_pairs(own, question.corpus, teacher.tokenizer).to(device)
            if question.is_about_narrations:
                yield _answer_narrations(own, teacher, replace(batch, narrations=batch.steps, steps=None))
            else:
                yield _answer_steps(own, teacher, batch, question)

    can_hear = settings.narrations or not name.startswith("vina")
    return Method(
        model_id, name, f"{model_id} {teacher.version}", corpus, answer, settings.seed, ("narrations",), can_hear
    )


def _answer_narrations(pairs: list[Pair], teacher: Teacher, batch: Batch) -> Answer:
    found = ask(teacher, batch)
    assert found.nv_BNT is not None
    alone = found if teacher.unimodal is None else ask(teacher._replace(align=teacher.unimodal), batch)
    assert alone.nv_BNT is not None
    hidden_B1T = ~found.seconds_BT[:, None, :]
    alignable_BS = alone.nv_BNT.masked_fill(hidden_B1T, -torch.inf).amax(2)
    return Answer(pairs, {"": found.nv_BNT}, found.seconds_BT, alignable_BS)


def _answer_steps(pairs: list[Pair], teacher: Teacher, batch: Batch, question: Question) -> Answer:
    silent = ask(teacher, replace(batch, narrations=None))
    assert silent.sv_BST is not None
    ways = {"": silent.sv_BST}
    if teacher.unimodal is not None and question.has_narrations:  # TAN and a student of steps alone would not listen
        told = ask(teacher, batch)
        if told.snv_BST is not None and told.fused_BST is not None and told.sv_BST is not None:
            ways |= {WITH: told.fused_BST, DIRECT: told.sv_BST, INDIRECT: told.snv_BST}
            ways[BY_ASR] = _by_asr_times(told, [video for video, _ in pairs], question.corpus)
    return Answer(pairs, ways, silent.seconds_BT)


def _by_asr_times(told: Alignment, videos: list[str], corpus: Corpus) -> Tensor:
    """Steps to narrations as learnt, narrations to seconds as they are said."""
    assert told.sn_BSN is not None and told.narrations_BN is not None
    said_BNT = asr_times(videos, corpus, told.narrations_BN.shape[1], told.seconds_BT.shape[1]).to(told.sn_BSN)
    return indirect_pathway(told.sn_BSN, said_BNT, told.narrations_BN)


def asr_times(videos: list[str], corpus: Corpus, num_narrations: int, num_seconds: int) -> Tensor:
    """True in the seconds in which each narration is said, B x N x T."""
    lengths = [corpus.num_seconds[video] for video in videos]
    spans = [
        [span if span[0] < length else None for span in corpus.narrations(video).spans]
        for video, length in zip(videos, lengths, strict=True)
    ]
    return spans_to_positives(spans, lengths, num_narrations, num_seconds)
