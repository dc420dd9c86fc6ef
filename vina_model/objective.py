"""The objective: each labelled text's probability mass lies on the seconds of its label."""

# B videos, K rows (texts) of a matrix, T seconds.

from collections.abc import Sequence

import torch
from torch import Tensor

from vina_model.alignment import precise

ETA = 0.07
"""Temperature of the softmax over a video's seconds."""


def alignment_loss(scores_BKT: Tensor, positives_BKT: Tensor, seconds_BT: Tensor, eta: float = ETA) -> Tensor:
    """H(Y, A) of each video, B: -1/K sum_k log(sum over positives / sum over seconds of exp(A/eta)).

    Rows without a positive second take no part, nor do positives in the padding; a video without labelled rows gives 0.
    """
    positives_BKT = positives_BKT & seconds_BT[:, None, :]
    labelled_BK = positives_BKT.any(2)
    idle_BK1 = ~labelled_BK[:, :, None]
    logits_BKT = (precise(scores_BKT) / eta).masked_fill(~seconds_BT[:, None, :], -torch.inf)
    # Rows that take no part are all zeros and all positive: they cost 0, and whatever they held has no gradient.
    logits_BKT = logits_BKT.masked_fill(idle_BK1, 0)
    chosen_BK = logits_BKT.masked_fill(~(positives_BKT | idle_BK1), -torch.inf).logsumexp(2)
    return (logits_BKT.logsumexp(2) - chosen_BK).sum(1) / labelled_BK.sum(1).clamp(min=1)


def spans_to_positives(
    spans: Sequence[Sequence[tuple[float, float] | None]], seconds_B: Sequence[int], num_rows: int, num_seconds: int
) -> Tensor:
    """Labels as B x K x T: true in the seconds that each span (start, end) touches; a row of None has no label.

    A span that ends after its video is cut; one that lies outside of it altogether is a ValueError.
    """
    bounds_BK2 = torch.full((len(spans), num_rows, 2), torch.nan, dtype=torch.float64)
    for video, (rows, num) in enumerate(zip(spans, seconds_B, strict=True)):
        if len(rows) > num_rows or num > num_seconds:
            raise ValueError(f"video {video} has {len(rows)} rows and {num} s: more than {num_rows} or {num_seconds} s")
        for row, span in enumerate(rows):
            if span is not None and not (0 <= span[0] < num and span[0] <= span[1]):
                raise ValueError(f"row {row} is labelled {span[0]} to {span[1]} s, but video {video} has {num} s")
        if rows:
            unlabelled = (torch.nan, torch.nan)
            bounds_BK2[video, : len(rows)] = torch.tensor([span or unlabelled for span in rows], dtype=torch.float64)
    firsts_BK1 = bounds_BK2[:, :, :1].floor()
    ends_BK1 = torch.maximum(bounds_BK2[:, :, 1:].ceil(), firsts_BK1 + 1)
    ends_BK1 = torch.minimum(ends_BK1, torch.tensor(seconds_B, dtype=torch.float64)[:, None, None])
    seconds_T = torch.arange(num_seconds)
    return (firsts_BK1 <= seconds_T) & (seconds_T < ends_BK1)
