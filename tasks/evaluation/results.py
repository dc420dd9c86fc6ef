"""The main table: what a run's models reach on every benchmark, beside the paper and what was published later."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from storage import Store
from storage.catalogue import Catalogue, quoted
from storage.paper import CLIP, LATER_NUMBERS, MILNCE, PAPER_NUMBERS, Number
from tasks.evaluation.methods import RULES, WITH
from tasks.evaluation.protocols import SOURCES
from tasks.evaluation.questions import BENCHMARKS
from tasks.evaluation.text_methods import SENTENCES
from tasks.pairing.settings import MPNET
from tasks.training.corpus import corpus_of
from tasks.training.model_files import find_model
from tasks.training.model_ids import model_ids
from tasks.training.settings import TrainingSettings

COLUMNS = {
    ("htstep-r1", "R@1"): "HT-Step R@1",
    ("htm-align", "R@1"): "HTM-Align R@1",
    ("htm-align", "AUC"): "AUC",
    ("crosstask", "recall"): "CrossTask",
    ("crosstask-ordered", "recall"): "in order",
    ("htstep-map", "mAP"): "HT-Step mAP",
    **{
        ("crosstask-articles", f"R@{best} IoU {iou}"): f"R@{best} {iou}"
        for best in (50, 100)
        for iou in (0.1, 0.3, 0.5)
    },
}
"""What is shown of `metrics`, by protocol and metric."""
BASELINES = ("random", "centre", "uniform", SENTENCES)
TRUTH = "truth"
"""The annotations themselves, held against themselves: the most that can be reached."""
MODELS = ("tan-lc", "tan-pe-lc", "vina", f"vina{WITH}")
MEASURING = ["evaluation", "ablate main", "ablate all"]
"""Stages of runs that measure on all benchmarks."""
Key = tuple[str, str, str]
"""Protocol, metric, method."""


@dataclass(frozen=True)
class Results:
    """Our numbers, one a seed, beside theirs, in percent; and what is not there, and why."""

    run_id: str | None
    ours: dict[Key, list[float]]
    intervals: dict[Key, tuple[float, float]]
    paper: dict[Key, float]
    later: dict[Key, float]
    notes: list[str]

    @property
    def methods(self) -> list[str]:
        """In the order of the table: baselines, other people's, TAN*, VINA, and what came later."""
        paper, later = ([method for _, _, method in numbers] for numbers in (self.paper, self.later))
        known = dict.fromkeys(name for _, _, name in (*self.ours, *self.paper))
        ways = {name for name in known if name.startswith(f"vina{WITH},")}  # the parts of one model are an ablation
        others = sorted(known.keys() - ways - set(MODELS) - {*BASELINES, TRUTH}, key=lambda name: (name in paper, name))
        return list(dict.fromkeys([*BASELINES, *others, *MODELS, *later, TRUTH]))


def read_results(store: Store, run_id: str | None = None) -> Results:
    """Of the newest run that measured something, or of one by its id; all seeds of its settings together."""
    found = (run_id, settings_of_run(store, run_id)) if run_id else _newest_run(store)
    trainings = trainings_of(store, found[1], found[0]) if found else {}
    with Catalogue(store) as catalogue:
        rows = catalogue.query(f"""
            WITH chosen AS (SELECT benchmark, coalesce(min(split) FILTER (split LIKE 'test%'), min(split)) AS split
                            FROM metrics GROUP BY benchmark)
            SELECT m.*, m.model_id = {quoted(RULES)} OR m.seed IS NULL AS needs_no_training
            FROM metrics m JOIN chosen USING (benchmark, split) ORDER BY m.model_id""").to_pylist()
    mine = [
        row
        for row in rows
        if row["needs_no_training"] or row["method"].startswith(trainings.get(row["model_id"], "\0"))
    ]
    _tell_apart(mine)
    ours: dict[Key, list[float]] = {}
    intervals: dict[Key, tuple[float, float]] = {}
    for row in mine:
        if (row["protocol"], row["metric"]) in COLUMNS:
            key = row["protocol"], row["metric"], row["method"]
            ours.setdefault(key, []).append(row["value"])
            intervals[key] = row["low"], row["high"]
    return Results(
        found[0] if found else None,
        ours,
        intervals,
        _beside(mine, PAPER_NUMBERS),
        _beside(mine, LATER_NUMBERS),
        [*_missing(store, mine, found), *_partial(mine)],
    )


def _beside(rows: Sequence[dict[str, Any]], numbers: Sequence[Number]) -> dict[Key, float]:
    """Those of the splits that ours are of; where we have none, of test videos."""
    splits = {row["benchmark"]: row["split"] for row in rows}
    return {
        (protocol, metric, method): value
        for benchmark, protocol, metric, split, method, value in numbers
        if splits.get(benchmark, "test").startswith(split)
    }


def _tell_apart(rows: Sequence[dict[str, Any]]) -> None:
    """Of a baseline that was measured with several models, or with several files of texts, each has its own name."""
    models: dict[str, set[str]] = {}
    for row in rows:
        if row["needs_no_training"]:
            models.setdefault(row["method"], set()).add(row["model_id"])
    for row in rows:
        if len(models.get(row["method"], ())) > 1:
            row["method"] += f" ({row['model_id']})"


def settings_of_run(store: Store, run_id: str) -> TrainingSettings:
    """How a run was asked to train; a ValueError if there is no such run."""
    runs = _runs(store, f"run_id = {quoted(run_id)}")
    if not runs:
        raise ValueError(f"there is no run {run_id!r} that trained or measured a model: `FROM runs` lists all runs")
    return runs[0][1]


def student_of(store: Store, run: str) -> str:
    """The student of a run; a training's own name is taken as it is."""
    if "@" in run:
        return run
    return own_student(store, settings_of_run(store, run), run)


def own_student(store: Store, settings: TrainingSettings, run_id: str) -> str:
    """The student of a run of these settings: the one it had, or would have now."""
    if recorded := _recorded(store, run_id):
        return str(recorded["model_id"])
    return model_ids(settings, corpus_of(store, settings.backbone, settings.selection)).student


def _newest_run(store: Store) -> tuple[str, TrainingSettings] | None:
    """The newest that measured to its end, with its settings."""
    runs = _runs(store, f"state = 'completed' AND list_has_any(stages, {MEASURING})")
    return runs[0] if runs else None


def _runs(store: Store, which: str) -> list[tuple[str, TrainingSettings]]:
    with Catalogue(store) as catalogue:
        rows = catalogue.query(f"SELECT run_id, configuration FROM runs WHERE {which} ORDER BY started_at DESC")
    found = [(row["run_id"], json.loads(row["configuration"]).get("training")) for row in rows.to_pylist()]
    return [(run_id, TrainingSettings(**model_id)) for run_id, model_id in found if model_id]


def trainings_of(store: Store, settings: TrainingSettings, run_id: str | None = None) -> dict[str, str]:
    """The trainings of these settings, of all seeds that were measured, and the method that each is.

    A training is named by its data, too: that of a run is the one it had, whatever has been imported since.
    """
    with Catalogue(store) as catalogue:
        seeds = catalogue.query("SELECT DISTINCT seed FROM metrics WHERE seed IS NOT NULL")["seed"].to_pylist()
    corpus = corpus_of(store, settings.backbone, settings.selection)
    names: dict[str, str] = {}
    for seed in sorted({*seeds, settings.seed}):
        for positions in (False, True):
            own = replace(settings, seed=seed, tan_text_positions=positions)
            ids = model_ids(own, corpus)
            names[ids.tan] = "tan-pe-lc" if positions else "tan-lc"
            if positions == settings.tan_text_positions:
                names[ids.student] = "vina"
    recorded = _recorded(store, run_id) if run_id else None
    if recorded and recorded["model_id"] not in names:
        ids = model_ids(settings, corpus)
        del names[ids.tan], names[ids.student]
        tan = "tan-pe-lc" if settings.tan_text_positions else "tan-lc"
        names |= {recorded["tan"]: tan, recorded["model_id"]: "vina"}
    return names


def _recorded(store: Store, run_id: str) -> dict[str, Any] | None:
    """The row of `models` that a run stands for, if it has one."""
    try:
        return find_model(store, run_id)
    except ValueError:
        return None


def _missing(store: Store, rows: Sequence[dict[str, Any]], run: tuple[str, TrainingSettings] | None) -> Iterator[str]:
    """What the table lacks, and what to do about it."""
    with Catalogue(store) as catalogue:
        annotated = catalogue.query(
            "SELECT benchmark, count(DISTINCT video_id) AS videos FROM annotations GROUP BY ALL"
        )
    videos = dict(zip(annotated["benchmark"].to_pylist(), annotated["videos"].to_pylist(), strict=True))
    for benchmark in BENCHMARKS:
        if benchmark not in videos:
            yield f"{benchmark}: no annotations are imported: `vina import {SOURCES[benchmark]} PATH`"
        elif not any(row["benchmark"] == benchmark for row in rows):
            count = f"{videos[benchmark]:,} annotated videos"
            yield f"{benchmark}: nothing is measured on its {count}: they need features, and the stage `evaluation`"
    known = {row["method"] for row in rows}
    for model in sorted({row["model_id"] for row in rows if row["method"].startswith(SENTENCES)}):
        if not model.startswith(MPNET.rpartition("/")[2]):
            yield f"{SENTENCES}: by {model}, which takes MPNet's place: not the paper's number"
    if run is None:
        yield "no run has measured a model yet: `vina run`, or `vina ablate main`"
    for method in MODELS[:3]:
        if run and method not in known:
            same = f"--seeds {run[1].seed} --set selection={run[1].selection}"
            yield f"{method}: not trained as in run {run[0]}: `vina ablate main {same}` and its other settings"
    if MILNCE not in known:
        yield (
            f"{MILNCE}: there are no features in its joint space, or no texts: "
            "`vina run --stages features --joint --weights s3d_howto100m.pth` makes both"
        )
    if CLIP not in known:
        yield (
            f"{CLIP}, InternVideo, ...: import features and texts under one name: "
            "`vina import features DIR --backbone clip-vit-b-32`, `vina import texts clip-vit-b-32.parquet`"
        )


def _partial(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Which numbers are of a part of the videos, and on which splits all were measured."""
    lines = []
    for benchmark in dict.fromkeys(row["benchmark"] for row in rows):
        own = [row for row in rows if row["benchmark"] == benchmark]
        sizes = sorted({(row["num_videos"], row["num_missing"]) for row in own})
        said = ", ".join(
            f"{count:,} videos" + (f" ({lost:,} have no features)" if lost else "") for count, lost in sizes
        )
        lines.append(f"{benchmark}: measured on {own[0]['split']}, {said}")
    return lines
