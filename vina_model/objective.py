"""The objective: each labelled text's probability mass lies on the seconds of its label."""

# B videos, K rows (texts) of a matrix, T seconds.

import math
from collections.abc import Sequence

import torch
from torch import Tensor

ETA = 0.07
"""Temperature of the softmax over a video's seconds."""


def alignment_loss(scores_BKT: Tensor, positives_BKT: Tensor, seconds_BT: Tensor, eta: float = ETA) -> Tensor:
    """H(Y, A) of each video, B: -1/K sum_k log(sum over positives / sum over seconds of exp(A/eta)).

    Rows without a positive second take no part; a video without such rows gives 0.
    """
    logits_BKT = (scores_BKT.float() / eta).masked_fill(~seconds_BT[:, None, :], -torch.inf)
    labelled_BK = positives_BKT.any(2)
    # Rows that take no part are given a harmless positive, so that no gradient is NaN.
    usable_BKT = positives_BKT | ~labelled_BK[:, :, None]
    chosen_BK = logits_BKT.masked_fill(~usable_BKT, -torch.inf).logsumexp(2)
    costs_BK = (logits_BKT.logsumexp(2) - chosen_BK) * labelled_BK
    return costs_BK.sum(1) / labelled_BK.sum(1).clamp(min=1)


def spans_to_positives(
    spans: Sequence[Sequence[tuple[float, float] | None]], seconds_B: Sequence[int], num_rows: int, num_seconds: int
) -> Tensor:
    """Labels as B x K x T: true in the seconds that each span (start, end) touches; a row of None has no label.

    A span that ends after its video is cut; one that lies outside of it altogether is a ValueError.
    """
    positives_BKT = torch.zeros(len(spans), num_rows, num_seconds, dtype=torch.bool)
    for video, rows in enumerate(spans):
        for row, span in enumerate(rows):
            if span is None:
                continue
            start, end = span
            if not 0 <= start < seconds_B[video] or not start <= end:
                raise ValueError(
                    f"row {row} is labelled {start} to {end} s, but video {video} has {seconds_B[video]} s"
                )
            first = int(start)
            positives_BKT[video, row, first : max(first + 1, min(math.ceil(end), seconds_B[video]))] = True
    return positives_BKT
