"""HowTo100M: metadata, tasks, and narrations split into sentences.

`HowTo100M_v1.csv` -> videos; `task_ids.csv` -> articles (titles only: the steps come from wikiHow);
`sentencified*.json`, or any other JSON file of that form -> narrations. A file with `caption` in its name
(`raw_caption.json`) holds raw captions, which overlap: they are made into sentences first.
"""

from pathlib import Path

from tasks.importers.files import Files, article_id, split_title
from tasks.importers.import_session import ImportSession
from tasks.importers.json_entries import read_json
from tasks.importers.narrations import NarrationWriter
from tasks.importers.text_files import clean, read_csv, read_table, whole_number

SOURCE = "howto100m"
PARTITION = {"source": SOURCE}
EXPECTED = "HowTo100M_v1.csv, task_ids.csv, sentencified*.json"


def import_howto100m(files: Files, session: ImportSession) -> None:
    """Import the existing files of the three kinds."""
    for path in files.named("task_ids*.csv"):
        with session.file(path):
            _read_tasks(path, session)
    for path in files.named("HowTo100M*.csv"):
        with session.file(path):
            _read_videos(path, session)
    for path in files.named("*.json"):
        with session.file(path):
            _read_narrations(path, session)


def _read_tasks(path: Path, session: ImportSession) -> None:
    rejects = session.rows_of("articles")
    for line, row in read_table(path, ("id", "title"), rejects, delimiter="\t"):
        task, (title, variation) = clean(row["id"]), split_title(row["title"])
        if not task or not title:
            rejects.reject(task or f"line {line}", "empty id or title", str(row), path, line)
        elif session.new("articles", PARTITION, article_id(SOURCE, task), path, line):
            session.keep(
                "articles",
                PARTITION,
                [{"article_id": article_id(SOURCE, task), "title": title, "variation": variation}],
            )


def _read_videos(path: Path, session: ImportSession) -> None:
    columns = ("video_id", "category_1", "category_2", "rank", "task_id")
    rejects = session.rows_of("videos")
    for line, row in read_csv(path, columns, rejects):
        video_id, task, rank = row["video_id"].strip(), row["task_id"].strip(), row["rank"].strip()
        if not video_id or not task:
            rejects.reject(video_id or f"line {line}", "empty id", str(row), path, line)
        elif rank and whole_number(rank) is None:
            rejects.reject(video_id, "rank is not a number", rank, path, line)
        elif session.new("videos", PARTITION, (video_id, article_id(SOURCE, task)), path, line):
            video = {"video_id": video_id, "article_id": article_id(SOURCE, task), "rank": whole_number(rank)}
            categories = {name: clean(row[name]) or None for name in ("category_1", "category_2")}
            session.keep("videos", PARTITION, [video | categories])


def _read_narrations(path: Path, session: ImportSession) -> None:
    narrations, are_captions = NarrationWriter(session, SOURCE, path), "caption" in path.name
    try:
        for video_id, value, line, num_bytes in read_json(path, session.rows_of("narrations")):
            if isinstance(value, dict) and {"text", "start", "end"} <= value.keys():
                narrations.add(video_id, value["text"], value["start"], value["end"], line, num_bytes, are_captions)
            else:
                detail = "an object with text, start and end is expected"
                session.rows_of("narrations").reject(video_id, "wrong columns", detail, path, line)
    finally:  # of a file that is cut off, keep the entries before the cut
        narrations.close()
