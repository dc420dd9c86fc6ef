"""Narrations of one video from a file: SRT, WebVTT, or JSON."""

import json
from pathlib import Path
from typing import Any

from tasks.importers.captions import Sentence, read_cues, sentences_of
from tasks.importers.narrations import number, time_problem
from tasks.importers.text_files import BadFile, clean

KINDS = (".srt", ".vtt", ".json")
COLUMNS = ("text", "start", "end")
EXPECTED = '[{"text": ..., "start": ..., "end": ...}, ...], the same under "segments", or three lists by these names'


class _Strict:
    """Raises at the first malformed row, because the user named this one file."""

    def reject(self, item: str, reason: str, detail: str, file: Path, line: int | None) -> None:
        raise BadFile(reason, f"{file}, line {line}: {reason}: {detail}", line)


def read_narrations(path: Path) -> list[Sentence]:
    """Return the sentences of a file in spoken order. Raise ValueError if the file is malformed."""
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"narrations are read from {', '.join(KINDS)}, not from {path}")
    if not path.is_file():
        raise ValueError(f"there is no file of narrations at {path}")
    if path.suffix.lower() == ".json":
        return sorted(_from_json(path), key=lambda sentence: sentence.start_s)
    return sentences_of(read_cues(path, _Strict()))


def _from_json(path: Path) -> list[Sentence]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    rows = content.get("segments", content) if isinstance(content, dict) else content
    if isinstance(rows, dict):
        columns: list[Any] = [rows.get(name) for name in COLUMNS]
        if not all(isinstance(column, list) for column in columns) or len(set(map(len, columns))) > 1:
            raise ValueError(f"{path}: expected {EXPECTED}")
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]
    if not isinstance(rows, list):
        raise ValueError(f"{path}: expected {EXPECTED}")
    return [sentence for entry, row in enumerate(rows) if (sentence := _sentence(row, entry, path)).text]


def _sentence(row: Any, entry: int, path: Path) -> Sentence:
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        raise ValueError(f"{path}, entry {entry}: expected {EXPECTED}")
    start_s, end_s = number(row.get("start")), number(row.get("end"))
    if problem := time_problem(start_s, end_s):
        raise ValueError(f"{path}, entry {entry}: {problem}, from {row.get('start')} to {row.get('end')}")
    return Sentence(clean(row["text"]), start_s, end_s)
