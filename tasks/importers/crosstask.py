"""CrossTask's release: `tasks_primary.txt`, `tasks_related.txt`, `videos.csv`, `videos_val.csv`, `annotations/*.csv`.

A task is an article without paragraphs. A video may belong to two tasks: `videos` has a row for each. The videos of
`videos_val.csv` are the split `validation`, all others `test`: the protocol draws its test sets there. Without that
list the split is `unlisted`.
A file `video_durations*.json` (video id -> seconds) is not part of the release, but is used if there is one.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from tasks.importers.files import Files, article_id
from tasks.importers.import_session import ImportSession
from tasks.importers.json_entries import read_json
from tasks.importers.narrations import duration
from tasks.importers.segments import keep_segments, segment_row
from tasks.importers.text_files import BadFile, clean, read_lines, read_table

SOURCE = "crosstask"
PARTITION = {"source": SOURCE}
EXPECTED = "tasks_primary.txt, tasks_related.txt, videos.csv, videos_val.csv, annotations/TASK_VIDEO.csv"
Steps = dict[tuple[str, str], str]
SplitOf = Callable[[str, str], str]


def import_crosstask(files: Files, session: ImportSession) -> None:
    """Import the existing files of the release. Annotations need their tasks, from this or an earlier import."""
    stored = session.stored_rows("steps", SOURCE, "article_id", "step_id", "headline")
    steps: Steps = {(row["article_id"], row["step_id"]): row["headline"] for row in stored}
    for path in files.named("tasks_*.txt"):
        with session.file(path):
            steps |= _read_tasks(path, session)
    durations: dict[str, float | None] = {}
    for path in files.named("video_durations*.json"):
        with session.file(path):
            durations |= {entry.key: duration(entry.value) for entry in read_json(path, session)}
    split_of = _read_validation_list(files, session)
    tasks = {task for task, _ in steps}
    for path in files.named("videos.csv"):
        with session.file(path):
            _keep_videos(path, tasks, split_of, durations, session)
    for path in files.named("annotations/*.csv"):
        with session.file(path, one_item=True):
            _read_annotations(path, steps, tasks, split_of, session)


def _read_validation_list(files: Files, session: ImportSession) -> SplitOf:
    """Return a function from a video and its task to the split, by the list of this or an earlier import."""
    stored = session.stored_rows("videos", SOURCE, "video_id", "article_id", "split")
    validation = {(row["video_id"], row["article_id"]) for row in stored if row["split"] == "validation"}
    for path in files.named("videos_val.csv"):
        with session.file(path):
            listed = {(video_id, task) for _, video_id, task in _read_video_list(path, session)}
            session.note(f"{len(listed):,} videos are for validation, by {path.name}")
            validation |= listed
    if not validation:
        session.note("no videos_val.csv was found, here or before: the split of all videos is `unlisted`")
        return lambda video_id, task: "unlisted"
    return lambda video_id, task: "validation" if (video_id, task) in validation else "test"


def _read_tasks(path: Path, session: ImportSession) -> Steps:
    """Read blocks of five lines and a blank one: id, title, address, number of steps, steps joined by commas."""
    steps: Steps = {}
    block: list[str] = []
    begin, has_blocks = 0, False
    for line, text in chain(read_lines(path, session), [(0, "")]):
        if text.strip():
            begin = begin if block else line
            block.append(clean(text))
            continue
        if block:
            has_blocks = True
            steps |= _read_block(block, path, begin, session)
        block = []
    if not has_blocks:
        raise BadFile("empty file", f"{path} is empty; blocks of five lines are expected")
    return steps


def _read_block(block: list[str], path: Path, line: int, session: ImportSession) -> Steps:
    names = [name.strip().replace("_", " ") for name in block[4].split(",")] if len(block) == 5 else []
    if len(block) != 5 or not all(names) or block[3] != str(len(names)):
        detail = f"id, title, address, number of steps and that many steps are expected; found {block}"
        session.rows_of("articles").reject(block[0], "malformed task", detail, path, line)
        return {}
    task = article_id(SOURCE, block[0])
    steps = {(task, str(row + 1)): name for row, name in enumerate(names)}
    article = {"article_id": task, "title": block[1], "category": "primary" if "primary" in path.name else "related"}
    rows = [{"step_id": step, "headline": name} for (_, step), name in steps.items()]
    session.keep_article(SOURCE, article, rows, path, line)
    return steps


def _read_video_list(path: Path, session: ImportSession) -> Iterator[tuple[int, str, str]]:
    rejects = session.rows_of("videos")
    for line, row in read_table(path, ("task", "video", "url"), rejects):
        video_id, task = row["video"].strip(), row["task"].strip()
        if video_id and task:
            yield line, video_id, article_id(SOURCE, task)
        else:
            rejects.reject(f"line {line}", "empty id", str(row), path, line)


def _keep_videos(
    path: Path, tasks: set[str], split_of: SplitOf, durations: dict[str, float | None], session: ImportSession
) -> None:
    for line, video_id, task in _read_video_list(path, session):
        if tasks and task not in tasks:
            detail = f"{task} is in no tasks file"
            session.rows_of("videos").reject(video_id, "unknown task", detail, path, line)
        elif session.new("videos", PARTITION, (video_id, task), path, line):
            video = {"video_id": video_id, "article_id": task, "split": split_of(video_id, task)}
            session.keep("videos", PARTITION, [video | {"duration_s": durations.get(video_id)}])


def _read_annotations(path: Path, steps: Steps, tasks: set[str], split_of: SplitOf, session: ImportSession) -> None:
    task_name, _, video_id = path.stem.partition("_")  # video ids may begin with a dash or an underscore
    task, rejects = article_id(SOURCE, task_name), session.rows_of("annotations")
    if not video_id or task not in tasks:
        detail = f"{path.name}: TASK_VIDEO.csv is expected, with a task of a tasks file in the same folder or store"
        rejects.reject(path.stem, "unknown task", detail, path, None)
        return
    split = split_of(video_id, task)
    rows: list[tuple[int | None, dict[str, Any]]] = []
    for line, row in read_table(path, ("step", "start", "end"), rejects):
        step = row["step"].strip()
        if (task, step) in steps:
            rows.append((line, segment_row(video_id, task, step, steps[task, step], row["start"], row["end"], split)))
        else:
            rejects.reject(video_id, "unknown step", f"{task} has no step {step!r}", path, line)
    keep_segments(rows, SOURCE, path, session)
