"""SRT and WebVTT, and the rule that makes sentences of cues."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.importers.captions import MOST_WORDS, Cue, read_cues, sentences_of
from tasks.importers.text_files import BadFile
from tests.tasks.importers.conftest import Import, rejects, rows
from tests.tasks.importers.test_json_entries import Notes


def cue(start_s: float, end_s: float, *lines: str) -> Cue:
    return Cue(start_s, end_s, lines, 1)


def sentences(*cues: Cue) -> list[tuple[str, float, float]]:
    return [tuple(sentence) for sentence in sentences_of(list(cues))]


def test_sentences_end_with_their_punctuation() -> None:
    assert sentences(cue(0, 2, "Hi there."), cue(2.5, 4, "Cut it."), cue(4, 5, "Why?")) == [
        ("Hi there.", 0, 2),
        ("Cut it.", 2.5, 4),
        ("Why?", 4, 5),
    ]


def test_a_sentence_goes_over_cues_and_a_cue_over_sentences() -> None:
    assert sentences(cue(0, 2, "so now we"), cue(2, 4, "cut. And")) == [("so now we cut.", 0, 3.111), ("And", 3.111, 4)]


def test_overlapping_cues_end_where_the_next_one_starts() -> None:
    assert sentences(cue(0, 7, "one two."), cue(3, 9, "three four."), cue(5, 6, "five.")) == [
        ("one two.", 0, 3),
        ("three four.", 3, 5),
        ("five.", 5, 6),
    ]


def test_lines_that_roll_up_are_said_once() -> None:
    rolling = (
        cue(0, 2, "take an onion"),
        cue(2, 4, "take an onion", "and a knife"),
        cue(4, 6, "and a knife", "then cut"),
    )
    assert sentences(*rolling) == [("take an onion and a knife then cut", 0, 6)]


def test_without_punctuation_pauses_and_length_decide() -> None:
    ten = "one two three four five six seven eight nine ten"
    assert sentences(cue(0, 4, ten), cue(4, 5, "next"), cue(7, 8, "after a pause")) == [
        (ten, 0, 4),
        ("next", 4, 5),
        ("after a pause", 7, 8),
    ]
    assert [len(text.split()) for text, _, _ in sentences(cue(0, 60, "word " * 70))] == [MOST_WORDS, MOST_WORDS, 10]


def test_cues_that_start_together_are_one() -> None:
    assert sentences(cue(1, 2, "left"), cue(1, 3, "right.")) == [("left right.", 1, 3)]


TIMES = st.floats(0, 500).map(lambda seconds: round(seconds, 3))
WORDS = st.lists(st.sampled_from(["cut", "it.", "now", "onion", "why?", "a"]), min_size=1, max_size=40)


@given(st.lists(st.tuples(TIMES, st.floats(0, 20), WORDS), min_size=1, max_size=12))
def test_sentences_never_overlap_and_no_word_is_lost(parts: list[tuple[float, float, list[str]]]) -> None:
    cues = [
        Cue(start, round(start + length, 3), (f"{place} " + " ".join(words),), 1)
        for place, (start, length, words) in enumerate(parts)
    ]
    sentences = sentences_of(cues)
    spoken = " ".join(line for cue in sorted(cues, key=lambda cue: cue.start_s) for line in cue.lines)
    assert " ".join(sentence.text for sentence in sentences).split() == spoken.split()
    assert all(sentence.start_s <= sentence.end_s for sentence in sentences)
    assert all(a.end_s <= b.start_s for a, b in pairwise(sentences))


SRT = """1
00:00:01,000 --> 00:00:02,500
<i>Hello</i> &amp; welcome.

2
00:00:05,000 --> 00:00:04,000
wrong way

x
00:00:xx,000 --> 00:00:06,000
no time

3
01:00:00,5 --> 01:00:01,5

4
00:01:00,000 --> 00:01:01,000
Two
lines."""

VTT = """WEBVTT - a title
Kind: captions

NOTE this is no cue

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.500 align:start position:0%
<00:00:01.200><c>Hello</c> &lt;b&gt;

1:00:00.000 --> 1:00:01.000
Late."""


def test_srt(tmp_path: Path) -> None:
    (tmp_path / "v.srt").write_text(SRT)
    notes = Notes()
    assert [cue[:3] for cue in read_cues(tmp_path / "v.srt", notes)] == [
        (1, 2.5, ("Hello & welcome.",)),
        (60, 61, ("Two", "lines.")),
    ]
    assert notes.taken == [("v", "end before start", 6), ("v", "malformed time", 10)]


def test_webvtt(tmp_path: Path) -> None:
    (tmp_path / "v.vtt").write_text(VTT)
    assert [cue[:3] for cue in read_cues(tmp_path / "v.vtt", Notes())] == [
        (1, 2.5, ("Hello <b>",)),
        (3600, 3601, ("Late.",)),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "1\n00:00:01,000 --> 00:00:02,000\nFirst.\n2\n00:00:02,000 --> 00:00:03,000\nSecond.\n",
            ["First.", "Second."],
        ),
        (
            "WEBVTT\n\n00:01.000 --> 00:02.000\n \ntake an onion\n\n00:02.000 --> 00:03.000\nnow\n",
            ["take an onion", "now"],
        ),
        ("1\n00:00:01,000 --> 00:00:02,000\n\n2\n00:00:02,000 --> 00:00:03,000\nSecond.\n", ["Second."]),
        ("1\n00:00:01,000 --> 00:00:02,000\nif 1 < 2 and 3 > 2 it is so\n", ["if 1 < 2 and 3 > 2 it is so"]),
    ],
    ids=["no blank lines", "a blank first line", "an empty cue", "signs that are no tags"],
)
def test_cues_as_they_are_found(tmp_path: Path, text: str, expected: list[str]) -> None:
    (tmp_path / "v.srt").write_text(text)
    assert [" ".join(cue.lines) for cue in read_cues(tmp_path / "v.srt", Notes())] == expected


def test_a_broken_arrow_is_rejected(tmp_path: Path) -> None:
    notes = Notes()
    (tmp_path / "v.srt").write_text("1\n00:00:01,000 -> 00:00:02,000\nA.\n\n2\n00:00:03,000 --> 00:00:04,000\nB.\n")
    assert [cue.lines for cue in read_cues(tmp_path / "v.srt", notes)] == [("B.",)]
    assert notes.taken == [("v", "malformed time", 2)]


def test_what_is_said_twice_is_kept_twice() -> None:
    assert sentences(cue(1, 2, "Stir it."), cue(30, 31, "Stir it.")) == [("Stir it.", 1, 2), ("Stir it.", 30, 31)]


def test_one_language_of_several(tmp_path: Path, bring: Import) -> None:
    for name, word in (
        ("v.de", "Zwiebel."),
        ("v.en", "Onion."),
        ("lesson.one", "A."),
        ("lesson.two", "B."),
        ("w.es-419", "C."),
    ):
        (tmp_path / f"{name}.vtt").write_text(f"WEBVTT\n\n00:01.000 --> 00:02.000\n{word}\n")
    bring("videos", tmp_path)
    texts = {row["video_id"]: row["text"] for row in rows(tmp_path, "narrations")}
    assert texts == {"v": "Onion.", "lesson.one": "A.", "lesson.two": "B.", "w": "C."}
    assert [(item, reason) for item, reason, _ in rejects(tmp_path)] == [("v", "duplicate id")]


def test_a_file_without_captions(tmp_path: Path) -> None:
    (tmp_path / "v.srt").write_text("just text\n")
    with pytest.raises(BadFile, match="no cue"):
        read_cues(tmp_path / "v.srt", Notes())


def test_captions_beside_videos(tmp_path: Path, corpus: Path, bring: Import) -> None:
    folder = corpus / "videos"
    (video_file,) = folder.glob("*.mp4")
    video_file.rename(folder / "_my.video-1.mp4")
    for path in folder.glob("*.srt"):
        path.unlink()
    (folder / "_my.video-1.en.vtt").write_text(VTT)
    (folder / "only words.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello.\n")
    (folder / "text.mp4").write_text("not a video")
    (folder / "truncated.mp4").write_bytes((folder / "_my.video-1.mp4").read_bytes()[:5000])
    bring("videos", folder)
    assert {row["video_id"] for row in rows(tmp_path, "narrations")} == {"_my.video-1", "only words"}
    (video,) = rows(tmp_path, "videos")
    assert (
        video["video_id"] == "_my.video-1"
        and video["uri"] == str(folder / "_my.video-1.mp4")
        and video["duration_s"] > 5
    )
    assert sorted(rejects(tmp_path)) == [("text.mp4", "not a video", None), ("truncated.mp4", "not a video", None)]
