"""The two sides of a comparison of shapes: which benchmark and split of each store is measured."""

from collections.abc import Mapping
from dataclasses import dataclass

from storage import Store
from tasks.evaluation.annotated_videos import read_annotated_videos, step_benchmarks
from tasks.evaluation.benchmarks.benchmark import ALL
from tasks.evaluation.benchmarks.htstep import HTSTEP
from tasks.evaluation.shape import Shape, shape_of

Annotated = Mapping[str, list[str]]
"""Benchmarks with annotated steps, each with its splits."""


@dataclass(frozen=True)
class Side:
    """One side: what was measured, and its shape."""

    address: str
    benchmark: str
    split: str
    shape: Shape


def read_sides(
    a: tuple[str, Store], b: tuple[str, Store], benchmark: str | None = None, split: str = ALL
) -> tuple[Side, Side]:
    """Measure both sides, each an address and its store. A side without the split is measured on all of its videos."""
    annotated_a, annotated_b = (_annotated(address, store) for address, store in (a, b))
    name_b = _choose_for_b(b[0], annotated_b, benchmark)
    name_a = _choose_for_a(a[0], annotated_a, name_b)
    if split != ALL and split not in (*annotated_a[name_a], *annotated_b[name_b]):
        splits = "; ".join(
            f"{address}, {name}: {', '.join(annotated[name])}"
            for address, name, annotated in ((a[0], name_a, annotated_a), (b[0], name_b, annotated_b))
        )
        raise ValueError(f"there is no split {split!r}; the splits are {splits}")
    return _read_side(*a, name_a, split, annotated_a), _read_side(*b, name_b, split, annotated_b)


def _annotated(address: str, store: Store) -> Annotated:
    if annotated := step_benchmarks(store):
        return annotated
    raise ValueError(f"{address} has no annotated steps: import a benchmark, or name other data")


def _choose_for_b(address: str, annotated: Annotated, wanted: str | None) -> str:
    """Return the benchmark that is asked for, or the only one."""
    listed = ", ".join(annotated)
    if wanted is not None and wanted not in annotated:
        raise ValueError(f"{address} has no annotations of {wanted}, only of {listed}")
    if wanted is None and len(annotated) > 1:
        raise ValueError(f"{address} has annotations of {listed}: name one of them as BENCHMARK")
    return wanted or next(iter(annotated))


def _choose_for_a(address: str, annotated: Annotated, wanted: str) -> str:
    """Return the same benchmark as B's; if A does not have it, its only one, or HT-Step."""
    names = [wanted, *annotated] if len(annotated) == 1 else [wanted, HTSTEP.name]
    chosen = next((name for name in names if name in annotated), None)
    if chosen is None:
        raise ValueError(f"{address} has annotations of {', '.join(annotated)}: neither of {wanted} nor {HTSTEP.name}")
    return chosen


def _read_side(address: str, store: Store, benchmark: str, split: str, annotated: Annotated) -> Side:
    used_split = split if split in annotated[benchmark] else ALL
    try:
        shape = shape_of(read_annotated_videos(store, benchmark, used_split))
    except ValueError as error:
        raise ValueError(f"{address}, {benchmark}: {error}") from error
    return Side(address, benchmark, used_split, shape)
