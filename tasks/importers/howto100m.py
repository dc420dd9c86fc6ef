"""HowTo100M: its metadata, its tasks, and narrations that were cut into sentences.

`HowTo100M_v1.csv` -> videos; `task_ids.csv` -> articles (titles only: the steps come from wikiHow);
`sentencified*.json`, or any other JSON file of that form -> narrations.
"""

from pathlib import Path

from tasks.importers.files import Files, article_id, split_title
from tasks.importers.intake import Intake
from tasks.importers.json_entries import read_json
from tasks.importers.narrations import Narrations
from tasks.importers.text_files import clean, read_csv

SOURCE = "howto100m"
PARTITION = {"source": SOURCE}
EXPECTED = "HowTo100M_v1.csv, task_ids.csv, sentencified*.json"


def import_howto100m(files: Files, intake: Intake) -> None:
    """Whatever there is of the three files."""
    for path in files.named("task_ids*.csv"):
        with intake.file(path):
            _read_tasks(path, intake)
    for path in files.named("HowTo100M*.csv"):
        with intake.file(path):
            _read_videos(path, intake)
    for path in files.named("*.json"):
        with intake.file(path):
            _read_narrations(path, intake)


def _read_tasks(path: Path, intake: Intake) -> None:
    for line, row in read_csv(path, ("id", "title"), intake, header=False, delimiter="\t"):
        task, (title, variation) = clean(row["id"]), split_title(row["title"])
        if not task or not title:
            intake.reject(task or f"line {line}", "empty id or title", str(row), path, line)
        elif intake.new("articles", PARTITION, article_id(SOURCE, task), path, line):
            intake.keep(
                "articles",
                PARTITION,
                [{"article_id": article_id(SOURCE, task), "title": title, "variation": variation}],
            )


def _read_videos(path: Path, intake: Intake) -> None:
    columns = ("video_id", "category_1", "category_2", "rank", "task_id")
    for line, row in read_csv(path, columns, intake):
        video_id, task = row["video_id"].strip(), row["task_id"].strip()
        if not video_id or not task:
            intake.reject(video_id or f"line {line}", "empty id", str(row), path, line)
        elif row["rank"].strip() and not row["rank"].strip().isdigit():
            intake.reject(video_id, "rank is not a number", row["rank"], path, line)
        elif intake.new("videos", PARTITION, (video_id, article_id(SOURCE, task)), path, line):
            video = {
                "video_id": video_id,
                "task_id": article_id(SOURCE, task),
                "rank": int(row["rank"].strip() or 0) or None,
            }
            categories = {name: clean(row[name]) or None for name in ("category_1", "category_2")}
            intake.keep("videos", PARTITION, [video | categories])


def _read_narrations(path: Path, intake: Intake) -> None:
    narrations = Narrations(intake, SOURCE, path)
    try:
        for video_id, value, line in read_json(path, intake):
            if isinstance(value, dict) and {"text", "start", "end"} <= value.keys():
                narrations.add(video_id, value["text"], value["start"], value["end"], line)
            else:
                intake.reject(video_id, "wrong columns", "an object with text, start and end is expected", path, line)
    finally:  # a file that is cut off gives what comes before the cut
        narrations.close()
