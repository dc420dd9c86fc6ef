"""An epoch's batches: an order that is a pure function of seed and epoch, videos of like length together, read ahead.

Chosen: the epoch is shuffled, cut into pools of 32 batches, and sorted by length within each; then the batches are
shuffled. Little is padding, and no two epochs have the same batches.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from tasks.training.corpus import Corpus, Span
from tasks.training.labels import Labels
from vina_model.batch import Batch, Texts
from vina_model.objective import spans_to_positives
from vina_model.tokenizer import Tokenizer

BATCHES_PER_POOL = 32
AHEAD = 4
Item = TypeVar("Item")
Answer = TypeVar("Answer")


def plan_batches(lengths: Sequence[int], batch_size: int, seed: int, epoch: int) -> list[list[int]]:
    """The numbers of the videos of each batch. The last batch of a pool may be smaller."""
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(lengths))
    batches: list[list[int]] = []
    for begin in range(0, len(order), batch_size * BATCHES_PER_POOL):
        pool = sorted(order[begin : begin + batch_size * BATCHES_PER_POOL].tolist(), key=lambda number: lengths[number])
        batches += [pool[place : place + batch_size] for place in range(0, len(pool), batch_size)]
    return [batches[place] for place in rng.permutation(len(batches))]


def count_batches(num_videos: int, batch_size: int) -> int:
    """How many batches an epoch has."""
    return math.ceil(num_videos / batch_size)


def read_ahead(work: Callable[[Item], Answer], items: Sequence[Item], num_threads: int = 2) -> Iterator[Answer]:
    """The answers in the order of the items, made in threads while the caller uses the ones before."""
    with ThreadPoolExecutor(num_threads) as pool:
        waiting: deque[Future[Answer]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@dataclass(frozen=True)
class Example:
    """A batch with its labels: B x N x T of narrations, B x S x T of steps (None if steps are not trained)."""

    video_ids: list[str]
    batch: Batch
    narration_positives: Tensor
    step_positives: Tensor | None

    def to(self, device: str | torch.device) -> "Example":
        """On another device."""
        steps = None if self.step_positives is None else self.step_positives.to(device)
        return Example(self.video_ids, self.batch.to(device), self.narration_positives.to(device), steps)


@dataclass(frozen=True)
class Reader:
    """Makes examples of a corpus. Without labels the steps are left out."""

    corpus: Corpus
    tokenizer: Tokenizer
    max_seconds: int
    seed: int
    labels: Labels | None = None

    def __call__(self, video_ids: Sequence[str], epoch: int) -> Example:
        """The videos as they are seen in an epoch."""
        parts = [self._part(video_id, epoch) for video_id in video_ids]
        features = [part.features for part in parts]
        seconds = [len(vectors) for vectors in features]
        video_BTV = torch.zeros(len(parts), max(seconds), features[0].shape[1])
        for row, vectors in enumerate(features):
            video_BTV[row, : len(vectors)] = torch.from_numpy(vectors.astype(np.float32))
        narrations = Texts.of(self.tokenizer, [part.narrations for part in parts])
        steps = Texts.of(self.tokenizer, [part.steps for part in parts]) if self.labels else None
        return Example(
            list(video_ids),
            Batch(video_BTV, torch.tensor(seconds), narrations, steps),
            _positives([part.narration_spans for part in parts], seconds, narrations),
            _positives([part.step_spans for part in parts], seconds, steps) if steps else None,
        )

    def _part(self, video_id: str, epoch: int) -> "_Part":
        """One video: of a long one a stretch that is drawn anew in each epoch, with what is said in it."""
        vectors = self.corpus.features(video_id)
        rng = np.random.default_rng([self.seed, epoch, *video_id.encode()])
        begin = int(rng.integers(max(len(vectors) - self.max_seconds, 0) + 1))
        vectors = vectors[begin : begin + self.max_seconds]
        said = self.corpus.narrations(video_id)
        spans = [_within(span, begin, len(vectors)) for span in said.spans]
        if begin or len(vectors) == self.max_seconds:  # a stretch has the narrations that fall into it
            said_here = [row for row, span in enumerate(spans) if span is not None]
            texts, spans = [said.texts[row] for row in said_here], [spans[row] for row in said_here]
        else:
            texts = said.texts
        if self.labels is None:
            return _Part(vectors, texts, spans, [], [])
        articles = [article for article in self.corpus.articles.get(video_id, []) if article in self.corpus.steps]
        article = articles[int(rng.integers(len(articles)))]
        labels = self.labels.spans(video_id, article)
        if late := [span for span in labels if span is not None and span[0] >= self.corpus.num_seconds[video_id]]:
            raise ValueError(
                f"a label of video {video_id!r} and article {article!r} begins at {late[0][0]:.0f} s, but its features "
                f"end at {self.corpus.num_seconds[video_id]} s: label the corpus anew"
            )
        return _Part(
            vectors, texts, spans, self.corpus.steps[article], [_within(span, begin, len(vectors)) for span in labels]
        )


@dataclass(frozen=True)
class _Part:
    features: np.ndarray[tuple[int, ...], np.dtype[np.floating]]
    narrations: list[str]
    narration_spans: list[Span | None]
    steps: list[str]
    step_spans: list[Span | None]


def _within(span: Span | None, begin: int, length: int) -> Span | None:
    """A span on the clock of a stretch; None if it does not touch it."""
    if span is None or span[0] >= begin + length or span[1] <= begin:
        return None
    return max(span[0] - begin, 0.0), min(span[1] - begin, float(length))


def _positives(spans: Sequence[Sequence[Span | None]], seconds: Sequence[int], texts: Texts) -> Tensor:
    return spans_to_positives(spans, seconds, texts.mask_BR.shape[1], max(seconds))
