"""Options that several commands take: settings, and where parts run."""

import argparse

from flows.cli.commands.shared import whole_number
from tasks.pipeline.settings import PRESETS

RUNNERS = ["threads", "processes", "dask", "ray"]


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
    parser.add_argument("--dispatch", choices=["here", "pool"], default="here", help="where parts run (default: here)")
    parser.add_argument(
        "--runner", choices=RUNNERS, default="threads", help="task runner for several --workers (default: threads)"
    )
    parser.add_argument(
        "--workers", type=whole_number, default=1, metavar="N", help="number of parts at once (default: 1)"
    )


def changes_in(options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Return the settings that differ from the preset's, by group."""
    from flows.stages import settings_groups  # loads torch
    from tasks.pipeline.settings import parse_changes

    return parse_changes(settings_groups(), options.changes)
