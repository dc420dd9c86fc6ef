"""HT-Step: `taxonomy.csv` -> articles and steps, `video_splits.json` -> videos, `annotations.json` -> annotations.

Each variation of an activity is an article. Steps are identified by their `global_step_index`, which has gaps;
headlines repeat, so nothing is looked up by text.
"""

from pathlib import Path
from typing import Any

from tasks.importers.files import Files, article_id
from tasks.importers.import_session import ImportSession
from tasks.importers.json_entries import Entry, read_json
from tasks.importers.narrations import duration
from tasks.importers.segments import keep_segments, segment_row
from tasks.importers.text_files import clean, read_csv, whole_number

SOURCE = "htstep"
PARTITION = {"source": SOURCE}
EXPECTED = "taxonomy.csv, annotations.json, video_splits.json"
Steps = dict[str, tuple[str, str]]
"""Step id -> article and headline."""


def import_htstep(files: Files, session: ImportSession) -> None:
    """Import the existing ones of the three files. Annotations need the taxonomy, from this or an earlier import."""
    stored = session.stored_rows("steps", SOURCE, "article_id", "step_id", "headline")
    steps: Steps = {row["step_id"]: (row["article_id"], row["headline"]) for row in stored}
    for path in files.named("taxonomy.csv"):
        with session.file(path):
            steps |= _read_taxonomy(path, session)
    splits: dict[str, str] = {}
    for path in files.named("video_splits.json"):
        with session.file(path):
            splits |= _read_splits(path, session)
    videos: dict[str, dict[str, Any]] = {video_id: {"split": split} for video_id, split in splits.items()}
    for path in files.named("annotations.json"):
        with session.file(path):
            for entry in read_json(path, session.rows_of("annotations")):
                if video := _read_annotation(entry, path, steps, splits, session):
                    videos[entry.key] = video
    for video_id, video in videos.items():
        if session.new("videos", PARTITION, video_id, files.path):
            session.keep("videos", PARTITION, [{"video_id": video_id} | video])


def _read_taxonomy(path: Path, session: ImportSession) -> Steps:
    columns = ("global_step_index", "activity", "step_index", "variation", "headline", "paragraph")
    articles: dict[str, list[tuple[int, dict[str, str]]]] = {}
    steps: Steps = {}
    rejects = session.rows_of("steps")
    for line, raw in read_csv(path, columns, rejects):
        row = {name: clean(value) for name, value in raw.items()}
        step, indices = row["global_step_index"], (row["global_step_index"], row["step_index"])
        if None in map(whole_number, indices) or not row["activity"] or not row["headline"]:
            detail = f"two indices, an activity and a headline are needed: {row}"
            rejects.reject(step or f"line {line}", "malformed step", detail, path, line)
        elif step in steps:
            rejects.reject(step, "duplicate id", "global_step_index: the first one was kept", path, line)
        else:
            article = article_id(SOURCE, "/".join(_activity(row)))
            steps[step] = (article, row["headline"])
            articles.setdefault(article, []).append((line, row))
    for article, members in articles.items():
        _keep_article(article, members, path, session)
    return steps


def _activity(row: dict[str, Any]) -> list[str]:
    variation = str(row.get("variation") or "none")
    return [row["activity"]] + ([variation] if variation != "none" else [])


def _keep_article(name: str, members: list[tuple[int, dict[str, str]]], path: Path, session: ImportSession) -> None:
    first_line, first = members[0]
    title, *variation = _activity(first)
    ordered = sorted((row for _, row in members), key=lambda row: int(row["step_index"]))
    steps = [
        {"step_id": row["global_step_index"], "headline": row["headline"], "paragraph": row["paragraph"] or None}
        for row in ordered
    ]
    article = {"article_id": name, "title": title, "variation": variation[0] if variation else None}
    session.keep_article(SOURCE, article, steps, path, first_line)


def _read_splits(path: Path, session: ImportSession) -> dict[str, str]:
    splits: dict[str, str] = {}
    rejects = session.rows_of("videos")
    for split, videos, line, _ in read_json(path, rejects):
        if not isinstance(videos, list):
            rejects.reject(split, "malformed split", "a list of video ids is expected", path, line)
            continue
        for video in videos:
            if not isinstance(video, str) or not video:
                rejects.reject(str(video), "empty id", f"a video id is expected in the split {split}", path, line)
            elif video in splits:
                rejects.reject(video, "duplicate id", f"in the splits {splits[video]} and {split}", path, line)
            else:
                splits[video] = split
    return splits


def _read_annotation(
    entry: Entry, path: Path, steps: Steps, splits: dict[str, str], session: ImportSession
) -> dict[str, Any] | None:
    """Keep the segments of a video; return its row of `videos`, or None."""
    value, rejects = entry.value, session.rows_of("annotations")
    if not isinstance(value, dict) or not isinstance(value.get("annotations"), list):
        detail = "an object with subset, activity and annotations is expected"
        rejects.reject(entry.key, "wrong columns", detail, path, entry.line)
        return None
    split = str(value.get("subset") or splits.get(entry.key) or "unknown")
    rows: list[tuple[int | None, dict[str, Any]]] = []
    task: str | None = None
    for annotation in value["annotations"]:
        step = str(annotation.get("id")) if isinstance(annotation, dict) else ""
        segment = annotation.get("segment") if isinstance(annotation, dict) else None
        if step not in steps:
            rejects.reject(entry.key, "unknown step", f"the taxonomy has no step {step!r}", path, entry.line)
        elif not isinstance(segment, list) or len(segment) != 2:
            rejects.reject(entry.key, "malformed segment", f"[start, end] is expected, not {segment}", path, entry.line)
        else:
            task, headline = steps[step]
            rows.append((entry.line, segment_row(entry.key, task, step, headline, segment[0], segment[1], split)))
    keep_segments(rows, SOURCE, path, session)
    if task is None and isinstance(value.get("activity"), str):
        task = article_id(SOURCE, "/".join(_activity(value)))
    return {"article_id": task, "split": split, "duration_s": duration(value.get("duration"))}
