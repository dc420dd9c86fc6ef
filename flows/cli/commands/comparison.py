"""`vina stats --compare A B`: the temporal shapes of two sets of annotated videos, beside each other."""

import argparse
import json
import sys
from contextlib import ExitStack
from typing import Any

from rich.table import Table as Grid

from flows.cli.commands.shared import print_parts
from tasks.evaluation.shape import ShapeDifference, compare
from tasks.evaluation.shape_sides import Side, read_sides
from tasks.importers.open_data import open_data
from tasks.importers.summary import Summary


def compare_shapes(options: argparse.Namespace) -> int:
    """Read both sides, and print the comparison."""
    address_a, address_b = options.compare
    with ExitStack() as stack:
        store_a = stack.enter_context(open_data(address_a, _tell_rejects))
        store_b = store_a if address_b == address_a else stack.enter_context(open_data(address_b, _tell_rejects))
        a, b = read_sides((address_a, store_a), (address_b, store_b), options.benchmark, options.split)
    differences = compare(a.shape, b.shape)
    num_within = sum(difference.is_within_tolerance for difference in differences)
    if options.json:
        answer = {
            "a": _side_values(a),
            "b": _side_values(b),
            "statistics": [_values(difference) for difference in differences],
            "within_tolerance": num_within,
            "compared": len(differences),
        }
        print(json.dumps(answer, indent=1))
        return 0
    print(_side_line("A", a), _side_line("B", b), sep="\n")
    print_parts(_grid(differences))
    print(f"{num_within} of {len(differences)} within tolerance")
    return 0


def _tell_rejects(summary: Summary) -> None:
    if summary.rejected:
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in summary.rejected.most_common())
        print(f"{summary.source} from {summary.path}: rejected, {reasons}", file=sys.stderr)


def _side_values(side: Side) -> dict[str, Any]:
    return {
        "address": side.address,
        "benchmark": side.benchmark,
        "split": side.split,
        "videos": side.shape.num_videos,
        "left_out": {"unknown_length": side.shape.num_unknown_length, "wrong_length": side.shape.num_wrong_length},
    }


def _values(difference: ShapeDifference) -> dict[str, Any]:
    return {
        "statistic": difference.name,
        "a": difference.a,
        "b": difference.b,
        "difference": difference.a - difference.b,
        "within_tolerance": difference.is_within_tolerance,
    }


def _side_line(name: str, side: Side) -> str:
    shape = side.shape
    reasons = [
        f"{count:,} {reason}"
        for count, reason in (
            (shape.num_unknown_length, "without a known length"),
            (shape.num_wrong_length, "with a segment after their end"),
        )
        if count
    ]
    left_out = f"; left out: {', '.join(reasons)}" if reasons else ""
    return f"{name}: {side.address}, {side.benchmark}, split {side.split}: {shape.num_videos:,} videos{left_out}"


def _grid(differences: list[ShapeDifference]) -> Grid:
    grid = Grid("statistic", "A", "B", "difference", "within tolerance")
    for column in grid.columns[1:]:
        column.justify = "right"
    for each in differences:
        decimals = each.tolerance.decimals
        numbers = f"{each.a:.{decimals}f}", f"{each.b:.{decimals}f}", f"{each.a - each.b:+.{decimals}f}"
        grid.add_row(each.name, *numbers, "yes" if each.is_within_tolerance else "no")
    return grid
