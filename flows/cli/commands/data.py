"""`vina import`, `vina forget` and `vina demo`: import data, remove it again, write a demo world."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from flows.cli.commands.shared import Add, existing_store, whole_number
from storage import Store
from tasks.demo_world.knobs import PRESETS, explain_knobs
from tasks.importers.sources import SOURCES, Options, forget_source, import_source, missing_lines
from tasks.importers.summary import Summary
from tasks.pipeline.run_record import name_run, record_run


def add_commands(add: Add) -> None:
    """Declare the commands."""
    command = add(
        "import",
        _import,
        "import a data set, or any part of it",
        "vina import crosstask path/to/crosstask_release",
    )
    _add_source(command)
    command.add_argument("path", metavar="PATH", type=Path, help="a folder with the data set's files, or one of them")
    command.add_argument(
        "--backbone", metavar="NAME", help="features, texts: name of the network (default: name of the folder or file)"
    )
    command.add_argument("--upload", action="store_true", help="videos: copy the files into the store")
    command.add_argument("--json", action="store_true", help="print the summary as JSON")

    forget = add(
        "forget",
        _forget,
        "remove all rows of a source, e.g. to import it again (older versions stay until gc)",
        "vina forget features --backbone s3d-milnce",
    )
    _add_source(forget)
    forget.add_argument("--backbone", metavar="NAME", help="features, texts: name of the network")

    demo = add(
        "demo",
        _demo,
        "write a demo world of how-to videos in the formats of the real data sets",
        "vina demo demo-corpus --preset htstep --set num_videos=600 --set feature_noise=1.5",
    )
    demo.add_argument("folder", metavar="FOLDER", type=Path, help="folder to write to; it must be new or empty")
    demo.add_argument(
        "--preset", choices=list(PRESETS), default="default", help="shape of the videos (default: default)"
    )
    demo.add_argument("--seed", type=whole_number, default=0, help="random seed of the world (default 0)")
    demo.add_argument(
        "--scripts",
        metavar="DIR",
        help="show steps when the videos of a real data set show theirs: a folder of HT-Step, CrossTask or COIN",
    )
    demo.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KNOB=VALUE",
        dest="changes",
        help="change a knob; `--set help` lists them all",
    )


def _add_source(command: argparse.ArgumentParser) -> None:
    command.add_argument("source", metavar="SOURCE", choices=list(SOURCES), help="one of: " + ", ".join(SOURCES))


def _import(options: argparse.Namespace) -> int:
    store = Store(options.store)
    store.location.check()
    choices = Options(options.backbone, options.upload)
    run_id = name_run()
    configuration = {"source": options.source, "path": str(options.path.absolute()), **asdict(choices)}
    with Console(stderr=True).status("") as status, record_run(store, run_id, ["import"], configuration):

        def show(summary: Summary) -> None:
            kept = ", ".join(f"{count:,} {table}" for table, count in summary.kept.items())
            status.update(f"importing {options.source}: {kept}")

        summary = import_source(store, run_id, options.source, options.path, choices, show)
        status.update("listing what is missing")
        missing = missing_lines(store)
    if options.json:
        print(json.dumps(summary.as_dict() | {"run_id": run_id, "missing": missing}, indent=1))
    else:
        print(*summary.lines(), *missing, sep="\n")
        if summary.rejected:
            prefix = summary.rejects_shard
            print(f"reasons: vina sql \"FROM rejects WHERE starts_with(_shard, '{prefix}')\" --store {options.store}")
    return 1 if summary.damaged or not (summary.kept or summary.present) else 0


def _forget(options: argparse.Namespace) -> int:
    store = existing_store(options.store)
    num_rows = forget_source(store, options.source, options.backbone)
    for table, rows in num_rows.items():
        print(f"{table}: {rows:,} rows of {options.backbone or options.source} removed")
    if not num_rows:
        print(f"the store has no rows of {options.backbone or options.source}")
    return 0


def _demo(options: argparse.Namespace) -> int:
    from tasks.demo_world.corpus import world_of
    from tasks.demo_world.files import write_world  # which loads the drawing code

    if "help" in options.changes:
        print(*explain_knobs(), sep="\n")
        return 0
    if wrong := [change for change in options.changes if "=" not in change]:
        raise ValueError(f"--set {wrong[0]}: expected KNOB=VALUE")
    changes = dict(change.split("=", 1) for change in options.changes) | {"seed": str(options.seed)}
    changes |= {"scripts": options.scripts} if options.scripts else {}
    world = world_of(",".join([options.preset, *(f"{name}={value}" for name, value in changes.items())]))
    with Console(stderr=True).status("") as status:
        written = write_world(world, options.folder, status.update)
    print(*written, sep="\n")
    return 0
