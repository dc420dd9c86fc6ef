"""Long videos: where windows lie, and that stitching neither shifts nor scales what an aligner says of a second."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vina_model.alignment import Alignment
from vina_model.batch import Batch, Texts
from vina_model.windows import align_in_windows, window_starts


def texts(*counts: int) -> Texts:
    return Texts(torch.ones(sum(counts), 1, dtype=torch.int64), torch.tensor(counts))


def video(num_seconds: int, padding: int = 0) -> Batch:
    """Each second's one feature is its own number; steps and narrations: 3 and 2."""
    seconds_T = torch.cat([torch.arange(num_seconds) + 1.0, torch.zeros(padding)])
    return Batch(seconds_T[None, :, None], torch.tensor([num_seconds]), texts(2), texts(3))


def content_alone(batch: Batch) -> Alignment:
    """Scores that depend on nothing but the second's content and the text's number."""
    assert batch.narrations is not None and batch.steps is not None
    steps_S, narrations_N = torch.arange(3.0), torch.arange(2.0)
    content_BT = batch.video_BTV[:, :, 0]
    return Alignment(
        sv_BST=content_BT[:, None, :] + 1000 * steps_S[:, None],
        nv_BNT=-content_BT[:, None, :] - 1000 * narrations_N[:, None],
        sn_BSN=content_BT.mean(1)[:, None, None] + torch.zeros(1, 3, 2),
        seconds_BT=batch.mask_BT,
        narrations_BN=batch.narrations.mask_BR,
    )


def whole(matrix: Tensor | None) -> Tensor:
    assert matrix is not None
    return matrix


@given(st.integers(1, 400), st.integers(1, 80), st.data())
@settings(max_examples=200, deadline=None)
def test_windows_cover_every_second_and_overlap_as_asked(num_seconds: int, window: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, window - 1))
    starts = window_starts(num_seconds, window, overlap)
    assert starts[0] == 0 and starts == sorted(set(starts))
    covered = {second for start in starts for second in range(start, min(start + window, num_seconds))}
    assert covered == set(range(num_seconds))
    if num_seconds <= window:
        assert starts == [0]
        return
    assert starts[-1] + window == num_seconds
    steps = [after - before for before, after in itertools.pairwise(starts)]
    assert all(step == window - overlap for step in steps[:-1]) and steps[-1] <= window - overlap


def test_where_the_windows_of_one_video_lie() -> None:
    assert window_starts(150, 64, 32) == [0, 32, 64, 86]
    assert window_starts(128, 64, 0) == [0, 64]
    assert window_starts(65, 64, 0) == [0, 1]
    assert window_starts(64, 64, 63) == [0]


@pytest.mark.parametrize("num_seconds", [3, 500])
@pytest.mark.parametrize(("window", "overlap"), [(64, 64), (64, -1), (0, 0)])
def test_an_overlap_without_progress_is_refused_whatever_the_length(
    num_seconds: int, window: int, overlap: int
) -> None:
    with pytest.raises(ValueError, match=f"windows of {window} s cannot overlap by {overlap} s"):
        align_in_windows(content_alone, video(num_seconds), window, overlap)


@given(st.integers(1, 90), st.integers(1, 30), st.integers(0, 40), st.data())
@settings(max_examples=100, deadline=None)
def test_a_score_of_content_alone_is_the_same_in_windows_and_whole(
    num_seconds: int, window: int, padding: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, window - 1))
    found, expected = (
        align_in_windows(content_alone, video(num_seconds, padding), window, overlap),
        content_alone(video(num_seconds)),
    )
    assert torch.allclose(whole(found.sv_BST), whole(expected.sv_BST), rtol=1e-6)
    assert torch.allclose(whole(found.nv_BNT), whole(expected.nv_BNT), rtol=1e-6)
    assert torch.equal(found.seconds_BT, expected.seconds_BT)
    assert found.narrations_BN is not None and found.narrations_BN.tolist() == [[True, True]]
    means = [start + min(window, num_seconds) / 2 + 0.5 for start in window_starts(num_seconds, window, overlap)]
    assert float(whole(found.sn_BSN)[0, 2, 1]) == pytest.approx(sum(means) / len(means), rel=1e-5)


def test_where_windows_overlap_their_scores_are_averaged() -> None:
    calls: list[float] = []

    def number_of_the_call(batch: Batch) -> Alignment:
        calls.append(float(len(calls)))
        plain = content_alone(batch)
        return Alignment(torch.full_like(whole(plain.sv_BST), calls[-1]), None, None, plain.seconds_BT, None)

    found = align_in_windows(number_of_the_call, video(7), window=4, overlap=2)
    assert calls == [0, 1, 2]  # seconds 0 to 3, 2 to 5, 3 to 6
    assert whole(found.sv_BST)[0, 1].tolist() == [0, 0, 0.5, 1, 1.5, 1.5, 2]
    assert found.nv_BNT is None and found.sn_BSN is None and found.narrations_BN is None and found.snv_BST is None


def test_padding_behind_a_short_video_is_no_reason_for_windows() -> None:
    def refuse_many_seconds(batch: Batch) -> Alignment:
        assert batch.video_BTV.shape[1] <= 10
        return content_alone(batch)

    found = align_in_windows(refuse_many_seconds, video(10, padding=90), window=10, overlap=5)
    assert whole(found.sv_BST).shape == (1, 3, 10)


def test_gradients_pass_through_the_windows() -> None:
    features = torch.ones(1, 9, 1, requires_grad=True)
    batch = Batch(features, torch.tensor([9]), texts(2), texts(3))
    whole(align_in_windows(content_alone, batch, 4, 2).sv_BST).sum().backward()
    assert features.grad is not None and torch.allclose(features.grad, torch.full((1, 9, 1), 3.0))


def test_a_long_video_in_company_is_refused() -> None:
    both = Batch(torch.zeros(2, 20, 1), torch.tensor([20, 5]), texts(1, 1), texts(2, 1))
    with pytest.raises(ValueError, match="a video of 20 s is longer than 16 s: give it a batch of its own"):
        align_in_windows(content_alone, both, 16, 8)
