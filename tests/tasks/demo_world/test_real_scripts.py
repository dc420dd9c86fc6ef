"""Worlds with the timelines of a data set: the same segments in videos as long, held out as there."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from flows.cli.main import main
from tasks.demo_world.corpus import world_of
from tasks.demo_world.files import write_world
from tasks.demo_world.knobs import PRESETS
from tasks.demo_world.real_scripts import ScriptedWorld, read_scripts
from tasks.demo_world.script import World
from tasks.importers.settings import ImportSettings
from tasks.importers.stage import import_corpus
from tasks.pipeline.job import Job

DATA = Path(os.environ.get("VINA_DATA", ""))
SMALL = replace(PRESETS["short"], num_videos=40, num_articles=8, unseen_share=0.25, num_rendered=0, feature_width=8)


@pytest.fixture(scope="module")
def annotations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of HT-Step's files, with annotated training videos."""
    folder = tmp_path_factory.mktemp("scripts")
    write_world(World(SMALL, 7), folder / "corpus", with_videos=False)
    return folder / "corpus/htstep"


def scripted(folder: Path, **changes: int) -> ScriptedWorld:
    world = world_of(",".join(["demo:short", f"scripts={folder}", *(f"{k}={v}" for k, v in changes.items())]))
    assert isinstance(world, ScriptedWorld)
    return world


def test_timelines_and_splits_are_those_of_the_data_set(annotations: Path) -> None:
    world = scripted(annotations, num_videos=40)
    timelines = Counter((video.split, video.duration_s, video.segments) for video in world)
    assert timelines == Counter((video.split, video.duration_s, video.segments) for video in World(SMALL, 7))
    assert len(world.articles) == len({video.article_id for video in read_scripts(str(annotations)).videos})
    assert all(video.scenes[-1].end_s == video.duration_s and video.narrations for video in world)


def test_further_videos_repeat_training_scripts_with_other_looks_and_words(annotations: Path) -> None:
    world = scripted(annotations, num_videos=100)
    assert Counter(world.split_of(number) for number in range(40, 100)) == {"train": 60}
    first = world.video(next(number for number in range(40) if world.split_of(number) == "train"))
    (again, *_) = [video for video in map(world.video, range(40, 100)) if video.segments == first.segments]
    assert again.video_id != first.video_id and again.narrations != first.narrations


def test_equal_steps_get_equal_actions(annotations: Path) -> None:
    scripts = read_scripts(str(annotations))
    steps: dict[str, set[object]] = {}
    for article, demo in zip(
        sorted({v.article_id for v in scripts.videos}), scripted(annotations).articles, strict=True
    ):
        assert len(demo.pairs) == len(demo.steps) == len(scripts.headlines[article])
        for headline, step in zip(scripts.headlines[article], demo.steps, strict=True):
            steps.setdefault(headline, set()).add(step.actions)
    assert all(len(actions) == 1 for actions in steps.values())


def test_a_world_of_scripts_is_written_and_imported(annotations: Path, tmp_path: Path) -> None:
    knobs = ["--set", "num_rendered=0", "--set", "num_videos=12", "--set", "feature_width=8"]
    assert main(["demo", str(tmp_path / "c"), "--preset", "short", "--scripts", str(annotations), *knobs]) == 0
    report = import_corpus(Job.of(str(tmp_path / "store"), "run", ImportSettings(corpus=str(tmp_path / "c"))))
    assert "videos: 12 rows read, 12 kept" in report


@pytest.mark.parametrize("content", [None, "{}"])
def test_a_folder_without_annotations_is_refused(content: str | None, tmp_path: Path) -> None:
    if content:
        (tmp_path / "annotations.json").write_text(content)
    with pytest.raises(ValueError, match=r"data set with annotated steps|annotations of one data set"):
        read_scripts(str(tmp_path))
    with pytest.raises(ValueError, match="there is nothing at"):
        read_scripts(str(tmp_path / "nowhere"))


@pytest.mark.skipif("VINA_DATA" not in os.environ, reason="VINA_DATA names no folder of real files")
@pytest.mark.parametrize(("name", "scripts"), [("htstep", 600), ("crosstask", 2_304), ("coin", 2_354)])
def test_published_files_give_worlds(name: str, scripts: int) -> None:
    world = scripted(DATA / name, num_videos=scripts + 10)
    assert len(world.scripts.videos) == scripts
    splits = Counter(world.split_of(number) for number in range(scripts))
    assert splits["train"] == pytest.approx(0.8 * scripts, abs=1)
    for number in range(0, scripts, scripts // 20):
        assert world.video(number).segments
