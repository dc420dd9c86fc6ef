"""The presets have the shape of the data sets that they are named after."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tasks.demo_world.knobs import PRESETS
from tasks.demo_world.script import World
from tasks.evaluation.annotated_videos import AnnotatedVideo, read_annotated_videos
from tasks.evaluation.shape import compare, shape_of
from tasks.importers.open_data import open_data

DATA = Path(os.environ.get("VINA_DATA", ""))
NUM_VIDEOS = 600
NAMES = (
    "video length, s, median", "video length, s, mean", "video length, s, p10", "video length, s, p90",
    "steps of the article",
    "share of its steps shown, mean", "share of its steps shown, p10", "share of its steps shown, p90",
    "segment length, s, median", "segment length, s, mean", "segment length, s, p90",
    "shown steps with several segments", "share of the video annotated", "annotated seconds with two steps at once",
    "pairs of shown steps in the article's order", "spread of first start less place",
    "R@1 of a random second, %", "R@1 of the centre, %", "R@1 of steps spread evenly, %",
)  # fmt: skip
REAL = {
    "htstep": (
        331, 383, 150, 699, 10.1, 0.42, 0.17, 0.71, 7.7, 15.9, 36.5, 0.26, 0.26, 0.01, 0.86, 0.24, 7.0, 9.6, 12.1
    ),
    "crosstask": (
        263, 279, 113, 484, 7.5, 0.70, 0.38, 1.00, 5.1, 9.7, 21.4, 0.26, 0.28, 0.04, 0.83, 0.27, 6.3, 9.0, 10.0
    ),
    "coin": (
        137, 142, 58, 219, 4.3, 0.71, 0.40, 1.00, 8.2, 14.8, 35.0, 0.20, 0.42, 0.00, 0.91, 0.25, 15.6, 21.5, 27.5
    ),
}  # fmt: skip


def annotated(preset: str, seed: int) -> list[AnnotatedVideo]:
    return [
        AnnotatedVideo(
            video.video_id,
            video.article.task_id,
            video.split,
            video.duration_s,
            len(video.article.steps),
            tuple((segment.step, segment.start_s, segment.end_s) for segment in video.segments),
            tuple((narration.start_s, narration.end_s) for narration in video.narrations),
        )
        for video in World(replace(PRESETS[preset], num_videos=NUM_VIDEOS), seed)
    ]


@pytest.mark.parametrize("preset", list(REAL))
def test_a_preset_has_the_statistics_of_its_data_set(preset: str) -> None:
    shape = shape_of(annotated(preset, 0))
    statistics = {statistic.name: statistic for statistic in shape.statistics}
    assert statistics["seconds of video per narration"].value == pytest.approx(5, abs=0.3)
    wrong = {
        name: (statistics[name].value, real)
        for name, real in zip(NAMES, REAL[preset], strict=True)
        if not statistics[name].tolerance.allows(statistics[name].value, real)
    }
    assert not wrong


@pytest.mark.skipif("VINA_DATA" not in os.environ, reason="VINA_DATA names no folder of real files")
@pytest.mark.parametrize("preset", list(REAL))
def test_a_preset_is_within_tolerance_of_the_published_files(preset: str) -> None:
    with open_data(str(DATA / preset)) as store:
        real = shape_of(read_annotated_videos(store, preset))
    differences = compare(shape_of(annotated(preset, 0)), real)
    assert len(differences) == len(NAMES)
    assert [difference for difference in differences if not difference.is_within_tolerance] == []
