import numpy as np
import pytest
import torch
from torch import Tensor

from vina_model.metrics.presence import StepPresence
from vina_model.presence import EVIDENCE, FEWEST, PENALTY, Presence, evidence_of

STEPS, SECONDS = 6, 60


def world(seed: int, count: int = 150) -> tuple[Tensor, Tensor]:
    """Shown steps have plateaus, all steps have peaks, and every video has a level of its own."""
    rng = np.random.default_rng(seed)
    scores_BST = rng.normal(0, 0.1, (count, STEPS, SECONDS)) + rng.normal(0, 0.15, (count, 1, 1))
    shown_BS = rng.random((count, STEPS)) < 0.5
    for video, step in np.argwhere(shown_BS):
        begin = rng.integers(0, SECONDS - 10)
        scores_BST[video, step, begin : begin + rng.integers(4, 10)] += rng.uniform(0.05, 0.4)
    for video, step in np.argwhere(~shown_BS):
        scores_BST[video, step, rng.integers(0, SECONDS)] += rng.uniform(0, 0.4)
    return torch.from_numpy(scores_BST).float(), torch.from_numpy(shown_BS)


def evidence(scores_BST: Tensor) -> Tensor:
    count = len(scores_BST)
    masks = torch.ones(count, SECONDS, dtype=torch.bool), torch.ones(count, STEPS, dtype=torch.bool)
    return evidence_of(scores_BST, *masks)


def test_presence_is_a_probability_and_tells_more_than_the_peak_on_videos_it_was_not_fitted_on() -> None:
    (known, shown), (fresh, truth) = world(0), world(1)
    presence = Presence.fit(evidence(known).flatten(0, 1), shown.flatten())
    chances = presence(evidence(fresh)).flatten().double().numpy()
    videos, flags = np.repeat(np.arange(len(fresh)), STEPS), truth.flatten().numpy()
    every = np.ones((1, len(fresh)))
    ours = StepPresence(videos, flags, chances)(every)
    peak = StepPresence(videos, flags, fresh.amax(2).flatten().double().numpy())(every)
    assert ours["AUC"][0] > peak["AUC"][0] + 0.05
    assert ours["ECE"][0] < 0.06 < peak["ECE"][0]


def test_the_fit_is_where_the_loss_has_no_slope() -> None:
    scores, shown = world(2, 40)
    rows, flags = evidence(scores).flatten(0, 1).double(), shown.flatten().double()
    found = Presence.fit(rows, flags)
    weights = torch.tensor([*found.weights, found.bias], dtype=torch.float64, requires_grad=True)
    known = (rows - torch.tensor(found.means)) / torch.tensor(found.spreads)
    logits = known @ weights[:-1] + weights[-1]
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, flags)
    loss = loss + PENALTY / len(rows) * (weights[:-1] ** 2).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    assert weights.grad is not None and float(weights.grad.abs().max()) < 1e-7


def test_padding_changes_nothing() -> None:
    scores, _ = world(3, 2)
    padded = torch.full((2, STEPS + 3, SECONDS + 20), 9.0)
    padded[:, :STEPS, :SECONDS] = scores
    seconds, steps = (torch.zeros(2, size, dtype=torch.bool) for size in (SECONDS + 20, STEPS + 3))
    seconds[:, :SECONDS], steps[:, :STEPS] = True, True
    found = evidence_of(padded, seconds, steps)[:, :STEPS]
    torch.testing.assert_close(found, evidence(scores), rtol=1e-4, atol=1e-4)


def test_evidence_that_decides_all_still_has_finite_weights() -> None:
    rows = torch.zeros(40, len(EVIDENCE))
    rows[20:, 0] = 1
    presence = Presence.fit(rows, torch.arange(40) >= 20)
    assert all(np.isfinite([*presence.weights, presence.bias]))
    chances = presence(rows)
    assert bool((chances[:20] < 0.2).all()) and bool((chances[20:] > 0.8).all())


def test_some_of_each_kind_are_needed() -> None:
    for num_shown in (0, FEWEST - 1, 100 - FEWEST + 1, 100):
        with pytest.raises(ValueError, match=f"{num_shown} of 100 steps are shown: {FEWEST} of each kind are needed"):
            Presence.fit(torch.rand(100, len(EVIDENCE)), torch.arange(100) < num_shown)


def test_what_was_saved_is_read_and_other_evidence_is_refused() -> None:
    scores, shown = world(4, 20)
    presence = Presence.fit(evidence(scores).flatten(0, 1), shown.flatten())
    assert Presence.read(vars(presence)) == presence
    with pytest.raises(ValueError, match="judged by 7 numbers here, not by 2"):
        Presence.read({"means": [0, 0], "spreads": [1, 1], "weights": [1, 1], "bias": 0})
