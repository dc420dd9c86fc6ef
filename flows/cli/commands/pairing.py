"""`vina pair`: the votes of one video, or the quality of all votes."""

import argparse
import json
from pathlib import Path
from typing import Any

from rich.table import Table as Grid

from flows.cli.commands.shared import Add, WrongCommand, existing_store, print_parts
from storage.catalogue import Catalogue
from tasks.pairing.settings import PairingSettings

HUBS = 10


def add_commands(add: Add) -> None:
    """Declare the command."""
    pair = add(
        "pair",
        _pair,
        "show which article a video's narrations vote for; without VIDEO: the quality of all votes",
        "vina pair aXp6zgcka8A",
    )
    pair.add_argument(
        "video", nargs="?", metavar="VIDEO", help="id of a video; write -- before an id that begins with -"
    )
    pair.add_argument(
        "--encoder", metavar="NAME", help="vote again with this sentence encoder, a folder or a name (default: MPNet)"
    )
    pair.add_argument("--articles", metavar="SOURCE", help="vote again for articles of this source (default: wikihow)")
    pair.add_argument("--plot", type=Path, metavar="FILE", help="plot accuracy over confidence, as PNG or SVG")
    pair.add_argument("--json", action="store_true", help="print JSON")


def _pair(options: argparse.Namespace) -> int:
    if options.video is not None and options.plot:
        raise WrongCommand("--plot is about all videos: leave VIDEO out")
    if options.video is None and (options.encoder or options.articles):
        raise WrongCommand("--encoder and --articles are about one video: give its id, VIDEO")
    return _all(options) if options.video is None else _one(options)


def _one(options: argparse.Namespace) -> int:
    from tasks.pairing.lookup import look_up  # loads torch

    store = existing_store(options.store)
    is_requested = options.encoder is not None or options.articles is not None
    settings = PairingSettings(encoder=options.encoder, articles=options.articles) if is_requested else None
    votes = look_up(store, options.video, settings)
    if options.json:
        answer = {
            "encoder": votes.encoder,
            "ranking": [vars(ranked) for ranked in votes.ranking],
            "ballots": [ballot._asdict() for ballot in votes.ballots],
        }
        print(json.dumps(answer, indent=1))
        return 0
    ranking = _grid(
        ["votes", "similarity", "article", "title"],
        [(ranked.votes, f"{ranked.similarity_sum:.2f}", ranked.article_id, ranked.title) for ranked in votes.ranking],
    )
    ballots = _grid(
        ["narration", "votes for", "similarity"],
        [(ballot.text, ballot.title, f"{ballot.similarity:.2f}") for ballot in votes.ballots],
    )
    print_parts(f"{options.video}, encoder {votes.encoder}", ranking, ballots)
    return 0


def _all(options: argparse.Namespace) -> int:
    views = ("pairing_agreement", "pairing_by_confidence", "hub_titles")
    with Catalogue(existing_store(options.store)) as catalogue:
        answers = {view: catalogue.query(f"FROM {view}").to_pylist() for view in views}
    if not answers["hub_titles"]:
        raise ValueError("the store has no votes: run `vina run --stages pairing` first")
    if options.plot:
        from tasks.pairing.plot import draw_accuracy  # loads matplotlib

        draw_accuracy(answers["pairing_by_confidence"], options.plot)
    if options.json:
        print(json.dumps(answers, indent=1))
        return 0
    parts: list[str | Grid] = []
    titles = ("agreement with the data set's tasks", "without the least confident videos", "titles with most votes")
    for title, (view, rows) in zip(titles, answers.items(), strict=True):
        shown = rows[:HUBS] if view == "hub_titles" else rows
        parts += [title, _grid(list(shown[0]), [tuple(row.values()) for row in shown])] if shown else []
    print_parts(*parts, *([f"plot: {options.plot}"] if options.plot else []))
    return 0


def _grid(names: list[str], rows: list[tuple[Any, ...]]) -> Grid:
    grid = Grid(*(name.replace("_", " ") for name in names))
    for column, value in zip(grid.columns, rows[0] if rows else (), strict=False):
        column.justify = "right" if isinstance(value, int | float) else "left"
    for row in rows:
        grid.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in row))
    return grid
