"""Annotated segments: the rows of `annotations` for steps.

A segment may overlap others, come in any order, repeat its step, or end after its video does: data sets have all of
these, and the protocols handle them.
"""

from pathlib import Path
from typing import Any

from tasks.importers.import_session import Admission, ImportSession
from tasks.importers.narrations import number, time_problem


def segment_row(
    video_id: str, article_id: str, step_id: str | None, text: str, start: Any, end: Any, split: str
) -> dict[str, Any]:
    """Return a row of `annotations` for a step that is shown."""
    return {
        "video_id": video_id,
        "article_id": article_id,
        "step_id": step_id,
        "text": text,
        "start_s": number(start),
        "end_s": number(end),
        "alignable": True,
        "split": split,
    }


def keep_segments(
    rows: list[tuple[int | None, dict[str, Any]]], benchmark: str, file: Path, session: ImportSession
) -> None:
    """Keep the valid rows of a video (each with its line), and reject the others."""
    if not rows:
        return
    first_line, first = rows[0]
    partition, key = {"benchmark": benchmark}, (first["video_id"], first["article_id"])
    admission = session.admit("annotations", partition, key, file, first_line, rows=len(rows))
    if admission is Admission.REFUSED:
        return
    good = []
    for line, row in rows:
        if problem := time_problem(row["start_s"], row["end_s"]):
            detail = f"step {row['step_id']}: from {row['start_s']} to {row['end_s']}"
            session.reject(row["video_id"], problem, detail, file, line)
        else:
            good.append(row)
    session.keep_or_count(admission, "annotations", partition, good)
