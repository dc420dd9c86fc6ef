"""Read and check files of predictions, CSV or Parquet. Other columns are ignored, malformed rows are reported."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from tasks.evaluation.benchmarks.benchmark import Protocol, Role
from tasks.importers.narrations import number
from vina_model.metrics.columns import Ints

SHOWN = 10
LONGEST_HEADER = 1 << 20
LARGEST_LABEL = 999_999_999
"""Largest label in the files of data sets; it lets a video's number and a label share one integer."""
PARQUET = b"PAR1"


class BadPredictions(ValueError):
    """A file of predictions cannot be scored."""


@dataclass
class _Malformed:
    """Malformed rows, and descriptions of the first ones. Rows are numbered from 1 after the header."""

    path: Path
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    lines: list[str] = field(default_factory=list)

    def add(self, rows: Ints, describe: Callable[[int], str]) -> None:
        """Add rows that are not listed yet."""
        new = np.setdiff1d(rows, self.rows)
        self.rows = np.union1d(self.rows, new)
        self.lines += [f"row {row + 1}: {describe(row)}" for row in new[: SHOWN - len(self.lines)].tolist()]

    def refuse(self) -> None:
        """Raise BadPredictions if any row is malformed."""
        if count := len(self.rows):
            more = [f"... and {count - len(self.lines):,} more"] if count > len(self.lines) else []
            title = f"{self.path}: {count:,} rows are malformed, and nothing was scored; correct them:"
            raise BadPredictions("\n  ".join([title, *self.lines, *more]))


def read_predictions(path: Path, protocol: Protocol) -> pa.Table:
    """Return the protocol's columns: ids as text, labels as whole numbers, times and scores as finite numbers.

    Raise BadPredictions with the first malformed rows and their number.
    """
    if not path.is_file():
        raise BadPredictions(f"there is no file of predictions at {path}")
    bad, is_parquet = _Malformed(path), _is_parquet(path)
    try:
        rows = _read_parquet(path, protocol) if is_parquet else _read_csv(path, protocol, bad)
    except (pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
        raise BadPredictions(f"{path} cannot be read as {'Parquet' if is_parquet else 'CSV'}: {error}") from error
    bad.refuse()  # now, because skipped rows shift the numbers of the rows after them
    if not len(rows):
        raise _nothing(path, protocol)
    columns = {}
    for name, role in protocol.columns.items():
        make = _ids if role in (Role.VIDEO, Role.ARTICLE) else _numbers
        columns[name] = make(rows[name], name, protocol, bad)
    bad.refuse()
    checked = pa.table(columns)
    _find_repeated(checked, protocol, bad) if protocol.is_point else _find_reversed(checked, protocol, bad)
    bad.refuse()
    return checked


def _is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet, by its name or its first bytes."""
    with path.open("rb") as file:
        return path.suffix.lower() == ".parquet" or file.read(len(PARQUET)) == PARQUET


def _nothing(path: Path, protocol: Protocol) -> BadPredictions:
    return BadPredictions(f"{path} has no predictions: rows of {','.join(protocol.columns)} are expected")


def _check_columns(path: Path, names: list[str], protocol: Protocol) -> None:
    if missing := [name for name in protocol.columns if name not in names]:
        raise BadPredictions(
            f"{path} has no column {', '.join(missing)}; its columns are {str(names)[1:-1][:300] or '(none)'}; "
            f"{protocol.name} takes {','.join(protocol.columns)}"
        )
    if repeated := [name for name in protocol.columns if names.count(name) > 1]:
        raise BadPredictions(f"{path} has the column {', '.join(repeated)} more than once: keep one of them")


def _read_parquet(path: Path, protocol: Protocol) -> pa.Table:
    _check_columns(path, pq.read_schema(path).names, protocol)
    return pq.read_table(path, columns=protocol.names)


def _read_csv(path: Path, protocol: Protocol, bad: _Malformed) -> pa.Table:
    """Read all cells as text; a row with too few or too many cells is malformed."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        records = csv.reader(io.StringIO(file.read(LONGEST_HEADER), newline=""))
    header = next((record for record in records if record), None)
    if header is None:
        raise BadPredictions(f"{path} is empty: a header with {','.join(protocol.columns)} is expected")
    _check_columns(path, header, protocol)
    if not any(records):
        raise _nothing(path, protocol)
    malformed: dict[int, str] = {}

    def skip(row: pacsv.InvalidRow) -> str:
        problem = f"{row.actual_columns} cells, {row.expected_columns} are expected: {row.text[:80]!r}"
        malformed[row.number - 2] = problem if len(malformed) < SHOWN else ""
        return "skip"

    rows = pacsv.read_csv(
        path,
        read_options=pacsv.ReadOptions(use_threads=False),  # rows have numbers only without threads
        parse_options=pacsv.ParseOptions(invalid_row_handler=skip, newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(
            include_columns=protocol.names, column_types=dict.fromkeys(protocol.columns, pa.string())
        ),
    )
    bad.add(np.array(list(malformed), np.int64), lambda row: malformed[row])
    return rows


def _ids(column: pa.ChunkedArray, name: str, protocol: Protocol, bad: _Malformed) -> pa.ChunkedArray:
    try:
        texts = column.cast(pa.string())
    except pa.ArrowException as error:
        raise BadPredictions(f"{bad.path}: the column {name} holds {column.type}, not text: {error}") from error
    empty = pc.fill_null(pc.equal(texts, ""), True)
    bad.add(np.flatnonzero(empty.to_numpy()), lambda row: f"{name} is empty")
    return texts


def _numbers(column: pa.ChunkedArray, name: str, protocol: Protocol, bad: _Malformed) -> pa.Array:
    try:
        values = column.cast(pa.float64()).to_numpy()
    except pa.ArrowException:
        values = np.array([number(value) for value in column.to_pylist()])
    wrong, expected = ~np.isfinite(values), "a number"
    if name == protocol.label:
        expected = f"a whole number from 0 to {LARGEST_LABEL:,}"
        wrong = ~((values >= 0) & (values <= LARGEST_LABEL) & (values == np.floor(values)))
    bad.add(np.flatnonzero(wrong), lambda row: f"{name} is {column[row].as_py()!r}, not {expected}")
    values = np.where(wrong, 0, values)
    return pa.array(values.astype(np.int64) if name == protocol.label else values)


def _find_reversed(rows: pa.Table, protocol: Protocol, bad: _Malformed) -> None:
    starts, ends = (rows[name].to_numpy() for name in protocol.times)
    bad.add(np.flatnonzero(ends < starts), lambda row: f"it ends at {ends[row]} s, before it starts at {starts[row]} s")


def _find_repeated(rows: pa.Table, protocol: Protocol, bad: _Malformed) -> None:
    names = (protocol.column(Role.ARTICLE), protocol.video, protocol.label)
    keys = [rows[name].cast(pa.string()) for name in names if name]
    joined = pc.binary_join_element_wise(*keys, "\x1f")
    codes = joined.combine_chunks().dictionary_encode().indices.to_numpy()
    _, firsts, numbers = np.unique(codes, return_index=True, return_inverse=True)
    repeated = np.flatnonzero(firsts[numbers] != np.arange(len(codes)))
    bad.add(
        repeated,
        lambda row: f"it repeats row {firsts[numbers[row]] + 1}: only one moment per {protocol.label} is allowed",
    )
