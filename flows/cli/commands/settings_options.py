"""The options `--preset` and `--set`, which several commands take."""

import argparse

from tasks.pipeline.settings import PRESETS


def add_settings_options(parser: argparse.ArgumentParser, preset: str) -> None:
    """Declare them, with a default preset."""
    parser.add_argument("--preset", choices=PRESETS, default=preset, help=f"configuration (default: {preset})")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="changes",
        help="change a setting of the preset, e.g. gamma=0.55 or features.batch_size=8 (tasks/*/settings.py)",
    )


def changes_in(options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Return the settings that differ from the preset's, by group."""
    from flows.stages import settings_groups  # loads torch
    from tasks.pipeline.settings import parse_changes

    return parse_changes(settings_groups(), options.changes)
