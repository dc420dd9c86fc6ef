"""Pseudo-labels: each row's highest second, the seconds around it that score nearly as high, and how sure that is.

Vectorised, one pass on the device of the matrix; the tests have the loop it is equal to.
"""

# B videos, S steps, T seconds.

from typing import NamedTuple

import torch
from torch import Tensor

from vina_model.objective import ETA

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


def mutual_confidence(
    scores_BST: Tensor, seconds_BT: Tensor, steps_BS: Tensor, found: Candidates, eta: float = ETA
) -> Tensor:
    """How sure each candidate is, B x S, from 0 to 1: the step chooses the segment, and its peak chooses the step.

    The share of the row's softmax over seconds that lies in the segment, times the share of the peak's softmax over the
    video's steps that is this step's. A step that is not shown has a peak too, but a step that is shown has a higher
    score there: in the demo world this tells right labels from wrong ones far better than the peak's height.
    """
    logits_BST = scores_BST / eta
    rows_BST = logits_BST.masked_fill(~seconds_BT[:, None, :], -torch.inf).softmax(2)
    seconds_T = torch.arange(scores_BST.shape[2], device=scores_BST.device)
    inside_BST = (found.starts[:, :, None] <= seconds_T) & (seconds_T < found.ends[:, :, None])
    columns_BST = logits_BST.masked_fill(~steps_BS[:, :, None], torch.finfo(logits_BST.dtype).min).softmax(1)
    chosen_BS = columns_BST.gather(2, found.peaks[:, :, None]).squeeze(2)
    return (rows_BST * inside_BST).sum(2) * chosen_BS
