"""`vina sql`: one query or a prompt, and the answer as a table, CSV, JSON or Parquet."""

import contextlib
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from storage import QueryError, StoreError
from storage.catalogue import Catalogue
from storage.objects import atomic_file

FORMATS = ("table", "csv", "json", "parquet")
ROWS_SHOWN = 1_000
HELP = "Statements end with a semicolon. SHOW TABLES; DESCRIBE pseudo_labels; .quit or Ctrl-D leaves."


def choose_format(form: str | None, output: Path | None) -> str:
    """Return the given format, otherwise that of the file's ending, otherwise `table`."""
    if form is not None:
        return form
    ending = output.suffix.removeprefix(".") if output else ""
    return ending if ending in FORMATS else "table"


def answer(catalogue: Catalogue, statement: str, form: str, output: Path | None) -> None:
    """Run one statement and write its answer to a file, which appears whole or not at all, or to standard output."""
    if form == "parquet" and output is None and sys.stdout.isatty():
        raise QueryError("Parquet cannot be shown in a terminal: give --output FILE, or redirect")
    try:
        if output is None:
            _write(catalogue, statement, form, sys.stdout.buffer)
            return
        if not output.parent.is_dir():
            raise StoreError(f"the answer was not written to {output}: there is no folder {output.parent}")
        with atomic_file(output) as partial, partial.open("wb") as sink:
            _write(catalogue, statement, form, sink)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StoreError(f"the answer was not written to {output or 'standard output'}: {error}") from error
    except (duckdb.Error, pa.ArrowException) as error:
        raise QueryError(str(error).split(". Detail: Python exception")[0]) from error


def _write(catalogue: Catalogue, statement: str, form: str, sink: BinaryIO) -> None:
    if form == "table":
        sink.write(_boxed(catalogue, statement).encode())
    elif form == "parquet":
        reader = catalogue.stream(statement)
        with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    else:
        _copy(catalogue.stream(statement), form, sink)
    sink.flush()


def _boxed(catalogue: Catalogue, statement: str) -> str:
    batches, count = [], 0
    reader = catalogue.stream(statement, ROWS_SHOWN + 1)
    for batch in reader:
        batches.append(batch)
        count += len(batch)
        if count > ROWS_SHOWN:
            break
    rows = pa.Table.from_batches(batches, reader.schema)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1_000
    with duckdb.connect(":memory:") as plain, contextlib.redirect_stdout(io.StringIO()) as text:
        plain.from_arrow(rows.slice(0, ROWS_SHOWN)).show(max_rows=ROWS_SHOWN, max_width=width)
    cut = f"(the first {ROWS_SHOWN} rows; --format csv, json or parquet writes all)\n" if count > ROWS_SHOWN else ""
    return text.getvalue().rstrip() + "\n" + cut


def _copy(reader: pa.RecordBatchReader, form: str, sink: BinaryIO) -> None:
    """Write CSV or JSON with DuckDB through a file: it would truncate a redirected standard output."""
    options = "FORMAT json, ARRAY true" if form == "json" else "FORMAT csv, HEADER true"
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(":memory:") as plain:
        target = Path(folder) / "answer"
        plain.register("answer", reader)
        plain.execute(f"COPY (SELECT {_columns(reader.schema, form)} FROM answer) TO '{target}' ({options})")
        with target.open("rb") as written:
            shutil.copyfileobj(written, sink)


def _columns(schema: pa.Schema, form: str) -> str:
    """Return the SQL of all columns. JSON has no NaN and no infinity: there they become null."""
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
    """Run statements from standard input; after an error continue with the next one. Return the exit code."""
    interactive = sys.stdin.isatty()
    if interactive:
        import readline  # noqa: F401 - line editing for input()

        print(HELP)
    failed = False
    for statement in _statements(interactive):
        try:
            answer(catalogue, statement, form, None)
        except KeyboardInterrupt:
            print("interrupted")
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
        except KeyboardInterrupt:  # discard the typed lines
            print()
            lines = []
            continue
        if not lines and line.strip() in (".quit", ".exit", "quit", "exit"):
            return
        if not lines and line.strip() in (".help", "help"):
            print(HELP)
            continue
        if lines or line.strip():
            lines.append(line)
        if re.sub("--.*", "", line).rstrip().endswith(";"):
            yield from _split("\n".join(lines))
            lines = []
    yield from _split("\n".join(lines))


def _split(text: str) -> list[str]:
    try:
        return [statement.query for statement in duckdb.extract_statements(text)]
    except duckdb.Error:
        return [text]  # running it reports the error
