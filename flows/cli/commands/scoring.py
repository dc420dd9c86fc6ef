"""The command that scores anyone's predictions: no store, no training, no model."""

import argparse
import json
import math
import tempfile
from pathlib import Path

from flows.cli.commands.shared import Add, whole_number
from storage import Store
from tasks.evaluation.prediction_files import read_predictions
from tasks.evaluation.protocols import ALL, CROSSTASK_ORDERED, PROTOCOLS, TEST, TEST_SETS, Protocol
from tasks.evaluation.scoring import Predictions, Scored, score
from tasks.evaluation.truth import Truth, read_truth, splits_of
from tasks.importers.sources import import_source

CHOICES = [name for name in PROTOCOLS if name != CROSSTASK_ORDERED.name]
MOST_DRAWS = 1000


def add_commands(add: Add) -> None:
    """Declare it."""
    command = add(
        "score",
        _score,
        "score a model's predictions by a benchmark's own protocol",
        "vina score htstep-map --data path/to/htstep --predictions mine.csv",
    )
    command.add_argument("benchmark", choices=CHOICES, metavar="BENCHMARK", help="one of: " + ", ".join(CHOICES))
    command.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="the annotations, in the data set's own format"
    )
    command.add_argument(
        "--predictions", type=Path, required=True, metavar="FILE", help="CSV or Parquet with the columns below"
    )
    command.add_argument("--split", metavar="NAME", help="crosstask: all or test (default); htstep: e.g. val_seen")
    command.add_argument(
        "--draws", type=whole_number, default=TEST_SETS, help=f"crosstask: test sets (default {TEST_SETS})"
    )
    command.add_argument("--seed", type=whole_number, default=0, help="crosstask: of the test sets (default 0)")
    command.add_argument("--json", action="store_true", help="for scripts")
    columns = [f"  {name}: {','.join(PROTOCOLS[name].columns)}" for name in CHOICES]
    command.epilog = "\n".join(["columns, others are ignored:", *columns, "", command.epilog or ""])


def _score(options: argparse.Namespace) -> int:
    protocol = PROTOCOLS[options.benchmark]
    if not 1 <= options.draws <= MOST_DRAWS:
        raise ValueError(f"--draws is {options.draws}: draw 1 to {MOST_DRAWS:,} test sets")
    rows = read_predictions(options.predictions, protocol)
    with tempfile.TemporaryDirectory(prefix="vina-score-") as folder:
        truth, notes = _read_truth(Store(folder), protocol, options)
    found = Predictions.of(rows, protocol, truth)
    if (found.videos < 0).all():
        raise ValueError(
            f"no prediction of {options.predictions} is for a video that is annotated (split {truth.split}): it has "
            f"{', '.join(found.names)}, and the annotations in {options.data} have {', '.join(truth.videos[:3])}, ..."
        )
    scored = score(protocol, truth, found, options.draws, options.seed)
    scored.notes.extend(notes)
    print(json.dumps(_as_dict(scored), indent=1) if options.json else "\n".join(scored.lines()))
    return 0


def _read_truth(store: Store, protocol: Protocol, options: argparse.Namespace) -> tuple[Truth, list[str]]:
    """The annotations of a folder, read as an import reads them; with what was rejected."""
    summary = import_source(store, "score", protocol.source, options.data)
    if summary.damaged:
        raise ValueError(f"{options.data} cannot be read: {summary.damaged[0]}")
    splits = splits_of(store, protocol.benchmark)
    rejected = [f"{count:,} rejected: {reason}" for reason, count in summary.rejected.most_common()]
    if not splits:
        said = f"{options.data} has no annotations that {protocol.name} is measured on"
        raise ValueError("; ".join([said, *rejected]))
    if protocol.benchmark == "crosstask":
        splits = [TEST, ALL]
    split = options.split or splits[0]
    if split not in splits or (options.split is None and protocol.benchmark == "htstep" and len(splits) > 1):
        said = "not there" if options.split else "not named"
        raise ValueError(f"the split is {said}: choose --split {' or '.join(splits)}")
    notes = [*summary.notes, *(f"in {options.data}, {each}" for each in rejected)]
    return read_truth(store, protocol.benchmark, split), notes


def _as_dict(scored: Scored) -> dict[str, object]:
    return {
        "protocol": scored.protocol.name,
        "version": scored.protocol.version,
        "split": scored.split,
        "num_videos": scored.num_videos,
        "num_predictions": scored.num_predictions,
        "metrics": {
            name: {part: None if math.isnan(number) else number for part, number in found._asdict().items()}
            for name, found in scored.metrics.items()
        },
        "notes": scored.notes,
    }
