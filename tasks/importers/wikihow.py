"""wikiHow's dumps: `wikihowAll.csv` (one row per article) and `wikihowSep.csv` (one row per step, with a paragraph).

If an article is in both files of an import, the second is used: it has paragraphs. wikiHow's dumps have no ids: an
article's id is its title, as in wikiHow's addresses, and its method number.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tasks.importers.files import Files, article_id, split_title
from tasks.importers.import_session import ImportSession
from tasks.importers.text_files import LONGEST_TEXT, clean, read_csv

SOURCE = "wikihow"
EXPECTED = "wikihowAll.csv, wikihowSep.csv"
LONGEST_TITLE = 500
"""Most characters of a title, which is part of the article's id."""


class _Step(NamedTuple):
    headline: str
    paragraph: str | None


def import_wikihow(files: Files, session: ImportSession) -> None:
    """Import the existing ones of the two files."""
    kept_ids: set[str] = set()
    for path in files.named("wikihowSep*.csv"):
        with session.file(path):
            for line, title, steps in _by_step(path, session):
                if _keep(title, steps, path, line, session):
                    kept_ids.add(_title_id(title))
    for path in files.named("wikihowAll*.csv"):
        with session.file(path):
            for line, row in read_csv(path, ("headline", "title"), session.rows_of("articles")):
                if _title_id(row["title"]) not in kept_ids:
                    _keep(row["title"], _headlines(row["headline"]), path, line, session)


def _by_step(path: Path, session: ImportSession) -> Iterator[tuple[int, str, list[_Step]]]:
    """Yield the articles; the rows of one article follow each other."""
    rejects = session.rows_of("steps")
    rows = read_csv(path, ("headline", "text", "title"), rejects)
    for title, group in groupby(rows, key=lambda item: clean(item[1]["title"])):
        if not title:
            for line, row in group:
                rejects.reject(f"line {line}", "empty or overlong title", str(row)[:500], path, line)
            continue
        members = list(group)
        steps = [_Step(_headline(row["headline"]), clean(row["text"]) or None) for _, row in members]
        yield members[0][0], title, steps


def _headlines(cell: str) -> list[_Step]:
    """Return one step per line; lines end in `.,` or `,`."""
    return [_Step(headline, None) for line in cell.split("\n") if (headline := _headline(line))]


def _headline(line: str) -> str:
    return clean(line).removesuffix(",").strip()


def _title_id(title: str) -> str:
    name, variation = split_title(title)
    return "-".join(name.split()) + (f"-method-{variation}" if variation else "")


def _keep(title: str, steps: list[_Step], path: Path, line: int, session: ImportSession) -> bool:
    """Keep an article, unless it has no title or no steps; return whether it was kept."""
    title_id, (name, variation) = _title_id(title), split_title(title)
    good = [step for step in steps if 0 < len(step.headline) <= LONGEST_TEXT]
    if not name or len(name) > LONGEST_TITLE:
        rejects = session.rows_of("articles")
        rejects.reject(title[:200] or f"line {line}", "empty or overlong title", title[:200], path, line)
        return False
    if len(good) < len(steps):
        detail = f"{len(steps) - len(good)} of {len(steps)} headlines"
        rejects = session.rows_of("steps")
        rejects.reject(title, "empty or overlong headline", detail, path, line, rows=len(steps) - len(good))
    if not good:
        session.rows_of("articles").reject(title, "no steps", "the article has no headline", path, line)
        return False
    article = {"article_id": article_id(SOURCE, title_id), "title": name, "variation": variation}
    rows = [{"step_id": str(row), **step._asdict()} for row, step in enumerate(good)]
    session.keep_article(SOURCE, article, rows, path, line)
    return True
