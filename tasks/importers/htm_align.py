"""HTM-Align: `htm_align.json`, video id -> [[alignable 0/1, start, end, text], ...] in spoken order.

A narration that is not alignable has no true time: its times are dropped.
"""

from pathlib import Path
from typing import Any

from tasks.importers.files import Files
from tasks.importers.import_session import Admission, ImportSession
from tasks.importers.json_entries import Entry, read_json
from tasks.importers.narrations import number, time_problem
from tasks.importers.text_files import LONGEST_TEXT, clean

SOURCE = "htm-align"
PARTITION = {"benchmark": SOURCE}
EXPECTED = "htm_align.json"


def import_htm_align(files: Files, session: ImportSession) -> None:
    """Import all JSON files of this form."""
    for path in files.named("*.json"):
        with session.file(path):
            for entry in read_json(path, session.rows_of("annotations")):
                _read_video(entry, path, session)


def _read_video(entry: Entry, path: Path, session: ImportSession) -> None:
    if not isinstance(entry.value, list):
        detail = "a list of [alignable, start, end, text] is expected"
        session.rows_of("annotations").reject(entry.key, "wrong columns", detail, path, entry.line)
        return
    admission = session.admit("annotations", PARTITION, entry.key, path, entry.line, rows=len(entry.value))
    if admission is Admission.REFUSED:
        return
    rows = []
    for narration_row, narration in enumerate(entry.value):
        row = _row(entry.key, narration_row, narration)
        if isinstance(row, str):
            session.reject(entry.key, row, f"narration {narration_row}: {narration}"[:500], path, entry.line)
        else:
            rows.append(row)
    session.keep_or_count(admission, "annotations", PARTITION, rows)


def _row(video_id: str, narration_row: int, row: Any) -> dict[str, Any] | str:
    """Return a row of `annotations`, or the reason to reject it."""
    if not isinstance(row, list) or len(row) != 4 or row[0] not in (0, 1) or not isinstance(row[3], str):
        return "malformed narration"
    alignable, start, end, text = bool(row[0]), number(row[1]), number(row[2]), clean(row[3])
    if not text or len(text) > LONGEST_TEXT:
        return "text too long" if text else "empty text"
    if alignable and (problem := time_problem(start, end)):
        return problem
    return {
        "video_id": video_id,
        "narration_row": narration_row,
        "text": text,
        "start_s": start if alignable else None,
        "end_s": end if alignable else None,
        "alignable": alignable,
        "split": "test",
    }
