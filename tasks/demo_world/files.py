"""The demo world in the file formats of the real data sets, one folder per source, ready for the importers.

Videos that are drawn have an SRT file beside them; all others are in the JSON file of narrations. Validation and test
videos are annotated as in CrossTask, HT-Step and HTM-Align; HT-Step's files also have the truth of training videos.
The folder gets its name when it is complete.
"""

import csv
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasks.demo_world.articles import DemoArticle
from tasks.demo_world.contact_sheet import draw_contact_sheet
from tasks.demo_world.features import ConceptSpace
from tasks.demo_world.pixels import render
from tasks.demo_world.script import SPLITS, Video, World

BACKBONE = "demo-concepts"
PRIMARY_TASKS = 18
"""Number of tasks that are CrossTask's primary tasks; the others are its related tasks."""
MOST_STEPS_OF_ARTICLE = 100
"""Distance of two articles in HT-Step's step numbers."""


def write_world(
    world: World,
    folder: Path,
    on_progress: Callable[[str], None] = lambda text: None,
    with_videos: bool = True,
) -> list[str]:
    """Write everything, or all but features and video files; return lines that list it.

    The folder must be new or empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists already: choose a new folder, or remove it")
    partial = folder.with_name(f".{folder.name}.partial")
    if partial.exists():
        raise ValueError(f"{partial} exists: another command is writing it, or was killed; in that case remove it")
    try:
        _write_articles(world.articles, partial)
        video_files = _write_videos(world, partial, on_progress, with_videos)
        if video_files:
            draw_contact_sheet(video_files[:3], partial / "contact_sheet.png")
        if folder.exists():
            folder.rmdir()
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    lines = [f"{folder}: {len(world.articles):,} articles, {len(world):,} videos, {len(video_files)} drawn"]
    if video_files:
        lines += [
            f"a video: {folder / video_files[0][1].relative_to(partial)}",
            f"frames of three: {folder / 'contact_sheet.png'}",
        ]
    return [*lines, f"to run it: vina run --preset demo --corpus {folder}"]


def _write_videos(
    world: World, folder: Path, on_progress: Callable[[str], None], with_videos: bool
) -> list[tuple[Video, Path]]:
    """Write all files about videos, in one pass; return the videos that were drawn, with their files."""
    concept_space, drawn = ConceptSpace(world), set(world.rendered if with_videos else ())
    features = folder / "features" / BACKBONE
    features.mkdir(parents=True)
    video_files: list[tuple[Video, Path]] = []
    held_out: list[Video] = []
    with (
        _JsonFile(folder / "howto100m/sentencified_htm.json") as narrations,
        _JsonFile(folder / "htstep/annotations.json") as htstep,
        (folder / "howto100m/HowTo100M_v1.csv").open("w", newline="") as metadata,
    ):
        csv.writer(metadata).writerow(["video_id", "category_1", "category_2", "rank", "task_id"])
        for video in world:
            if video.number % 100 == 0:
                on_progress(f"writing video {video.number:,} of {len(world):,}")
            article = video.article
            columns = (article.category, article.theme.title(), video.number % 200 + 1, article.task_id)
            csv.writer(metadata).writerow([video.video_id, *columns])
            if with_videos:
                np.save(features / f"{video.video_id}.mp4.npy", concept_space.watch(video))
            htstep.add(video.video_id, _htstep_entry(video, world))
            if video.number in drawn:
                on_progress(f"drawing video {video.video_id}")
                video_files.append((video, _write_video(world, video, folder)))
            else:
                narrations.add(video.video_id, _spoken(video))
            if video.split != "train":
                held_out.append(video)
    _write_splits(world, folder)
    _write_benchmarks(world.articles, held_out, folder)
    return video_files


def _write_benchmarks(articles: Sequence[DemoArticle], videos: Sequence[Video], folder: Path) -> None:
    """Write the annotations of held-out videos for HTM-Align, CrossTask and YouwikiHow."""
    primary = {article.task_id for article in articles[:PRIMARY_TASKS]}
    annotated = [video for video in videos if video.article.task_id in primary]
    with _JsonFile(folder / "htm-align/htm_align.json") as htm_align:
        for video in videos:
            htm_align.add(video.video_id, _aligned(video))
    _write_list(folder / "crosstask/videos.csv", videos)
    _write_list(folder / "crosstask/videos_val.csv", [video for video in annotated if video.split.startswith("val")])
    for video in annotated:
        name = f"{video.article.task_id}_{video.video_id}.csv"
        _write_csv(folder / "crosstask/annotations" / name, _crosstask_rows(video))
    _write_grounding(articles[:PRIMARY_TASKS], annotated, folder)


def _write_list(path: Path, videos: Sequence[Video]) -> None:
    """Write a list of videos as CrossTask does; nothing if it is empty."""
    address = "https://www.youtube.com/watch?v="
    if videos:
        _write_csv(path, [(video.article.task_id, video.video_id, address + video.video_id) for video in videos])


class _JsonFile:
    """Writes one JSON object, entry by entry."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file, self._is_first = path.open("w"), True

    def __enter__(self) -> "_JsonFile":
        self._file.write("{")
        return self

    def __exit__(self, *error: object) -> None:
        self._file.write("\n}\n")
        self._file.close()

    def add(self, key: str, value: Any) -> None:
        """Append one entry, on its own line."""
        self._file.write(f"{'' if self._is_first else ','}\n{json.dumps(key)}: {json.dumps(value)}")
        self._is_first = False


def _write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def step_index(articles: Sequence[DemoArticle], article: DemoArticle, row: int) -> int:
    """Return HT-Step's global_step_index of a step; the indices have gaps."""
    return MOST_STEPS_OF_ARTICLE * articles.index(article) + row


def _write_articles(articles: Sequence[DemoArticle], folder: Path) -> None:
    (folder / "howto100m").mkdir(parents=True)
    titles = "".join(f"{article.task_id}\t{article.title}\n" for article in articles)
    (folder / "howto100m/task_ids.csv").write_text(titles)
    by_article: list[Sequence[object]] = [("headline", "title", "text")]
    by_step: list[Sequence[object]] = [("overview", "headline", "text", "sectionLabel", "title")]
    taxonomy: list[Sequence[object]] = [
        ("global_step_index", "activity", "step_index", "variation", "variation_index", "headline", "paragraph")
    ]
    for article in articles:
        title = f"How to {article.title}"
        headlines = "\n" + ",\n".join(step.headline for step in article.steps)
        by_article.append((headlines, title, " ".join(step.paragraph for step in article.steps)))
        for row, step in enumerate(article.steps):
            by_step.append(("", f"\n{step.headline}", step.paragraph, "Steps", title))
            index = step_index(articles, article, row)
            taxonomy.append((index, article.title, row, "none", row + 1, step.headline, step.paragraph))
    _write_csv(folder / "wikihow/wikihowAll.csv", by_article)
    _write_csv(folder / "wikihow/wikihowSep.csv", by_step)
    _write_csv(folder / "htstep/taxonomy.csv", taxonomy)
    (folder / "crosstask").mkdir()
    for name, listed in (("primary", articles[:PRIMARY_TASKS]), ("related", articles[PRIMARY_TASKS:])):
        if listed:
            blocks = "\n".join(_crosstask_block(article) for article in listed)
            (folder / f"crosstask/tasks_{name}.txt").write_text(blocks)


def _crosstask_block(article: DemoArticle) -> str:
    address = f"http://www.wikihow.com/{article.title.replace(' ', '-')}"
    steps = ",".join(step.short for step in article.steps)
    return f"{article.task_id}\n{article.title}\n{address}\n{len(article.steps)}\n{steps}\n"


def _crosstask_rows(video: Video) -> list[tuple[object, ...]]:
    return [(segment.step + 1, segment.start_s, segment.end_s) for segment in video.segments]


def _htstep_entry(video: Video, world: World) -> dict[str, Any]:
    annotations = [
        {
            "segment": [segment.start_s, segment.end_s],
            "id": step_index(world.articles, video.article, segment.step),
            "label": video.article.steps[segment.step].headline,
        }
        for segment in video.segments
    ]
    entry = {"subset": video.split, "activity": video.article.title, "variation": "none", "duration": video.duration_s}
    return entry | {"annotations": annotations}


def _spoken(video: Video) -> dict[str, list[Any]]:
    return {
        "text": [narration.text for narration in video.narrations],
        "start": [narration.start_s for narration in video.narrations],
        "end": [narration.end_s for narration in video.narrations],
    }


def _aligned(video: Video) -> list[list[Any]]:
    times = [narration.seen_s or (narration.start_s, narration.end_s) for narration in video.narrations]
    return [
        [int(narration.seen_s is not None), *time, narration.text]
        for narration, time in zip(video.narrations, times, strict=True)
    ]


def _write_splits(world: World, folder: Path) -> None:
    splits: dict[str, list[str]] = {split: [] for split in SPLITS}
    for number in range(len(world)):
        splits[world.split_of(number)].append(world.video_id(number))
    (folder / "htstep/video_splits.json").write_text(json.dumps(splits))


def _write_grounding(articles: Sequence[DemoArticle], videos: Sequence[Video], folder: Path) -> None:
    """Write YouwikiHow's `crosstask_test.json`, in which every step has its own headline."""
    with _JsonFile(folder / "youwikihow/crosstask_test.json") as file:
        for article in articles:
            task_videos = [video for video in videos if video.article.task_id == article.task_id]
            shown = {
                video.video_id: [
                    {"step_id": str(step), "step_s": str(start), "step_e": str(end)}
                    for step, start, end in _crosstask_rows(video)
                ]
                for video in task_videos
            }
            entry = {
                "task_full_name": f"How to {article.title}",
                "task_text": {"simplified_headline_list": [step.headline for step in article.steps]},
                "task_video": list(shown),
                "video_duration": {video.video_id: video.duration_s for video in task_videos},
                "step2headline": [str(row) for row in range(len(article.steps))],
                "crosstask_annotations": shown,
            }
            file.add(article.task_id, entry)


def _write_video(world: World, video: Video, folder: Path) -> Path:
    """Draw a video as an MP4 file, and write its captions; return the path."""
    path = folder / f"videos/{video.video_id}.mp4"
    render(world, video, path)
    cues = (
        f"{number}\n{_clock(narration.start_s)} --> {_clock(narration.end_s)}\n{narration.text}\n"
        for number, narration in enumerate(video.narrations, 1)
    )
    if video.narrations:
        path.with_suffix(".srt").write_text("\n".join(cues))
    return path


def _clock(seconds: float) -> str:
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02},{rest % 1000:03}"
