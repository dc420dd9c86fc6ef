"""The batches of an epoch: in an order that is a pure function of seed and epoch, videos of similar length, read ahead.

Chosen: the epoch is shuffled, cut into pools of 32 batches, and sorted by length within each; then the batches are
shuffled. So there is little padding, and epochs have different batches.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from tasks.training.corpus import Corpus, Span
from tasks.training.labels import Labels
from vina_model.batch import Batch, Texts
from vina_model.objective import spans_to_positives
from vina_model.tokenizer import Tokenizer

BATCHES_PER_POOL = 32
"""Batches whose videos are sorted by length together."""
READERS = 2
"""Threads that read batches."""
AHEAD = 4
"""Batches that are read before they are needed."""
Item = TypeVar("Item")
Answer = TypeVar("Answer")


def plan_batches(lengths: Sequence[int], batch_size: int, seed: int, epoch: int) -> list[list[int]]:
    """Return the numbers of the videos of each batch. The last batch of a pool may be smaller."""
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(lengths))
    batches: list[list[int]] = []
    for begin in range(0, len(order), batch_size * BATCHES_PER_POOL):
        pool = sorted(order[begin : begin + batch_size * BATCHES_PER_POOL].tolist(), key=lambda number: lengths[number])
        batches += [pool[first : first + batch_size] for first in range(0, len(pool), batch_size)]
    return [batches[number] for number in rng.permutation(len(batches))]


def count_batches(num_videos: int, batch_size: int) -> int:
    """Return the number of batches of an epoch."""
    return math.ceil(num_videos / batch_size)


class BatchShare(NamedTuple):
    """A process's share of a batch: its videos, in the parts whose gradients are accumulated."""

    parts: list[list[str]]
    weight: int
    """0 for a process without a video of a small batch, which computes a gradient only because all processes must."""
    num_videos: int
    """Videos of the whole batch, of all processes."""


def share_batch(video_ids: list[str], rank: int, num_processes: int, num_parts: int) -> BatchShare:
    """Return the share of the process with this rank."""
    share = video_ids[rank::num_processes]
    if not share:
        return BatchShare([video_ids[:1]], 0, len(video_ids))
    parts = [share[number::num_parts] for number in range(min(num_parts, len(share)))]
    return BatchShare(parts, 1, len(video_ids))


def read_ahead(work: Callable[[Item], Answer], items: Sequence[Item]) -> Iterator[Answer]:
    """Yield the answers in the order of the items, computed in threads while the caller uses the ones before."""
    with ThreadPoolExecutor(READERS) as pool:
        futures: deque[Future[Answer]] = deque()
        try:
            for item in items:
                futures.append(pool.submit(work, item))
                if len(futures) > AHEAD:
                    yield futures.popleft().result()
            while futures:
                yield futures.popleft().result()
        finally:
            for future in futures:
                future.cancel()


@dataclass(frozen=True)
class Example:
    """A batch with its labels: B x N x T of narrations, B x S x T of steps (None if steps are left out)."""

    video_ids: list[str]
    batch: Batch
    narration_positives: Tensor
    step_positives: Tensor | None

    def to(self, device: str | torch.device) -> "Example":
        """Return a copy on another device."""
        step_positives = None if self.step_positives is None else self.step_positives.to(device)
        return Example(self.video_ids, self.batch.to(device), self.narration_positives.to(device), step_positives)


@dataclass(frozen=True)
class ExampleReader:
    """Reads examples of a corpus. Without labels the steps are left out."""

    corpus: Corpus
    tokenizer: Tokenizer
    max_seconds: int
    seed: int
    labels: Labels | None = None

    def __call__(self, video_ids: Sequence[str], epoch: int) -> Example:
        """Read the example of some videos in an epoch."""
        excerpts = [self._excerpt(video_id, epoch) for video_id in video_ids]
        seconds = [len(excerpt.features) for excerpt in excerpts]
        narrations = Texts.of(self.tokenizer, [excerpt.narrations for excerpt in excerpts])
        steps = Texts.of(self.tokenizer, [excerpt.steps for excerpt in excerpts]) if self.labels else None
        return Example(
            list(video_ids),
            Batch.of([excerpt.features for excerpt in excerpts], narrations, steps),
            _positives([excerpt.narration_spans for excerpt in excerpts], seconds, narrations),
            _positives([excerpt.step_spans for excerpt in excerpts], seconds, steps) if steps else None,
        )

    def _excerpt(self, video_id: str, epoch: int) -> "_Excerpt":
        """Read one video with its narrations; of a long one, an excerpt that is drawn again in each epoch."""
        vectors = self.corpus.features(video_id)
        rng = np.random.default_rng([self.seed, epoch, *video_id.encode()])
        begin = int(rng.integers(max(len(vectors) - self.max_seconds, 0) + 1))
        vectors = vectors[begin : begin + self.max_seconds]
        narrations = self.corpus.narrations(video_id)
        texts, spans = narrations.texts, [_within(span, begin, len(vectors)) for span in narrations.spans]
        if begin or len(vectors) == self.max_seconds:  # an excerpt has only the narrations that fall into it
            rows = [row for row, span in enumerate(spans) if span is not None]
            texts, spans = [texts[row] for row in rows], [spans[row] for row in rows]
        if self.labels is None:
            return _Excerpt(vectors, texts, spans, [], [])
        articles = [article for article in self.corpus.articles.get(video_id, []) if article in self.corpus.steps]
        article = articles[int(rng.integers(len(articles)))]
        labels, num_seconds = self.labels.spans(video_id, article), self.corpus.num_seconds[video_id]
        if late := [span for span in labels if span is not None and span[0] >= num_seconds]:
            raise ValueError(
                f"a label of video {video_id!r} and article {article!r} begins at {late[0][0]:.0f} s, but its features "
                f"end at {num_seconds} s: label the corpus again (vina run --stages burn-in,rounds --force)"
            )
        step_spans = [_within(span, begin, len(vectors)) for span in labels]
        return _Excerpt(vectors, texts, spans, self.corpus.steps[article], step_spans)


@dataclass(frozen=True)
class _Excerpt:
    """The seconds of a video that are trained on, with their texts and the spans of these."""

    features: np.ndarray[tuple[int, ...], np.dtype[np.floating]]
    narrations: list[str]
    narration_spans: list[Span | None]
    steps: list[str]
    step_spans: list[Span | None]


def _within(span: Span | None, begin: int, length: int) -> Span | None:
    """Return a span relative to the start of an excerpt; None if it is outside."""
    if span is None or span[0] >= begin + length or span[1] <= begin:
        return None
    return max(span[0] - begin, 0.0), min(span[1] - begin, float(length))


def _positives(spans: Sequence[Sequence[Span | None]], seconds: Sequence[int], texts: Texts) -> Tensor:
    return spans_to_positives(spans, seconds, texts.mask_BR.shape[1], max(seconds))
