"""The options that say how to do it, which several commands take."""

import argparse
from typing import Any

from tasks.pipeline.presets import PRESETS, choose, parse_changes
from tasks.training.settings import TrainingSettings


def add_training_options(parser: argparse.ArgumentParser, preset: str) -> None:
    """Declare them, with a preset for where none is named."""
    parser.add_argument("--preset", choices=list(PRESETS), default=preset, help=f"its size (default: {preset})")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="changes",
        help="change a setting of the preset, e.g. gamma=0.55 or features.batch_size=8 (tasks/*/settings.py)",
    )


def changes_in(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The settings that differ from the preset's, by group."""
    return parse_changes(options.changes)


def training_settings(options: argparse.Namespace) -> TrainingSettings:
    """How to train."""
    return choose(options.preset, changes_in(options)).training
