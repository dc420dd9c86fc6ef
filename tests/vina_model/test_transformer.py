"""The shared transformer against torch's own attention, and the promise that padding is never looked at."""

import pytest
import torch
from torch import Tensor, nn

from vina_model.alignment import mask_of
from vina_model.transformer import Attention, Block, QuickGELU, Transformer

WIDTH, HEADS = 12, 3


@pytest.fixture(autouse=True)
def a_seed() -> None:
    torch.manual_seed(0)


def distance(a: Tensor, b: Tensor) -> float:
    assert a.shape == b.shape
    return float((a - b).detach().abs().max())


def test_attention_is_that_of_torch_with_the_same_names_and_weights() -> None:
    ours, theirs = Attention(WIDTH, HEADS), nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    nn.init.normal_(ours.in_proj_bias)
    nn.init.normal_(ours.out_proj.bias)
    theirs.load_state_dict(ours.state_dict())
    x_BLD, keys_BL = torch.randn(3, 7, WIDTH), mask_of(torch.tensor([7, 1, 4]), 7)
    expected_BLD, _ = theirs(x_BLD, x_BLD, x_BLD, key_padding_mask=~keys_BL)
    assert distance(ours(x_BLD, keys_BL), expected_BLD) < 1e-6
    expected_BLD, _ = theirs(x_BLD, x_BLD, x_BLD)
    assert distance(ours(x_BLD, None), expected_BLD) < 1e-6


def test_a_mask_of_everything_is_no_mask() -> None:
    attention, x_BLD = Attention(WIDTH, HEADS), torch.randn(2, 5, WIDTH)
    assert distance(attention(x_BLD, torch.ones(2, 5, dtype=torch.bool)), attention(x_BLD, None)) < 1e-6


def test_padded_tokens_change_no_other_token() -> None:
    encoder, lengths = Transformer(WIDTH, 2, HEADS), [6, 2, 1]
    x_BLD, keys_BL = torch.randn(3, 6, WIDTH), mask_of(torch.tensor(lengths), 6)
    padded = encoder(x_BLD, keys_BL)
    other = encoder(torch.where(keys_BL[:, :, None], x_BLD, 1e3), keys_BL)
    for video, length in enumerate(lengths):
        alone = encoder(x_BLD[video : video + 1, :length], torch.ones(1, length, dtype=torch.bool))
        for layer in range(2):
            assert distance(padded[layer][video, :length], alone[layer][0]) < 1e-5
            assert distance(padded[layer][video, :length], other[layer][video, :length]) < 1e-6


def test_every_block_gives_an_output_and_the_last_is_the_deepest() -> None:
    encoder, keys_BL = Transformer(WIDTH, 3, HEADS), torch.ones(2, 4, dtype=torch.bool)
    x_BLD = torch.randn(2, 4, WIDTH)
    outputs = encoder(x_BLD, keys_BL)
    for block, output_BLD in zip(encoder.resblocks, outputs, strict=True):
        x_BLD = block(x_BLD, None)
        assert distance(x_BLD, output_BLD) == 0
    assert distance(outputs[0], outputs[2]) > 0.01


def test_a_block_is_attention_and_a_feed_forward_layer_each_behind_its_norm() -> None:
    block, x_BLD = Block(WIDTH, HEADS, dropout=0.0), torch.randn(2, 4, WIDTH)
    nn.init.normal_(block.ln_1.weight)
    nn.init.normal_(block.ln_2.bias)
    middle_BLD = x_BLD + block.attn(block.ln_1(x_BLD), None)
    hidden_BLF = block.mlp.c_fc(block.ln_2(middle_BLD))
    assert hidden_BLF.shape[2] == 4 * WIDTH
    expected_BLD = middle_BLD + block.mlp.c_proj(hidden_BLF / (1 + torch.exp(-1.702 * hidden_BLF)))
    assert distance(block(x_BLD, None), expected_BLD) < 1e-6
    assert float(QuickGELU()(torch.tensor(2.0))) == pytest.approx(2 / (1 + 2.718281828459045**-3.404), abs=1e-6)


def test_dropout_is_for_training_alone() -> None:
    encoder, keys_BL = Transformer(WIDTH, 2, HEADS, dropout=0.5), torch.ones(1, 4, dtype=torch.bool)
    x_BLD = torch.randn(1, 4, WIDTH)
    assert distance(encoder(x_BLD, keys_BL)[-1], encoder(x_BLD, keys_BL)[-1]) > 0
    encoder.eval()
    assert distance(encoder(x_BLD, keys_BL)[-1], encoder(x_BLD, keys_BL)[-1]) == 0


def test_a_width_that_heads_cannot_share_is_refused() -> None:
    with pytest.raises(ValueError, match="a width of 10 cannot be shared by 3 heads"):
        Attention(10, 3)
