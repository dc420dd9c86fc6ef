"""`vina tables`, `vina describe`, `vina sql` and `vina gc`: read and clean up the store."""

import argparse
import json
from collections import Counter
from pathlib import Path

from rich.markup import escape
from rich.table import Table as Grid

from flows.cli.commands import sql_prompt
from flows.cli.commands.shared import Add, existing_store, print_parts, readable_size, whole_number, wrong_command
from storage import QueryError, Store
from storage.schemas import PROVENANCE, TABLES, schema_of
from storage.summary import summarise
from storage.views import VIEWS
from tasks.evaluation.benchmarks.sql import BENCHMARK_VIEWS, open_catalogue


def add_commands(add: Add) -> None:
    """Declare the commands."""
    tables = add("tables", _tables, "list the tables and their content", "vina tables")
    tables.add_argument("--json", action="store_true", help="print JSON")

    describe = add("describe", _describe, "explain the columns of a table", "vina describe pseudo_labels")
    describe.add_argument("table", metavar="TABLE", help="one of: " + ", ".join(TABLES))

    sql = add(
        "sql",
        _sql,
        "query the store in SQL, read-only; without a query: start a prompt",
        'vina sql "SELECT round, avg(score) FROM pseudo_labels GROUP BY round" --format csv',
    )
    sql.add_argument("query", nargs="?", metavar="QUERY", help="one SELECT; features_v3 is version 3 of features")
    sql.add_argument("--format", choices=sql_prompt.FORMATS, help="default: by the ending of FILE, otherwise table")
    sql.add_argument("--output", type=Path, metavar="FILE", help="file to write the answer to")

    gc = add(
        "gc",
        _gc,
        "delete files of old versions, and files left by writers that died",
        "vina gc --older-than 24 --dry-run",
    )
    gc.add_argument(
        "--older-than",
        type=whole_number,
        default=24,
        metavar="HOURS",
        help="keep files of the last HOURS (default 24; 0 also deletes the files of running writers)",
    )
    gc.add_argument("--dry-run", action="store_true", help="list what would be deleted, delete nothing")


def _tables(options: argparse.Namespace) -> int:
    summary = summarise(existing_store(options.store))
    if options.json:
        print(json.dumps(summary, indent=1))
        return 0
    grid = Grid("table", "rows", "shards", "size", "version", "last run", "content")
    for column in grid.columns[1:5]:
        column.justify = "right"
    for row in summary:
        version, last_run = row.get("version"), row.get("last_run")
        counts = (
            f"{row['rows']:,}",
            f"{row['shards']:,}",
            readable_size(row["bytes"]),
            "" if version is None else str(version),
        )
        grid.add_row(row["table"], *counts, last_run or "", escape(row["problem"] or row["comment"]))
    print_parts(grid, *(f"view {view.name}: {view.comment}" for view in (*VIEWS, *BENCHMARK_VIEWS)))
    return 1 if any(row["problem"] for row in summary) else 0


def _describe(options: argparse.Namespace) -> int:
    with wrong_command():
        schema = schema_of(options.table)
    grid = Grid("column", "type", "unit", "meaning")
    for column in schema.columns + PROVENANCE:
        kind = column.type_name + (", may be null" if column.optional else "")
        grid.add_row(column.name, kind, column.unit, column.comment)
    snapshot = Store(options.store).table(schema.name).snapshot()
    version = "not written yet" if snapshot.version < 0 else f"version {snapshot.version}"
    size = readable_size(snapshot.num_bytes)
    by_run = Counter(shard.written_by for shard in snapshot.shards)
    print_parts(
        f"{schema.name}, schema version {schema.version}: {schema.comment}",
        f"partitioned by {', '.join(schema.partition_by)}",
        grid,
        f"{snapshot.num_rows:,} rows in {len(snapshot.shards):,} shards, {size}; {version}",
        *(f"  {count:,} shards by run {run_id}" for run_id, count in sorted(by_run.items())),
    )
    return 0


def _sql(options: argparse.Namespace) -> int:
    if options.query is None and options.output:
        raise QueryError("--output needs a query: a prompt writes to standard output")
    form = sql_prompt.choose_format(options.format, options.output)
    with open_catalogue(existing_store(options.store)) as catalogue:
        if options.query is None:
            return sql_prompt.prompt(catalogue, form)
        sql_prompt.answer(catalogue, options.query, form, options.output)
    return 0


def _gc(options: argparse.Namespace) -> int:
    store, total = existing_store(options.store), 0
    kinds = {table.name: table.gc for table in store.tables()} | {"objects": store.objects.gc}
    for kind, collect in kinds.items():
        names = collect(options.older_than, options.dry_run)
        total += len(names)
        for name in names:
            print(f"{kind}/{name}")
    print(f"{total} files {'would be' if options.dry_run else 'were'} deleted")
    return 0
