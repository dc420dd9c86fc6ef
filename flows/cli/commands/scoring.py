"""`vina score`: score predictions of any model. It needs no store, no training and no model."""

import argparse
import json
import math
import tempfile
from pathlib import Path

from flows.cli.commands.shared import Add, whole_number
from storage import Store
from tasks.evaluation.benchmarks.benchmark import Benchmark, Protocol
from tasks.evaluation.benchmarks.registry import BENCHMARKS, find_protocol, protocols_with_files
from tasks.evaluation.prediction_files import read_predictions
from tasks.evaluation.scoring import Predictions, Scored, score
from tasks.evaluation.truth import Truth, read_truth, splits_of
from tasks.importers.sources import import_source

MOST_DRAWS = 1000


def add_commands(add: Add) -> None:
    """Declare the command."""
    command = add(
        "score",
        _score,
        "score the predictions of any model by a benchmark's protocol",
        "vina score htstep-map --data path/to/htstep --predictions mine.csv",
    )
    protocols = protocols_with_files()
    names = [protocol.name for protocol in protocols]
    command.add_argument("benchmark", choices=names, metavar="BENCHMARK", help="one of: " + ", ".join(names))
    command.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="the annotations, in the data set's own format"
    )
    command.add_argument(
        "--predictions", type=Path, required=True, metavar="FILE", help="CSV or Parquet with the columns below"
    )
    splits = [f"{each.name}: {each.split_help}" for each in BENCHMARKS if each.split_help]
    command.add_argument("--split", metavar="NAME", help="; ".join(splits))
    counts = [f"{each.name}: test sets (default {each.test_sets.count})" for each in BENCHMARKS if each.test_sets]
    command.add_argument("--draws", type=whole_number, help="; ".join(counts))
    drawing = ", ".join(each.name for each in BENCHMARKS if each.test_sets)
    command.add_argument(
        "--seed", type=whole_number, default=0, help=f"{drawing}: random seed of the test sets (default 0)"
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    columns = [f"  {protocol.name}: {','.join(protocol.columns)}" for protocol in protocols]
    command.epilog = "\n".join(["columns (others are ignored):", *columns, "", command.epilog or ""])


def _score(options: argparse.Namespace) -> int:
    benchmark, protocol = find_protocol(options.benchmark)
    if options.draws is not None and not 1 <= options.draws <= MOST_DRAWS:
        raise ValueError(f"--draws is {options.draws}: draw 1 to {MOST_DRAWS:,} test sets")
    rows = read_predictions(options.predictions, protocol)
    with tempfile.TemporaryDirectory(prefix="vina-score-") as folder:
        truth, notes = _read_truth(Store(folder), benchmark, protocol, options)
    predictions = Predictions.of(rows, protocol, truth)
    if (predictions.videos < 0).all():
        raise ValueError(
            f"no prediction in {options.predictions} is for an annotated video (split {truth.split}): it has "
            f"{', '.join(predictions.names)}, and the annotations in {options.data} have "
            f"{', '.join(truth.videos[:3])}, ..."
        )
    scored = score(protocol, truth, predictions, options.draws, options.seed)
    scored.notes.extend(notes)
    print(json.dumps(_as_dict(scored), indent=1) if options.json else "\n".join(scored.lines()))
    return 0


def _read_truth(
    store: Store, benchmark: Benchmark, protocol: Protocol, options: argparse.Namespace
) -> tuple[Truth, list[str]]:
    """Return the annotations of a folder, read by the importer, and notes on what was rejected."""
    summary = import_source(store, "score", benchmark.source, options.data)
    if summary.damaged:
        raise ValueError(f"{options.data} cannot be read: {summary.damaged[0]}")
    annotated = splits_of(store, benchmark)
    rejected = [f"{count:,} rejected: {reason}" for reason, count in summary.rejected.most_common()]
    if not annotated:
        problem = f"{options.data} has no annotations that {protocol.name} is measured on"
        raise ValueError("; ".join([problem, *rejected]))
    splits = benchmark.measured_splits(annotated)
    has_default = benchmark.test_sets is not None or len(splits) == 1
    if options.split not in splits and not (options.split is None and has_default):
        problem = f"there is no split {options.split}" if options.split else "no split was given"
        raise ValueError(f"{problem}: choose --split {' or '.join(splits)}")
    notes = [*summary.notes, *(f"in {options.data}, {each}" for each in rejected)]
    return read_truth(store, benchmark, options.split or splits[0]), notes


def _as_dict(scored: Scored) -> dict[str, object]:
    return {
        "protocol": scored.protocol.name,
        "version": scored.protocol.version,
        "split": scored.split,
        "num_videos": scored.num_videos,
        "num_predictions": scored.num_predictions,
        "metrics": {
            name: {part: None if math.isnan(number) else number for part, number in estimate._asdict().items()}
            for name, estimate in scored.metrics.items()
        },
        "notes": scored.notes,
    }
