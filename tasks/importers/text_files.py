"""Reading other people's text files line by line and CSV files record by record, in constant memory.

A byte-order mark, Windows line ends and HTML entities are taken as they come. What cannot be read is rejected with its
file and line, and the rest is read on: a line that is too long or not UTF-8, a record with too few cells, a quote that
never closes. `BadFile` means that the rest of a file cannot be read at all.
"""

import codecs
import csv
import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

LONGEST_RECORD = 4 << 20
"""Bytes of a line or CSV record."""
CHUNK = 8 << 20
LONGEST_TEXT = 10_000
"""Bytes of a sentence or a headline."""

_SPACES = re.compile(r"[\s\x00-\x1f\x7f]+")

csv.field_size_limit(LONGEST_RECORD)


class BadFile(ValueError):
    """The rest of this file cannot be read; `line` is where it ends to make sense."""

    def __init__(self, reason: str, detail: str, line: int | None = None) -> None:
        super().__init__(detail)
        self.reason, self.detail, self.line = reason, detail, line


class Rejects(Protocol):
    """Where rejected pieces go."""

    def reject(self, item: str, reason: str, detail: str, file: Path, line: int | None) -> None:
        """Take note of one piece."""


def clean(text: str) -> str:
    """One line of plain text: entities decoded, white space and control characters run together."""
    return _SPACES.sub(" ", html.unescape(text)).strip()


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading; a BadFile says what is in the way."""
    if path.is_dir():
        raise BadFile("a folder in place of a file", f"{path} is a folder; a file is expected there")
    try:
        return path.open("rb")
    except OSError as error:
        raise BadFile("file cannot be opened", f"{path}: {error.strerror}") from error


def read_lines(path: Path, rejects: Rejects) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, without line ends."""
    with open_bytes(path) as file:
        number = 0
        while line := file.readline(LONGEST_RECORD):
            number += 1
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if len(line) == LONGEST_RECORD and not line.endswith(b"\n"):
                size = len(line) + _skip_line(file)
                detail = f"{size:,} bytes; {LONGEST_RECORD:,} is the most"
                rejects.reject(f"line {number}", "line too long", detail, path, number)
                continue
            try:
                yield number, line.decode().rstrip("\r\n")
            except UnicodeDecodeError as error:
                rejects.reject(f"line {number}", "not UTF-8", str(error), path, number)


def _skip_line(file: BinaryIO) -> int:
    size = 0
    while piece := file.readline(CHUNK):
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return size


def read_csv(
    path: Path, columns: Sequence[str], rejects: Rejects, *, header: bool = True, delimiter: str = ","
) -> Iterator[tuple[int, dict[str, str]]]:
    """The records of a CSV file with the line each begins at. Columns are found by name, or by place if no header.

    Other columns than the named ones are ignored. A quote that never closes costs its own line only.
    """
    places: dict[str, int] | None = None if header else {name: place for place, name in enumerate(columns)}
    is_empty = True
    for number, record in _csv_records(path, rejects, delimiter):
        if not any(record):
            continue
        is_empty = False
        if places is None:
            places = _places(path, columns, record)
            continue
        if len(record) <= max(places.values()):
            detail = f"{len(record)} cells; {max(places.values()) + 1} are needed"
            rejects.reject(f"line {number}", "too few cells", detail, path, number)
            continue
        yield number, {name: record[place] for name, place in places.items()}
    if is_empty:
        raise BadFile("empty file", f"{path} is empty; the columns {', '.join(columns)} are expected")


def _places(path: Path, columns: Sequence[str], record: list[str]) -> dict[str, int]:
    names = [name.strip() for name in record]
    if missing := [name for name in columns if name not in names]:
        raise BadFile(
            "wrong columns",
            f"{path} has no column {', '.join(missing)}; its columns are {', '.join(names)[:200]}",
            1,
        )
    return {name: names.index(name) for name in columns}


def _csv_records(path: Path, rejects: Rejects, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Physical lines are joined while a quote is open. One that stays open gives its first line to the rejects."""
    lines = read_lines(path, rejects)
    again: list[tuple[int, str]] = []
    while True:
        held: list[tuple[int, str]] = []
        size, is_open = 0, False
        while not held or is_open:
            following = again.pop() if again else next(lines, None)
            if following is None or size > LONGEST_RECORD:
                if following is not None:
                    again.append(following)
                break
            held.append(following)
            size += len(following[1])
            is_open ^= following[1].count('"') % 2 == 1
        if not held:
            return
        number = held[0][0]
        if is_open:
            rejects.reject(f"line {number}", "quote never closed", held[0][1][:200], path, number)
            again.extend(reversed(held[1:]))
            continue
        try:
            for record in csv.reader(["\n".join(text for _, text in held)], delimiter=delimiter):
                yield number, record
        except csv.Error as error:
            rejects.reject(f"line {number}", "malformed CSV", str(error), path, number)
