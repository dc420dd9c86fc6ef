"""Whether a step is shown at all: a probability, from how its row of an alignment matrix stands among the others.

A step that is missing from a video has a highest second too, so a peak alone is no proof. A logistic regression on
seven numbers of a row is fitted on annotated videos. A stronger model was not worth it: boosted trees on eleven such
numbers gained 0.005 of AUC on the demo world.
"""

# B videos, S steps, T seconds, E kinds of evidence, N rows that are fitted on.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from vina_model.alignment import precise
from vina_model.detection import detect
from vina_model.objective import ETA
from vina_model.pseudo_labels import candidate_segments, mutual_shares

EVIDENCE = ("peak", "share", "claim", "contrast", "lead", "length", "alone")
"""The row's height; how much of its softmax lies around the peak, as log-odds; how much more of the peak's softmax over
the steps is this step's than the mean of the others', as a logarithm; how far the best detection stands out; how much
higher the row is than the mean of the others; the logarithm of the number of steps, and whether it is one. What
compares with other steps is 0 where there are none: lists may have any length, and short ones' rows look different."""
SURE = 1e-4
"""Shares are clamped to this distance from 0 and 1 before their log-odds are taken."""
PENALTY = 2.0
"""Weight of the squared weights against the sum of the losses, so that a fit on few steps stays cautious."""
FEWEST = 10
"""The fewest steps of each kind, shown and not shown, that a fit needs."""
SHOWN = 0.5
"""Lowest probability of a step that counts as shown."""


@dataclass(frozen=True)
class Presence:
    """A fitted logistic regression; the evidence is first brought to mean 0 and standard deviation 1."""

    means: tuple[float, ...]
    spreads: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float

    def __call__(self, evidence: Tensor) -> Tensor:
        """Return the probability that each step is shown; the last dimension is that of EVIDENCE."""
        means, spreads, weights = (evidence.new_tensor(part) for part in (self.means, self.spreads, self.weights))
        return ((evidence - means) / spreads @ weights + self.bias).sigmoid()

    @classmethod
    def fit(cls, evidence_NE: Tensor, shown_N: Tensor) -> "Presence":
        """Fit the weights. Raise ValueError if too few steps are shown, or too few are not."""
        num_shown = int(shown_N.sum())
        if min(num_shown, len(shown_N) - num_shown) < FEWEST:
            raise ValueError(f"{num_shown} of {len(shown_N)} steps are shown: {FEWEST} of each kind are needed")
        evidence_NE, target_N = evidence_NE.double().cpu(), shown_N.double().cpu()
        means_E, spreads_E = evidence_NE.mean(0), evidence_NE.std(0).clamp(min=1e-6)
        inputs_NE = torch.cat([(evidence_NE - means_E) / spreads_E, torch.ones(len(target_N), 1).double()], 1)
        penalty_E = torch.full((inputs_NE.shape[1],), 2 * PENALTY / len(target_N), dtype=torch.float64)
        penalty_E[-1] = 0
        weights_E = torch.zeros_like(penalty_E)
        for _ in range(50):  # Newton's method: the loss is convex, and a handful of steps are enough
            chance_N = (inputs_NE @ weights_E).sigmoid()
            slope_E = inputs_NE.T @ (chance_N - target_N) / len(target_N) + penalty_E * weights_E
            bend_EE = (inputs_NE.T * (chance_N * (1 - chance_N))) @ inputs_NE / len(target_N) + penalty_E.diag()
            step_E = torch.linalg.solve(bend_EE + 1e-9 * torch.eye(len(bend_EE)).double(), slope_E)
            weights_E -= step_E
            if float(step_E.abs().max()) < 1e-9:
                break
        *weights, bias = weights_E.tolist()
        return cls(tuple(means_E.tolist()), tuple(spreads_E.tolist()), tuple(weights), bias)

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> "Presence":
        """Read what `vars` of a Presence gave."""
        means, spreads, weights = (tuple(map(float, saved[name])) for name in ("means", "spreads", "weights"))
        if not len(means) == len(spreads) == len(weights) == len(EVIDENCE):
            raise ValueError(f"presence is judged by {len(EVIDENCE)} numbers here, not by {len(weights)}")
        return cls(means, spreads, weights, float(saved["bias"]))


@torch.no_grad()
def evidence_of(scores_BST: Tensor, seconds_BT: Tensor, steps_BS: Tensor) -> Tensor:
    """Return EVIDENCE of each row, B x S x E; the masks are true where there is a second, or a step."""
    scores_BST = precise(scores_BST)
    segments = candidate_segments(scores_BST, seconds_BT)
    shares = mutual_shares(scores_BST, seconds_BT, steps_BS, segments, ETA)
    share_BS, claim_BS = (values_BS.clamp(SURE, 1 - SURE).logit() for values_BS in shares)
    contrast_BS = detect(scores_BST, seconds_BT, limit=1).scores[..., 0]
    others_B1 = (steps_BS.sum(1, keepdim=True) - 1).clamp(min=1)
    total_B1 = segments.scores.masked_fill(~steps_BS, 0).sum(1, keepdim=True)
    is_alone_B1 = steps_BS.sum(1, keepdim=True) < 2
    length_B1 = steps_BS.sum(1, keepdim=True).clamp(min=1).log()
    claim_BS = (claim_BS + others_B1.log()).masked_fill(is_alone_B1, 0)
    lead_BS = (segments.scores - (total_B1 - segments.scores) / others_B1).masked_fill(is_alone_B1, 0)
    list_evidence = [value_B1.expand_as(lead_BS).to(lead_BS) for value_B1 in (length_B1, is_alone_B1)]
    return torch.stack([segments.scores, share_BS, claim_BS, contrast_BS, lead_BS, *list_evidence], 2)
