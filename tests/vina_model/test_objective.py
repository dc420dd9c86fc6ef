"""The objective and its labels against plain loops; its gradient against finite differences."""

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vina_model.alignment import Alignment, mask_of
from vina_model.objective import ETA, alignment_loss, spans_to_positives, tan_objective, vina_objective

Span = tuple[float, float] | None


def plain_loss(scores: Tensor, positives: Tensor, lengths: Sequence[int], eta: float) -> list[float]:
    """SPEC section 2, one number at a time."""
    losses = []
    for video, length in enumerate(lengths):
        costs = []
        for row in range(scores.shape[1]):
            top = max(float(scores[video, row, second]) / eta for second in range(length))
            above = below = 0.0
            for second in range(length):
                mass = math.exp(float(scores[video, row, second]) / eta - top)
                below += mass
                above += mass if positives[video, row, second] else 0.0
            if any(positives[video, row, :length]):
                costs.append(math.inf if above == 0 else -math.log(above / below))
        losses.append(sum(costs) / len(costs) if costs else 0.0)
    return losses


def plain_positives(spans: Sequence[Sequence[Span]], lengths: Sequence[int], num_rows: int, num_seconds: int) -> Tensor:
    """A second [t, t + 1) is positive if the span has some of it; the second that holds the start always is."""
    positives = torch.zeros(len(spans), num_rows, num_seconds, dtype=torch.bool)
    for video, rows in enumerate(spans):
        for row, span in enumerate(rows):
            for second in range(lengths[video]):
                if span is not None:
                    start, end = span
                    holds_start = second <= start < second + 1
                    positives[video, row, second] = holds_start or (start < second + 1 and second < end)
    return positives


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tensor, Tensor, list[int]]:
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    num_rows, num_seconds = draw(st.integers(1, 4)), max(lengths) + draw(st.integers(0, 2))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    scores = 2 * torch.rand(len(lengths), num_rows, num_seconds, generator=generator, dtype=torch.float64) - 1
    share = draw(st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    return scores, torch.rand(scores.shape, generator=generator) < share, lengths


@given(cases(), st.sampled_from([ETA, 0.5, 1.0]))
@settings(max_examples=150, deadline=None)
def test_the_loss_is_that_of_a_plain_loop(case: tuple[Tensor, Tensor, list[int]], eta: float) -> None:
    scores, positives, lengths = case
    seconds_BT = mask_of(torch.tensor(lengths), scores.shape[2])
    expected = torch.tensor(plain_loss(scores, positives, lengths, eta), dtype=torch.float64)
    found = alignment_loss(scores, positives, seconds_BT, eta)
    assert found.dtype == torch.float64 and torch.allclose(found, expected, atol=1e-9)
    single = alignment_loss(scores.float(), positives, seconds_BT, eta)
    assert single.dtype == torch.float32 and torch.allclose(single.double(), expected, atol=1e-4)


def test_the_temperature_is_the_papers() -> None:
    scores, positives = torch.tensor([[[0.07, 0.0]]]), torch.tensor([[[True, False]]])
    loss = float(alignment_loss(scores, positives, torch.ones(1, 2).bool()))
    assert loss == pytest.approx(math.log(1 + math.exp(-1)), abs=1e-6)


@given(cases())
@settings(max_examples=25, deadline=None)
def test_the_gradient_is_that_of_finite_differences(case: tuple[Tensor, Tensor, list[int]]) -> None:
    scores, positives, lengths = case
    seconds_BT = mask_of(torch.tensor(lengths), scores.shape[2])
    assert torch.autograd.gradcheck(
        lambda scores: alignment_loss(scores, positives, seconds_BT, 0.3), scores.requires_grad_()
    )


@given(cases())
@settings(max_examples=50, deadline=None)
def test_neither_padding_nor_the_other_videos_change_a_loss(case: tuple[Tensor, Tensor, list[int]]) -> None:
    scores, positives, lengths = case
    seconds_BT = mask_of(torch.tensor(lengths), scores.shape[2])
    batch = alignment_loss(scores, positives, seconds_BT)
    for video, length in enumerate(lengths):
        alone = slice(video, video + 1), slice(None), slice(length)
        single = alignment_loss(scores[alone], positives[alone], torch.ones(1, length, dtype=torch.bool))
        assert abs(float(batch[video] - single[0])) < 1e-9


def test_what_lies_in_the_padding_may_be_anything() -> None:
    """Seconds, rows and labels behind a video's own, even where they are not numbers."""
    scores = torch.tensor([[[0.3, 0.1, torch.nan], [torch.nan] * 3, [0.2, 0.4, torch.inf]]], requires_grad=True)
    positives = torch.tensor([[[True, False, True], [False] * 3, [False, False, True]]])
    loss = alignment_loss(scores, positives, torch.tensor([[True, True, False]]), eta=0.1)
    assert float(loss[0].detach()) == pytest.approx(math.log(1 + math.exp(-2)), abs=1e-6)
    loss.sum().backward()
    assert scores.grad is not None and scores.grad.isfinite().all()
    assert scores.grad[0, 1:].abs().max() == 0 and scores.grad[0, 0, 2] == 0 and scores.grad[0, 0, 0] != 0


def test_a_video_without_labels_costs_nothing_and_has_no_gradient() -> None:
    scores = torch.linspace(-1, 1, 24).reshape(2, 3, 4).requires_grad_()
    positives = torch.zeros(2, 3, 4, dtype=torch.bool)
    positives[1, 2, 1] = True
    losses = alignment_loss(scores, positives, mask_of(torch.tensor([4, 2]), 4), eta=1.0)
    losses.sum().backward()
    assert losses[0] == 0 and losses[1] > 0
    assert scores.grad is not None and scores.grad[0].abs().max() == 0 and scores.grad[1, 2].abs().max() > 0
    no_rows = alignment_loss(torch.zeros(2, 0, 4), torch.zeros(2, 0, 4).bool(), torch.ones(2, 4).bool())
    assert no_rows.tolist() == [0, 0]


def test_where_every_second_is_positive_there_is_nothing_to_learn() -> None:
    scores = torch.linspace(-1, 1, 30).reshape(2, 3, 5).requires_grad_()
    seconds_BT = mask_of(torch.tensor([5, 1]), 5)
    losses = alignment_loss(scores, torch.ones(2, 3, 5, dtype=torch.bool), seconds_BT)
    losses.sum().backward()
    assert losses.abs().max() < 1e-6 and scores.grad is not None and scores.grad.abs().max() < 1e-5


@pytest.mark.parametrize("scale", [1e3, 1e6, 1e30])
def test_large_scores_overflow_nowhere(scale: float) -> None:
    scores = scale * torch.tensor([[[1.0, -1.0, 0.5]]])
    scores.requires_grad_()
    positives = torch.tensor([[[False, True, False]]])
    loss = alignment_loss(scores, positives, torch.ones(1, 3, dtype=torch.bool))
    loss.sum().backward()
    assert float(loss.detach()) == pytest.approx(2 * scale / ETA, rel=1e-5)
    assert scores.grad is not None and torch.allclose(scores.grad * ETA, torch.tensor([1.0, -1.0, 0.0]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_scores_of_half_precision_are_lifted_first(dtype: torch.dtype) -> None:
    scores = torch.linspace(-1, 1, 300).reshape(2, 3, 50).to(dtype)
    positives = torch.arange(300).reshape(2, 3, 50) % 7 < 2
    seconds_BT = torch.ones(2, 50, dtype=torch.bool)
    found = alignment_loss(scores, positives, seconds_BT)
    assert found.dtype == torch.float32
    assert torch.equal(found, alignment_loss(scores.float(), positives, seconds_BT))


def rows_of_spans(length: int) -> st.SearchStrategy[list[Span]]:
    starts = st.one_of(st.floats(0, length, exclude_max=True), st.integers(0, length - 1).map(float))
    lasting = st.one_of(st.floats(0, 5), st.integers(0, 5).map(float), st.just(math.inf))
    return st.lists(st.none() | st.tuples(starts, lasting).map(lambda pair: (pair[0], pair[0] + pair[1])), max_size=4)


@given(st.data(), st.lists(st.integers(1, 6), min_size=1, max_size=3))
@settings(max_examples=150, deadline=None)
def test_labels_are_those_of_a_plain_loop(data: st.DataObject, lengths: list[int]) -> None:
    spans = [data.draw(rows_of_spans(length)) for length in lengths]
    found = spans_to_positives(spans, lengths, 5, max(lengths) + 1)
    assert found.dtype == torch.bool
    assert torch.equal(found, plain_positives(spans, lengths, 5, max(lengths) + 1))


@pytest.mark.parametrize(
    ("span", "seconds"),
    [
        ((1.0, 3.0), [1, 2]),
        ((1.9, 2.1), [1, 2]),
        ((2.0, 2.0), [2]),
        ((2.5, 2.5), [2]),
        ((0.0, 4.0), [0, 1, 2, 3]),
        ((3.0, 9.0), [3]),
        ((3.999, math.inf), [3]),
        (None, []),
    ],
)
def test_a_span_covers_the_seconds_it_touches(span: Span, seconds: list[int]) -> None:
    positives = spans_to_positives([[span]], [4], 2, 6)
    assert positives[0, 0].nonzero().flatten().tolist() == seconds and not positives[0, 1].any()


@pytest.mark.parametrize(
    "span",
    [(4.0, 5.0), (-0.1, 1.0), (2.0, 1.0), (math.nan, 1.0), (1.0, math.nan), (math.inf, math.inf), (-math.inf, 2.0)],
)
def test_a_span_outside_of_its_video_is_refused(span: Span) -> None:
    with pytest.raises(ValueError, match=r"row 1 is labelled \S+ to \S+ s, but video 1 has 4 s"):
        spans_to_positives([[], [None, span]], [9, 4], 2, 9)


def test_labels_that_do_not_fit_the_matrix_are_refused() -> None:
    with pytest.raises(ValueError, match="video 0 has 3 rows and 4 s: more than 2 or 4 s"):
        spans_to_positives([[None] * 3], [4], 2, 4)
    with pytest.raises(ValueError, match="video 0 has 0 rows and 5 s: more than 2 or 4 s"):
        spans_to_positives([[]], [5], 2, 4)
    with pytest.raises(ValueError, match="zip"):
        spans_to_positives([[], []], [4], 2, 4)


def test_the_objectives_are_the_losses_of_what_there_is_to_learn() -> None:
    """TAN* averages its layers, VINA adds its two terms; a term without a matrix or labels is left out."""
    generator = torch.Generator().manual_seed(0)
    seconds_BT = mask_of(torch.tensor([5, 3]), 5)
    nv_BNT, earlier_BNT, sv_BST = (torch.rand(2, rows, 5, generator=generator) for rows in (4, 4, 3))
    narrations_BNT, steps_BST = (torch.rand(2, rows, 5, generator=generator) < 0.5 for rows in (4, 3))
    expected_nv_B = alignment_loss(nv_BNT, narrations_BNT, seconds_BT)
    expected_sv_B = alignment_loss(sv_BST, steps_BST, seconds_BT)

    both = vina_objective(Alignment(sv_BST, nv_BNT, None, seconds_BT, None), narrations_BNT, steps_BST)
    assert both.nv_B is not None and both.nv_B.equal(expected_nv_B)
    assert both.sv_B is not None and both.sv_B.equal(expected_sv_B)
    assert both.total_B.equal(expected_nv_B + expected_sv_B)
    for alignment, labels_BST, expected_B in (
        (Alignment(None, nv_BNT, None, seconds_BT, None), steps_BST, expected_nv_B),
        (Alignment(sv_BST, nv_BNT, None, seconds_BT, None), None, expected_nv_B),
        (Alignment(sv_BST, None, None, seconds_BT, None), steps_BST, expected_sv_B),
    ):
        losses = vina_objective(alignment, narrations_BNT, labels_BST)
        assert losses.total_B.equal(expected_B) and (losses.nv_B is None) != (losses.sv_B is None)

    tan = tan_objective(Alignment(None, nv_BNT, None, seconds_BT, None, (earlier_BNT,)), narrations_BNT, None)
    mean_B = (alignment_loss(earlier_BNT, narrations_BNT, seconds_BT) + expected_nv_B) / 2
    assert torch.allclose(tan.total_B, mean_B) and tan.nv_B is tan.total_B and tan.sv_B is None
