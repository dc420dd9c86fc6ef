"""Render templates. All values are escaped, only `video.js` may run (by its hash), and nothing is fetched."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **context: Any) -> str:
    """Return the page of a template."""
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (TEMPLATES / "video.js").read_text()
    environment.globals.update(
        style=Markup((TEMPLATES / "style.css").read_text()),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    environment.filters.update(clock=clock, cell=cell)
    return environment


def clock(seconds: float) -> str:
    """Return a time such as 1:05 or 1:02:05."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def cell(value: Any) -> str:
    """Format a value for a table."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value).strip()


def grid_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a table for a template: names, rows of values, and which columns hold numbers."""
    names = list(rows[0]) if rows else []
    return {
        "names": names,
        "rows": [list(row.values()) for row in rows],
        "is_number": [all(_is_number(row[name]) for row in rows) for name in names],
    }


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
