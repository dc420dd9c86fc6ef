"""Videos longer than a model's context: windows with overlap, and their scores averaged where they overlap."""

# B = 1 video, T seconds, R texts.

from collections.abc import Callable

import torch
from torch import Tensor

from vina_model.alignment import Alignment
from vina_model.batch import Batch


def window_starts(num_seconds: int, window: int, overlap: int) -> list[int]:
    """Where windows begin: the last one ends with the video, all others are whole."""
    if not 0 <= overlap < window:
        raise ValueError(f"windows of {window} s cannot overlap by {overlap} s")
    if num_seconds <= window:
        return [0]
    return [*range(0, num_seconds - window, window - overlap), num_seconds - window]


def align_in_windows(align: Callable[[Batch], Alignment], batch: Batch, window: int, overlap: int) -> Alignment:
    """The matrices of a batch, as long as its longest video; one longer than the window must be alone in it."""
    num_seconds = int(batch.seconds_B.max())
    starts = window_starts(num_seconds, window, overlap)
    batch = batch.between(0, num_seconds)  # a window of padding alone would be no video
    if len(starts) == 1:
        return align(batch)
    if len(batch.video_BTV) != 1:
        raise ValueError(f"a video of {num_seconds} s is longer than {window} s: give it a batch of its own")
    parts = [align(batch.between(start, start + window)) for start in starts]
    sn = [part.sn_BSN for part in parts if part.sn_BSN is not None]
    return Alignment(
        sv_BST=_stitched([part.sv_BST for part in parts], starts, num_seconds),
        nv_BNT=_stitched([part.nv_BNT for part in parts], starts, num_seconds),
        sn_BSN=torch.stack(sn).mean(0) if sn else None,
        seconds_BT=batch.mask_BT,
        narrations_BN=parts[0].narrations_BN,
    )


def _stitched(parts: list[Tensor | None], starts: list[int], num_seconds: int) -> Tensor | None:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    total_BRT = known[0].new_zeros(*known[0].shape[:2], num_seconds)
    times_T = known[0].new_zeros(num_seconds)
    for part, start in zip(known, starts, strict=True):
        total_BRT[:, :, start : start + part.shape[2]] += part
        times_T[start : start + part.shape[2]] += 1
    return total_BRT / times_T
