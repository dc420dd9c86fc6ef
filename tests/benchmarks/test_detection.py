"""Detection against a loop over rows."""

import torch

from tests.benchmarks.measure import ratio_of_times, report
from tests.vina_model.slow_detection import slow_detect
from vina_model.alignment import mask_of
from vina_model.detection import CANDIDATES, FAINT, LIMIT, NUM_SCALES, RATIO, THRESHOLD, detect

VIDEOS, STEPS = 32, 16


def test_detection_against_a_loop() -> None:
    rng = torch.Generator().manual_seed(0)
    lengths_B = torch.randint(400, 1001, (VIDEOS,), generator=rng)
    rows_BST = torch.randn(VIDEOS, STEPS, 1000, generator=rng) / 10
    seconds_BT = mask_of(lengths_B, 1000)
    scales = [RATIO**number for number in range(NUM_SCALES)]

    def loop() -> None:
        for video, length in zip(rows_BST, lengths_B.tolist(), strict=True):
            for row in video[:, :length].double().numpy():
                slow_detect(row, scales, LIMIT, THRESHOLD, CANDIDATES * LIMIT, FAINT)

    slow, fast, ratio = ratio_of_times(loop, lambda: detect(rows_BST, seconds_BT), repeats=1)
    detail = f"{slow:.1f} and {fast:.3f} s for {VIDEOS * STEPS} rows of 400 to 1,000 s"
    report("detection, a loop over rows / ours", ratio, ">= 20", detail)
