"""Step segments from rows of an alignment matrix: a blob detector over time and scale, then non-maximum suppression.

Chosen: the Laplacian of Gaussian, scaled so that a plateau of half-width w has its largest response at scale w, equal
to its height above its surroundings. This contrast is the score: noise on a long plateau is higher than the plateau
but stands out less. Drawback: the edges of a plateau respond too, with half its height. Filters are products of
spectra, on many rows at once; the tests compare them with a plain loop.
"""

# B videos, S steps, T seconds; N rows, the steps of all videos; K scales, L seconds of a filter, F frequencies;
# C candidates and D detections of a row.

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from vina_model.alignment import mask_of, precise

NUM_SCALES = 20
RATIO = 2 ** (1 / 3)
"""Scales are half-widths of 1 s and on by this ratio, up to 81 s; a parabola interpolates between them."""
LIMIT = 16
THRESHOLD = 0.5
CANDIDATES = 8
"""Number of strongest candidates of a row that are kept for each requested detection."""
FAINT = 1e-3
"""Responses below this share of the strongest of their row may be rounding errors, and are dropped."""
NUMBERS_AT_ONCE = 2**21
"""Most numbers in one product of spectra; more rows are computed in several passes, to bound the memory."""


class DetectedSegments(NamedTuple):
    """Segments of every row, B x S x D each, best first; zeros where there is none."""

    starts: Tensor
    """Seconds on the video's clock: second t of the row is from t to t + 1."""
    ends: Tensor
    scores: Tensor
    """How much higher the row is in the segment than around it."""
    mask: Tensor
    """True where there is a segment."""


@torch.no_grad()
def detect(
    scores_BST: Tensor, seconds_BT: Tensor, limit: int = LIMIT, threshold: float = THRESHOLD
) -> DetectedSegments:
    """Return at most `limit` segments of each row, no two with an IoU above the threshold, all within their video.

    A row without a response has its highest second, with score 0: every row of a video with a second has a segment.
    """
    lengths_B = seconds_BT.sum(1)
    if not seconds_BT.equal(mask_of(lengths_B, seconds_BT.shape[1])):
        raise ValueError("the seconds of a video must be the first places of its row, and all others padding")
    rows_BST = precise(scores_BST).masked_fill(~seconds_BT[:, None, :], 0)
    if not bool(rows_BST.isfinite().all()):
        video, step, second = (~rows_BST.isfinite()).nonzero()[0].tolist()
        raise ValueError(f"the score of step {step} at second {second} of video {video} is not finite")
    if not rows_BST.numel():
        none_BSD = rows_BST.new_zeros(*rows_BST.shape[:2], limit)
        return DetectedSegments(none_BSD, none_BSD, none_BSD, none_BSD.bool())
    rows_NT, lengths_N = rows_BST.flatten(0, 1), lengths_B.repeat_interleave(rows_BST.shape[1])
    spectra_KF = _spectra(rows_NT)
    size = max(1, NUMBERS_AT_ONCE // (2 * spectra_KF.numel()))
    blocks = []
    for rows, lengths in zip(torch.split(rows_NT, size), torch.split(lengths_N, size), strict=True):
        candidates = _candidates(rows, lengths, spectra_KF, CANDIDATES * limit)
        kept_NC = suppress(*candidates, threshold, limit)
        blocks.append(_first(candidates, kept_NC, limit))
    return DetectedSegments(
        *(torch.cat(column).reshape(*rows_BST.shape[:2], limit) for column in zip(*blocks, strict=True))
    )


def suppress(
    starts: Tensor, ends: Tensor, scores: Tensor, mask: Tensor, threshold: float = THRESHOLD, limit: int | None = None
) -> Tensor:
    """Return a mask of the segments of each row, the last dimension, that stay: the best by score, and so on.

    Of equal scores the first wins. Each removes all that have an IoU above the threshold with it; after `limit` of
    them the rest is removed too.
    """
    kept, left, lengths = torch.zeros_like(mask), mask.clone(), ends - starts
    for _ in range(mask.shape[-1] if limit is None else limit):
        if not bool(left.any()):
            break
        best = scores.masked_fill(~left, -torch.inf).argmax(-1, keepdim=True)  # the first of equal ones
        kept.scatter_(-1, best, kept.gather(-1, best) | left.gather(-1, best))
        shared = torch.minimum(ends, ends.gather(-1, best)) - torch.maximum(starts, starts.gather(-1, best))
        left &= ~(shared / (lengths + lengths.gather(-1, best) - shared) > threshold)
        left.scatter_(-1, best, False)
    return kept


def _spectra(rows_NT: Tensor) -> Tensor:
    """Return the spectra of the filters, K x F: the response at each scale to a second at some distance.

    At distance x from its middle, a step down has the response x / 2s exp((1 - (x/s)^2) / 2) at scale s; a second is a
    step up and a step down. Filters are twice as long as the rows, so that nothing wraps around.
    """
    num_lags = -(-2 * rows_NT.shape[1] // 128) * 128  # a length whose transform is fast
    numbers_L = torch.arange(num_lags, dtype=torch.float64)  # on the CPU: some devices have no float64
    lags_L = torch.minimum(numbers_L, num_lags - numbers_L)
    scales_K = RATIO ** torch.arange(NUM_SCALES, dtype=torch.float64)
    after_KL, before_KL = ((lags_L + side) / scales_K[:, None] for side in (0.5, -0.5))
    after_KL, before_KL = (x_KL / 2 * torch.exp((1 - x_KL**2) / 2) for x_KL in (after_KL, before_KL))
    spectra_KF: Tensor = torch.fft.rfft(after_KL - before_KL).real  # of what is even, it is real
    return spectra_KF.to(rows_NT)


def _responses(rows_NT: Tensor, seconds_NT: Tensor, spectra_KF: Tensor) -> Tensor:
    """Return each second's response at each scale, N x K+2 x T+2, in a frame of -inf; padding is -inf too."""
    medians_N = rows_NT.masked_fill(~seconds_NT, torch.nan).nanmedian(1).values
    levelled_NT = (rows_NT - medians_N[:, None]).masked_fill(~seconds_NT, 0)
    num_lags, num_seconds = 2 * (spectra_KF.shape[1] - 1), rows_NT.shape[1]
    spectrum_NF = torch.fft.rfft(levelled_NT, num_lags)
    responses_NKL = torch.fft.irfft(spectrum_NF[:, None] * spectra_KF, num_lags)
    framed = rows_NT.new_full((len(rows_NT), NUM_SCALES + 2, num_seconds + 2), -torch.inf)
    outside_NT = torch.zeros_like(rows_NT).masked_fill(~seconds_NT, -torch.inf)
    framed[:, 1:-1, 1:-1] = responses_NKL[..., :num_seconds] + outside_NT[:, None]
    return framed


def _candidates(rows_NT: Tensor, lengths_N: Tensor, spectra_KF: Tensor, limit: int) -> DetectedSegments:
    """Return the local maxima of the response in time and scale, N x C, the strongest first.

    The last column is the highest second, for rows that have no maximum.
    """
    seconds_NT = mask_of(lengths_N, rows_NT.shape[1])
    framed = _responses(rows_NT, seconds_NT, spectra_KF)
    strengths_NC, scales_NC, times_NC = _strongest_peaks(framed, limit)
    centres_NC = times_NC + 0.5 + _vertices(framed, scales_NC, times_NC, 0, 1)
    halves_NC = RATIO ** (scales_NC + _vertices(framed, scales_NC, times_NC, 1, 0))
    lengths_N1, is_peak_NC = lengths_N[:, None], strengths_NC > 0
    highest_N1 = rows_NT.masked_fill(~seconds_NT, -torch.inf).argmax(1, keepdim=True)
    columns = (
        ((centres_NC - halves_NC).clamp(min=0), highest_N1),
        ((centres_NC + halves_NC).minimum(lengths_N1), highest_N1 + 1),
        (strengths_NC, torch.zeros_like(highest_N1)),
        (is_peak_NC, ~is_peak_NC.any(1, keepdim=True) & (lengths_N1 > 0)),
    )
    return DetectedSegments(*(torch.cat(column, 1) for column in columns))


def _strongest_peaks(framed: Tensor, limit: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return at most `limit` responses of each row, their scales and their seconds, N x C; -inf where there is none."""
    responses_NKT = framed[:, 1:-1, 1:-1]
    highest = torch.maximum(torch.maximum(framed[..., :-2], framed[..., 2:]), framed[..., 1:-1])
    highest_NKT = torch.maximum(torch.maximum(highest[:, :-2], highest[:, 2:]), highest[:, 1:-1])
    least_N = FAINT * responses_NKT.amax((1, 2)).clamp(min=0)
    peaks_NKT = (responses_NKT == highest_NKT) & (responses_NKT > least_N[:, None, None])
    strengths_NP = torch.where(peaks_NKT, responses_NKT, -torch.inf).flatten(1)
    strengths_NC, cells_NC = strengths_NP.topk(min(limit, strengths_NP.shape[1]), 1)
    num_seconds = responses_NKT.shape[2]
    return strengths_NC, cells_NC // num_seconds, cells_NC % num_seconds


def _vertices(framed: Tensor, scales_NC: Tensor, times_NC: Tensor, scale: int, time: int) -> Tensor:
    """Return where each peak's parabola is highest, -1/2 to 1/2 of a step from it; 0 where a neighbour is the frame."""
    rows_N1 = torch.arange(len(framed), device=framed.device)[:, None]
    before, at_peak, after = (
        framed[rows_N1, scales_NC + 1 + side * scale, times_NC + 1 + side * time] for side in (-1, 0, 1)
    )
    return torch.nan_to_num((before - after) / (2 * (before - 2 * at_peak + after)), 0, 0, 0)


def _first(candidates: DetectedSegments, kept_NC: Tensor, limit: int) -> DetectedSegments:
    """Move the kept segments to the front, in the same order, and fill the rest of N x D with zeros."""
    order_NC = kept_NC.byte().argsort(dim=1, descending=True, stable=True)
    spare = limit - kept_NC.shape[1]
    return DetectedSegments(
        *(F.pad(part.masked_fill(~kept_NC, 0).gather(1, order_NC), (0, spare)) for part in candidates)
    )
