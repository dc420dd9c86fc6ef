"""What orchestration costs: Prefect's share of the demo, a rerun with nothing to do, thousands of shards planned."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from storage import Store
from storage.vectors import feature_rows
from tasks.features.settings import FeatureSettings
from tasks.features.stage import FEATURES, Recipe, make_features
from tasks.pipeline.job import Job
from tasks.pipeline.parts import Part, run_here
from tasks.pipeline.stage import run_stage

SHARDS, VIDEOS_PER_SHARD = 5_000, 2

STAGES_ALONE = """
import logging, sys, time
begin = time.monotonic()
from flows.stages import STAGES, settings_groups
from storage import Store
from tasks.pipeline.job import Job
from tasks.pipeline.parts import run_here
from tasks.pipeline.run_record import record_run
from tasks.pipeline.settings import choose
from tasks.pipeline.stage import run_stage
logging.basicConfig(level=logging.WARNING)
job = Job.of(sys.argv[1], "alone", *choose(settings_groups(), "demo", {}))
with record_run(Store(job.store), job.run_id, ["all"], job.model_dump()):
    for stage in STAGES:
        run_stage(job, stage, run_here)
import os
os._exit(0)
"""


def timed(command: list[str]) -> float:
    begin = time.monotonic()
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"OMP_WAIT_POLICY": "passive"})
    return time.monotonic() - begin


def said(name: str, value: float, target: float, is_most: bool = True) -> None:
    reached = value <= target if is_most else value >= target
    print(f"{name}: {value:.1f} (target {'<=' if is_most else '>='} {target:g}): {'reached' if reached else 'MISSED'}")


def test_prefect_on_the_demo_and_a_rerun_with_nothing_to_do(tmp_path: Path) -> None:
    alone = timed([sys.executable, "-c", STAGES_ALONE, str(tmp_path / "alone")])
    command = [sys.executable, "-m", "flows.cli", "run", "--preset", "demo", "--store", str(tmp_path / "flow")]
    by_prefect, again = timed(command), timed(command)
    print(f"\nthe demo's stages alone {alone:.0f} s, as a flow {by_prefect:.0f} s; once more {again:.1f} s")
    said("Prefect's share of the demo, %", 100 * (by_prefect - alone) / by_prefect, 5)
    said("a rerun with nothing to do, s", again, 15)
    tables = [{name: Store(tmp_path / where).table(name).snapshot().num_rows for name in ("pairs", "pseudo_labels")}
              for where in ("alone", "flow")]  # fmt: skip
    assert tables[0] == tables[1] and tables[0]["pseudo_labels"]


@pytest.fixture
def many_shards(tmp_path: Path) -> Job:
    """A store with the features of thousands of shards of videos, one of them missing."""
    settings = FeatureSettings(size_px=32, videos_per_shard=VIDEOS_PER_SHARD)
    job, store = Job.of(str(tmp_path / "store"), "made", settings), Store(tmp_path / "store")
    names = [f"v{number:06d}" for number in range(SHARDS * VIDEOS_PER_SHARD)]
    videos = store.table("videos")
    rows = [{"video_id": name, "uri": f"{tmp_path}/{name}.mp4", "duration_s": 1.0} for name in names]
    listed = pa.Table.from_pylist(rows, schema=videos.schema.files)
    videos.commit(listed, {"source": "videos"}, "all", fingerprint="f", run_id="r")
    recipe = Recipe.of(settings)
    layer = next(iter(recipe.layers.values()))
    vector = np.zeros((1, layer.width), np.float16)
    for number in range(SHARDS):
        place, constants = {"backbone": recipe.backbone.name}, recipe.columns(layer)
        table = store.table("features")
        with table.writer(place, f"s{number}", fingerprint=f"f{number}", run_id="r", constants=constants) as writer:
            for name in names[VIDEOS_PER_SHARD * number :][:VIDEOS_PER_SHARD]:
                writer.write(feature_rows(name, vector))
    return job


def test_thousands_of_shards_are_planned_and_skipped(many_shards: Job) -> None:
    given: list[Part] = []
    begin = time.monotonic()
    report = make_features(many_shards, lambda job, work, parts: given.extend(parts))
    planned = time.monotonic() - begin
    assert report == "all video files have features" and given == []
    run_stage(many_shards, FEATURES, run_here)
    begin = time.monotonic()
    assert run_stage(many_shards.changed(run_id="again"), FEATURES, run_here)[1] is False
    skipped = time.monotonic() - begin
    print(f"\n{SHARDS:,} shards: looked through in {planned:.1f} s, skipped as a whole in {skipped:.1f} s")
    said("5,000 shards planned and skipped, s", planned + skipped, 30)
