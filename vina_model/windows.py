"""Videos longer than a model's context: windows that overlap, with the mean of their scores where they do."""

# B = 1 video, T seconds, R texts.

from collections.abc import Callable

import torch
from torch import Tensor

from vina_model.alignment import Alignment
from vina_model.batch import Batch


def window_starts(num_seconds: int, window: int, overlap: int) -> list[int]:
    """Return the first second of each window; the last one ends with the video, all have the same length."""
    if not 0 <= overlap < window:
        raise ValueError(f"windows of {window} s cannot overlap by {overlap} s")
    if num_seconds <= window:
        return [0]
    return [*range(0, num_seconds - window, window - overlap), num_seconds - window]


def align_in_windows(align: Callable[[Batch], Alignment], batch: Batch, window: int, overlap: int) -> Alignment:
    """Align a batch; a video that is longer than the window must be alone in it."""
    num_seconds = int(batch.seconds_B.max())
    starts = window_starts(num_seconds, window, overlap)
    batch = batch.between(0, num_seconds)  # a window of padding only would be refused
    if len(starts) == 1:
        return align(batch)
    if len(batch.video_BTV) != 1:
        raise ValueError(f"a video of {num_seconds} s is longer than {window} s: give it a batch of its own")
    windows = [align(batch.between(start, start + window)) for start in starts]
    sn = [alignment.sn_BSN for alignment in windows if alignment.sn_BSN is not None]
    return Alignment(
        sv_BST=_stitched([alignment.sv_BST for alignment in windows], starts, num_seconds),
        nv_BNT=_stitched([alignment.nv_BNT for alignment in windows], starts, num_seconds),
        sn_BSN=torch.stack(sn).mean(0) if sn else None,
        seconds_BT=batch.mask_BT,
        narrations_BN=windows[0].narrations_BN,
    )


def _stitched(windows: list[Tensor | None], starts: list[int], num_seconds: int) -> Tensor | None:
    """Return the mean over the windows that hold each second; None if the model has no such matrix."""
    matrices = [matrix_BRT for matrix_BRT in windows if matrix_BRT is not None]
    if not matrices:
        return None
    total_BRT = matrices[0].new_zeros(*matrices[0].shape[:2], num_seconds)
    counts_T = matrices[0].new_zeros(num_seconds)
    for matrix_BRT, start in zip(matrices, starts, strict=True):
        total_BRT[:, :, start : start + matrix_BRT.shape[2]] += matrix_BRT
        counts_T[start : start + matrix_BRT.shape[2]] += 1
    return total_BRT / counts_T
