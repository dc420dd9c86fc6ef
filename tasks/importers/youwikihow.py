"""YouwikiHow: `wikihow_data.json` -> articles, steps, videos; `crosstask_test.json` -> CrossTask's article grounding.

The second becomes the source and benchmark `crosstask-articles`: CrossTask's segments, each with the headline (or
headlines: `a/b`) that `step2headline` gives for its step. A segment that no headline describes (`_`) has no step id.
Three tasks are not part of the benchmark: their split is `excluded`. The release is in pickle, which may run code
and is not read: the error message has the command that converts it to JSON.
"""

from pathlib import Path
from typing import Any

from tasks.importers.files import Files, article_id, split_title
from tasks.importers.import_session import ImportSession
from tasks.importers.json_entries import Entry, read_json
from tasks.importers.narrations import duration
from tasks.importers.segments import keep_segments, segment_row
from tasks.importers.text_files import BadFile, clean, whole_number

SOURCE, BENCHMARK = "youwikihow", "crosstask-articles"
EXPECTED = "wikihow_data.json, crosstask_test.json"
EXCLUDED_TASKS = ("105222", "44789", "87706")
_CONVERT = "python -c \"import json,pickle,sys; json.dump(pickle.load(open(sys.argv[1],'rb')), open(sys.argv[2],'w'))\""


def import_youwikihow(files: Files, session: ImportSession) -> None:
    """Import the existing ones of the two files."""
    for path in files.named("*.pkl"):
        if path.with_suffix(".json").exists():  # already converted
            continue
        with session.file(path):
            target = path.with_suffix(".json").name
            raise BadFile("pickle is not read", f"{path}: if you trust it, {_CONVERT} {path.name} {target}")
    for path in files.named("*.json"):
        with session.file(path):
            for entry in read_json(path, session.rows_of("articles")):
                _read_task(entry, path, session)


def _read_task(entry: Entry, path: Path, session: ImportSession) -> None:
    value, rejects = entry.value, session.rows_of("articles")
    text = value.get("task_text") if isinstance(value, dict) else None
    headlines = text.get("simplified_headline_list") if isinstance(text, dict) else None
    if not isinstance(headlines, list) or not isinstance(value.get("task_full_name"), str):
        detail = "task_full_name and task_text.simplified_headline_list are expected"
        rejects.reject(entry.key, "wrong columns", detail, path, entry.line)
        return
    steps = [clean(headline) if isinstance(headline, str) else "" for headline in headlines]
    if not all(steps):
        rejects.reject(entry.key, "empty headline", f"in {value['task_full_name']!r}", path, entry.line)
        return
    is_benchmark = "crosstask_annotations" in value
    source = BENCHMARK if is_benchmark else SOURCE
    _keep_article(entry, source, steps, path, session)
    split = None if not is_benchmark else "excluded" if entry.key in EXCLUDED_TASKS else "test"
    _keep_videos(entry, source, split, path, session)
    if split:
        _keep_annotations(entry, steps, split, path, session)


def _keep_article(entry: Entry, source: str, steps: list[str], path: Path, session: ImportSession) -> None:
    title, variation = split_title(entry.value["task_full_name"])
    paragraphs = _paragraphs(entry.value["task_text"])
    rows = [{"step_id": str(row), "headline": step, "paragraph": paragraphs.get(row)} for row, step in enumerate(steps)]
    article = {"article_id": article_id(source, entry.key), "title": title, "variation": variation}
    session.keep_article(source, article, rows, path, entry.line)


def _paragraphs(text: dict[str, Any]) -> dict[int, str]:
    """Return the sentences that explain each headline; none if that part of the file is missing or malformed."""
    sentences, by_headline = text.get("simplified_article_list"), text.get("head2sent")
    if not isinstance(sentences, list) or not isinstance(by_headline, dict):
        return {}
    paragraphs = {}
    for row, numbers in by_headline.items():
        listed = numbers if isinstance(numbers, list) else [numbers]
        chosen = [number for number in listed if isinstance(number, int) and 0 <= number < len(sentences)]
        if whole_number(str(row)) is not None and chosen:
            paragraphs[int(row)] = clean(" ".join(str(sentences[number]) for number in chosen))
    return paragraphs


def _keep_videos(entry: Entry, source: str, split: str | None, path: Path, session: ImportSession) -> None:
    task, partition = article_id(source, entry.key), {"source": source}
    listed, durations = entry.value.get("task_video") or [], entry.value.get("video_duration")
    durations = durations if isinstance(durations, dict) else {}
    for video_id in listed if isinstance(listed, list) else [listed]:
        if not isinstance(video_id, str) or not video_id or not isinstance(listed, list):
            detail = f"task_video, a list of video ids, holds {video_id!r}"
            session.rows_of("videos").reject(entry.key, "empty id", detail, path, entry.line)
        elif session.new("videos", partition, (video_id, task), path, entry.line):
            video = {"video_id": video_id, "article_id": task, "split": split}
            session.keep("videos", partition, [video | {"duration_s": duration(durations.get(video_id))}])


def _keep_annotations(entry: Entry, steps: list[str], split: str, path: Path, session: ImportSession) -> None:
    mapping, annotations = entry.value.get("step2headline"), entry.value["crosstask_annotations"]
    rejects = session.rows_of("annotations")
    if not isinstance(mapping, list) or not isinstance(annotations, dict):
        detail = "step2headline is expected beside crosstask_annotations"
        rejects.reject(entry.key, "wrong columns", detail, path, entry.line)
        return
    task = article_id(BENCHMARK, entry.key)
    for video_id, annotated in annotations.items():
        rows: list[tuple[int | None, dict[str, Any]]] = []
        for annotation in annotated if isinstance(annotated, list) else [annotated]:
            headlines = _headlines_of(annotation, mapping, len(steps))
            if headlines is None:
                detail = f"{annotation} in the task {entry.key}: its step or headline does not exist"
                rejects.reject(video_id, "unknown step", detail, path, entry.line)
                continue
            times = annotation.get("step_s"), annotation.get("step_e")
            shown: list[tuple[str | None, str]] = [(str(row), steps[row]) for row in headlines]
            for step_id, text in shown or [(None, "")]:
                rows.append((entry.line, segment_row(video_id, task, step_id, text, *times, split)))
        keep_segments(rows, BENCHMARK, path, session)


def _headlines_of(annotation: Any, mapping: list[Any], num_headlines: int) -> list[int] | None:
    """Return the headlines of a segment's step, perhaps none; None if the segment is malformed."""
    step = str(annotation.get("step_id")) if isinstance(annotation, dict) else ""
    if not whole_number(step) or int(step) > len(mapping):
        return None
    names = str(mapping[int(step) - 1])
    if names == "_":
        return []
    rows = [num_headlines if (row := whole_number(name)) is None else row for name in names.split("/")]
    return rows if max(rows) < num_headlines else None
