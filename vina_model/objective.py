"""The objectives of TAN* and VINA: the probability mass of each labelled text lies on the seconds of its label.

The softmax is over a video's seconds; texts without a label, and padding, cost nothing and have no gradient.
"""

# B videos, K rows (texts) of a matrix, T seconds; N narrations, S steps.

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from vina_model.alignment import Alignment, precise

ETA = 0.07
"""Temperature of the softmax over a video's seconds."""


class Losses(NamedTuple):
    """The objective of each video of a batch, B, and its two terms (None: not trained)."""

    total_B: Tensor
    nv_B: Tensor | None
    sv_B: Tensor | None


class Objective(Protocol):
    """Turns a model's alignment and the labels, B x N x T of narrations and B x S x T of steps, into losses."""

    def __call__(  # noqa: D102
        self, alignment: Alignment, narrations_BNT: Tensor, steps_BST: Tensor | None, /
    ) -> Losses: ...


def tan_objective(alignment: Alignment, narrations_BNT: Tensor, steps_BST: Tensor | None) -> Losses:
    """Return TAN*'s objective: the loss of the narrations' times, averaged over all layers. It has no steps."""
    assert alignment.nv_BNT is not None
    layers = [*alignment.earlier_nv, alignment.nv_BNT]
    losses = [alignment_loss(layer_BNT, narrations_BNT, alignment.seconds_BT) for layer_BNT in layers]
    nv_B = torch.stack(losses).mean(0)
    return Losses(nv_B, nv_B, None)


def vina_objective(alignment: Alignment, narrations_BNT: Tensor, steps_BST: Tensor | None) -> Losses:
    """Return VINA's objective: the loss of the narrations' times plus that of the steps' pseudo-labels.

    A term is left out where the model has no such input, or the steps have no labels.
    """
    nv_B = sv_B = None
    if alignment.nv_BNT is not None:
        nv_B = alignment_loss(alignment.nv_BNT, narrations_BNT, alignment.seconds_BT)
    if alignment.sv_BST is not None and steps_BST is not None:
        sv_B = alignment_loss(alignment.sv_BST, steps_BST, alignment.seconds_BT)
    if nv_B is not None and sv_B is not None:
        return Losses(nv_B + sv_B, nv_B, sv_B)
    total_B = nv_B if nv_B is not None else sv_B
    assert total_B is not None, "a model with narrations or steps, and labels of steps if it has those alone"
    return Losses(total_B, nv_B, sv_B)


def alignment_loss(scores_BKT: Tensor, positives_BKT: Tensor, seconds_BT: Tensor, eta: float = ETA) -> Tensor:
    """Return H(Y, A) of each video, B: -1/K sum_k log(sum over positives / sum over seconds of exp(A/eta)).

    Rows without a positive second are left out, and so are positives in the padding; a video without labelled rows
    has a loss of 0.
    """
    positives_BKT = positives_BKT & seconds_BT[:, None, :]
    labelled_BK = positives_BKT.any(2)
    idle_BK1 = ~labelled_BK[:, :, None]
    logits_BKT = (precise(scores_BKT) / eta).masked_fill(~seconds_BT[:, None, :], -torch.inf)
    # Rows that are left out become all zeros and all positive: they cost 0 and have no gradient, whatever they held.
    logits_BKT = logits_BKT.masked_fill(idle_BK1, 0)
    chosen_BK = logits_BKT.masked_fill(~(positives_BKT | idle_BK1), -torch.inf).logsumexp(2)
    return (logits_BKT.logsumexp(2) - chosen_BK).sum(1) / labelled_BK.sum(1).clamp(min=1)


def spans_to_positives(
    spans: Sequence[Sequence[tuple[float, float] | None]], seconds_B: Sequence[int], num_rows: int, num_seconds: int
) -> Tensor:
    """Return labels B x K x T: true in the seconds that each span (start, end) touches; a None has no label.

    A span that ends after its video is cut; one that begins after it is a ValueError.
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
