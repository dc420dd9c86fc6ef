"""The formula that filled the reference implementations' weights and inputs, and what they answered.

The public weights need a download; weights by formula, put in through the published names, prove the architecture.
"""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

VOCABULARY_SIZE = 66_249


def answers(name: str) -> Any:
    """The content of golden/<name>.json."""
    return json.loads((Path(__file__).parent / "golden" / f"{name}.json").read_text())


def fraction(x: np.ndarray) -> np.ndarray:
    return x - np.floor(x)


def patterned(name: str, size: int) -> np.ndarray:
    """`size` values in [-1, 1) that depend on the name."""
    phase = zlib.crc32(name.encode()) % 6283 / 1000
    values = np.empty(size)
    for start in range(0, size, 1 << 16):  # in blocks that stay in the cache: three times as fast
        i = np.arange(start, min(start + (1 << 16), size), dtype=np.float64)
        values[start : start + len(i)] = (
            2 * fraction(i * 0.6180339887498949 + fraction(i * i * 0.00070710678) + phase) - 1
        )
    return values


def filled(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state of the same names and shapes, every floating-point value given by the formula."""
    answer = {}
    for name, value in state.items():
        if not value.is_floating_point():
            answer[name] = value
            continue
        values = patterned(name, value.numel())
        if name.endswith("running_var") or (value.dim() == 1 and name.endswith("weight")):
            values = 1 + 0.25 * values
        elif name.endswith("running_mean") or value.dim() < 2:
            values = 0.1 * values
        else:
            values = values * np.sqrt(6 / np.prod(value.shape[1:]))
        answer[name] = torch.from_numpy(values.astype(np.float32)).reshape(value.shape)
    return answer


def made_input(*shape: int) -> Tensor:
    """Values in [0, 1) given by the formula."""
    i = np.arange(np.prod(shape), dtype=np.float64)
    values = fraction(i * 0.6180339887498949 + fraction(i * i * 0.0137))
    return torch.from_numpy(values.astype(np.float32)).reshape(shape)


def vocabulary() -> list[str]:
    """The words listed with the text answers, then made-up ones up to the published number."""
    head: list[str] = answers("s3d_text")["vocabulary_head"]
    return head + [f"word{number:05d}" for number in range(len(head), VOCABULARY_SIZE)]
