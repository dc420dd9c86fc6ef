import json
from pathlib import Path
from typing import Any

import pytest

from tasks.grounding.narration_files import read_narrations

SENTENCES = [("chop it.", 1.0, 3.0), ("fry it.", 4.0, 6.5)]
ROWS = [{"text": text, "start": start, "end": end} for text, start, end in SENTENCES]


@pytest.mark.parametrize(
    "content",
    [ROWS, ROWS[::-1], {"segments": ROWS}, {name: [row[name] for row in ROWS] for name in ("text", "start", "end")}],
)
def test_json_in_its_forms(tmp_path: Path, content: Any) -> None:
    (tmp_path / "narrations.json").write_text(json.dumps(content))
    assert [tuple(sentence) for sentence in read_narrations(tmp_path / "narrations.json")] == SENTENCES


def test_captions(tmp_path: Path) -> None:
    (tmp_path / "narrations.srt").write_text(
        "1\n00:00:01,000 --> 00:00:03,000\nchop it.\n\n2\n00:00:04,000 --> 00:00:06,500\nfry it.\n"
    )
    (tmp_path / "narrations.vtt").write_text(
        "WEBVTT\n\n00:01.000 --> 00:03.000\nchop it.\n\n00:04.000 --> 00:06.500\nfry it.\n"
    )
    for name in ("narrations.srt", "narrations.vtt"):
        assert [tuple(sentence) for sentence in read_narrations(tmp_path / name)] == SENTENCES


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("narrations.txt", "x", "read from .srt, .vtt, .json"),
        ("none.srt", None, "no file of narrations"),
        ("narrations.json", "{", "is not JSON"),
        ("narrations.json", "3", "expected"),
        ("narrations.json", '{"text": ["a"], "start": [0, 1], "end": [1]}', "expected"),
        ("narrations.json", '[{"text": "a", "start": 2, "end": 1}]', "entry 0: end before start"),
        ("narrations.json", '[{"text": "a"}]', "entry 0: time is not a number"),
        ("narrations.json", '["a"]', "entry 0: "),
        ("narrations.srt", "1\n00:00:09,000 --> 00:00:03,000\nchop\n", "line 2: end before start"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        read_narrations(tmp_path / name)
