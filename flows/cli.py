"""The command `vina`. Exit codes: 0 done, 1 failed, 2 the command or the SQL is wrong, 130 interrupted.

Prefect is imported by `vina run` alone: the commands that read the store answer at once.
"""

import argparse
import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from flows import sql_prompt
from storage import QueryError, SchemaError, Store, StoreError
from storage.catalogue import Catalogue
from storage.schemas import PROVENANCE, TABLES, schema_of
from storage.views import VIEWS
from tasks.catalogue import summarise
from tasks.demo_world.files import write_world
from tasks.demo_world.knobs import PRESETS, choose_knobs, explain_knobs
from tasks.demo_world.script import World
from tasks.features.settings import FeatureSettings
from tasks.importers.sources import SOURCES, Options, forget_source, import_source, missing_lines
from tasks.importers.summary import Summary
from tasks.run_record import checked_run_id, record_run

DEFAULT_STORE = "vina-store"
SETTINGS = {  # where the environment says nothing else
    "OMP_WAIT_POLICY": "passive",  # torch's threads would spin: with a core busy otherwise, at a tenth of the speed
    # Of the server that `vina run` starts if none is configured: it calls nobody.
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "60",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, run, and turn a user's mistake into one line and an exit code."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("vina: interrupted", file=sys.stderr)
        return 130
    except (QueryError, SchemaError) as error:
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

    def add(name: str, work: object, text: str, example: str) -> argparse.ArgumentParser:
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

    run = add("run", _run, "run the pipeline in this process", "vina run --store s3://bucket/prefix --stages catalogue")
    run.add_argument("--stages", type=_stages, metavar="A,B", help="only these, in the pipeline's order (default: all)")
    run.add_argument(
        "--run-id", type=_run_id, metavar="ID", help="name of the run in `runs` (default: made of the time)"
    )

    run.add_argument("--corpus", metavar="FOLDER", help="what the stage `import` reads: a folder for each source")

    run.add_argument("--weights", metavar="FILE", help="features: the network's weights (default: random ones)")
    run.add_argument("--frame-size", type=_whole, metavar="PX", help="features: side of the frames (default 224)")
    run.add_argument("--joint", action="store_true", help="features: keep the joint text-video embeddings too")
    run.add_argument("--retry-rejected", action="store_true", help="features: try undecodable videos again")

    bring = add(
        "import",
        _import,
        "bring in whatever part of a data set you have",
        "vina import crosstask path/to/crosstask_release",
    )
    bring.add_argument("source", metavar="SOURCE", choices=list(SOURCES), help="one of: " + ", ".join(SOURCES))
    bring.add_argument("path", metavar="PATH", type=Path, help="a folder with the data set's files, or one of them")
    bring.add_argument("--backbone", metavar="NAME", help="features: the network's name (default: the folder's name)")
    bring.add_argument("--upload", action="store_true", help="videos: copy the files into the store")
    bring.add_argument("--json", action="store_true", help="the summary for scripts")

    forget = add(
        "forget",
        _forget,
        "take out what a source has brought, to import it anew (older versions stay until gc)",
        "vina forget features --backbone s3d-milnce",
    )
    forget.add_argument("source", metavar="SOURCE", choices=list(SOURCES), help="one of: " + ", ".join(SOURCES))
    forget.add_argument("--backbone", metavar="NAME", help="features: which ones")

    demo = add(
        "demo",
        _demo,
        "write a small world of how-to videos in the real data sets' formats",
        "vina demo demo-corpus --preset hard --set num_videos=2000 --set feature_noise=1.5",
    )
    demo.add_argument("folder", metavar="FOLDER", type=Path, help="where to write it; it must be new or empty")
    demo.add_argument("--preset", choices=list(PRESETS), default="default", help="how hard it is (default: default)")
    demo.add_argument("--seed", type=_whole, default=0, help="another seed is another world (default 0)")
    demo.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KNOB=VALUE",
        dest="changes",
        help="turn a knob; `--set help` explains them all",
    )

    tables = add("tables", _tables, "list the tables and what they hold", "vina tables")
    tables.add_argument("--json", action="store_true", help="for scripts")

    describe = add("describe", _describe, "explain the columns of a table", "vina describe pseudo_labels")
    describe.add_argument("table", metavar="TABLE", help="one of: " + ", ".join(TABLES))

    sql = add(
        "sql",
        _sql,
        "ask the store in SQL, read-only; with no query: a prompt",
        'vina sql "SELECT round, avg(score) FROM pseudo_labels GROUP BY round" --format csv',
    )
    sql.add_argument("query", nargs="?", metavar="QUERY", help="one SELECT; features_v3 is version 3 of features")
    sql.add_argument("--format", choices=sql_prompt.FORMATS, help="default: what FILE's ending says, else table")
    sql.add_argument("--output", type=Path, metavar="FILE", help="write the answer here")

    gc = add("gc", _gc, "delete files that only old versions and dead writers use", "vina gc --older-than 24 --dry-run")
    gc.add_argument(
        "--older-than",
        type=_whole,
        default=24,
        metavar="HOURS",
        help="keep what was in use this recently (default 24; 0 would take a running writer's files)",
    )
    gc.add_argument("--dry-run", action="store_true", help="say what would go, delete nothing")
    return parser


def _whole(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _stages(text: str) -> list[str]:
    from flows.full_pipeline import choose_stages

    try:
        return [stage.name for stage in choose_stages(text.split(","))]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _run_id(text: str) -> str:
    try:
        return checked_run_id(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _existing(uri: str) -> Store:
    store = Store(uri)
    if store.location.is_s3:
        store.location.check()
    elif not Path(store.uri).is_dir():
        raise StoreError(f"there is no store at {store.uri}: make one with `vina run`, or name another with --store")
    return store


def _run(options: argparse.Namespace) -> int:
    from flows.full_pipeline import vina

    Store(options.store).location.check()
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("vina").setLevel(logging.INFO)
    features = FeatureSettings(
        weights=options.weights,
        size_px=options.frame_size,
        joint=options.joint,
        retry_rejected=options.retry_rejected,
    )
    run_id = vina(options.store, options.corpus, features, options.stages, options.run_id)
    print(f"run {run_id} completed; `vina tables --store {options.store}` shows what there is")
    return 0


def _import(options: argparse.Namespace) -> int:
    store = Store(options.store)
    store.location.check()
    choices = Options(options.backbone, options.upload)
    configuration = {"source": options.source, "path": str(options.path), **asdict(choices)}
    with Console(stderr=True).status("") as status, record_run(store, None, ["import"], configuration) as run_id:

        def show(summary: Summary) -> None:
            kept = ", ".join(f"{count:,} {table}" for table, count in summary.kept.items())
            status.update(f"importing {options.source}: {kept}")

        summary = import_source(store, run_id, options.source, options.path, choices, show)
        status.update("looking for what is missing")
        missing = missing_lines(store)
    if options.json:
        print(json.dumps(summary.as_dict() | {"run_id": run_id, "missing": missing}, indent=1))
    else:
        print(*summary.lines(), *missing, sep="\n")
        if summary.rejected:
            prefix = summary.rejects_shard
            print(f"why: vina sql \"FROM rejects WHERE starts_with(_shard, '{prefix}')\" --store {options.store}")
    return 1 if summary.damaged or not (summary.kept or summary.present) else 0


def _forget(options: argparse.Namespace) -> int:
    store = _existing(options.store)
    taken = forget_source(store, options.source, options.backbone)
    for table, rows in taken.items():
        print(f"{table}: {rows:,} rows of {options.backbone or options.source} are forgotten")
    if not taken:
        print(f"the store has nothing of {options.backbone or options.source}")
    return 0


def _demo(options: argparse.Namespace) -> int:
    if "help" in options.changes:
        print(*explain_knobs(), sep="\n")
        return 0
    if wrong := [change for change in options.changes if "=" not in change]:
        raise ValueError(f"--set {wrong[0]}: KNOB=VALUE is expected")
    changes = dict(change.split("=", 1) for change in options.changes)
    world = World(choose_knobs(options.preset, changes), options.seed)
    with Console(stderr=True).status("") as status:
        written = write_world(world, options.folder, status.update)
    print(*written, sep="\n")
    return 0


def _tables(options: argparse.Namespace) -> int:
    summary = summarise(_existing(options.store))
    if options.json:
        print(json.dumps(summary, indent=1))
        return 0
    grid = Grid("table", "rows", "shards", "size", "version", "last run", "what it holds")
    for column in grid.columns[1:5]:
        column.justify = "right"
    for row in summary:
        version, last_run = row.get("version"), row.get("last_run")
        counts = (
            f"{row['rows']:,}",
            f"{row['shards']:,}",
            _size(row["bytes"]),
            "" if version is None else str(version),
        )
        grid.add_row(row["table"], *counts, last_run or "", escape(row["problem"] or row["comment"]))
    _print(grid, *(f"view {view.name}: {view.comment}" for view in VIEWS))
    return 1 if any(row["problem"] for row in summary) else 0


def _describe(options: argparse.Namespace) -> int:
    schema = schema_of(options.table)
    grid = Grid("column", "type", "unit", "meaning")
    for column in schema.columns + PROVENANCE:
        kind = column.type_name + (", may be null" if column.optional else "")
        grid.add_row(column.name, kind, column.unit, column.comment)
    snapshot = Store(options.store).table(schema.name).snapshot()
    version = "nobody has written to it yet" if snapshot.version < 0 else f"version {snapshot.version}"
    by_run = Counter(shard.written_by for shard in snapshot.shards)
    _print(
        f"{schema.name}, schema version {schema.version}: {schema.comment}",
        f"partitioned by {', '.join(schema.partition_by)}",
        grid,
        f"{snapshot.num_rows:,} rows in {len(snapshot.shards):,} shards, {_size(snapshot.num_bytes)}; {version}",
        *(f"  {count:,} shards by run {run_id}" for run_id, count in sorted(by_run.items())),
    )
    return 0


def _sql(options: argparse.Namespace) -> int:
    if options.query is None and options.output:
        raise QueryError("--output goes with a query; a prompt's answers go to standard output")
    form = sql_prompt.choose_format(options.format, options.output)
    with Catalogue(_existing(options.store)) as catalogue:
        if options.query is None:
            return sql_prompt.prompt(catalogue, form)
        sql_prompt.answer(catalogue, options.query, form, options.output)
    return 0


def _gc(options: argparse.Namespace) -> int:
    store, total = _existing(options.store), 0
    kinds = {table.name: table.gc for table in store.tables()} | {"objects": store.objects.gc}
    for kind, collect in kinds.items():
        names = collect(options.older_than, options.dry_run)
        total += len(names)
        for name in names:
            print(f"{kind}/{name}")
    print(f"{total} files {'would be' if options.dry_run else 'were'} deleted")
    return 0


def _print(*parts: str | Grid) -> None:
    """Print lines and grids, as wide as the terminal, or as they need."""
    console = Console() if sys.stdout.isatty() else Console(width=160)
    with console.capture() as text:
        for part in parts:
            console.print(part, markup=False, highlight=False)
    print(text.get(), end="")


def _size(num_bytes: int) -> str:
    size = float(num_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


if __name__ == "__main__":
    sys.exit(main())
