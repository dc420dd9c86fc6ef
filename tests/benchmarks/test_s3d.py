"""S3D's form for inference against the plain network, run eagerly on the same clips with the same threads."""

import statistics
import time
from collections.abc import Iterator

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.benchmarks.measure import ratio_of_times, report
from vina_model.s3d import S3D, seeded
from vina_model.s3d_inference import FoldedS3D


@pytest.fixture(scope="module")
def plain() -> S3D:
    return seeded(0)


def flops_of(model: S3D, clips_BCTHW: torch.Tensor) -> int:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(clips_BCTHW)
    return int(counter.get_total_flops())


def matmul_flops_per_s(size: int = 2048, repeats: int = 9) -> float:
    """The machine's own peak: square float32 matrices."""
    a, b = torch.rand(size, size), torch.rand(size, size)
    out, seconds = torch.empty(size, size), []
    for _ in range(repeats):
        started = time.perf_counter()
        torch.mm(a, b, out=out)
        seconds.append(time.perf_counter() - started)
    return float(2 * size**3 / statistics.median(seconds))


@pytest.fixture(params=["one thread", "all threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """One thread stays honest on a busy machine, where several wait for each other at the end of every layer."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if request.param == "one thread" else before)
    yield torch.get_num_threads()
    torch.set_num_threads(before)


@pytest.mark.parametrize(("side", "batch"), [(224, 1), (224, 2), (112, 4)])
def test_clips_per_second(plain: S3D, threads: int, side: int, batch: int) -> None:
    folded, clips_BCTHW = FoldedS3D(plain), torch.rand(batch, 3, 16, side, side)
    flops = flops_of(plain, clips_BCTHW)
    with torch.inference_mode():
        assert torch.allclose(folded(clips_BCTHW).mixed_5c_BD, plain(clips_BCTHW).mixed_5c_BD, atol=1e-4)
        peaks = [matmul_flops_per_s()]
        slow, fast, ratio = ratio_of_times(lambda: plain(clips_BCTHW), lambda: folded(clips_BCTHW), repeats=7)
        peaks.append(matmul_flops_per_s())
    peak = max(peaks)
    detail = (
        f"{batch / slow:.2f} and {batch / fast:.2f} clips a second, {flops / slow / 1e9:.0f} and "
        f"{flops / fast / 1e9:.0f} GFLOP/s: {flops / slow / peak:.0%} and {flops / fast / peak:.0%} "
        f"of matmul's {peak / 1e9:.0f}"
    )
    what = f"S3D, {batch} clips of 16 x {side} x {side}, {threads} thread(s), plain eager / folded"
    report(what, ratio, ">= 1.5", detail)
