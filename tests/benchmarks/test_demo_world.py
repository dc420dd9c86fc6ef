"""Writing a demo world: files with 128 numbers per second of video, on one core."""

import time
from dataclasses import replace
from pathlib import Path

from tasks.demo_world.files import write_world
from tasks.demo_world.knobs import PRESETS
from tasks.demo_world.script import World
from tests.benchmarks.measure import report

FEW, MANY = 1_000, 10_000


def seconds_to_write(num_videos: int, folder: Path) -> float:
    started = time.perf_counter()
    write_world(World(replace(PRESETS["htstep"], num_videos=num_videos, num_rendered=0), 0), folder / str(num_videos))
    return time.perf_counter() - started


def test_the_time_is_linear_in_the_number_of_videos(tmp_path: Path) -> None:
    few, many = seconds_to_write(FEW, tmp_path), seconds_to_write(MANY, tmp_path)
    report("writing a world, 10,000 / 1,000 videos", many / few, "<= 11", f"{many:.1f} / {few:.1f} s")
    report("writing a world, videos a second", MANY / many, ">= 50", "the preset htstep, without drawing")
