"""Importing narrations at scale, against a straightforward pandas read and row loop that makes the same checks."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from storage import Store
from tests.benchmarks.measure import report

SIZES = (10_000, 100_000)
SENTENCES = 80

OURS = """
import sys, time
from pathlib import Path
from storage import Store
from tasks.importers.sources import import_source

started = time.perf_counter()
import_source(Store(sys.argv[2]), "bench", "howto100m", Path(sys.argv[1]))
seconds = time.perf_counter() - started
print(seconds, Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""

PANDAS = """
import html, math, sys, time
from pathlib import Path
import pandas as pd

started = time.perf_counter()
frame = pd.read_json(sys.argv[1], orient="index", dtype=False, convert_axes=False)
rows = []
for video_id, video in frame.iterrows():
    row = 0
    for text, start, end in zip(video["text"], video["start"], video["end"]):
        text = " ".join(html.unescape(text).split())
        if text and math.isfinite(start) and math.isfinite(end) and 0 <= start <= end:
            rows.append({"video_id": video_id, "row": row, "text": text, "start_s": start, "end_s": end})
            row += 1
pd.DataFrame(rows).to_parquet(sys.argv[2] + ".parquet")
seconds = time.perf_counter() - started
print(seconds, Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def write_narrations(path: Path, num_videos: int) -> None:
    """Eighty sentences a video of eight words each, drawn from a vocabulary of 5,000."""
    rng = np.random.default_rng(0)
    words = np.array(["".join(map(chr, rng.integers(97, 123, rng.integers(2, 9)))) for _ in range(5_000)])
    with path.open("w") as file:
        file.write("{")
        for number in range(num_videos):
            texts = [" ".join(line) for line in words[rng.zipf(1.3, (SENTENCES, 8)) % len(words)]]
            times = np.cumsum(rng.uniform(1, 4, 2 * SENTENCES)).round(2).tolist()
            video = {"text": texts, "start": times[::2], "end": times[1::2]}
            file.write(f"{', ' if number else ''}{json.dumps(f'video{number:07d}')}: {json.dumps(video)}")
        file.write("}")


def measure(script: str, path: Path, store: Path) -> tuple[float, float]:
    """Seconds and peak megabytes of a process of its own."""
    command = [sys.executable, "-c", script, str(path), str(store)]
    seconds, peak_kb = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), int(peak_kb) / 1000


@pytest.fixture(scope="module")
def narrations(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("narrations")
    paths = {size: folder / f"sentencified_{size}.json" for size in SIZES}
    for size, path in paths.items():
        write_narrations(path, size)
    return paths


def test_narrations_at_two_sizes(narrations: dict[int, Path], tmp_path: Path) -> None:
    ours: dict[int, tuple[float, float]] = {}
    for size, path in narrations.items():
        ours[size] = measure(OURS, path, tmp_path / str(size))
        assert Store(tmp_path / str(size)).table("narrations").snapshot().num_rows == size * SENTENCES
    theirs = measure(PANDAS, narrations[SIZES[1]], tmp_path / "pandas")
    seconds, peak_mb = ours[SIZES[1]]
    megabytes = narrations[SIZES[1]].stat().st_size / 1e6
    report(
        f"importing {SIZES[1] * SENTENCES:,} sentences, pandas / ours",
        theirs[0] / seconds,
        ">= 5",
        f"{theirs[0]:.1f} / {seconds:.1f} s; {megabytes / seconds:.0f} MB/s of JSON; pandas' peak {theirs[1]:,.0f} MB",
    )
    report("peak memory, MB", peak_mb, "<= 1000", f"{ours[SIZES[0]][1]:,.0f} MB at a tenth of the size")
    assert peak_mb <= 1_000
    costs = [ours[size][0] / size for size in SIZES]
    growth = [large / small for small, large in pairwise(costs)]
    report(
        "cost of a video at ten times the size", growth[0], "<= 1.2", f"{1e6 * costs[0]:.0f}, {1e6 * costs[1]:.0f} us"
    )
