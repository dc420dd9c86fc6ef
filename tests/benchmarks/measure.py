"""Measuring two things in turns within one run, and printing their ratio beside its target."""

import statistics
import time
from collections.abc import Callable


def ratio_of_times(
    baseline: Callable[[], object], ours: Callable[[], object], repeats: int = 9
) -> tuple[float, float, float]:
    """Median seconds of the baseline and of ours, taken in turns after one round to warm up, and baseline / ours."""
    times: tuple[list[float], list[float]] = ([], [])
    for repeat in range(repeats + 1):
        for work, seconds in zip((baseline, ours), times, strict=True):
            started = time.perf_counter()
            work()
            if repeat:
                seconds.append(time.perf_counter() - started)
    slow, fast = (statistics.median(seconds) for seconds in times)
    return slow, fast, slow / fast


def report(what: str, value: float, target: str, detail: str) -> None:
    """One line: what was measured, the target, and whether it was reached."""
    sign, bound = target.split()
    reached = value >= float(bound) if sign == ">=" else value <= float(bound)
    print(f"\n{what}: {value:.3f} (target {target}, {'reached' if reached else 'MISSED'}); {detail}", flush=True)
