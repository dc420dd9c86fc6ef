"""The article to ground: from a file, from the store, from `--steps`, or proposed by the vote of the narrations."""

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
    """A title and ordered steps."""

    title: str
    steps: list[str]
    article_id: str | None = None
    """Id of an article of the store."""
    proposals: tuple[Ranked, ...] = ()
    """Articles that the vote proposed, this one first; none if the user named the article."""


def read_article(path: Path) -> Article:
    """Read a JSON file with `title` and `steps`, or a text file with one step per line after `# Title`."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ValueError(f"the article {path} cannot be read: {reason}") from error
    title, steps = _from_json(text, path) if path.suffix.lower() == ".json" else _from_lines(text)
    return _checked(title or path.stem, steps, f"the article {path}")


def _from_json(text: str, path: Path) -> tuple[str, list[Any]]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ValueError(f"the article {path} is not JSON: {error}") from error
    entries = content if isinstance(content, dict) else {"steps": content}
    title, steps = entries.get("title") or "", entries.get("steps")
    if not isinstance(steps, list):
        raise ValueError(f"the article {path} has no list of steps: expected {EXPECTED}")
    return str(title), [step.get("headline", step) if isinstance(step, dict) else step for step in steps]


def _from_lines(text: str) -> tuple[str, list[str]]:
    lines = text.splitlines()
    titles = [line.lstrip("# ") for line in lines if line.startswith("#")]
    steps = [_BULLET.sub("", line) for line in lines if not line.startswith("#")]
    return next(iter(titles), ""), steps


def article_of(texts: Sequence[str]) -> Article:
    """Return an article of these steps; a text may hold several, separated by semicolons or line ends."""
    return _checked("", [step for text in texts for step in re.split(r"[;\n]", text)], "--steps")


def _checked(title: str, steps: Sequence[Any], where: str) -> Article:
    if wrong := [step for step in steps if not isinstance(step, str)]:
        raise ValueError(f"{where}: a step must be a text, not {str(wrong[0])[:80]!r}")
    texts = [text for step in steps if (text := clean(step))]
    if not texts:
        raise ValueError(f"{where} has no steps: give at least one")
    return Article(clean(title), texts)


def find_article(name: str, store: Store | None) -> Article:
    """Return the article in a file, if it exists, or else in the store, by its id or title."""
    if _exists(name):
        return read_article(Path(name))
    if store is None:
        raise ValueError(
            f"there is no file {name}, and no store to find an article in: give a file with steps (--article FILE), "
            "or a store (--store)"
        )
    try:
        return article_in(store, name)
    except UnknownArticle as error:
        raise ValueError(f"there is no file {name}, and {error}") from error


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # a title may be too long for a file name
        return False


class UnknownArticle(ValueError):
    """The store has no article with that id or title."""


def article_in(store: Store, name: str) -> Article:
    """Return an article of the store by its id (with or without its source) or its title."""
    with Catalogue(store) as catalogue:
        rows = catalogue.query(f"""
            SELECT article_id, title FROM articles SEMI JOIN steps USING (article_id)
            WHERE article_id = {quoted(name)} OR split_part(article_id, '/', 2) = {quoted(name)}
               OR {TITLE_KEY} = (SELECT {TITLE_KEY} FROM (SELECT {quoted(name)} AS title))
            ORDER BY article_id <> {quoted(name)}, source <> {quoted(DEFAULT_SOURCE)}, article_id""").to_pylist()
        if not rows:
            near = catalogue.query(f"""
                SELECT DISTINCT article_id, title FROM articles SEMI JOIN steps USING (article_id)
                ORDER BY least(levenshtein(article_id, {quoted(name)}),
                               levenshtein(lower(title), lower({quoted(name)}))), article_id LIMIT 3""").to_pylist()
            hint = "; ".join(f"{row['article_id']} ({row['title']})" for row in near) or "none (import some)"
            raise UnknownArticle(f"the store has no article {name!r} with steps; the nearest: {hint}")
        if len({row["title"] for row in rows}) > 1 and rows[0]["article_id"] != name:
            listed = ", ".join(row["article_id"] for row in rows[:5])
            raise ValueError(f"{name!r} is the id of several articles: choose one of {listed}")
        article_id = quoted(rows[0]["article_id"])
        steps = catalogue.query(f"SELECT headline FROM steps WHERE article_id = {article_id} ORDER BY row")
    return Article(rows[0]["title"], steps["headline"].to_pylist(), rows[0]["article_id"])


def propose(store: Store, video_id: str | None, narrations: Sequence[str]) -> Article:
    """Return the article with most votes of the narrations: stored votes, or votes counted now."""
    if not narrations:
        raise ValueError(
            "no steps were given, and no narrations that could vote for an article: give --article (a file, "
            'or an id or title of the store) or --steps "...; ...", or give --narrations FILE'
        )
    votes = look_up(store, video_id) if video_id else vote_now(store, list(narrations), PairingSettings())
    best = votes.ranking[:PROPOSALS]
    article = article_in(store, best[0].article_id)
    return Article(article.title, article.steps, article.article_id, best)
