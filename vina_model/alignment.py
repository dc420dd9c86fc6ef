"""Alignment matrices: how similar each text is to each second, by the direct and by the indirect pathway."""

# B videos, T seconds, N narrations, S steps, D channels, R rows of any text.

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

XI = 0.07
"""Temperature of the softmax over a video's narrations."""


def precise(x: Tensor) -> Tensor:
    """Return the tensor in float32; float64 stays."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def cosine(rows_BRD: Tensor, columns_BCD: Tensor) -> Tensor:
    """Return cosine similarities B x R x C, in float32 (float64 stays), also under autocast."""
    with torch.autocast(rows_BRD.device.type, enabled=False):
        rows, columns = F.normalize(precise(rows_BRD), dim=-1), F.normalize(precise(columns_BCD), dim=-1)
        return rows @ columns.transpose(1, 2)


def mask_of(lengths_B: Tensor, size: int) -> Tensor:
    """Return a mask B x size, true in the first `length` columns of each row."""
    return torch.arange(size, device=lengths_B.device) < lengths_B[:, None]


def indirect_pathway(sn_BSN: Tensor, nv_BNT: Tensor, narrations_BN: Tensor) -> Tensor:
    """Return A^SNV = softmax_n(A^SN / xi) A^NV without padded narrations; zeros where a video has no narration."""
    absent_B1N = ~narrations_BN[:, None, :]
    with torch.autocast(sn_BSN.device.type, enabled=False):
        logits_BSN = (sn_BSN / XI).masked_fill(absent_B1N, torch.finfo(sn_BSN.dtype).min)
        return logits_BSN.softmax(2).masked_fill(absent_B1N, 0) @ nv_BNT


@dataclass(frozen=True)
class Alignment:
    """The matrices of a batch, padded: values beyond a video's seconds or texts mean nothing.

    A matrix is None where the model was not given its rows or its columns.
    """

    sv_BST: Tensor | None
    nv_BNT: Tensor | None
    sn_BSN: Tensor | None
    seconds_BT: Tensor
    """True where the video has a second."""
    narrations_BN: Tensor | None
    """True where the video has a narration."""
    earlier_nv: tuple[Tensor, ...] = ()
    """`nv_BNT` of the earlier layers, for models that train all layers."""

    @property
    def snv_BST(self) -> Tensor | None:
        """Steps to seconds by the indirect pathway, through the narrations."""
        if self.sn_BSN is None or self.nv_BNT is None or self.narrations_BN is None:
            return None
        return indirect_pathway(self.sn_BSN, self.nv_BNT, self.narrations_BN)

    @property
    def fused_BST(self) -> Tensor | None:
        """Mean of both pathways; the direct one for videos without narrations."""
        snv_BST = self.snv_BST
        if self.sv_BST is None or snv_BST is None or self.narrations_BN is None:
            return self.sv_BST
        is_narrated_B11 = self.narrations_BN.any(1)[:, None, None]
        return torch.where(is_narrated_B11, (self.sv_BST + snv_BST) / 2, self.sv_BST)
