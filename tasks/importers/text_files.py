"""Read text files line by line and CSV files record by record, in constant memory.

Byte-order marks, Windows line ends and HTML entities are handled. What cannot be read is rejected with its file and
line, and reading continues: a line that is too long or not UTF-8, a record with too few or too many cells, a
quote that is never closed, or closed in the middle of a cell. `BadFile` means that the rest cannot be read at all.
"""

import codecs
import csv
import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

LONGEST_RECORD = 4 << 20
"""Most bytes of a line or CSV record."""
CHUNK = 8 << 20
LONGEST_TEXT = 10_000
"""Most bytes of a sentence or a headline."""
_SPACES = re.compile(r"[\s\x00-\x1f\x7f]+")
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

csv.field_size_limit(LONGEST_RECORD)


class BadFile(ValueError):
    """The rest of this file cannot be read; `line` is the line where it becomes malformed."""

    def __init__(self, reason: str, detail: str, line: int | None = None) -> None:
        super().__init__(detail)
        self.reason, self.detail, self.line = reason, detail, line


class Rejects(Protocol):
    """Anything that collects rejects."""

    def reject(self, item: str, reason: str, detail: str, file: Path, line: int | None) -> None:
        """Record one reject."""


def clean(text: str) -> str:
    """Return one line of plain text: entities decoded, white space collapsed, half characters replaced."""
    plain = text if text.isascii() else text.encode(errors="replace").decode()
    return _SPACES.sub(" ", html.unescape(plain)).strip()


def whole_number(text: str) -> int | None:
    """Return a number of up to nine plain digits; None for anything else."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def open_bytes(path: Path) -> BinaryIO:
    """Open a file of UTF-8 text for reading, after its byte-order mark. Raise BadFile if that is not possible."""
    if path.is_dir():
        raise BadFile("a folder in place of a file", f"{path} is a folder; a file is expected there")
    try:
        file = path.open("rb")
    except OSError as error:
        raise BadFile("file cannot be opened", f"{path}: {error.strerror}") from error
    start = file.read(4096)
    if start.startswith(_WIDE) or b"\0" in start:
        file.close()
        raise BadFile("not UTF-8", f"{path} is not UTF-8 text: convert it, e.g. with `iconv -f UTF-16 -t UTF-8`", 1)
    file.seek(len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0)
    return file


def read_lines(path: Path, rejects: Rejects) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, without line ends."""
    with open_bytes(path) as file:
        number = 0
        while line := file.readline(LONGEST_RECORD):
            number += 1
            if len(line) == LONGEST_RECORD and not line.endswith(b"\n"):
                size = len(line) + _skip_line(file)
                detail = f"{size:,} bytes; {LONGEST_RECORD:,} is the most"
                rejects.reject(f"line {number}", "line too long", detail, path, number)
                continue
            if b"\r" in line.rstrip(b"\r\n") and number == 1:
                raise BadFile("line ends", f"{path} has the line ends of an old Macintosh: convert it to Unix ones", 1)
            try:
                yield number, line.decode().rstrip("\r\n")
            except UnicodeDecodeError as error:
                rejects.reject(f"line {number}", "not UTF-8", str(error), path, number)


def _skip_line(file: BinaryIO) -> int:
    size = 0
    while chunk := file.readline(CHUNK):
        size += len(chunk)
        if chunk.endswith(b"\n"):
            break
    return size


def read_table(
    path: Path, columns: Sequence[str], rejects: Rejects, delimiter: Literal[",", "\t"] = ","
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a file without a header, one per line, with exactly these columns. Tabs allow no quotes."""
    is_empty = True
    for number, text in read_lines(path, rejects):
        if not text.strip():
            continue
        is_empty = False
        try:
            (cells,) = [text.split("\t")] if delimiter == "\t" else csv.reader([text], strict=True)
        except csv.Error as error:
            rejects.reject(f"line {number}", "malformed CSV", f"{error}: {text[:200]}", path, number)
            continue
        if len(cells) == len(columns):
            yield number, dict(zip(columns, cells, strict=True))
        else:
            _reject_cells(cells, len(columns), path, number, rejects)
    if is_empty:
        raise BadFile("empty file", f"{path} is empty; the columns {', '.join(columns)} are expected")


def read_csv(path: Path, columns: Sequence[str], rejects: Rejects) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the named columns of a CSV file with a header, with the first line of each record. Cells may span lines."""
    header: list[str] | None = None
    for number, record in _csv_records(path, rejects):
        if not any(record):
            continue
        if header is None:
            header = [name.strip() for name in record]
            if missing := [name for name in columns if name not in header]:
                names = ", ".join(header)[:200]
                problem = f"{path} has no column {', '.join(missing)}; its columns are {names}"
                raise BadFile("wrong columns", problem, number)
        elif len(record) == len(header):
            yield number, {name: record[header.index(name)] for name in columns}
        else:
            _reject_cells(record, len(header), path, number, rejects)
    if header is None:
        raise BadFile("empty file", f"{path} is empty; a header with {', '.join(columns)} is expected")


def _reject_cells(cells: list[str], expected: int, path: Path, number: int, rejects: Rejects) -> None:
    reason = "too few cells" if len(cells) < expected else "too many cells"
    detail = f"{len(cells)} cells, {expected} are expected: {cells}"[:500]
    rejects.reject(f"line {number}", reason, detail, path, number)


def _csv_records(path: Path, rejects: Rejects) -> Iterator[tuple[int, list[str]]]:
    """Join lines while a quote is open. If the result is malformed, reject the first line and read the rest again."""
    lines = read_lines(path, rejects)
    unread: list[tuple[int, str]] = []
    while True:
        held: list[tuple[int, str]] = []
        size, is_open = 0, False
        while not held or (is_open and size <= LONGEST_RECORD):
            following = unread.pop() if unread else next(lines, None)
            if following is None:
                break
            held.append(following)
            size += len(following[1]) + 1
            is_open ^= following[1].count('"') % 2 == 1
            if is_open and len(held) == 1:  # a quote inside a cell does not open one
                is_open = _parse_record(following[1]) is None
        if not held:
            return
        number, first = held[0]
        record = _parse_record("\n".join(text for _, text in held))
        if record is None:
            reason = "quote never closed" if is_open else "malformed CSV"
            rejects.reject(f"line {number}", reason, first[:200], path, number)
            unread.extend(reversed(held[1:]))
        else:
            yield number, record


def _parse_record(text: str) -> list[str] | None:
    """Return the cells of one record; None if it is malformed or incomplete."""
    if not text:
        return []
    try:
        (record,) = csv.reader([text], strict=True)
    except (csv.Error, ValueError):
        return None
    return record
