"""World -> files -> importers -> tables gives back exactly the world's own script."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from storage import Store
from storage.feature_reader import FeatureReader
from tasks.demo_world import files
from tasks.demo_world.features import ConceptSpace
from tasks.demo_world.files import BACKBONE, PRIMARY_TASKS, step_index, write_world
from tasks.demo_world.knobs import PRESETS, Knobs
from tasks.demo_world.script import Video, World
from tasks.demo_world.timeline import Segment
from tasks.importers.settings import ImportSettings
from tasks.importers.stage import import_corpus
from tasks.pipeline.job import Job

RATE = st.floats(0, 1)
KNOBS = st.builds(
    replace,
    st.sampled_from(list(PRESETS.values())),
    num_videos=st.integers(1, 25),
    num_articles=st.integers(2, 24),
    unseen_share=st.floats(0, 0.9),
    num_actions=st.integers(8, 24),
    num_objects=st.integers(16, 60),
    steps_per_article=st.floats(2, 12),
    two_action_share=RATE,
    feature_width=st.sampled_from([8, 31]),
    feature_noise=st.floats(0, 10),
    look_strength=st.floats(0, 2),
    shown_share=st.floats(0.02, 0.98),
    repeat_rate=RATE,
    order_noise=st.floats(0, 2),
    overlap_rate=st.floats(0, 0.9),
    narration_every_s=st.floats(2, 30),
    narration_lag_s=st.floats(0, 60),
    alignable_share=st.floats(0.5, 1),
    in_sync_share=st.floats(0, 0.5),
    paraphrase_rate=RATE,
    pronoun_rate=RATE,
    wording_rate=RATE,
    num_rendered=st.just(0),
)


def imported(world: World, folder: Path) -> Store:
    write_world(world, folder / "corpus")
    job = Job.of(str(folder / "store"), "run-1", ImportSettings(corpus=str(folder / "corpus")))
    import_corpus(job)
    store = Store(job.store)
    assert store.table("rejects").snapshot().num_rows == 0
    return store


def rows(store: Store, table: str, columns: str, **partition: str) -> list[tuple[Any, ...]]:
    """The rows of a partition, sorted; times as float32 has them."""
    snapshot = store.table(table).snapshot().where(**partition)
    found = snapshot.read(columns.split()).to_pylist() if snapshot.shards else []
    return sorted((single(*row.values()) for row in found), key=repr)


def single(*values: Any) -> tuple[Any, ...]:
    return tuple(float(np.float32(value)) if isinstance(value, float) else value for value in values)


def same(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    assert found == sorted((single(*row) for row in expected), key=repr)


def check_articles(world: World, store: Store) -> None:
    slugs = {article.task_id: "-".join(article.title.split()) for article in world.articles}
    for source, article_id in (
        ("howto100m", lambda article: f"howto100m/{article.task_id}"),
        ("wikihow", lambda article: f"wikihow/{slugs[article.task_id]}"),
        ("crosstask", lambda article: f"crosstask/{article.task_id}"),
        ("htstep", lambda article: f"htstep/{article.title}"),
    ):
        same(
            rows(store, "articles", "article_id title variation", source=source),
            [(article_id(a), a.title, None) for a in world.articles],
        )
    steps = [(article, row, step) for article in world.articles for row, step in enumerate(article.steps)]
    columns = "article_id row step_id headline paragraph"
    same(
        rows(store, "steps", columns, source="wikihow"),
        [(f"wikihow/{slugs[a.task_id]}", row, str(row), step.headline, step.paragraph) for a, row, step in steps],
    )
    same(
        rows(store, "steps", columns, source="htstep"),
        [
            (f"htstep/{a.title}", row, str(step_index(world.articles, a, row)), s.headline, s.paragraph)
            for a, row, s in steps
        ],
    )
    same(
        rows(store, "steps", columns, source="crosstask"),
        [(f"crosstask/{a.task_id}", row, str(row + 1), f"{s.action} {s.object}", None) for a, row, s in steps],
    )


def check_videos(world: World, store: Store) -> None:
    videos = list(world)
    same(
        rows(store, "videos", "video_id article_id category_1", source="howto100m"),
        [(video.video_id, f"howto100m/{video.article.task_id}", video.article.category) for video in videos],
    )
    same(
        rows(store, "videos", "video_id split duration_s", source="htstep"),
        [(video.video_id, video.split, video.duration_s) for video in videos],
    )
    spoken = {number: "howto100m" for number in range(len(videos))} | dict.fromkeys(world.rendered, "videos")
    for source in ("howto100m", "videos"):
        same(
            rows(store, "narrations", "video_id row text start_s end_s", source=source),
            [
                (video.video_id, row, narration.text, narration.start_s, narration.end_s)
                for video in videos
                if spoken[video.number] == source
                for row, narration in enumerate(video.narrations)
            ],
        )


def short(video: Video, segment: Segment) -> str:
    step = video.article.steps[segment.step]
    return f"{step.action} {step.object}"


def check_annotations(world: World, store: Store) -> None:
    shown = [(video, segment) for video in world for segment in video.segments]
    columns = "video_id step_id text start_s end_s split"
    same(
        rows(store, "annotations", columns, benchmark="htstep"),
        [
            (
                v.video_id,
                str(step_index(world.articles, v.article, s.step)),
                v.article.steps[s.step].headline,
                s.start_s,
                s.end_s,
                v.split,
            )
            for v, s in shown
        ],
    )
    primary = {article.task_id for article in world.articles[:PRIMARY_TASKS]}
    held_out = [(v, s) for v, s in shown if v.split != "train" and v.article.task_id in primary]
    is_listed = any(v.split.startswith("val") for v in world if v.article.task_id in primary)
    splits = {"val": "validation", "test": "test" if is_listed else "unlisted"}
    same(
        rows(store, "annotations", columns, benchmark="crosstask"),
        [
            (v.video_id, str(s.step + 1), short(v, s), s.start_s, s.end_s, splits[v.split.split("_")[0]])
            for v, s in held_out
        ],
    )
    same(
        rows(store, "annotations", columns, benchmark="crosstask-articles"),
        [(v.video_id, str(s.step), v.article.steps[s.step].headline, s.start_s, s.end_s, "test") for v, s in held_out],
    )
    same(
        rows(store, "annotations", "video_id narration_row text alignable start_s end_s", benchmark="htm-align"),
        [
            (video.video_id, row, narration.text, narration.seen_s is not None, *(narration.seen_s or (None, None)))
            for video in world
            if video.split != "train"
            for row, narration in enumerate(video.narrations)
        ],
    )


def check_features(world: World, store: Store) -> None:
    concept_space, reader = ConceptSpace(world), FeatureReader(store, BACKBONE)
    for video in world:
        np.testing.assert_array_equal(reader.read(video.video_id), concept_space.watch(video))


@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(knobs=KNOBS, seed=st.integers(0, 2**31))
def test_the_tables_are_the_script(knobs: Knobs, seed: int) -> None:
    world = World(knobs, seed)
    with TemporaryDirectory() as folder:
        store = imported(world, Path(folder))
        check_articles(world, store)
        check_videos(world, store)
        check_annotations(world, store)
        check_features(world, store)


def test_a_drawn_video_brings_its_captions(tmp_path: Path) -> None:
    world = World(replace(PRESETS["short"], num_videos=20, num_rendered=2, num_articles=4, feature_width=8), 3)
    store = imported(world, tmp_path)
    check_videos(world, store)
    video_files = rows(store, "videos", "video_id duration_s uri", source="videos")
    assert [video_file[0] for video_file in video_files] == sorted(world.video(number).video_id for number in (9, 19))
    for video_id, duration_s, uri in video_files:
        truth = next(video for video in world if video.video_id == video_id).duration_s
        assert abs(duration_s - truth) < 0.1 and Path(uri).is_file()
    assert (tmp_path / "corpus/contact_sheet.png").stat().st_size > 10_000
    again = import_corpus(Job.of(store.uri, "run-2", ImportSettings(corpus=str(tmp_path / "corpus"))))
    assert " 0 kept" in again and not any(
        int(line.split(" kept")[0].split()[-1]) for line in again.splitlines() if " kept" in line
    )


def test_wikihow_all_alone_gives_the_same_headlines(tmp_path: Path) -> None:
    world = World(replace(PRESETS["short"], num_videos=1, num_rendered=0), 0)
    write_world(world, tmp_path / "corpus")
    (tmp_path / "corpus/wikihow/wikihowSep.csv").unlink()
    import_corpus(Job.of(str(tmp_path / "store"), "run-1", ImportSettings(corpus=str(tmp_path / "corpus"))))
    found = rows(Store(tmp_path / "store"), "steps", "article_id row headline", source="wikihow")
    same(
        found,
        [
            (f"wikihow/{'-'.join(a.title.split())}", row, s.headline)
            for a in world.articles
            for row, s in enumerate(a.steps)
        ],
    )


def test_the_files_look_like_the_real_ones(tmp_path: Path) -> None:
    write_world(World(replace(PRESETS["short"], num_videos=30, num_rendered=0), 0), tmp_path / "c")
    with (tmp_path / "c/howto100m/HowTo100M_v1.csv").open() as file:
        assert next(csv.reader(file)) == ["video_id", "category_1", "category_2", "rank", "task_id"]
    narrations = json.loads((tmp_path / "c/howto100m/sentencified_htm.json").read_text())
    assert len(narrations) == 30 and all(value.keys() == {"text", "start", "end"} for value in narrations.values())
    block = (tmp_path / "c/crosstask/tasks_primary.txt").read_text().split("\n\n")[0].splitlines()
    assert (
        len(block) == 5 and block[2].startswith("http://www.wikihow.com/") and int(block[3]) == len(block[4].split(","))
    )
    assert next((tmp_path / "c/features" / BACKBONE).glob("*.npy")).name.endswith(".mp4.npy")


def test_nothing_is_left_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(files, "_write_grounding", fail)
    with pytest.raises(OSError, match="disk full"):
        write_world(World(replace(PRESETS["short"], num_videos=3, num_rendered=0), 0), tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c/precious").write_text("x")
    with pytest.raises(ValueError, match="exists already"):
        write_world(World(replace(PRESETS["short"], num_videos=3, num_rendered=0), 0), tmp_path / "c")
    assert (tmp_path / "c/precious").read_text() == "x"
