"""wikiHow's dumps: `wikihowAll.csv` (a row an article) and `wikihowSep.csv` (a row a step, with its explanation).

Where an article is in both, the second is taken, for it says more. wikiHow has no ids in its dumps: an article's id is
made of its title, as in wikiHow's own addresses, and its method number.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tasks.importers.files import Files, article_id, split_title
from tasks.importers.intake import Intake
from tasks.importers.text_files import LONGEST_TEXT, clean, read_csv

SOURCE = "wikihow"
EXPECTED = "wikihowAll.csv, wikihowSep.csv"
LONGEST_TITLE = 500
"""Characters; the title is in the article's id."""


class _Step(NamedTuple):
    headline: str
    paragraph: str | None


def import_wikihow(files: Files, intake: Intake) -> None:
    """Whatever there is of the two files."""
    taken: set[str] = set()
    for path in files.named("wikihowSep*.csv"):
        with intake.file(path):
            for line, title, steps in _by_step(path, intake):
                taken.add(_keep(title, steps, path, line, intake))
    for path in files.named("wikihowAll*.csv"):
        with intake.file(path):
            for line, row in read_csv(path, ("headline", "title"), intake):
                if _own_id(row["title"]) not in taken:
                    _keep(row["title"], _headlines(row["headline"]), path, line, intake)


def _by_step(path: Path, intake: Intake) -> Iterator[tuple[int, str, list[_Step]]]:
    """The rows of one article follow each other."""
    rows = read_csv(path, ("headline", "text", "title"), intake)
    for title, group in groupby(rows, key=lambda item: item[1]["title"]):
        members = list(group)
        yield (
            members[0][0],
            title,
            [_Step(_headline(row["headline"]), clean(row["text"]) or None) for _, row in members],
        )


def _headlines(cell: str) -> list[_Step]:
    """One step a line; lines end in `.,` or `,`."""
    return [_Step(headline, None) for line in cell.splitlines() if (headline := _headline(line))]


def _headline(line: str) -> str:
    return clean(line).removesuffix(",").strip()


def _own_id(title: str) -> str:
    name, variation = split_title(title)
    return "-".join(name.split()) + (f"-method-{variation}" if variation else "")


def _keep(title: str, steps: list[_Step], path: Path, line: int, intake: Intake) -> str:
    own_id, (name, variation) = _own_id(title), split_title(title)
    good = [step for step in steps if 0 < len(step.headline) <= LONGEST_TEXT]
    if len(good) < len(steps):
        intake.reject(title, "empty or overlong headline", f"{len(steps) - len(good)} of {len(steps)}", path, line)
    if not name or len(name) > LONGEST_TITLE:
        intake.reject(title[:200] or f"line {line}", "empty or overlong title", title[:200], path, line)
    elif not good:
        intake.reject(title, "no steps", "the article has no headline", path, line)
    else:
        article = {"article_id": article_id(SOURCE, own_id), "title": name, "variation": variation}
        rows = [{"step_id": str(row), **step._asdict()} for row, step in enumerate(good)]
        intake.keep_article(SOURCE, article, rows, path, line)
    return own_id
