"""COIN: `COIN.json`, {"database": {video id: entry}} -> articles, steps, videos, annotations.

A class is an article; its steps are the labels that occur in it, in the order of their ids. The file lists no steps
that no video shows, so a part of it (the testing subset) may give an article fewer steps than the whole.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tasks.importers.files import Files, article_id
from tasks.importers.import_session import ImportSession
from tasks.importers.json_entries import read_json
from tasks.importers.narrations import duration
from tasks.importers.segments import keep_segments, segment_row
from tasks.importers.text_files import clean, whole_number

SOURCE = "coin"
PARTITION = {"source": SOURCE}
EXPECTED = "COIN.json"
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
Steps = dict[str, dict[str, str]]
"""Article -> step id -> label."""


class _Shown(NamedTuple):
    """An annotation that names a step."""

    step_id: str
    label: str
    segment: list[Any]


class _CoinVideo(NamedTuple):
    """A video of the file, with those of its annotations that are well formed."""

    video_id: str
    article: str
    title: str
    split: str
    duration_s: float | None
    shown: list[_Shown]


def import_coin(files: Files, session: ImportSession) -> None:
    """Import the file: first all articles, then videos and annotations."""
    for path in files.named("COIN.json"):
        with session.file(path):
            for entry in read_json(path, session.rows_of("annotations")):
                if entry.key == "database" and isinstance(entry.value, dict):
                    videos = list(_read_videos(entry.value, path, entry.line, session))
                    steps = _keep_articles(videos, path, entry.line, session)
                    for video in videos:
                        _keep_video(video, steps, path, entry.line, session)
                else:
                    detail = 'only the object "database" of videos is expected'
                    session.rows_of("annotations").reject(entry.key, "wrong columns", detail, path, entry.line)


def _read_videos(database: dict[str, Any], path: Path, line: int, session: ImportSession) -> Iterator[_CoinVideo]:
    rejects = session.rows_of("annotations")
    for video_id, value in database.items():
        name = value.get("class") if isinstance(value, dict) else None
        annotations = value.get("annotation") if isinstance(value, dict) else None
        if not isinstance(name, str) or not clean(name) or not isinstance(annotations, list):
            detail = "an object with class, subset, duration and annotation is expected"
            rejects.reject(video_id, "wrong columns", detail, path, line)
            continue
        shown: list[_Shown] = []
        for annotation in annotations:
            reason, detail = _problem(annotation)
            if reason:
                rejects.reject(video_id, reason, detail, path, line)
            else:
                step_id = str(whole_number(str(annotation["id"])))
                shown.append(_Shown(step_id, clean(annotation["label"]), annotation["segment"]))
        split, title = str(value.get("subset") or "unknown"), _WORD_START.sub(" ", clean(name))
        article = article_id(SOURCE, clean(name))
        yield _CoinVideo(video_id, article, title, split, duration(value.get("duration")), shown)


def _problem(annotation: Any) -> tuple[str, str]:
    """Return the reason and the detail of a reject; two empty texts if the annotation is well formed."""
    given = annotation if isinstance(annotation, dict) else {}
    label, segment = given.get("label"), given.get("segment")
    if whole_number(str(given.get("id"))) is None or not isinstance(label, str) or not clean(label):
        return "malformed step", f"a number as id and a label are expected: {annotation}"
    if not isinstance(segment, list) or len(segment) != 2:
        return "malformed segment", f"[start, end] is expected, not {segment}"
    return "", ""


def _keep_articles(videos: list[_CoinVideo], path: Path, line: int, session: ImportSession) -> Steps:
    """Keep the articles; returns the steps that the store has for each."""
    found: Steps = {}
    for video in videos:
        for shown in video.shown:
            found.setdefault(video.article, {}).setdefault(shown.step_id, shown.label)
    titles = {video.article: video.title for video in videos}
    for article, labels in found.items():
        steps = [{"step_id": step_id, "headline": labels[step_id]} for step_id in sorted(labels, key=int)]
        session.keep_article(SOURCE, {"article_id": article, "title": titles[article]}, steps, path, line)
    stored: Steps = {}
    for row in session.stored_rows("steps", SOURCE, "article_id", "step_id", "headline"):
        stored.setdefault(row["article_id"], {})[row["step_id"]] = row["headline"]
    return found | stored


def _keep_video(video: _CoinVideo, steps: Steps, path: Path, line: int, session: ImportSession) -> None:
    labels = steps.get(video.article, {})
    rows: list[tuple[int | None, dict[str, Any]]] = []
    for step_id, label, (start, end) in video.shown:
        if labels.get(step_id) == label:
            rows.append((line, segment_row(video.video_id, video.article, step_id, label, start, end, video.split)))
        else:
            known = f"is {labels[step_id]!r} before" if step_id in labels else "is new to an article of the store"
            detail = f"step {step_id} {label!r} {known}; `vina forget {SOURCE}` makes room for another file"
            session.rows_of("annotations").reject(video.video_id, "unknown step", detail, path, line)
    keep_segments(rows, SOURCE, path, session)
    if session.new("videos", PARTITION, video.video_id, path, line):
        row = {"video_id": video.video_id, "article_id": video.article, "split": video.split}
        session.keep("videos", PARTITION, [row | {"duration_s": video.duration_s}])
