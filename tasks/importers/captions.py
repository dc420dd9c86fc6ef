"""Read SRT and WebVTT files, and turn their cues into sentences.

Captions made by machines overlap, repeat the line before, have no punctuation and break anywhere. The rule:
1. Merge: tags, entities and white space are cleaned; lines that a cue repeats from the cue right before it are dropped
   (captions that roll up); cues go in the order of their starts.
2. De-overlap: a cue ends when the next one starts, at the latest.
3. Split: words share the time of their cue by their letters. A sentence ends after `.`, `?` or `!`, before a silence of
   a second, at the end of a cue once it has ten words, and after thirty words in any case.
Sentences never overlap, and every word that is not a repeat is in exactly one of them.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tasks.importers.text_files import BadFile, Rejects, clean, read_lines

SILENCE_S = 1.0
ROLL_UP_S = 0.5
ENOUGH_WORDS = 10
MOST_WORDS = 30
_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?$")
_CLOCK = r"\d{1,2}:\d{1,2}[.,:]\d"
_BROKEN_TIMING = re.compile(rf"{_CLOCK}.*-.*{_CLOCK}")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>|<\d[\d:.]*>|\{\\[^}]{0,200}\}")
_SENTENCE_END = re.compile(r"[.?!…][\"')\]]*$")


class Cue(NamedTuple):
    """Some lines of text from `start_s` to `end_s`."""

    start_s: float
    end_s: float
    lines: tuple[str, ...]
    line: int


class Sentence(NamedTuple):
    """A sentence and its time."""

    text: str
    start_s: float
    end_s: float


class _Word(NamedTuple):
    text: str
    start_s: float
    end_s: float
    ends_cue: bool


def read_cues(path: Path, rejects: Rejects) -> list[Cue]:
    """Return the cues of an SRT or WebVTT file. Everything else (numbers, headers, notes, styles) is skipped."""
    cues: list[Cue] = []
    times: tuple[float, float] | None = None
    begin, is_empty, after_blank = 0, True, False
    lines: list[tuple[str, bool]] = []  # lines of a cue, and whether a blank line precedes each

    def end_cue(at_timing: bool) -> None:
        nonlocal times
        if at_timing and lines and (lines[-1][1] or lines[-1][0].strip().isdigit()):
            lines.pop()  # the number or name of the next cue
        kept = tuple(text for line, _ in lines if (text := clean(_TAG.sub("", line))))
        if times is not None and kept:
            cues.append(Cue(*times, kept, begin))
        times = None
        lines.clear()

    for number, text in [*read_lines(path, rejects), (0, "")]:
        is_empty &= not text.strip()
        if "-->" in text or _BROKEN_TIMING.search(text):
            end_cue(at_timing=True)
            times, begin = _times(text), number
            if times is None or times[1] < times[0]:
                reason = "malformed time" if times is None else "end before start"
                rejects.reject(path.stem, reason, f"a cue's time: {text[:200]}", path, number)
                times = None
        elif text.strip():
            lines.append((text, after_blank))
        elif any(clean(_TAG.sub("", line)) for line, _ in lines):  # some cues begin with a blank line
            end_cue(at_timing=False)
        after_blank = not text.strip()
    end_cue(at_timing=False)
    if is_empty or not cues:
        raise BadFile("empty file" if is_empty else "no captions", f"{path} has no cue with a time and a text")
    return cues


def _times(text: str) -> tuple[float, float] | None:
    match = _TIMING.match(text)
    if not match:
        return None
    parts = match.groups()
    start, end = (
        int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + int(fraction.ljust(3, "0")) / 1000
        for hours, minutes, seconds, fraction in (parts[:4], parts[4:])
    )
    return start, end


def sentences_of(cues: list[Cue]) -> list[Sentence]:
    """Turn cues into sentences, by the rule above."""
    sentences: list[Sentence] = []
    held: list[_Word] = []

    def end_sentence() -> None:
        if held:
            sentences.append(Sentence(" ".join(word.text for word in held), held[0].start_s, held[-1].end_s))
            held.clear()

    for word in _words(cues):
        if held and word.start_s - held[-1].end_s >= SILENCE_S:
            end_sentence()
        held.append(word)
        enough = word.ends_cue and len(held) >= ENOUGH_WORDS
        if _SENTENCE_END.search(word.text) or enough or len(held) >= MOST_WORDS:
            end_sentence()
    end_sentence()
    return sentences


def _words(cues: list[Cue]) -> Iterator[_Word]:
    ordered = _without_repeats(sorted(cues, key=lambda cue: cue.start_s))
    for number, (start_s, end_s, lines) in enumerate(ordered):
        if number + 1 < len(ordered):
            end_s = min(end_s, ordered[number + 1][0])
        words = " ".join(lines).split()
        letters = sum(len(word) + 1 for word in words)
        clock = 0
        for word in words:
            begin, clock = clock, clock + len(word) + 1
            span = end_s - start_s
            times = round(start_s + span * begin / letters, 3), round(start_s + span * clock / letters, 3)
            yield _Word(word, *times, clock == letters)


def _without_repeats(cues: list[Cue]) -> list[tuple[float, float, tuple[str, ...]]]:
    """Return cues without the lines that they repeat from the previous cue; merge cues that start together."""
    result: list[tuple[float, float, tuple[str, ...]]] = []
    before: Cue | None = None
    for cue in cues:
        lines = cue.lines
        shown_before = before.lines if before and cue.start_s <= before.end_s + ROLL_UP_S else ()
        for count in range(min(len(shown_before), len(lines)), 0, -1):
            if shown_before[-count:] == lines[:count]:
                lines = lines[count:]
                break
        before = cue
        if not lines:
            continue
        if result and result[-1][0] == cue.start_s:
            start_s, end_s, earlier = result.pop()
            result.append((start_s, max(end_s, cue.end_s), earlier + lines))
        else:
            result.append((cue.start_s, cue.end_s, lines))
    return result
