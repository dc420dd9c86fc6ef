"""S3D's video tower for extraction: equal to the plain one to 1e-4, at 1.9 clips per second and core, not 0.8.

Chosen by measurement (16 x 224 x 224, float32, AVX2; 94 % of matmul's speed): batch norm folded into the weights;
activations stored B x T x H x W x C, so that each convolution and pool is a 2-d one on a view, over space or over time;
CPUs take a batch 0.8 megapixels at a time (9 to 25 % faster than whole). torch.compile and fused ReLU gained nothing.
Costs: inference only; CUDA's float16 rounds features by 1e-3 (not run on a GPU). On busy cores use one thread.
"""

# B clips, T frames, H height, W width, C channels, O channels out, P = H x W positions, N = B x T frames,
# D = 1024 features, E = 512 joint text-video dimensions.

import copy
import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vina_model.s3d import INCEPTION_BLOCKS, S3D, Convolution, InceptionBlock, SelfGating, VideoOutput, check_clips

CPU_PIXELS_AT_ONCE = 16 * 224 * 224
# Devices not named compute in float32. bfloat16 would round features eight times as coarsely.
AUTOCAST_DTYPES = {"cuda": torch.float16}


def over_space(layer: Callable[[Tensor], Tensor], x_BTHWC: Tensor) -> Tensor:
    """Apply a 2-d layer to every frame."""
    y_NCHW = layer(x_BTHWC.flatten(0, 1).permute(0, 3, 1, 2))
    return torch.unflatten(y_NCHW.permute(0, 2, 3, 1), 0, x_BTHWC.shape[:2])


def over_time(layer: Callable[[Tensor], Tensor], x_BTHWC: Tensor) -> Tensor:
    """Apply a 2-d layer to images of T x P: its kernel is (frames, 1)."""
    y_BCTP = layer(x_BTHWC.flatten(2, 3).permute(0, 3, 1, 2))
    return torch.unflatten(y_BCTP.permute(0, 2, 3, 1), 2, x_BTHWC.shape[2:4])


def same_max_pool(x_BTHWC: Tensor, kernel: tuple[int, int, int]) -> Tensor:
    """Max-pool non-negative values with TensorFlow's 'SAME' padding, stride 2 where the kernel is wider than 1.

    No value is below the zeros of the padding, so ceil mode's partial windows do without them. It leaves out the
    last window of width 3 over an odd size, which holds one value: there a zero is added.
    """
    far_t, far_h, far_w = (
        size % 2 if width == 3 else 0 for width, size in zip(kernel, x_BTHWC.shape[1:4], strict=True)
    )
    if far_t or far_h or far_w:
        x_BTHWC = F.pad(x_BTHWC, (0, 0, 0, far_w, 0, far_h, 0, far_t))
    pool = partial(F.max_pool2d, ceil_mode=True)
    x_BTHWC = over_space(partial(pool, kernel_size=kernel[1:], stride=2), x_BTHWC)
    if kernel[0] == 1:
        return x_BTHWC
    return over_time(partial(pool, kernel_size=(kernel[0], 1), stride=(2, 1)), x_BTHWC)


def neighbour_max(x_BTHWC: Tensor) -> Tensor:
    """Return the maximum over each position and its neighbours in time and space: same shape."""
    x_BTHWC = over_space(partial(F.max_pool2d, kernel_size=3, stride=1, padding=1), x_BTHWC)
    return over_time(partial(F.max_pool2d, kernel_size=(3, 1), stride=1, padding=(1, 0)), x_BTHWC)


def stem_input(video_BCTHW: Tensor) -> Tensor:
    """Return space-to-depth for a 2-d stem: 24 channels of a pair of frames, then those of the next, zeros around.

    The zeros are the published stem's padding, less those that only its dropped outputs use.
    """
    b, _, t, h, w = video_BCTHW.shape
    x_BTHWC = video_BCTHW.new_zeros(b, t // 2, h // 2 + 3, w // 2 + 3, 48)
    frames_BTHWC = video_BCTHW.permute(0, 2, 3, 4, 1)
    for number, (at_t, at_h, at_w) in enumerate(itertools.product(range(2), repeat=3)):
        x_BTHWC[:, :, 1:-2, 1:-2, 3 * number : 3 * number + 3] = frames_BTHWC[:, at_t::2, at_h::2, at_w::2]
    x_BTHWC[:, :-1, :, :, 24:] = x_BTHWC[:, 1:, :, :, :24]
    return x_BTHWC


def fold(convolution: nn.Conv3d, batch_norm: nn.BatchNorm3d) -> tuple[Tensor, Tensor]:
    """Fold a batch norm into its convolution, in float64: weights O x C x T x H x W and bias O."""
    assert batch_norm.running_mean is not None and batch_norm.running_var is not None
    scale_O = batch_norm.weight.double() / torch.sqrt(batch_norm.running_var.double() + batch_norm.eps)
    bias_O = batch_norm.bias.double() - batch_norm.running_mean.double() * scale_O
    return (convolution.weight.double() * scale_O[:, None, None, None, None]).float(), bias_O.float()


def frozen_conv2d(weight_OCHW: Tensor, bias_O: Tensor, padding: Sequence[int]) -> nn.Conv2d:
    """Return a 2-d convolution of these weights, without gradients."""
    o, c, h, w = weight_OCHW.shape
    layer = nn.Conv2d(c, o, (h, w), padding=(padding[0], padding[1]), device="meta")
    layer.weight = nn.Parameter(weight_OCHW.contiguous(memory_format=torch.channels_last), requires_grad=False)
    layer.bias = nn.Parameter(bias_O.contiguous(), requires_grad=False)
    return layer


class FoldedConvolution(nn.Module):
    """A pointwise or separable convolution without its batch norms."""

    def __init__(self, published: Convolution) -> None:
        super().__init__()
        weight_OCTHW, bias_O = fold(published.conv1, published.bn1)
        self.space = frozen_conv2d(weight_OCTHW[:, :, 0], bias_O, [weight_OCTHW.shape[3] // 2] * 2)
        self.time: nn.Conv2d | None = None
        if published.separable:
            weight_OCTHW, bias_O = fold(published.conv2, published.bn2)
            self.time = frozen_conv2d(weight_OCTHW[..., 0], bias_O, (1, 0))

    def forward(self, x_BTHWC: Tensor) -> Tensor:
        """B x T x H x W x C to the same with O channels, non-negative."""
        x_BTHWC = F.relu_(over_space(self.space, x_BTHWC))
        return x_BTHWC if self.time is None else F.relu_(over_time(self.time, x_BTHWC))


def gate(gating: nn.Module, x_BTHWC: Tensor, out_BTHWC: Tensor | None = None) -> Tensor:
    """Apply the published self-gating in this layout; the result may be written into `out_BTHWC`."""
    assert isinstance(gating, SelfGating)
    gates_BC = torch.sigmoid(gating.fc(x_BTHWC.mean(dim=(1, 2, 3))))
    return torch.mul(x_BTHWC, gates_BC[:, None, None, None, :], out=out_BTHWC)


class FoldedBlock(nn.Module):
    """An inception block without its batch norms; the branches are written straight into the output."""

    def __init__(self, published: InceptionBlock) -> None:
        super().__init__()
        self.conv_b0 = FoldedConvolution(published.conv_b0)
        self.conv_b1_a = FoldedConvolution(published.conv_b1_a)
        self.conv_b1_b = FoldedConvolution(published.conv_b1_b)
        self.conv_b2_a = FoldedConvolution(published.conv_b2_a)
        self.conv_b2_b = FoldedConvolution(published.conv_b2_b)
        self.conv_b3_b = FoldedConvolution(published.conv_b3_b)
        gates = (published.gating_b0, published.gating_b1, published.gating_b2, published.gating_b3)
        self.gates = nn.ModuleList(copy.deepcopy(gates)).requires_grad_(False)

    def forward(self, x_BTHWC: Tensor) -> Tensor:
        """B x T x H x W x C to the same with the four branches' channels."""
        branches = (
            self.conv_b0(x_BTHWC),
            self.conv_b1_b(self.conv_b1_a(x_BTHWC)),
            self.conv_b2_b(self.conv_b2_a(x_BTHWC)),
            self.conv_b3_b(neighbour_max(x_BTHWC)),
        )
        widths = [branch_BTHWC.shape[4] for branch_BTHWC in branches]
        out_BTHWC = branches[0].new_empty(*x_BTHWC.shape[:4], sum(widths))
        for gating, branch_BTHWC, part_BTHWC in zip(self.gates, branches, out_BTHWC.split(widths, 4), strict=True):
            gate(gating, branch_BTHWC, part_BTHWC)
        return out_BTHWC


class FoldedS3D(nn.Module):
    """The video tower of a published S3D, for inference: call it as the plain one; it holds copies of the weights."""

    def __init__(self, published: S3D) -> None:
        super().__init__()
        weight_OCTHW, bias_O = fold(published.conv1.conv1, published.conv1.bn1)
        self.stem = frozen_conv2d(weight_OCTHW.transpose(1, 2).flatten(1, 2), bias_O, (0, 0))
        self.conv_2b = FoldedConvolution(published.conv_2b)
        self.conv_2c = FoldedConvolution(published.conv_2c)
        self.gating = copy.deepcopy(published.gating).requires_grad_(False)
        self.blocks = nn.ModuleDict()
        for name in INCEPTION_BLOCKS:
            block = published.get_submodule(name)
            assert isinstance(block, InceptionBlock)
            self.blocks[name] = FoldedBlock(block)
        self.fc = copy.deepcopy(published.fc).requires_grad_(False)

    @torch.inference_mode()
    def forward(self, video_BCTHW: Tensor) -> VideoOutput:
        """Clips B x 3 x T x H x W, values in [0, 1], T, H and W even, to B x 1024 and B x 512, float32."""
        check_clips(video_BCTHW)
        device = video_BCTHW.device.type
        at_once = len(video_BCTHW)
        if device == "cpu":
            at_once = CPU_PIXELS_AT_ONCE // math.prod(video_BCTHW.shape[2:])
        with torch.autocast(device, AUTOCAST_DTYPES.get(device), enabled=device in AUTOCAST_DTYPES):
            features = [self._features(clips_BCTHW) for clips_BCTHW in torch.split(video_BCTHW, max(at_once, 1))]
        mixed_5c_BD = torch.cat(features)
        return VideoOutput(mixed_5c_BD, self.fc(mixed_5c_BD))

    def _features(self, video_BCTHW: Tensor) -> Tensor:
        x_BTHWC = F.relu_(over_space(self.stem, stem_input(video_BCTHW)))
        x_BTHWC = same_max_pool(x_BTHWC, (1, 3, 3))
        x_BTHWC = gate(self.gating, self.conv_2c(self.conv_2b(x_BTHWC)))
        x_BTHWC = same_max_pool(x_BTHWC, (1, 3, 3))
        for name, block in self.blocks.items():
            if name == "mixed_4b":
                x_BTHWC = same_max_pool(x_BTHWC, (3, 3, 3))
            elif name == "mixed_5b":
                x_BTHWC = same_max_pool(x_BTHWC, (2, 2, 2))
            x_BTHWC = block(x_BTHWC)
        return x_BTHWC.mean(dim=(1, 2, 3), dtype=torch.float32)
