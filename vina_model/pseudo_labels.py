"""Pseudo-labels: each row's highest second, the seconds around it that score nearly as high, and a confidence.

Vectorised, one pass on the device of the matrix; the tests compare it with a plain loop.
"""

# B videos, S steps, T seconds.

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from vina_model.objective import ETA

ZETA = 0.7
"""A segment extends while its score is at least this share of the peak's."""
REACH_S = 32
"""Seconds on each side of a peak that are looked at first."""


class CandidateSegments(NamedTuple):
    """One candidate segment of each row, B x S each: the peak's second, its score, and the seconds [start, end)."""

    peaks: Tensor
    scores: Tensor
    starts: Tensor
    ends: Tensor


def candidate_segments(
    scores_BST: Tensor, seconds_BT: Tensor, zeta: float = ZETA, reach_s: int = REACH_S
) -> CandidateSegments:
    """Extend each row's peak (the first of equal ones) to both sides while the score is at least zeta times the peak's.

    The segment always holds the peak, also where its score is not positive. Only the seconds within `reach_s` of the
    peaks are looked at, and more of them if a segment does not end there: the result is the same, and faster.
    """
    if not bool(seconds_BT.all()):
        scores_BST = scores_BST.masked_fill(~seconds_BT[:, None, :], -torch.inf)
    num_seconds = scores_BST.shape[2]
    heights_BS, peaks_BS = scores_BST.max(2)  # the first of equal ones, torch promises
    offsets_W = torch.arange(-reach_s, reach_s + 1, device=scores_BST.device)
    seconds_BSW = peaks_BS[:, :, None] + offsets_W
    near_BSW = scores_BST.gather(2, seconds_BSW.clamp(0, num_seconds - 1))
    low_BSW = near_BSW < zeta * heights_BS[:, :, None]  # padding is -inf, so it is low too
    low_BSW |= (seconds_BSW < 0) | (seconds_BSW >= num_seconds)
    before_BS = torch.where(low_BSW & (offsets_W < 0), offsets_W, -reach_s - 1).amax(2)
    after_BS = torch.where(low_BSW & (offsets_W > 0), offsets_W, reach_s + 1).amin(2)
    if reach_s < num_seconds and bool(((before_BS < -reach_s) | (after_BS > reach_s)).any()):
        return candidate_segments(scores_BST, seconds_BT, zeta, 8 * reach_s)
    return CandidateSegments(peaks_BS, heights_BS, peaks_BS + before_BS + 1, peaks_BS + after_BS)


def peak_confidence(scores_BST: Tensor, seconds_BT: Tensor, steps_BS: Tensor, segments: CandidateSegments) -> Tensor:
    """Return the score of each candidate's peak, B x S: the paper's confidence."""
    return segments.scores


def mutual_confidence(
    scores_BST: Tensor, seconds_BT: Tensor, steps_BS: Tensor, segments: CandidateSegments, eta: float = ETA
) -> Tensor:
    """Return a confidence of each candidate, B x S, from 0 to 1: the product of both `mutual_shares`.

    A step that is not shown has a peak too, but a step that is shown has a higher score there: in the demo world this
    separates right labels from wrong ones far better than the peak's height.
    """
    share_BS, claim_BS = mutual_shares(scores_BST, seconds_BT, steps_BS, segments, eta)
    return share_BS * claim_BS


def mutual_shares(
    scores_BST: Tensor, seconds_BT: Tensor, steps_BS: Tensor, segments: CandidateSegments, eta: float = ETA
) -> tuple[Tensor, Tensor]:
    """Return two shares, B x S each: of the row's softmax over seconds, what lies in the segment; of the softmax of the
    peak's second over the video's steps, what is this step's."""
    logits_BST = scores_BST / eta
    rows_BST = logits_BST.masked_fill(~seconds_BT[:, None, :], -torch.inf).softmax(2)
    seconds_T = torch.arange(scores_BST.shape[2], device=scores_BST.device)
    inside_BST = (segments.starts[:, :, None] <= seconds_T) & (seconds_T < segments.ends[:, :, None])
    columns_BST = logits_BST.masked_fill(~steps_BS[:, :, None], torch.finfo(logits_BST.dtype).min).softmax(1)
    return (rows_BST * inside_BST).sum(2), columns_BST.gather(2, segments.peaks[:, :, None]).squeeze(2)


CONFIDENCES: dict[str, Callable[[Tensor, Tensor, Tensor, CandidateSegments], Tensor]] = {
    "peak": peak_confidence,
    "mutual": mutual_confidence,
}
"""The labelling rules by name: each gives a confidence B x S from the scores, the masks of seconds and of steps (true
where there is one), and the candidates; a label is kept if its confidence reaches gamma."""
