"""The steps to look for: from a file, from the store's articles, from the command line, or proposed by the vote."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage import Store
from storage.catalogue import Catalogue, quoted
from storage.views import TITLE_KEY
from tasks.importers.text_files import clean
from tasks.pairing.candidates import DEFAULT_SOURCE
from tasks.pairing.lookup import Ranked, look_up, vote_now
from tasks.pairing.settings import PairingSettings

PROPOSALS = 3
EXPECTED = '{"title": "...", "steps": ["...", ...]}'
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")


@dataclass(frozen=True)
class Article:
    """A title and the steps in their order."""

    title: str
    steps: list[str]
    article_id: str | None = None
    """Where it is the store's."""
    proposals: tuple[Ranked, ...] = ()
    """The articles that the vote proposed, this one first, if nobody named one."""


def read_article(path: Path) -> Article:
    """A JSON file with `title` and `steps`, or a text file of one step a line under a first line `# Title`."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ValueError(f"the article {path} cannot be read: {reason}") from error
    title, steps = _from_json(text, path) if path.suffix.lower() == ".json" else _from_lines(text)
    return _checked(title or path.stem, steps, f"the article {path}")


def _from_json(text: str, path: Path) -> tuple[str, list[Any]]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"the article {path} is no JSON: {error}") from error
    about = found if isinstance(found, dict) else {"steps": found}
    title, steps = about.get("title") or "", about.get("steps")
    if not isinstance(steps, list):
        raise ValueError(f"the article {path} has no list of steps: {EXPECTED} is expected")
    return str(title), [step.get("headline", step) if isinstance(step, dict) else step for step in steps]


def _from_lines(text: str) -> tuple[str, list[str]]:
    lines = text.splitlines()
    titles = [line.lstrip("# ") for line in lines if line.startswith("#")]
    steps = [_BULLET.sub("", line) for line in lines if not line.startswith("#")]
    return next(iter(titles), ""), steps


def article_of(texts: Sequence[str]) -> Article:
    """Steps as they were typed: one each, or several in one text, between semicolons or on lines of their own."""
    return _checked("", [step for text in texts for step in re.split(r"[;\n]", text)], "--steps")


def _checked(title: str, steps: Sequence[Any], where: str) -> Article:
    if wrong := [step for step in steps if not isinstance(step, str)]:
        raise ValueError(f"{where}: a step must be a text, not {str(wrong[0])[:80]!r}")
    known = [text for step in steps if (text := clean(step))]
    if not known:
        raise ValueError(f"{where} has no steps: give at least one")
    return Article(clean(title), known)


def article_in(store: Store, task: str) -> Article:
    """An article of the store, by its id (with or without its source), or by its title."""
    with Catalogue(store) as catalogue:
        rows = catalogue.query(f"""
            SELECT article_id, title FROM articles SEMI JOIN steps USING (article_id)
            WHERE article_id = {quoted(task)} OR split_part(article_id, '/', 2) = {quoted(task)}
               OR {TITLE_KEY} = (SELECT {TITLE_KEY} FROM (SELECT {quoted(task)} AS title))
            ORDER BY article_id <> {quoted(task)}, source <> {quoted(DEFAULT_SOURCE)}, article_id""").to_pylist()
        if not rows:
            near = catalogue.query(f"""
                SELECT DISTINCT article_id, title FROM articles SEMI JOIN steps USING (article_id)
                ORDER BY least(levenshtein(article_id, {quoted(task)}),
                               levenshtein(lower(title), lower({quoted(task)}))), article_id LIMIT 3""").to_pylist()
            hint = "; ".join(f"{row['article_id']} ({row['title']})" for row in near) or "none has: import some"
            raise ValueError(f"the store has no article {task!r} with steps; the nearest: {hint}")
        if len({row["title"] for row in rows}) > 1 and rows[0]["article_id"] != task:
            listed = ", ".join(row["article_id"] for row in rows[:5])
            raise ValueError(f"{task!r} is the id of several articles: choose one of {listed}")
        own = quoted(rows[0]["article_id"])
        steps = catalogue.query(f"SELECT headline FROM steps WHERE article_id = {own} ORDER BY row")
    return Article(rows[0]["title"], steps["headline"].to_pylist(), rows[0]["article_id"])


def propose(store: Store, video_id: str | None, narrations: Sequence[str]) -> Article:
    """The article that most narrations vote for: as the store has counted, or counted now."""
    if not narrations:
        raise ValueError(
            "there are no steps to look for, and no narrations to find an article by: name --article FILE, --task ID "
            'or --steps "...; ...", or give --narrations FILE'
        )
    found = look_up(store, video_id) if video_id else vote_now(store, list(narrations), PairingSettings())
    best = found.ranking[:PROPOSALS]
    article = article_in(store, best[0].article_id)
    return Article(article.title, article.steps, article.article_id, best)
