"""`vina sql`: one query or a prompt, and the answer as a table, CSV, JSON or Parquet."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from storage import QueryError, StoreError
from storage.catalogue import Catalogue

FORMATS = ("table", "csv", "json", "parquet")
ROWS_SHOWN = 1_000
HELP = "Statements end with a semicolon. SHOW TABLES; DESCRIBE pseudo_labels; .quit or Ctrl-D leaves."


def answer(catalogue: Catalogue, statement: str, form: str, output: Path | None) -> None:
    """Run one statement and write its answer to a file, or to standard output."""
    if form == "parquet" and output is None and sys.stdout.isatty():
        raise QueryError("Parquet is not for a terminal: give --output FILE, or redirect")
    try:
        if form == "table":
            with contextlib.ExitStack() as stack:
                if output is not None:
                    stack.enter_context(contextlib.redirect_stdout(stack.enter_context(output.open("w"))))
                _show(catalogue, statement)
        elif form == "parquet":
            reader = catalogue.stream(statement)
            with pq.ParquetWriter(output or pa.PythonFile(sys.stdout.buffer, mode="w"), reader.schema) as writer:
                for batch in reader:
                    writer.write_batch(batch)
        else:
            _copy(catalogue.stream(statement), form, output)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StoreError(f"the answer was not written: {error}") from error


def _show(catalogue: Catalogue, statement: str) -> None:
    batches, count = [], 0
    reader = catalogue.stream(statement, ROWS_SHOWN + 1)
    for batch in reader:
        batches.append(batch)
        count += len(batch)
        if count > ROWS_SHOWN:
            break
    rows = pa.Table.from_batches(batches, reader.schema)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1_000
    with duckdb.connect(":memory:") as plain:
        plain.from_arrow(rows.slice(0, ROWS_SHOWN)).show(max_rows=ROWS_SHOWN, max_width=width)
    if count > ROWS_SHOWN:
        print(f"(the first {ROWS_SHOWN} rows; --format csv, json or parquet gives all)")


def _copy(reader: pa.RecordBatchReader, form: str, output: Path | None) -> None:
    """Let DuckDB write CSV or JSON: to a file, and from there to standard output, which it would truncate."""
    options = "FORMAT json, ARRAY true" if form == "json" else "FORMAT csv, HEADER true"
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(":memory:") as plain:
        target = output or Path(folder) / "answer"
        plain.register("answer", reader)
        quoted = str(target).replace("'", "''")
        try:
            plain.execute(f"COPY (SELECT {_columns(reader.schema, form)} FROM answer) TO '{quoted}' ({options})")
        except duckdb.IOException as error:
            raise OSError(str(error)) from error
        if output is None:
            with target.open("rb") as written:
                shutil.copyfileobj(written, sys.stdout.buffer)
            sys.stdout.flush()


def _columns(schema: pa.Schema, form: str) -> str:
    """All columns; JSON has no NaN and no infinity, so there they become null."""
    names = []
    for number, field in enumerate(schema):
        name = f"#{number + 1}"
        quoted = '"' + field.name.replace('"', '""') + '"'
        if form == "json" and pa.types.is_floating(field.type):
            names.append(f"if(isfinite({name}), {name}, NULL) AS {quoted}")
        elif form == "json" and pa.types.is_list(field.type) and pa.types.is_floating(field.type.value_type):
            names.append(f"list_transform({name}, lambda x: if(isfinite(x), x, NULL)) AS {quoted}")
        else:
            names.append(f"{name} AS {quoted}")
    return ", ".join(names)


def prompt(catalogue: Catalogue, form: str) -> int:
    """Read statements until the input ends; an error is shown and the next one is read. Returns an exit code."""
    interactive = sys.stdin.isatty()
    if interactive:
        import readline  # noqa: F401 - line editing for input()

        print(HELP)
    failed = False
    for statement in _statements(interactive):
        try:
            answer(catalogue, statement, form, None)
        except StoreError as error:
            print(f"vina: {error}", file=sys.stderr)
            failed = True
    return 2 if failed and not interactive else 0


def _statements(interactive: bool) -> Iterator[str]:
    lines: list[str] = []
    while True:
        try:
            line = input(("vina> " if not lines else "  ... ") if interactive else "")
        except EOFError:
            break
        if not lines and line.strip() in (".quit", ".exit", "quit", "exit"):
            break
        if not lines and line.strip() in (".help", "help"):
            print(HELP)
            continue
        lines.append(line)
        if line.rstrip().endswith(";"):
            yield "\n".join(lines)
            lines = []
    if rest := "\n".join(lines).strip():
        yield rest
