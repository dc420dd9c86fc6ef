"""Read a JSON file that is one object, id -> entry, one entry at a time: gigabytes in constant memory.

orjson parses the entries; this module finds where each ends, because no JSON parser yields entries at that speed. An
entry is parsed up to its likely end; if that fails, its brackets are counted. An entry that is malformed
within its brackets is rejected and reading goes on; a file that is cut off gives all entries before the cut.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from tasks.importers.text_files import BadFile, Rejects, open_bytes

LONGEST_ENTRY = 256 << 20
"""Most bytes of one entry, which is held in memory."""
CHUNK = 8 << 20

_KEY = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"\s*:\s*')
_FOLLOWED = rb'\s*(?:,\s*"[^"\\]*+(?:\\.[^"\\]*+)*+"\s*:|}\s*\Z)'
_LIKELY_END = {b"{": re.compile(rb"}" + _FOLLOWED), b"[": re.compile(rb"\]" + _FOLLOWED)}
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]"]')
_SCALAR = re.compile(rb"[^,}\]\s]+(?=\s*[,}])")
_BLANK = re.compile(rb"\s*")


class Entry(NamedTuple):
    """One entry, the line where its value begins, and the bytes it takes in the file."""

    key: str
    value: Any
    line: int
    num_bytes: int


def read_json(path: Path, rejects: Rejects) -> Iterator[Entry]:
    """Yield the entries of the file's object, in order. A key that occurs twice is yielded twice."""
    with open_bytes(path) as file:
        yield from _Window(path, file, rejects).entries()


class _Window:
    """The part of the file that is in memory; it slides from entry to entry."""

    def __init__(self, path: Path, file: BinaryIO, rejects: Rejects) -> None:
        self._path, self._file, self._rejects = path, file, rejects
        self._bytes, self._position, self._read = b"", 0, 0
        self._line, self._counted = 1, 0

    def entries(self) -> Iterator[Entry]:
        """Yield all entries. Raise BadFile with the line from which the file cannot be read."""
        first = self._next()
        if first is None:
            raise BadFile("empty file", f"{self._path} is empty; a JSON object is expected")
        if first != "{":
            raise BadFile("not a JSON object", f"{self._path} does not begin with {{: an object of ids is expected", 1)
        self._position += 1
        end = self._next()
        if end == "}":
            self._position += 1
        while end != "}":
            key = self._key()
            line, begin = self._current_line(), self._read - len(self._bytes) + self._position
            try:
                value = self._value()
                name = orjson.loads(b'"' + key + b'"')
            except (ValueError, RecursionError) as error:
                if isinstance(error, BadFile):
                    raise
                name = key[:200].decode(errors="replace")
                self._rejects.reject(name, "malformed JSON", f"the entry cannot be read: {error}", self._path, line)
            else:
                yield Entry(name, value, line, self._read - len(self._bytes) + self._position - begin)
            end = self._next()
            if end not in (",", "}"):
                raise self._broken(f"a comma is expected after the entry {key[:200].decode(errors='replace')!r}")
            self._position += 1
        if self._next() is not None:
            raise self._broken("something follows the object's end: one object is expected, not one per line")

    def _key(self) -> bytes:
        if self._next() != '"':
            raise self._broken("the name of an entry is expected; the file was cut off, or is no JSON")
        while not (match := _KEY.match(self._bytes, self._position)) or match.end() == len(self._bytes):
            if len(self._bytes) - self._position > LONGEST_ENTRY or not self._more():
                raise self._broken("the file ends in the name of an entry, or has no value for it")
        self._position = match.end()
        return match[1]

    def _value(self) -> Any:
        """Read the value at the position, and move the position past it, even if it is malformed."""
        while True:
            likely = self._likely_end()
            if likely:
                try:
                    value = orjson.loads(memoryview(self._bytes)[self._position : likely])
                except ValueError:
                    pass  # not the end (brackets in a text), or malformed: count brackets
                else:
                    self._position = likely
                    return value
            end = self._end_by_counting()
            if end is not None:
                text = self._bytes[self._position : end]
                self._position = end
                return json.loads(text)  # unlike orjson it accepts NaN
            if len(self._bytes) - self._position > LONGEST_ENTRY:
                raise self._broken(f"an entry of more than {LONGEST_ENTRY:,} bytes")
            if not self._more():
                raise self._broken("the file ends in the middle of an entry: it was cut off, or a bracket is missing")

    def _likely_end(self) -> int | None:
        """Return the position after the first closing bracket that precedes a possible entry or the end of the file."""
        pattern = _LIKELY_END.get(self._bytes[self._position : self._position + 1])
        match = pattern.search(self._bytes, self._position) if pattern else None
        return match.start() + 1 if match else None

    def _end_by_counting(self) -> int | None:
        """Return where the brackets at the position are closed; None if that is beyond the window."""
        if self._bytes[self._position : self._position + 1] not in (b"{", b"[", b'"'):
            scalar = _SCALAR.match(self._bytes, self._position)
            return scalar.end() if scalar else None
        depth = 0
        for token in _TOKEN.finditer(self._bytes, self._position):
            kind = token[0]
            if kind == b'"':  # a string that is not closed in the window
                return None
            if len(kind) == 1:
                depth += 1 if kind in b"{[" else -1
            if depth <= 0:
                return token.end()
        return None

    def _next(self) -> str | None:
        """Move the position to the next character that is not blank, and return it."""
        while True:
            blank = _BLANK.match(self._bytes, self._position)
            self._position = blank.end() if blank else self._position
            if self._position < len(self._bytes):
                return chr(self._bytes[self._position])
            if not self._more():
                return None

    def _current_line(self) -> int:
        """Return the line of the position. Lines are counted on demand, once per entry."""
        self._line += self._bytes.count(b"\n", self._counted, self._position)
        self._counted = self._position
        return self._line

    def _more(self) -> bool:
        """Drop the bytes already read, and read at least as many as are left. Return whether there were any."""
        self._current_line()
        rest = self._bytes[self._position :]
        chunk = self._file.read(max(CHUNK, len(rest)))
        self._bytes, self._position, self._counted = rest + chunk, 0, 0
        self._read += len(chunk)
        return bool(chunk)

    def _broken(self, detail: str) -> BadFile:
        return BadFile("malformed JSON", f"{self._path}, line {self._current_line()}: {detail}", self._line)
