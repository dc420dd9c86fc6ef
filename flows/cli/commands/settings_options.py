"""Options that several commands take: settings, and where parts run."""

import argparse
from collections.abc import Callable
from typing import get_args

from pydantic import ValidationError

from flows.cli.commands.shared import wrong_command
from flows.execution import Dispatch, Execution
from tasks.pipeline.settings import PRESETS


def add_settings_options(parser: argparse.ArgumentParser, preset: str) -> None:
    """Declare the options for settings, with a default preset."""
    parser.add_argument("--preset", choices=PRESETS, default=preset, help=f"configuration (default: {preset})")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="changes",
        help="change a setting of the preset, e.g. gamma=0.55 or features.batch_size=8 (tasks/*/settings.py)",
    )


def add_execution_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options for where parts run, and how many at once."""
    runner = Execution.model_fields["runner"]
    parser.add_argument(
        "--dispatch", choices=get_args(Dispatch), default="here", help="where parts run (default: here)"
    )
    parser.add_argument(
        "--runner",
        choices=get_args(runner.annotation),
        default=runner.default,
        help=f"task runner for several --workers (default: {runner.default})",
    )
    add_execution_number(parser, "workers", "number of parts at once")


def add_execution_number(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    """Declare a number of `Execution` as an option, with its limits and its default."""
    default = Execution.model_fields[name].default
    parser.add_argument(
        f"--{name}", type=_number(name), default=default, metavar="N", help=f"{text} (default: {default})"
    )


def _number(name: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            return int(getattr(Execution.model_validate({name: text}), name))
        except ValidationError as error:
            reason = error.errors()[0]["msg"].removeprefix("Input should be ")
            raise argparse.ArgumentTypeError(f"{text!r} is given: it must be {reason}") from error

    return parse


def changes_in(options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Return the settings that differ from the preset's, by group; a WrongCommand if they make no sense."""
    from flows.stages import settings_groups  # loads torch
    from tasks.pipeline.settings import choose, parse_changes

    with wrong_command():
        changes = parse_changes(settings_groups(), options.changes)
        choose(settings_groups(), options.preset, changes)
    return changes
