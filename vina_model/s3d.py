"""S3D trained with MIL-NCE on HowTo100M (Miech et al. 2020, `s3d_howto100m.pth`), in the published key names.

Chosen: the plain network, layer by layer as published, so that a checkpoint loads key for key and a reader can check
it. Costs 37.7 GFLOP per clip of 16 frames of 224 x 224, and twice the time of its form in `s3d_inference`.
"""

# B clips, C channels, T frames, H height, W width (halved by space-to-depth and the pools), D = 1024 features,
# E = 512 joint text-video dimensions.

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vina_model.s3d_text import JOINT_WIDTH, TextTower

FEATURE_WIDTH = 1024
NAMED = 3
"""Tensors of each kind that an error about weights names."""

# name: channels in, and out of: branch 0; branch 1 reduced, branch 1; branch 2 reduced, branch 2; branch 3
INCEPTION_BLOCKS = {
    "mixed_3b": (192, 64, 96, 128, 16, 32, 32),
    "mixed_3c": (256, 128, 128, 192, 32, 96, 64),
    "mixed_4b": (480, 192, 96, 208, 16, 48, 64),
    "mixed_4c": (512, 160, 112, 224, 24, 64, 64),
    "mixed_4d": (512, 128, 128, 256, 24, 64, 64),
    "mixed_4e": (512, 112, 144, 288, 32, 64, 64),
    "mixed_4f": (528, 256, 160, 320, 32, 128, 128),
    "mixed_5b": (832, 256, 160, 320, 32, 128, 128),
    "mixed_5c": (832, 384, 192, 384, 48, 128, 128),
}


class VideoOutput(NamedTuple):
    """The output of the video tower for each clip."""

    mixed_5c_BD: Tensor
    """The 1024-d feature: the mean of the last block over time and space."""
    video_embedding_BE: Tensor
    """Its 512-d embedding in the joint text-video space: compared with text by dot product."""


def space_to_depth(video_BCTHW: Tensor) -> Tensor:
    """Turn each 2 x 2 x 2 cube into one position; channels in the order offset t, offset h, offset w, colour."""
    b, c, t, h, w = video_BCTHW.shape
    cubes = video_BCTHW.reshape(b, c, t // 2, 2, h // 2, 2, w // 2, 2)
    return cubes.permute(0, 3, 5, 7, 1, 2, 4, 6).reshape(b, 8 * c, t // 2, h // 2, w // 2)


def same_max_pool(x_BCTHW: Tensor, kernel: tuple[int, int, int], stride: tuple[int, int, int]) -> Tensor:
    """Max-pool with TensorFlow's 'SAME' padding: zeros, the odd one on the far side; the last window may be partial."""
    padding: list[int] = []
    for size, step in zip(reversed(kernel), reversed(stride), strict=True):
        total = max(size - step, 0)
        padding += [total // 2, total - total // 2]
    return F.max_pool3d(F.pad(x_BCTHW, padding), kernel, stride, ceil_mode=True)


class Convolution(nn.Module):
    """Convolution, batch norm, ReLU; a separable one does so over space, then over time."""

    def __init__(
        self, channels_in: int, channels_out: int, kernel: tuple[int, int, int], padding: tuple[int, int, int]
    ) -> None:
        super().__init__()
        self.separable = kernel == (3, 3, 3)
        if self.separable:
            self.conv1 = nn.Conv3d(channels_in, channels_out, (1, 3, 3), padding=(0, 1, 1), bias=False)
            self.bn1 = nn.BatchNorm3d(channels_out)
            self.conv2 = nn.Conv3d(channels_out, channels_out, (3, 1, 1), padding=(1, 0, 0), bias=False)
            self.bn2 = nn.BatchNorm3d(channels_out)
        else:
            self.conv1 = nn.Conv3d(channels_in, channels_out, kernel, padding=padding, bias=False)
            self.bn1 = nn.BatchNorm3d(channels_out)

    def forward(self, x_BCTHW: Tensor) -> Tensor:
        """B x channels_in x T x H x W to non-negative B x channels_out x T x H x W."""
        x_BCTHW = F.relu(self.bn1(self.conv1(x_BCTHW)))
        return F.relu(self.bn2(self.conv2(x_BCTHW))) if self.separable else x_BCTHW


def pointwise(channels_in: int, channels_out: int) -> Convolution:
    """Return a 1 x 1 x 1 convolution."""
    return Convolution(channels_in, channels_out, (1, 1, 1), (0, 0, 0))


def separable(channels_in: int, channels_out: int) -> Convolution:
    """Return a 3 x 3 x 3 convolution in two: 1 x 3 x 3, then 3 x 1 x 1."""
    return Convolution(channels_in, channels_out, (3, 3, 3), (1, 1, 1))


class SelfGating(nn.Module):
    """Scales each channel by the sigmoid of a linear layer on the clip's channel means."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(channels, channels)

    def forward(self, x_BCTHW: Tensor) -> Tensor:
        """Same shape as the input."""
        gates_BC = torch.sigmoid(self.fc(x_BCTHW.mean(dim=(2, 3, 4))))
        return x_BCTHW * gates_BC[:, :, None, None, None]


class InceptionBlock(nn.Module):
    """Four branches of one input, each gated, side by side in the channels."""

    def __init__(self, channels_in: int, b0: int, b1_a: int, b1_b: int, b2_a: int, b2_b: int, b3_b: int) -> None:
        super().__init__()
        self.conv_b0 = pointwise(channels_in, b0)
        self.conv_b1_a = pointwise(channels_in, b1_a)
        self.conv_b1_b = separable(b1_a, b1_b)
        self.conv_b2_a = pointwise(channels_in, b2_a)
        self.conv_b2_b = separable(b2_a, b2_b)
        self.conv_b3_b = pointwise(channels_in, b3_b)
        self.gating_b0 = SelfGating(b0)
        self.gating_b1 = SelfGating(b1_b)
        self.gating_b2 = SelfGating(b2_b)
        self.gating_b3 = SelfGating(b3_b)

    def forward(self, x_BCTHW: Tensor) -> Tensor:
        """B x channels_in x T x H x W to B x (b0 + b1_b + b2_b + b3_b) x T x H x W."""
        pooled_BCTHW = F.max_pool3d(x_BCTHW, 3, stride=1, padding=1)
        branches = (
            self.gating_b0(self.conv_b0(x_BCTHW)),
            self.gating_b1(self.conv_b1_b(self.conv_b1_a(x_BCTHW))),
            self.gating_b2(self.conv_b2_b(self.conv_b2_a(x_BCTHW))),
            self.gating_b3(self.conv_b3_b(pooled_BCTHW)),
        )
        return torch.cat(branches, dim=1)


class S3D(nn.Module):
    """The whole published checkpoint; call it on video, and its `text_module` on word ids."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = Convolution(24, 64, (2, 4, 4), padding=(1, 2, 2))
        self.conv_2b = pointwise(64, 64)
        self.conv_2c = separable(64, 192)
        self.gating = SelfGating(192)
        for name, channels in INCEPTION_BLOCKS.items():
            self.add_module(name, InceptionBlock(*channels))
        self.fc = nn.Linear(FEATURE_WIDTH, JOINT_WIDTH)
        self.text_module = TextTower()

    def forward(self, video_BCTHW: Tensor) -> VideoOutput:
        """Clips B x 3 x T x H x W, values in [0, 1], T, H and W even, to B x 1024 and B x 512."""
        check_clips(video_BCTHW)
        x_BCTHW = self.conv1(space_to_depth(video_BCTHW))[:, :, 1:, 1:, 1:]
        x_BCTHW = same_max_pool(x_BCTHW, (1, 3, 3), (1, 2, 2))
        x_BCTHW = self.gating(self.conv_2c(self.conv_2b(x_BCTHW)))
        x_BCTHW = same_max_pool(x_BCTHW, (1, 3, 3), (1, 2, 2))
        for name in INCEPTION_BLOCKS:
            if name == "mixed_4b":
                x_BCTHW = same_max_pool(x_BCTHW, (3, 3, 3), (2, 2, 2))
            elif name == "mixed_5b":
                x_BCTHW = same_max_pool(x_BCTHW, (2, 2, 2), (2, 2, 2))
            x_BCTHW = self.get_submodule(name)(x_BCTHW)
        mixed_5c_BD = x_BCTHW.mean(dim=(2, 3, 4))
        return VideoOutput(mixed_5c_BD, self.fc(mixed_5c_BD))


def check_clips(video_BCTHW: Tensor) -> None:
    """Refuse a tensor that is not a batch of clips."""
    shape = tuple(video_BCTHW.shape)
    if len(shape) != 5 or shape[1] != 3 or any(size == 0 or size % 2 for size in shape[2:]):
        raise ValueError(f"clips must be B x 3 x T x H x W with even T, H and W, not {shape}: crop or resize them")
    if not video_BCTHW.is_floating_point():
        raise ValueError(f"clips must hold floats in [0, 1], not {video_BCTHW.dtype}: divide bytes by 255")


def load_state(model: nn.Module, state: Mapping[str, object]) -> None:
    """Copy a checkpoint's tensors into the model; refuse other names, shapes or types, naming the first few."""
    if not isinstance(state, Mapping):
        raise ValueError(f"these weights are a {type(state).__name__}: a state dict, names to tensors, is expected")
    expected = model.state_dict()
    wrong = {name: _mismatch(state[name], expected[name]) for name in sorted(expected.keys() & state.keys())}
    differences = {
        "missing": [name for name in expected if name not in state],
        "unknown": [str(name) for name in state if name not in expected],
        "wrong": [f"{name} is {problem}" for name, problem in wrong.items() if problem],
    }
    problems = [
        f"{kind}: {', '.join(names[:NAMED])}" + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
        for kind, names in differences.items()
        if names
    ]
    if problems:
        raise ValueError(
            f"these weights do not fit {type(model).__name__}; {'; '.join(problems)}. Load the published checkpoint's "
            "own state dict, without a prefix or a wrapper"
        )
    model.load_state_dict(dict(state))


def _mismatch(value: object, expected: Tensor) -> str | None:
    """Return what is wrong with a checkpoint's tensor; None if nothing is."""
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}"
    if value.shape != expected.shape:
        return f"{list(value.shape)}, not {list(expected.shape)}"
    if value.layout != torch.strided or value.is_floating_point() != expected.is_floating_point():
        return f"{value.dtype}, {value.layout}"
    return None if value.isfinite().all() else "not finite"


def seeded(seed: int) -> S3D:
    """Return random weights, the same for the same seed, whose features distinguish clips; in eval mode.

    Plain random filters mostly give the mean of their non-negative input, which is similar for all clips: these sum to
    zero (the stem is centred at mid-grey instead, to keep brightness). Plain ReLU amplifies rounding from layer to
    layer: the batch norms' bias of 1/2 keeps most units in its linear part, and the scale the same in all layers.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.device("meta"):
        model = S3D()
    model.to_empty(device="cpu")
    for name, value in model.state_dict().items():
        if value.dim() >= 2:
            value.normal_(generator=generator)
        else:
            value.fill_(name.endswith((".weight", "running_var")))
    for name, module in model.named_modules():
        if isinstance(module, nn.BatchNorm3d):
            module.bias.data.fill_(0.5)
        elif isinstance(module, nn.Conv3d | nn.Linear):
            rows = module.weight.data.flatten(1)  # a view
            if name != "conv1.conv1":
                rows -= rows.mean(dim=1, keepdim=True)
            rows *= _gain(name, module) / rows.norm(dim=1, keepdim=True)
    stem = model.conv1
    assert stem.bn1.running_mean is not None
    stem.bn1.running_mean.copy_(stem.conv1.weight.data.flatten(1).sum(dim=1) / 2)
    model.text_module.word_embd.weight.data[0] = 0  # padding
    return model.eval()


def _gain(name: str, module: nn.Module) -> float:
    """Return the norm of a random filter whose outputs have a variance of 1."""
    if not isinstance(module, nn.Conv3d):
        return 1
    if name == "conv1.conv1":
        return math.sqrt(12)  # pixels are uniform over [0, 1]
    after_relu = 1.344  # 1 / standard deviation of max(0, z + 1/2), z normal
    gated = name.startswith("mixed_") and module.kernel_size == (1, 1, 1)
    return after_relu * (2 if gated else 1)  # gates are about 1/2
