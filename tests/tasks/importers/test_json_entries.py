"""Entries one by one, however the file is cut into chunks; the standard parser is the judge."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.importers import json_entries
from tasks.importers.json_entries import read_json
from tasks.importers.text_files import BadFile

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.text('{}[],:"\\ \nx', max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('{}[],:"\\ x', max_size=4), inner, max_size=4),
    max_leaves=12,
)


class Notes:
    """Takes rejects in memory."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, str, int | None]] = []

    def reject(self, item: str, reason: str, detail: str, file: Path, line: int | None) -> None:
        self.taken.append((item, reason, line))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.dictionaries(st.text('{}[],:"\\ x', max_size=6), VALUES, max_size=6),
    indent=st.sampled_from([None, 1]),
    chunk=st.integers(1, 40),
)
def test_entries_are_what_the_parser_says(
    data: dict[str, Any], indent: int | None, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_entries, "CHUNK", chunk)
    path, notes = tmp_path / "x.json", Notes()
    path.write_text(json.dumps(data, indent=indent))
    found = list(read_json(path, notes))
    assert [(entry.key, entry.value) for entry in found] == list(data.items()) and notes.taken == []
    lines = path.read_text().splitlines()
    for entry in found if indent else []:
        assert lines[entry.line - 1].startswith(f" {json.dumps(entry.key)}: ")


def read(tmp_path: Path, text: str) -> tuple[list[tuple[Any, ...]], Notes, BadFile | None]:
    path, notes, found, error = tmp_path / "x.json", Notes(), [], None
    path.write_text(text)
    try:
        for entry in read_json(path, notes):
            found.append(tuple(entry))
    except BadFile as bad:
        error = bad
    return found, notes, error


def test_a_malformed_entry_costs_itself_only(tmp_path: Path) -> None:
    found, notes, error = read(tmp_path, '{"a": [1],\n"b": [1,, 2],\n"c": {"x": tru},\n"d": [NaN], "d": 4}')
    assert [(key, line) for key, _, line, _ in found] == [("a", 1), ("d", 4), ("d", 4)]
    assert notes.taken == [("b", "malformed JSON", 2), ("c", "malformed JSON", 3)] and error is None


def test_text_that_looks_like_the_end_of_an_entry(tmp_path: Path) -> None:
    tricky = {
        "a": {"text": ['}, "b": {', '"}, "', "\\", '\\"}, "c": ['], "n": {"x": [1]}},
        "b": [["}]", "]"], '], "k":'],
    }
    assert [entry[:2] for entry in read(tmp_path, json.dumps(tricky))[0]] == list(tricky.items())


@pytest.mark.parametrize(
    ("text", "kept", "line", "words"),
    [
        ('{"a": 1, "b": [1, 2', 1, 1, "cut off"),
        ('{"a": 1,\n"b"', 1, 2, "name of an entry"),
        ('{"a": 1,', 1, 1, "name of an entry is expected"),
        ('{"a": [1]', 1, 1, "comma is expected"),
        ('{"a": [1]\n"b": 2}', 1, 2, "comma is expected"),
        ('{"a": "unclosed}', 0, 1, "cut off"),
        ('{"a": 1}\n{"b": 2}', 1, 2, "something follows"),
        ("{} x", 0, 1, "something follows"),
    ],
)
def test_where_a_file_stops_to_make_sense(tmp_path: Path, text: str, kept: int, line: int, words: str) -> None:
    found, _, error = read(tmp_path, text)
    assert len(found) == kept and error is not None and error.line == line and words in error.detail


def test_blanks_may_surround_the_object(tmp_path: Path) -> None:
    found, _, error = read(tmp_path, ' {"a": 1}\n\n')
    assert [entry[0] for entry in found] == ["a"] and error is None
    assert read(tmp_path, " {} ")[::2] == ([], None)


def test_entries_know_their_size(tmp_path: Path) -> None:
    found, _, _ = read(tmp_path, '{"a": [1, 2], "b" : "xyz"}')
    assert [entry[3] for entry in found] == [6, 5]


def test_a_key_that_is_no_text_costs_itself_only(tmp_path: Path) -> None:
    path, notes = tmp_path / "x.json", Notes()
    path.write_bytes(b'{"a": 1, "\\ud800": {"x": 2}, "\xff": [3], "b": 4}')
    assert [entry.key for entry in read_json(path, notes)] == ["a", "b"]
    assert [reason for _, reason, _ in notes.taken] == 2 * ["malformed JSON"]
