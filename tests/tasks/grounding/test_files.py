import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from tasks.grounding.articles import Article
from tasks.grounding.files import as_chapters, as_csv, as_json, write_text
from tasks.grounding.grounding import Grounded
from tasks.grounding.video_input import VideoInput
from tasks.importers.captions import read_cues
from tests.vina_model.test_grounder import make
from vina_model.grounder import GroundedStep, Grounding


def grounded(*steps: tuple[str, float, float, float | None]) -> Grounded:
    found = [GroundedStep(text, start, end, 0.5, presence, 1) for text, start, end, presence in steps]
    return Grounded(
        make(),
        VideoInput("video", None, None, np.zeros((9, 12)), []),
        Article("Fry <b>Onions</b>", [step.text for step in found]),
        Grounding(found, 9, {}),
    )


STEPS = (("Chop & peel", 1.0, 3.0, 0.9), ("Wash", 5.0, 6.0, 0.1), ("Fry --> it", 4.0, 3661.25, 0.51))


def test_json_and_csv_agree() -> None:
    rows = json.loads(as_json(grounded(*STEPS)))["steps"]
    assert [row["shown"] for row in rows] == [True, False, True]
    lines = list(csv.DictReader(io.StringIO(as_csv(grounded(*STEPS)))))
    assert [line["text"] for line in lines] == [row["text"] for row in rows] == [step[0] for step in STEPS]
    assert [float(line["end_s"]) for line in lines] == [row["end_s"] for row in rows] == [3.0, 6.0, 3661.25]
    assert [row["presence"] for row in rows] == [0.9, 0.1, 0.51]


class _Strict:
    def reject(self, item: str, reason: str, detail: str, file: Path, line: int | None) -> None:
        raise AssertionError(f"{line}: {reason}: {detail}")


def chapters(path: Path, *steps: tuple[str, float, float, float | None]) -> list[tuple[float, float, str]]:
    path.write_text(as_chapters(grounded(*steps)), encoding="utf-8")
    return [(cue.start_s, cue.end_s, " ".join(cue.lines)) for cue in read_cues(path, _Strict())]


def test_chapters_are_of_what_is_shown_and_a_note_lists_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "a.vtt"
    assert chapters(path, *STEPS) == [(1.0, 3.0, "Chop & peel"), (4.0, 3661.25, "Fry --> it")]
    text = path.read_text()
    assert text.startswith("WEBVTT\n\nNOTE not shown: Wash\n\n") and "01:01:01.250" in text
    assert "Chop &amp; peel" in text and "--&gt;" in text


def test_chapters_do_not_lie_across_each_other(tmp_path: Path) -> None:
    found = chapters(tmp_path / "a.vtt", ("A", 0, 10, 0.9), ("B", 8, 20, 0.9), ("C", 9, 19, 0.9), ("D", 30, 31, 0.9))
    assert found == [(0, 8, "A"), (8, 20, "B / C"), (30, 31, "D")]


def test_without_calibration_all_steps_are_chapters(tmp_path: Path) -> None:
    assert len(chapters(tmp_path / "a.vtt", ("A", 0, 1, None), ("B", 2, 3, None))) == 2
    assert as_chapters(grounded(("A", 0, 1, 0.1))) == "WEBVTT\n\nNOTE not shown: A\n"


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "ä")
    assert (tmp_path / "a.txt").read_bytes() == "ä".encode()
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "a.txt", "\ud800")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"] and (tmp_path / "a.txt").read_text() == "ä"
