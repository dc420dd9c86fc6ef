"""The transformer that TAN and VINA share: pre-norm blocks as CLIP has them, with its parameter names.

Chosen: `scaled_dot_product_attention` with a mask of keys, or none where a batch has no padding, which is the fastest
path of every device. Costs: padded queries are computed and thrown away; batches of similar length keep them few.
"""

# B videos, L tokens, D channels, H heads.

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class QuickGELU(nn.Module):
    """x sigmoid(1.702 x)."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply it to each element."""
        return x * torch.sigmoid(1.702 * x)


class Attention(nn.Module):
    """Multi-head self-attention with the parameter names of torch's own."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"a width of {width} cannot be shared by {heads} heads: choose a multiple")
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.in_proj_weight)
        nn.init.zeros_(self.out_proj.bias)

    def forward(self, x_BLD: Tensor, keys_BL: Tensor | None) -> Tensor:
        """Attend from each token to the tokens of `keys_BL`; to all of them where it is None."""
        packed = F.linear(x_BLD, self.in_proj_weight, self.in_proj_bias)
        q, k, v = packed.unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # type: ignore[no-untyped-call]
        mask = None if keys_BL is None else keys_BL[:, None, None, :]
        attended_BHLd = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out_proj(attended_BHLd.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """Two linear layers, four times as wide in the middle."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.gelu = QuickGELU()
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x_BLD: Tensor) -> Tensor:
        """Transform each token by itself."""
        return self.c_proj(self.gelu(self.c_fc(x_BLD)))


class Block(nn.Module):
    """Attention, then a feed-forward layer, each with a norm before it and a residual connection around it."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attn, self.ln_1 = Attention(width, heads), nn.LayerNorm(width)
        self.mlp, self.ln_2 = FeedForward(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BLD: Tensor, keys_BL: Tensor | None) -> Tensor:
        """Return the tokens after this block."""
        x_BLD = x_BLD + self.dropout(self.attn(self.ln_1(x_BLD), keys_BL))
        return x_BLD + self.dropout(self.mlp(self.ln_2(x_BLD)))


class Transformer(nn.Module):
    """A stack of blocks."""

    def __init__(self, width: int, layers: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))

    def forward(self, x_BLD: Tensor, keys_BL: Tensor) -> list[Tensor]:
        """Return the output of every block. `keys_BL` is true where there is a token, false where there is padding."""
        keys = None if bool(keys_BL.all()) else keys_BL
        outputs = []
        for block in self.resblocks:
            x_BLD = block(x_BLD, keys)
            outputs.append(x_BLD)
        return outputs
