"""Segments of planted plateaus, and the detector, vectorised, against a slow one that takes rows one by one."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.vina_model.slow_detection import Segment, overlap, slow_detect, slow_suppress
from vina_model import detection
from vina_model.alignment import mask_of
from vina_model.detection import (
    CANDIDATES,
    FAINT,
    LIMIT,
    NUM_SCALES,
    RATIO,
    THRESHOLD,
    DetectedSegments,
    detect,
    suppress,
)

WIDTHS = (3, 4, 5, 8, 13, 20, 31, 45, 60, 90, 120)
SCALES = [RATIO**number for number in range(NUM_SCALES)]
LENGTH = 600


def detect_rows(rows_ST: Tensor) -> list[list[Segment]]:
    """Of one video without padding."""
    return segments_of(detect(rows_ST[None], torch.ones(1, rows_ST.shape[1], dtype=torch.bool)))[0]


def segments_of(found: DetectedSegments) -> list[list[list[Segment]]]:
    """For each row of each video."""
    numbers = torch.stack([part.double() for part in found[:3]], 3).tolist()
    return [
        [
            [Segment(*place) for place, there in zip(row, flags, strict=True) if there]
            for row, flags in zip(video, video_flags, strict=True)
        ]
        for video, video_flags in zip(numbers, found.mask.tolist(), strict=True)
    ]


def planted(plateaus: list[tuple[int, int, float]], level: float, noise: float, seed: int) -> Tensor:
    """A row with a plateau [start, start + width) of some height above the level, for each."""
    row_T = torch.full((LENGTH,), level, dtype=torch.float32)
    for start, width, height in plateaus:
        row_T[start : start + width] += height
    return row_T + noise * torch.randn(LENGTH, generator=torch.Generator().manual_seed(seed))


def assert_near(found: Segment, start: int, width: int, centre_s: float, length_s: float) -> None:
    assert abs((found.start + found.end) / 2 - start - width / 2) <= centre_s, found
    assert abs(found.end - found.start - width) <= length_s, found


@pytest.mark.parametrize("width", WIDTHS)
def test_a_plateau_is_found_with_its_height(width: int) -> None:
    starts = [30, 101, 250, LENGTH - 30 - width]
    rows_ST = torch.stack([planted([(start, width, 0.4)], level, 0, 0) for start in starts for level in (-0.3, 0.2)])
    for row, found in enumerate(detect_rows(rows_ST)):
        assert_near(found[0], starts[row // 2], width, centre_s=0.01, length_s=0.05 * width)
        assert found[0].score == pytest.approx(0.4, rel=0.07)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_plateau_is_found_in_noise(width: int) -> None:
    """The noise is an eighth of the height: centres within half a second and 2 %, lengths within a second and 8 %."""
    starts = [30 + 17 * seed for seed in range(24)]
    rows_ST = torch.stack([planted([(start, width, 0.4)], 0.2, 0.05, seed) for seed, start in enumerate(starts)])
    for start, found in zip(starts, detect_rows(rows_ST), strict=True):
        assert_near(found[0], start, width, centre_s=0.5 + 0.02 * width, length_s=1 + 0.08 * width)
        assert found[0].score == pytest.approx(0.4, abs=0.12)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_plateau_that_touches_an_end_is_found(width: int, noise: float) -> None:
    starts = [0, LENGTH - width] * 8
    rows_ST = torch.stack([planted([(start, width, 0.4)], -0.1, noise, seed) for seed, start in enumerate(starts)])
    for start, found in zip(starts, detect_rows(rows_ST), strict=True):
        assert_near(found[0], start, width, centre_s=1 + 0.04 * width, length_s=1 + 0.1 * width)


@pytest.mark.parametrize("seed", range(8))
def test_several_plateaus_of_a_row_come_in_the_order_of_their_heights(seed: int) -> None:
    """Those less than half as high as the highest would come after its edges."""
    plateaus = [(440, 90, 0.8), (20, 5, 0.7), (250, 60, 0.6), (120, 20, 0.5)]
    (found,) = detect_rows(planted(plateaus, 0.1, 0.03, seed)[None])
    for segment, (start, width, _) in zip(found[:4], plateaus, strict=True):
        assert_near(segment, start, width, centre_s=0.5 + 0.03 * width, length_s=1 + 0.1 * width)


def test_a_long_plateau_and_the_short_one_on_top_of_it_are_both_found() -> None:
    (found,) = detect_rows(planted([(200, 100, 0.4), (244, 6, 0.4)], 0, 0, 0)[None])
    near = sorted(found[:2], key=lambda segment: segment.end - segment.start)
    assert_near(near[0], 244, 6, centre_s=0.1, length_s=1)
    assert_near(near[1], 200, 100, centre_s=1, length_s=10)


def rows_of(kind: str, shape: tuple[int, ...], seed: int) -> Tensor:
    """Noise, a random walk, or plateaus in noise; float64."""
    noise = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    if kind == "walk":
        return noise.cumsum(-1) / 10
    return noise / 10 if kind == "noise" else noise / 20 + (noise.cumsum(-1) / 4).sin().round() / 2


@pytest.mark.parametrize("kind", ["noise", "walk", "plateaus"])
@pytest.mark.parametrize(("limit", "threshold"), [(LIMIT, THRESHOLD), (3, 0.1), (40, 0.8)])
def test_detections_are_those_of_a_slow_loop(kind: str, limit: int, threshold: float) -> None:
    lengths = torch.tensor([150, 61, 17, 5, 2])
    rows_BST = rows_of(kind, (5, 2, 150), limit)
    found = segments_of(detect(rows_BST, mask_of(lengths, 150), limit, threshold))
    for video, length in enumerate(lengths.tolist()):
        for row_T, ours in zip(rows_BST[video, :, :length].numpy(), found[video], strict=True):
            plain = slow_detect(row_T, SCALES, limit, threshold, CANDIDATES * limit, FAINT)
            np.testing.assert_allclose(np.array(ours), np.array(plain), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["noise", "walk", "plateaus"])
def test_a_batch_gives_what_each_video_alone_does(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = torch.tensor([301, 1, 640, 77, 0, 2])
    rows_BST, seconds_BT = rows_of(kind, (6, 3, 700), 1), mask_of(lengths, 700)
    rows_BST[~seconds_BT[:, None].expand_as(rows_BST)] = torch.nan
    together = detect(rows_BST, seconds_BT)
    monkeypatch.setattr(detection, "NUMBERS_AT_ONCE", 1)
    row_by_row = detect(rows_BST, seconds_BT)
    for part, other in zip(together, row_by_row, strict=True):
        torch.testing.assert_close(part, other, rtol=0, atol=1e-6)
    for video, length in enumerate(lengths.tolist()):
        alone = detect(rows_BST[video : video + 1, :, :length], seconds_BT[video : video + 1, :length])
        for part, other in zip(together, alone, strict=True):
            torch.testing.assert_close(part[video : video + 1], other, rtol=0, atol=1e-6)


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Rows of few distinct scores, of any, or of waves, and lengths; the padding is not finite."""
    lengths = draw(st.lists(st.integers(0, 40), min_size=1, max_size=3))
    num_steps, num_seconds = draw(st.integers(0, 3)), max(lengths) + draw(st.integers(0, 3))
    few = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0])
    score = draw(st.sampled_from([few, st.floats(-1, 1, width=32), st.just(-1.0)]))
    flat = draw(st.lists(score, min_size=(n := len(lengths) * num_steps * num_seconds), max_size=n))
    rows_BST = torch.tensor(flat, dtype=torch.float32).reshape(len(lengths), num_steps, num_seconds)
    seconds_BT = mask_of(torch.tensor(lengths), num_seconds)
    return rows_BST.masked_fill(~seconds_BT[:, None], torch.nan), seconds_BT


@given(matrices(), st.integers(1, 30), st.floats(0, 1))
@settings(max_examples=150, deadline=None)
def test_what_always_holds(case: tuple[Tensor, Tensor], limit: int, threshold: float) -> None:
    rows_BST, seconds_BT = case
    found = detect(rows_BST, seconds_BT, limit, threshold)
    assert all(part.shape == (*rows_BST.shape[:2], limit) for part in found)
    assert all(part.isfinite().all() and not part[~found.mask].any() for part in found)
    for rows, length in zip(segments_of(found), seconds_BT.sum(1).tolist(), strict=True):
        for row in rows:
            assert bool(row) == bool(length)
            assert all(0 <= segment.start < segment.end <= length for segment in row)
            assert all(one.score >= other.score >= 0 for one, other in pairwise(row))
            near = [overlap(one, other) for place, one in enumerate(row) for other in row[:place]]
            assert all(iou <= threshold + 1e-5 for iou in near)


def test_a_row_that_is_higher_or_steeper_has_the_same_segments() -> None:
    rows_ST = rows_of("walk", (4, 300), 0)
    for one, other in zip(detect_rows(rows_ST), detect_rows(3 * rows_ST + 7), strict=True):
        for segment, same in zip(one, other, strict=True):
            expected = (segment.start, segment.end, 3 * segment.score)
            assert same == pytest.approx(expected, abs=1e-6)


@st.composite
def segment_rows(draw: st.DrawFn) -> list[list[tuple[Segment, bool]]]:
    """Few distinct ends and scores: many are equal, within another, touching, or empty."""
    number = st.integers(0, 12)
    segment = st.tuples(number, number, st.integers(0, 4)).map(
        lambda drawn: Segment(min(drawn[:2]), max(drawn[:2]), drawn[2] / 4)
    )
    size = draw(st.integers(1, 14))
    rows = st.lists(st.tuples(segment, st.booleans()), min_size=size, max_size=size)
    return draw(st.lists(rows, min_size=1, max_size=4))


@given(segment_rows(), st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]), st.sampled_from([None, 1, 3]))
@settings(max_examples=200, deadline=None)
def test_suppression_is_that_of_a_plain_loop(
    rows: list[list[tuple[Segment, bool]]], threshold: float, limit: int | None
) -> None:
    numbers = torch.tensor([[segment for segment, _ in row] for row in rows], dtype=torch.float64)
    there = torch.tensor([[flag for _, flag in row] for row in rows])
    kept = suppress(numbers[..., 0], numbers[..., 1], numbers[..., 2], there, threshold, limit)
    for row, flags in zip(rows, kept.tolist(), strict=True):
        places = [place for place, (_, flag) in enumerate(row) if flag]
        plain = slow_suppress([row[place][0] for place in places], threshold)[:limit]
        assert sorted(places[place] for place in plain) == [place for place, flag in enumerate(flags) if flag]


def test_suppression_by_hand() -> None:
    starts, ends = torch.tensor([0.0, 1, 0, 4, 0, 8]), torch.tensor([4.0, 4, 2, 8, 4, 8.5])
    scores = torch.tensor([0.5, 0.4, 0.4, 0.4, 0.5, 0.9])
    there = torch.tensor([True, True, True, True, True, False])
    # The second has 3/4 of the first, the third just half, the fourth touches it, the fifth is its double.
    assert suppress(starts, ends, scores, there, 0.5).tolist() == [True, False, True, True, False, False]
    assert suppress(starts, ends, scores, there, 0.49).tolist() == [True, False, False, True, False, False]
    assert suppress(starts, ends, scores, there, 0.5, limit=2).tolist() == [True, False, True, False, False, False]


@pytest.mark.parametrize(
    ("row", "segment"),
    [
        ([0.3], (0, 1, 0)),
        ([-1.0], (0, 1, 0)),
        ([0.2, 0.2], (0, 1, 0)),
        ([-1.0] * 50, (0, 1, 0)),
        ([0.1] * 300, (0, 1, 0)),
    ],
)
def test_a_row_without_contrast_has_its_first_second(row: list[float], segment: tuple[float, ...]) -> None:
    ((found,),) = detect_rows(torch.tensor([row]))
    assert found == pytest.approx(segment)


@pytest.mark.parametrize("row", [[0.1, 0.6], [0.6, 0.1]])
def test_of_two_seconds_the_higher_one_is_in_the_middle(row: list[float]) -> None:
    ((found,),) = detect_rows(torch.tensor([row]))
    assert 0 < found.score < 0.5
    assert (found.start, found.end) == ((0, 1.5) if row[0] > row[1] else (0.5, 2))


@pytest.mark.parametrize("second", [0, 1, 57, 98, 99])
def test_a_spike_is_the_middle_of_the_only_segment_and_rounding_is_none(second: int) -> None:
    row_T = torch.full((100,), -0.2)
    row_T[second] = 0.8
    ((found,),) = detect_rows(row_T[None])
    assert found[:2] == pytest.approx((max(0, second - 0.5), min(100, second + 1.5)))
    # The shortest scale, 1 s, is twice a second's half-width.
    assert found.score == pytest.approx(0.5 * math.exp(0.375))


@pytest.mark.parametrize("shape", [(0, 3, 5), (2, 0, 5), (2, 3, 0), (0, 0, 0)])
def test_nothing_has_no_detections(shape: tuple[int, int, int]) -> None:
    found = detect(torch.zeros(shape), torch.ones(shape[0], shape[2], dtype=torch.bool), limit=4)
    assert all(part.shape == (*shape[:2], 4) for part in found) and not found.mask.any()


@pytest.mark.parametrize(("dtype", "within"), [(torch.float16, 0.1), (torch.float32, 1e-3), (torch.float64, 0)])
def test_every_precision_is_taken(dtype: torch.dtype, within: float) -> None:
    rows_BST = torch.stack([planted([(50 * n, 7 * n, 0.4)], 0.1, 0.03, n) for n in range(1, 7)])[None].double()
    seconds_BT = torch.ones(1, LENGTH, dtype=torch.bool)
    exact, found = detect(rows_BST, seconds_BT), detect(rows_BST.to(dtype).requires_grad_(), seconds_BT)
    assert found.starts.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert not any(part.requires_grad for part in found)
    for part, other in zip(found[:3], exact[:3], strict=True):
        assert (part[:, :, 0].double() - other[:, :, 0]).abs().max() <= within


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite_are_refused(wrong: float) -> None:
    rows_BST = torch.zeros(2, 3, 8)
    rows_BST[1, 2, 5] = wrong
    with pytest.raises(ValueError, match="step 2 at second 5 of video 1 is not finite"):
        detect(rows_BST, mask_of(torch.tensor([8, 6]), 8))
    assert detect(rows_BST, mask_of(torch.tensor([8, 5]), 8)).mask.sum() == 6


def test_padding_within_a_video_is_refused() -> None:
    with pytest.raises(ValueError, match="first places"):
        detect(torch.zeros(1, 1, 3), torch.tensor([[True, False, True]]))


def test_the_scores_given_are_left_as_they_were() -> None:
    scores_BST = torch.rand(2, 3, 40)
    before_BST = scores_BST.clone()
    detect(scores_BST, mask_of(torch.tensor([40, 2]), 40))
    assert torch.equal(scores_BST, before_BST)
