"""The result of `vina ground` as JSON, CSV, or WebVTT chapters for video players."""

import csv
import io
import json
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from storage.objects import atomic_file
from tasks.grounding.grounding import Grounded
from vina_model.grounder import GroundedStep

COLUMNS = ("step", "text", "start_s", "end_s", "score", "presence", "shown")


def as_rows(grounded: Grounded) -> list[dict[str, Any]]:
    """Return the COLUMNS of each step, in the order of the article; steps are numbered from 1."""
    return [
        dict(zip(COLUMNS, (number, step.text, *_numbers(step), step.is_shown), strict=True))
        for number, step in enumerate(grounded.result.steps, 1)
    ]


def _numbers(step: GroundedStep) -> list[float | None]:
    presence = None if step.presence is None else round(step.presence, 4)
    return [round(step.start_s, 2), round(step.end_s, 2), round(step.score, 4), presence]


def as_json(grounded: Grounded) -> str:
    """Return the whole result as JSON."""
    article = grounded.article
    content = {
        "video": grounded.video_input.name,
        "seconds": grounded.result.num_seconds,
        "model": grounded.model.name,
        "backbone": grounded.model.backbone,
        "narrations": len(grounded.video_input.narrations),
        "article": {"id": article.article_id, "title": article.title},
        "proposals": [vars(ranked) for ranked in article.proposals],
        "steps": as_rows(grounded),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def as_csv(grounded: Grounded) -> str:
    """Return one line per step."""
    sink = io.StringIO()
    writer = csv.DictWriter(sink, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(as_rows(grounded))
    return sink.getvalue()


def as_chapters(grounded: Grounded) -> str:
    """Return WebVTT chapters, which do not overlap, for the steps that are shown.

    Steps that share most of their time share a chapter; others end where the next begins.
    """
    steps = (step for step in grounded.result.steps if step.is_shown is not False)
    cues: list[tuple[float, float, str]] = []
    for step in sorted(steps, key=lambda step: (step.start_s, step.end_s)):
        start, end, text = step.start_s, step.end_s, step.text
        if cues and (shared := min(cues[-1][1], end) - start) > 0:
            before = cues.pop()
            if shared > min(before[1] - before[0], end - start) / 2:
                start, end, text = before[0], max(before[1], end), f"{before[2]} / {text}"
            else:
                cues.append((before[0], start, before[2]))
        cues.append((start, end, text))
    missing = [step.text for step in grounded.result.steps if step.is_shown is False]
    parts = ["WEBVTT", *([f"NOTE not shown: {_line('; '.join(missing))}"] if missing else [])]
    parts += [f"{_clock(start)} --> {_clock(end)}\n{_line(text)}" for start, end, text in cues]
    return "\n\n".join(parts) + "\n"


def _line(text: str) -> str:
    return escape(text, quote=False)


def _clock(seconds: float) -> str:
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{milliseconds // 1000:02}.{milliseconds % 1000:03}"


FORMATS: dict[str, Callable[[Grounded], str]] = {".json": as_json, ".csv": as_csv, ".vtt": as_chapters}
"""Formats by file ending; `.html`, a page, is written by tasks/pages."""


def write_text(path: Path, text: str) -> None:
    """Write a file that appears complete or not at all."""
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
