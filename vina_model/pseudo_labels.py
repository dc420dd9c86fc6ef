"""Pseudo-labels: each row's highest second, and the seconds around it that score nearly as high.

Vectorised, one pass on the device of the matrix; the tests have the loop it is equal to.
"""

# B videos, S steps, T seconds.

from typing import NamedTuple

import torch
from torch import Tensor

ZETA = 0.7


class Candidates(NamedTuple):
    """One candidate segment for each row, B x S each: seconds [start, end), the peak, and its score."""

    peaks: Tensor
    scores: Tensor
    starts: Tensor
    ends: Tensor


def candidate_segments(scores_BST: Tensor, seconds_BT: Tensor, zeta: float = ZETA) -> Candidates:
    """From the peak (the first of equal ones) left and right while the score is at least zeta times the peak's.

    The segment has the peak in any case, also where its score is not positive.
    """
    inside_BST = seconds_BT[:, None, :].expand_as(scores_BST)
    scores_BST = scores_BST.masked_fill(~inside_BST, -torch.inf)
    heights_BS, peaks_BS = scores_BST.max(2)  # the first of equal ones, torch promises
    seconds_T = torch.arange(scores_BST.shape[2], device=scores_BST.device)
    low_BST = scores_BST < zeta * heights_BS[:, :, None]  # the padding is
    before_BST, after_BST = seconds_T < peaks_BS[:, :, None], seconds_T > peaks_BS[:, :, None]
    starts_BS = torch.where(low_BST & before_BST, seconds_T + 1, 0).amax(2)
    ends_BS = torch.where(low_BST & after_BST, seconds_T, len(seconds_T)).amin(2)
    return Candidates(peaks_BS, heights_BS, starts_BS, ends_BS)
