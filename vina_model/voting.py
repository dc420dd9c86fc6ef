"""Which title each sentence is most similar to: exact, in bounded memory, the same in any block size on any device.

Chosen: one float32 product per block of sentences, reduced at once to the maximum of every 16 titles, so that all that
follows touches a sixteenth of the scores. Rounding depends on device and block, so titles that are as close to
the maximum as rounding could explain are compared again in float64 on the CPU; there are few. Equal ones: the first.
"""

# N sentences, B of them in a block, C titles, D numbers of a vector, G titles of a group.

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

GROUP = 16
BLOCK = 1024
PAIRS = 4096
"""Pairs that are compared in float64 at once, to bound the memory: where all titles are equal there are very many."""
Vectors = npt.NDArray[np.floating[Any]]


class Nearest(NamedTuple):
    """The row of each sentence's title, and the cosine similarity of the two."""

    rows: npt.NDArray[np.int64]
    similarities: npt.NDArray[np.float32]


class TitleIndex:
    """The titles on a device, ready to be compared with any number of sentences."""

    def __init__(self, titles_CD: Vectors, device: str = "cpu", handicaps_C: Vectors | None = None) -> None:
        """Vectors of unit length. A handicap is taken off each of a title's similarities before they are compared."""
        if titles_CD.ndim != 2 or not titles_CD.size:
            raise ValueError(f"titles must be C x D, at least one, not of shape {titles_CD.shape}")
        if not np.isfinite(titles_CD).all():
            raise ValueError("a title has a vector with numbers that are not finite")
        self.titles_CD = torch.from_numpy(np.ascontiguousarray(titles_CD, np.float32))
        zeros_C = np.zeros(len(titles_CD))
        self.handicaps_C = torch.from_numpy(zeros_C if handicaps_C is None else np.asarray(handicaps_C, np.float64))
        # The last group is filled up with copies of the last title: they never change a maximum.
        rows_C = torch.arange(-(-len(titles_CD) // GROUP) * GROUP).clamp(max=len(titles_CD) - 1)
        self._columns_DC = self.titles_CD[rows_C].T.contiguous().to(device)
        self._offsets_C = -self.handicaps_C[rows_C].float().to(device) if handicaps_C is not None else None
        self._scores = torch.empty(0)
        # Twice what D roundings and the handicap's can add up to, for vectors that are no longer than 1.
        self._margin = 2 * (titles_CD.shape[1] + 2) * 2.0**-24 * (1 + float(self.handicaps_C.abs().max()))

    @torch.inference_mode()
    def nearest(self, sentences_ND: Vectors, block: int = BLOCK) -> Nearest:
        """Return each sentence's title, by the largest similarity less its handicap."""
        sentences = torch.from_numpy(np.ascontiguousarray(sentences_ND, np.float32))
        if not len(sentences):
            return Nearest(np.zeros(0, np.int64), np.zeros(0, np.float32))
        parts = [self._block(part) for part in torch.split(sentences, block)]
        return Nearest(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _block(self, sentences_BD: Tensor) -> Nearest:
        scores_BGg = self._compare(sentences_BD).view(len(sentences_BD), -1, GROUP)
        best_BG = scores_BGg.amax(2)
        least_B = best_BG.amax(1) - self._margin
        rows, groups = torch.nonzero(best_BG >= least_B[:, None], as_tuple=True)
        within = scores_BGg[rows, groups] >= least_B[rows, None]
        numbers, columns = torch.nonzero(within, as_tuple=True)
        rows, titles = rows[numbers].cpu(), (groups[numbers] * GROUP + columns).cpu().clamp(max=len(self.titles_CD) - 1)
        return self._decide(sentences_BD, rows, titles)

    def _compare(self, sentences_BD: Tensor) -> Tensor:
        size = (len(sentences_BD), self._columns_DC.shape[1])
        if self._scores.shape[0] < size[0]:
            self._scores = torch.empty(size, device=self._columns_DC.device)
        scores_BC, sentences_BD = self._scores[: size[0]], sentences_BD.to(self._columns_DC.device)
        with _full_precision():
            if self._offsets_C is None:
                return torch.mm(sentences_BD, self._columns_DC, out=scores_BC)
            return torch.addmm(self._offsets_C, sentences_BD, self._columns_DC, out=scores_BC)

    def _decide(self, sentences_BD: Tensor, rows: Tensor, titles: Tensor) -> Nearest:
        """Return the best of each row's candidates, compared in float64; of equal ones the first title."""
        similarities = torch.cat(
            [
                (sentences_BD[some].double() * self.titles_CD[others].double()).sum(1)
                for some, others in zip(torch.split(rows, PAIRS), torch.split(titles, PAIRS), strict=True)
            ]
        )
        if not torch.equal(rows, torch.arange(len(sentences_BD))):
            scores = similarities - self.handicaps_C[titles]
            order = torch.from_numpy(np.lexsort((titles.numpy(), -scores.numpy(), rows.numpy())))
            first = torch.ones(len(rows), dtype=torch.bool)
            first[1:] = rows[order][1:] != rows[order][:-1]
            titles, similarities = titles[order][first], similarities[order][first]
        if len(titles) != len(sentences_BD):
            raise ValueError("a title or a sentence has a vector with numbers that are not finite: it is near nothing")
        return Nearest(titles.numpy(), similarities.float().numpy())


@contextmanager
def _full_precision() -> Iterator[None]:
    """Switch off TF32 and bfloat16, which the caller may have allowed for other products."""
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)


@torch.inference_mode()
def hub_handicaps(titles_CD: Vectors, sample_ND: Vectors, device: str = "cpu", neighbours: int = 10) -> Vectors:
    """Return half the mean similarity of each title to its nearest sentences of a sample, high for hubs (CSLS).

    The nearest are found in float32, their similarities taken in float64 and the mean rounded to 4 decimals, so that
    it is the same on every device.
    """
    if not len(sample_ND):
        raise ValueError("there are no sentences to tell hubs by")
    titles_CD, sample_ND = (np.ascontiguousarray(vectors, np.float32) for vectors in (titles_CD, sample_ND))
    titles, sample = torch.from_numpy(titles_CD), torch.from_numpy(sample_ND)
    columns_CD = titles.to(device)
    nearest_CK, rows_CK = columns_CD.new_empty(len(titles), 0), torch.empty(len(titles), 0, dtype=torch.int64)
    rows_CK = rows_CK.to(device)
    for part, numbers in zip(torch.split(sample, BLOCK), torch.split(torch.arange(len(sample)), BLOCK), strict=True):
        with _full_precision():
            seen = torch.cat([nearest_CK, columns_CD @ part.to(device).T], dim=1)
        nearest_CK, chosen = seen.topk(min(neighbours, seen.shape[1]), dim=1)
        rows_CK = torch.cat([rows_CK, numbers.to(device).expand(len(titles), -1)], dim=1).gather(1, chosen)
    means = []
    some = PAIRS // 16
    for some_BD, rows_BK in zip(torch.split(titles, some), torch.split(rows_CK.cpu(), some), strict=True):
        exact_BK = torch.einsum("bd,bkd->bk", some_BD.double(), sample[rows_BK].double())
        means.append(exact_BK.mean(1))
    return np.asarray((torch.cat(means) / 2).round(decimals=4))
