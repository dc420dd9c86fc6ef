"""The command `vina`. Exit codes: 0 done, 1 failed, 2 the command or the SQL is wrong, 130 interrupted."""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from flows.cli.commands import (
    ablation,
    data,
    grounding,
    pages,
    pairing,
    results,
    run,
    scoring,
    service,
    statistics,
    store,
)
from flows.cli.commands.shared import Work, WrongCommand
from flows.quiet_end import QuietEnd
from storage import QueryError
from tasks.pipeline.job import Interrupted

DEFAULT_STORE = "vina-store"
YOUTUBE_ID = re.compile(r"[\w-]{11}")
ENVIRONMENT = {  # defaults
    "OMP_WAIT_POLICY": "passive",  # spinning threads run at a tenth of the speed when a core is busy
    # For the server that `vina run` starts if none is configured: it sends no telemetry.
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "60",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "vina",
    "PREFECT_LOGGING_LEVEL": "WARNING" if sys.stderr.isatty() else "INFO",  # a terminal shows progress bars
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments and run the command; print an error of the user as one line, and return the exit code."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    parser = _parser()
    options, unknown = parser.parse_known_args(arguments)
    if getattr(options, "video", "") is None and len(unknown) == 1 and YOUTUBE_ID.fullmatch(unknown[0]):
        options.video, unknown = unknown[0], []  # an id that begins with a dash
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        return int(options.command(options))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("vina: interrupted", file=sys.stderr)
        return 130
    except Interrupted as stop:
        print(f"vina: {stop}", file=sys.stderr)
        return 130
    except (QueryError, WrongCommand) as error:
        print(f"vina: {error}", file=sys.stderr)
        return 2
    except (ValueError, OSError) as error:
        print(f"vina: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vina",
        description="Ground the steps of instructional articles in how-to videos.",
        epilog="Exit codes: 0 done, 1 failed, 2 the command or the SQL is wrong, 130 interrupted.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, work: Work, text: str, example: str) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_argument(
            "--store",
            metavar="URI",
            default=os.environ.get("VINA_STORE") or DEFAULT_STORE,
            help=f"a folder or s3://bucket/prefix (default: VINA_STORE, else ./{DEFAULT_STORE})",
        )
        command.set_defaults(command=work)
        return command

    for group in (run, service, data, pairing, grounding, pages, ablation, results, scoring, statistics, store):
        group.add_commands(add)
    return parser


def entry() -> NoReturn:
    """Run as the console script."""
    end = QuietEnd()
    try:
        end.code = main()
    except SystemExit as stop:  # raised by argparse for a wrong command and for --help
        end.code = stop.code if isinstance(stop.code, int) else 0
    sys.exit(end.code)
