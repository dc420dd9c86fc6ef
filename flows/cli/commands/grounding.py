"""`vina ground`: find the steps of an article in a video."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table as Grid

from flows.cli.commands.shared import Add, maybe_store, print_parts
from flows.terminal import Terminal
from storage import Store
from tasks.evaluation.benchmarks.registry import benchmark_of_whole_articles

if TYPE_CHECKING:
    from tasks.grounding.grounding import Grounded


def add_commands(add: Add) -> None:
    """Declare the command."""
    ground = add(
        "ground",
        _ground,
        "find the steps of an article in a video, and which of them are not shown",
        'vina ground video.mp4 --steps "Chop the onion; Fry it" --narrations video.srt --output video.html',
    )
    ground.add_argument("video", nargs="?", metavar="VIDEO", help="a video file, or the id of an imported video")
    steps = ground.add_mutually_exclusive_group()
    steps.add_argument(
        "--article",
        metavar="FILE|ID|TITLE",
        help="a text file with one step per line, a JSON file with title and steps, or the id or title of a stored "
        "article (default: the narrations vote for one)",
    )
    steps.add_argument(
        "--steps",
        nargs="+",
        default=[],
        metavar="TEXT",
        help="the steps; one text may hold several, separated by semicolons",
    )
    ground.add_argument(
        "--narrations", type=Path, metavar="FILE", help="narrations: .srt, .vtt or .json (default: imported ones)"
    )
    ground.add_argument(
        "--checkpoint", metavar="RUN|FILE", help="a run's id, or a model's file (default: the newest run's model)"
    )
    ground.add_argument("--weights", metavar="FILE", help="weights of the backbone, if the video has no features")
    ground.add_argument("--device", metavar="NAME", help="cuda, mps, cpu, ... (default: the best available)")
    ground.add_argument(
        "--output",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="write the result: .json, .csv, .vtt (chapters) or .html (a page); may be repeated",
    )
    ground.add_argument("--json", action="store_true", help="print JSON, for scripts")


def _ground(options: argparse.Namespace) -> int:
    from tasks.grounding import files  # loads torch
    from tasks.grounding.articles import article_of, find_article
    from tasks.grounding.grounding import GroundingRequest, ground
    from tasks.pipeline.progress import listening

    if options.video is None:
        raise ValueError("no video was given: name a file, or the id of an imported video (--help)")
    endings = [*files.FORMATS, ".html"]
    for path in options.output:
        if path.suffix.lower() not in endings:
            raise ValueError(f"--output {path}: the name must end in {', '.join(endings)}")
        if not path.parent.is_dir():
            raise ValueError(f"--output {path}: there is no folder {path.parent}")
    store = maybe_store(options.store)
    article = find_article(options.article, store) if options.article else None
    if options.steps:
        article = article_of(options.steps)
    request = GroundingRequest(
        options.video, article, options.narrations, options.checkpoint, options.weights, options.device
    )
    with Terminal() as terminal, listening(terminal.tell):
        terminal.begin("features")
        grounded = ground(request, store)
    for path in options.output:
        ending = path.suffix.lower()
        files.write_text(path, _page(grounded, store) if ending == ".html" else files.FORMATS[ending](grounded))
    if options.json:
        print(files.as_json(grounded), end="")
    else:
        _show(grounded)
        print(*(f"written: {path}" for path in options.output), sep="\n", end="\n" if options.output else "")
    return 0


def _page(grounded: "Grounded", store: Store | None) -> str:
    from tasks.pages.video_page import video_page  # loads matplotlib

    return video_page(grounded, store)


def _show(grounded: "Grounded") -> None:
    """Print the steps as a table, and notes on how to read it."""
    from tasks.pages.rendering import clock

    video_input, article, result = grounded.video_input, grounded.article, grounded.result
    narrations = f"{len(video_input.narrations)} narrations" if video_input.narrations else "no narrations"
    name = grounded.model.name or "a checkpoint"
    lines: list[str | Grid] = [f"{video_input.name}, {clock(result.num_seconds)}, {narrations}; model: {name}"]
    if article.proposals:
        lines.append("proposed by the narrations (the first is used; --article ID uses another):")
        lines += [f"  {each.article_id}  {each.title}, {each.votes} votes" for each in article.proposals]
    grid = Grid("", article.title or "step", "start", "end", "score", "shown?")
    for number, step in enumerate(result.steps, 1):
        where = (clock(step.start_s), clock(step.end_s), f"{step.score:.2f}")
        chance = "" if step.presence is None else f"{100 * step.presence:.0f} %"
        if step.is_shown is False:
            grid.add_row(str(number), step.text, "", "", "", f"not shown ({chance})")
        else:
            grid.add_row(str(number), step.text, *where, f"shown ({chance})" if chance else "unknown")
    lines.append(grid)
    if not grounded.model.presence:
        lines.append(
            "whether a step is shown is unknown: this model is not calibrated (`vina run --stages evaluation` "
            f"calibrates it on videos annotated for {benchmark_of_whole_articles()[0].title})"
        )
    if unknown := [step.text for step in result.steps if not step.num_known_words]:
        lines.append(f"no word is in the model's vocabulary: {'; '.join(unknown)}")
    print_parts(*lines)
