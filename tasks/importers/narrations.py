"""Sentences with times, checked in batches of thousands: the rows of `narrations`.

A sentence is rejected if its text is empty or its times are not numbers, negative, or in the wrong order; the rest of
its video is kept. The rows of a video are its sentences in the order of their starts.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tasks.importers.captions import Cue, sentences_of
from tasks.importers.import_session import Admission, ImportSession
from tasks.importers.text_files import LONGEST_TEXT, clean

SENTENCES_AT_ONCE = 100_000
BYTES_AT_ONCE = 64 << 20
LONGEST_TIME_S = 1e6
Floats = npt.NDArray[np.float64]
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


class NarrationWriter:
    """Collects the sentences of many videos from one file; `close` writes the last ones."""

    def __init__(self, session: ImportSession, source: str, file: Path) -> None:
        self._session, self._file = session, file
        self._partition = {"source": source}
        self._clear()

    def _clear(self) -> None:
        self._videos: list[tuple[str, int | None]] = []
        self._num_bytes = 0
        self._is_new: list[bool] = []
        self._lengths: list[int] = []
        self._texts: list[str] = []
        self._starts: list[float] = []
        self._ends: list[float] = []

    def add(
        self,
        video_id: str,
        texts: Any,
        starts: Any,
        ends: Any,
        line: int | None = None,
        num_bytes: int = 0,
        are_captions: bool = False,
    ) -> None:
        """Add the sentences of one video, as three lists of equal length; or captions, which become sentences."""
        lists = (texts, starts, ends)
        if not all(isinstance(values, list) for values in lists) or len({len(values) for values in lists}) != 1:
            detail = "text, start and end must be three lists of one length"
            longest = max((len(values) for values in lists if isinstance(values, list)), default=1)
            rejects = self._session.rows_of("narrations")
            rejects.reject(video_id, "lists of different lengths", detail, self._file, line, rows=longest)
            return
        admission = self._session.admit("narrations", self._partition, video_id, self._file, line, rows=len(texts))
        if admission is Admission.REFUSED:
            return
        if are_captions:
            texts, starts, ends = self._sentences(video_id, texts, starts, ends, line)
        self._videos.append((video_id, line))
        self._is_new.append(admission is Admission.NEW)
        self._lengths.append(len(texts))
        self._texts += texts
        self._starts += starts
        self._ends += ends
        self._num_bytes += num_bytes
        if len(self._texts) >= SENTENCES_AT_ONCE or self._num_bytes >= BYTES_AT_ONCE:
            self.close()

    def _sentences(
        self, video_id: str, texts: list[Any], starts: list[Any], ends: list[Any], line: int | None
    ) -> tuple[list[str], list[float], list[float]]:
        cues = []
        for number_in_video, (text, start, end) in enumerate(zip(texts, starts, ends, strict=True)):
            start_s, end_s, words = number(start), number(end), clean(text) if isinstance(text, str) else ""
            if problem := time_problem(start_s, end_s) or (None if words else "empty text"):
                detail = f"caption {number_in_video}, from {start} to {end}: {str(text)[:200]}"
                self._session.reject(video_id, problem, detail, self._file, line)
            else:
                cues.append(Cue(start_s, end_s, (words,), line or 0))
        sentences = sentences_of(cues)
        return [s.text for s in sentences], [s.start_s for s in sentences], [s.end_s for s in sentences]

    def close(self) -> None:
        """Check the collected sentences, and keep the valid ones."""
        if not self._videos:
            return
        text, start_s, end_s = _strings(self._texts), _numbers(self._starts), _numbers(self._ends)
        owner = np.repeat(np.arange(len(self._videos)), self._lengths)
        good = self._good(text, start_s, end_s)
        if not good.all():
            self._reject(np.flatnonzero(~good), owner, text, start_s, end_s)
        is_new = np.repeat(self._is_new, self._lengths)
        self._session.summary.present["narrations"] += int((good & ~is_new).sum())
        good &= is_new
        if not good.all():
            text, start_s, end_s, owner = text.filter(pa.array(good)), start_s[good], end_s[good], owner[good]
        if ((start_s[1:] < start_s[:-1]) & (owner[1:] == owner[:-1])).any():
            order = np.lexsort((start_s, owner))
            text, start_s, end_s = text.take(pa.array(order)), start_s[order], end_s[order]
        first = np.searchsorted(owner, np.arange(len(self._videos)))
        video_ids = pa.array([video_id for video_id, _ in self._videos], pa.string())
        rows = pa.table(
            {
                "video_id": video_ids.take(pa.array(owner)),
                "row": pa.array((np.arange(len(owner)) - first[owner]).astype(np.int32)),
                "text": text,
                "start_s": pa.array(start_s.astype(np.float32)),
                "end_s": pa.array(end_s.astype(np.float32)),
            }
        )
        self._clear()
        if len(rows):
            self._session.keep("narrations", self._partition, rows)

    def _good(self, text: pa.Array, start_s: Floats, end_s: Floats) -> npt.NDArray[np.bool_]:
        lengths = np.diff(_offsets(text))
        with np.errstate(invalid="ignore"):
            times = (start_s >= 0) & (end_s >= start_s) & (end_s <= LONGEST_TIME_S)
        return times & (lengths > 0) & (lengths <= LONGEST_TEXT)

    def _reject(
        self,
        rows: npt.NDArray[np.int64],
        owner: npt.NDArray[np.int64],
        text: pa.Array,
        start_s: Floats,
        end_s: Floats,
    ) -> None:
        """Reject the sentences of these rows, each with its reason."""
        first = np.searchsorted(owner, owner[rows])
        for row, begin in zip(rows, first, strict=True):
            video_id, line = self._videos[owner[row]]
            empty = "text too long" if text[row].as_py() else "empty text"
            reason = time_problem(start_s[row], end_s[row]) or empty
            times = f"from {self._starts[row]} to {self._ends[row]}"
            detail = f"sentence {row - begin}, {times}: {str(self._texts[row])[:200]}"
            self._session.reject(video_id, reason, detail, self._file, line)


def time_problem(start_s: float, end_s: float) -> str | None:
    """Return what is wrong with a time span, as a reason for `rejects`; None if it is valid."""
    if not (np.isfinite(start_s) and np.isfinite(end_s)):
        return "time is not a number"
    if start_s < 0 or end_s < 0:
        return "negative time"
    if end_s < start_s:
        return "end before start"
    return "time too large" if end_s > LONGEST_TIME_S else None


def number(value: Any) -> float:
    """Return a number given as a number or as text; NaN for anything else."""
    if isinstance(value, bool) or (isinstance(value, str) and not _NUMBER.fullmatch(value.strip())):
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def duration(value: Any) -> float | None:
    """Return a length in seconds; None if it is unknown or not positive."""
    seconds = number(value)
    return seconds if 0 < seconds <= LONGEST_TIME_S else None


def _numbers(values: Sequence[Any]) -> Floats:
    try:
        return np.asarray(pa.array(values, pa.float64()).to_numpy(zero_copy_only=False))
    except (pa.ArrowException, TypeError, OverflowError):
        return np.array([number(value) for value in values])


def _strings(values: Sequence[Any]) -> pa.Array:
    """Return the cleaned texts; anything that is not a text becomes empty."""
    try:
        text = pa.array(values, pa.string())
        if text.null_count:
            raise TypeError
    except (pa.ArrowException, TypeError, UnicodeError):
        return pa.array([clean(value) if isinstance(value, str) else "" for value in values], pa.string())
    dirty = _dirty(text)
    if not len(dirty):
        return text
    cleaned = list(values)
    for row in dirty:
        cleaned[row] = clean(cleaned[row])
    return pa.array(cleaned, pa.string())


def _offsets(text: pa.Array) -> npt.NDArray[np.int32]:
    return (
        np.frombuffer(text.buffers()[1], np.int32)[text.offset : text.offset + len(text) + 1]
        if len(text)
        else np.zeros(1, np.int32)
    )


def _dirty(text: pa.Array) -> npt.NDArray[np.int64]:
    """Return which texts may need cleaning: an ampersand, a control or non-ASCII character, or surplus spaces."""
    offsets = _offsets(text)
    if not len(text) or text.buffers()[2] is None:
        return np.zeros(0, np.int64)
    letters = np.frombuffer(text.buffers()[2], np.uint8)[: offsets[-1]]
    odd = (letters < 32) | (letters == ord("&")) | (letters >= 127)
    space = letters == 32
    odd[:-1] |= space[:-1] & space[1:]
    filled = offsets[1:] > offsets[:-1]
    odd[offsets[:-1][filled]] |= space[offsets[:-1][filled]]
    odd[offsets[1:][filled] - 1] |= space[offsets[1:][filled] - 1]
    return np.unique(np.searchsorted(offsets, np.flatnonzero(odd), side="right") - 1)
