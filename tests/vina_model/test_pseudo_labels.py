"""Candidate segments, vectorised, against the plain loop of SPEC section 3."""

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vina_model.alignment import mask_of
from vina_model.objective import ETA
from vina_model.pseudo_labels import ZETA, candidate_segments, mutual_confidence


def plain_segment(row: Sequence[float], zeta: float) -> tuple[int, float, int, int]:
    """Peak, its score, and the seconds [start, end) around it."""
    peak = 0
    for second, score in enumerate(row):
        if score > row[peak]:
            peak = second
    least = float(torch.tensor(row[peak]) * zeta)  # in float32, as the scores are
    start, end = peak, peak + 1
    while start > 0 and row[start - 1] >= least:
        start -= 1
    while end < len(row) and row[end] >= least:
        end += 1
    return peak, row[peak], start, end


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Tensor, list[int]]:
    """Few distinct scores make ties and plateaus; some rows are negative throughout."""
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    num_steps, num_seconds = draw(st.integers(0, 3)), max(lengths) + draw(st.integers(0, 2))
    few = st.sampled_from([-1.0, -0.5, -0.35, 0.0, 0.35, 0.49, 0.5, 0.7, 1.0])
    score = draw(st.sampled_from([few, st.floats(-1, 1, width=32), st.floats(-1, -0.125, width=32)]))
    flat = draw(st.lists(score, min_size=(n := len(lengths) * num_steps * num_seconds), max_size=n))
    return torch.tensor(flat, dtype=torch.float32).reshape(len(lengths), num_steps, num_seconds), lengths


@given(matrices(), st.one_of(st.floats(0.01, 1), st.sampled_from([0.01, 0.5, ZETA, 1.0])))
@settings(max_examples=300, deadline=None)
def test_segments_are_those_of_a_plain_loop(case: tuple[Tensor, list[int]], zeta: float) -> None:
    scores_BST, lengths = case
    seconds_BT = mask_of(torch.tensor(lengths), scores_BST.shape[2])
    found = candidate_segments(scores_BST, seconds_BT, zeta)
    for reach_s in (1, 2, 5):
        nearer = candidate_segments(scores_BST, seconds_BT, zeta, reach_s)
        assert all(one.equal(other) for one, other in zip(nearer, found, strict=True))
    for video, length in enumerate(lengths):
        for step in range(scores_BST.shape[1]):
            one = tuple(part[video, step].item() for part in found)
            assert one == plain_segment(scores_BST[video, step, :length].tolist(), zeta)
            assert 0 <= one[2] <= one[0] < one[3] <= length
    assert found.scores.isfinite().all()


def test_what_lies_in_the_padding_may_be_anything() -> None:
    scores_BST = torch.tensor([[[0.5, 0.6, 9.0, torch.nan], [-0.2, -0.1, torch.inf, -torch.inf]]])
    found = candidate_segments(scores_BST, torch.tensor([[True, True, False, False]]))
    assert found.peaks.tolist() == [[1, 1]] and found.scores.tolist() == scores_BST[:, :, 1].tolist()
    assert found.starts.tolist() == [[0, 1]] and found.ends.tolist() == [[2, 2]]


def test_the_share_of_the_peak_is_the_papers() -> None:
    assert ZETA == 0.7


def test_of_equal_peaks_the_first_counts() -> None:
    scores_BST = torch.tensor([[[0.1, 0.8, 0.1, 0.8, 0.1], [0.3] * 5]])
    found = candidate_segments(scores_BST, torch.ones(1, 5, dtype=torch.bool))
    assert found.peaks.tolist() == [[1, 0]] and found.starts.tolist() == [[1, 0]] and found.ends.tolist() == [[2, 5]]


@pytest.mark.parametrize(("neighbour", "start"), [(0.5, 0), (0.499999, 1)])
def test_a_score_of_exactly_zeta_times_the_peak_belongs_to_the_segment(neighbour: float, start: int) -> None:
    scores_BST = torch.tensor([[[neighbour, 1.0, 0.2, 0.9]]])
    found = candidate_segments(scores_BST, torch.ones(1, 4, dtype=torch.bool), zeta=0.5)
    assert found.starts.tolist() == [[start]] and found.ends.tolist() == [[2]]  # the far 0.9 lies behind a gap


def test_a_row_below_zero_is_its_peak_alone() -> None:
    found = candidate_segments(torch.tensor([[[-0.9, -0.2, -0.2, -0.3]]]), torch.ones(1, 4, dtype=torch.bool))
    assert (found.peaks.item(), found.starts.item(), found.ends.item()) == (1, 1, 2)


def test_the_scores_given_are_left_as_they_were() -> None:
    scores_BST = torch.rand(2, 3, 4)
    before_BST = scores_BST.clone()
    candidate_segments(scores_BST, mask_of(torch.tensor([4, 2]), 4))
    assert torch.equal(scores_BST, before_BST)


def plain_confidence(rows: list[list[float]], step: int) -> float:
    """The share of the step's seconds that its segment has, times the share of the peak's steps that it has."""
    peak, _, start, end = plain_segment(rows[step], ZETA)
    seconds = [math.exp(score / ETA) for score in rows[step]]
    steps = [math.exp(row[peak] / ETA) for row in rows]
    return sum(seconds[start:end]) / sum(seconds) * steps[step] / sum(steps)


@given(matrices(), st.data())
@settings(max_examples=100, deadline=None)
def test_mutual_confidence_is_that_of_a_plain_loop(case: tuple[Tensor, list[int]], data: st.DataObject) -> None:
    scores_BST, lengths = case
    counts = [data.draw(st.integers(0, scores_BST.shape[1])) for _ in lengths]
    seconds_BT = mask_of(torch.tensor(lengths), scores_BST.shape[2])
    steps_BS = mask_of(torch.tensor(counts), scores_BST.shape[1])
    found = mutual_confidence(scores_BST, seconds_BT, steps_BS, candidate_segments(scores_BST, seconds_BT))
    for video, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        rows = scores_BST[video, :count, :length].tolist()
        plain = [plain_confidence(rows, step) for step in range(count)]
        assert found[video, :count].tolist() == pytest.approx(plain, rel=1e-4, abs=1e-7)
    assert found.isfinite().all()


def test_a_step_that_is_not_shown_is_not_sure_of_another_ones_seconds() -> None:
    shown, absent = [0.1, 0.1, 0.9, 0.9, 0.1], [0.1, 0.1, 0.6, 0.6, 0.1]
    scores_BST = torch.tensor([[shown, absent]])
    everything = torch.ones(1, 5, dtype=torch.bool), torch.ones(1, 2, dtype=torch.bool)
    found = mutual_confidence(scores_BST, *everything, candidate_segments(scores_BST, everything[0]))
    assert found[0, 0] > 0.95 and found[0, 1] < 0.05
