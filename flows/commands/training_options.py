"""The options that say how to train, which several commands take."""

import argparse

from tasks.training.settings import PRESETS, TrainingSettings, choose_settings


def add_training_options(parser: argparse.ArgumentParser, preset: str) -> None:
    """Declare them, with a preset for where none is named."""
    parser.add_argument(
        "--preset", choices=list(PRESETS), default=preset, help=f"training: its size (default: {preset})"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="changes",
        help="training: change a setting of the preset, e.g. gamma=0.55 (tasks/training/settings.py has them all)",
    )


def training_settings(options: argparse.Namespace) -> TrainingSettings:
    """What they ask for."""
    if wrong := [change for change in options.changes if "=" not in change]:
        raise ValueError(f"--set {wrong[0]}: NAME=VALUE is expected")
    return choose_settings(options.preset, dict(change.split("=", 1) for change in options.changes))
