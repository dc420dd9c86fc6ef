"""The main table: results of a run's models on every benchmark, beside the paper's and later published ones."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from storage import Store
from storage.catalogue import Catalogue, quoted
from tasks.evaluation.benchmarks.benchmark import Benchmark, PublishedNumber
from tasks.evaluation.benchmarks.registry import BENCHMARKS, result_columns
from tasks.evaluation.benchmarks.sql import open_catalogue
from tasks.evaluation.families import (
    CENTRE,
    CLIP,
    MAIN_PATHWAYS,
    MILNCE,
    RANDOM,
    SENTENCES,
    TAN_LC,
    TAN_PE_LC,
    TRUTH,
    UNIFORM,
    VINA,
    Pathway,
    label_of,
)
from tasks.evaluation.methods import RULES
from tasks.pairing.settings import MPNET
from tasks.training.corpus import corpus_of
from tasks.training.method_names import tan_method
from tasks.training.model_files import find_model
from tasks.training.model_ids import model_ids
from tasks.training.settings import TrainingSettings


class ResultRow(NamedTuple):
    """A row of the main table."""

    method: str
    pathway: str = Pathway.DIRECT.value
    model_id: str = ""
    """Set only if a method was measured with several models, or with several files of texts."""

    @property
    def label(self) -> str:
        """Label that is shown."""
        label = label_of(self.method, self.pathway)
        return f"{label} ({self.model_id})" if self.model_id else label


BASELINES = (
    ResultRow(RANDOM), ResultRow(CENTRE), ResultRow(UNIFORM), ResultRow(SENTENCES, Pathway.INDIRECT_BY_ASR.value)
)  # fmt: skip
MODELS = (ResultRow(TAN_LC), ResultRow(TAN_PE_LC), ResultRow(VINA), ResultRow(VINA, Pathway.FUSED.value))
SUMMARY = (ResultRow(RANDOM), ResultRow(UNIFORM), *MODELS, ResultRow(TRUTH))
"""The rows of the short table at the end of `vina run`."""
ResultKey = tuple[str, str, ResultRow]
"""Protocol, metric, row."""


class ResultLine(NamedTuple):
    """A printed line of the main table: our numbers, or published ones, by column."""

    kind: Literal["ours", "published"]
    label: str
    cells: list[tuple[ResultKey, list[float]]]


@dataclass(frozen=True)
class Results:
    """Our numbers, one per seed, and published ones, in percent; notes say what is missing and why."""

    run_id: str | None
    ours: dict[ResultKey, list[float]]
    intervals: dict[ResultKey, tuple[float, float]]
    paper: dict[ResultKey, float]
    later: dict[ResultKey, float]
    notes: list[str]

    @property
    def rows(self) -> list[ResultRow]:
        """Rows in the order of the table: baselines, other published methods, TAN*, VINA, later methods."""
        paper, later = ([row for _, _, row in numbers] for numbers in (self.paper, self.later))
        others = {row for _, _, row in (*self.ours, *self.paper)} - {*MODELS, *BASELINES, ResultRow(TRUTH)}
        others -= {row for row in others if row.method == VINA and row.pathway not in MAIN_PATHWAYS}  # an ablation
        ordered = sorted(others, key=lambda row: (row in paper, row.label))
        return list(dict.fromkeys([*BASELINES, *ordered, *MODELS, *later, ResultRow(TRUTH)]))

    def lines(self, columns: Iterable[tuple[str, str]]) -> Iterator[ResultLine]:
        """Yield the lines that have a number in these columns: ours, then the published ones."""
        columns = list(columns)
        for row in self.rows:
            keys = [(protocol, metric, row) for protocol, metric in columns]
            yield from (
                line
                for line in (
                    ResultLine("ours", row.label, [(key, self.ours.get(key, [])) for key in keys]),
                    ResultLine("published", f"{row.label}, in the paper", _cells(self.paper, keys)),
                    ResultLine("published", f"{row.label}, published later", _cells(self.later, keys)),
                )
                if any(values for _, values in line.cells)
            )


def _cells(numbers: Mapping[ResultKey, float], keys: Sequence[ResultKey]) -> list[tuple[ResultKey, list[float]]]:
    return [(key, [numbers[key]] if key in numbers else []) for key in keys]


def read_results(store: Store, run_id: str | None = None, split: str | None = None) -> Results:
    """Read the results of the newest run with any, or of one by its id; all seeds of its settings together.

    Results are on each benchmark's reported split, or on `split` for the benchmarks that have it.
    """
    run = (run_id, settings_of_run(store, run_id)) if run_id else _newest_run(store)
    model_methods = methods_by_model(store, run[1], run[0]) if run else {}
    with open_catalogue(store) as catalogue:
        measured = catalogue.query(f"""
            SELECT m.*, m.model_id = {quoted(RULES)} OR m.seed IS NULL AS needs_no_training,
                   r.split = m.split AS is_reported
            FROM metrics m JOIN reported_splits r USING (benchmark) ORDER BY m.model_id""").to_pylist()
    if split and split not in (splits := sorted({metric["split"] for metric in measured})):
        raise ValueError(f"nothing is measured on split {split!r}, only on {', '.join(splits) or 'none'}")
    of_run = [
        metric
        for metric in measured
        if metric["needs_no_training"] or metric["method"] == model_methods.get(metric["model_id"])
    ]
    metrics = [metric for metric in of_run if (metric["split"] == split if split else metric["is_reported"])]
    shared = _methods_of_several_models(metrics)
    columns = {column for titles in result_columns().values() for column in titles}
    ours: dict[ResultKey, list[float]] = {}
    intervals: dict[ResultKey, tuple[float, float]] = {}
    for metric in metrics:
        if (metric["protocol"], metric["metric"]) in columns:
            model_id = metric["model_id"] if metric["method"] in shared else ""
            key = metric["protocol"], metric["metric"], ResultRow(metric["method"], metric["pathway"], model_id)
            ours.setdefault(key, []).append(metric["value"])
            intervals[key] = metric["low"], metric["high"]
    return Results(
        run[0] if run else None,
        ours,
        intervals,
        _beside(metrics, split, lambda benchmark: benchmark.paper),
        _beside(metrics, split, lambda benchmark: benchmark.later),
        [*_missing(store, of_run, run), *_partial(metrics, of_run)],
    )


def _beside(
    metrics: Sequence[dict[str, Any]],
    split: str | None,
    published: Callable[[Benchmark], Sequence[PublishedNumber]],
) -> dict[ResultKey, float]:
    """Return published numbers of the splits that ours are measured on; without ours, of the reported split."""
    splits = {metric["benchmark"]: metric["split"] for metric in metrics}
    return {
        (number.protocol, number.metric, ResultRow(number.method, number.pathway.value)): number.value
        for benchmark in BENCHMARKS
        for number in published(benchmark)
        if number.split == splits.get(benchmark.name, split or benchmark.reported_split)
    }


def _methods_of_several_models(metrics: Sequence[dict[str, Any]]) -> set[str]:
    """Return baselines that were measured with several models, or with several files of texts."""
    models: dict[str, set[str]] = {}
    for metric in metrics:
        if metric["needs_no_training"]:
            models.setdefault(metric["method"], set()).add(metric["model_id"])
    return {method for method, model_ids in models.items() if len(model_ids) > 1}


def settings_of_run(store: Store, run_id: str) -> TrainingSettings:
    """Return the training settings of a run. Raise ValueError if there is no such run."""
    runs = _runs(store, f"(FROM runs WHERE run_id = {quoted(run_id)})")
    if not runs:
        raise ValueError(f"there is no run {run_id!r} that trained or measured a model: `FROM runs` lists all runs")
    return runs[0][1]


def student_of(store: Store, run: str) -> str:
    """Return the model id of a run's student; a model id is returned unchanged."""
    if "@" in run:
        return run
    return own_student(store, settings_of_run(store, run), run)


def own_student(store: Store, settings: TrainingSettings, run_id: str) -> str:
    """Return the model id of a run's student: the recorded one, or the one it would have now."""
    if recorded := _recorded(store, run_id):
        return str(recorded["model_id"])
    return model_ids(settings, corpus_of(store, settings.backbone, settings.selection)).student


def _newest_run(store: Store) -> tuple[str, TrainingSettings] | None:
    """Return the newest run that measured models, with its settings."""
    runs = _runs(store, "measured_runs")
    return runs[0] if runs else None


def _runs(store: Store, source: str) -> list[tuple[str, TrainingSettings]]:
    """Return the runs of the pipeline in a table or view, newest first, with their settings."""
    with Catalogue(store) as catalogue:
        rows = catalogue.query(f"SELECT run_id, configuration FROM {source} ORDER BY started_at DESC")
    runs = [(row["run_id"], json.loads(row["configuration"]).get("settings")) for row in rows.to_pylist()]
    return [(run_id, TrainingSettings(**groups.get("training", {}))) for run_id, groups in runs if groups is not None]


def methods_by_model(store: Store, settings: TrainingSettings, run_id: str | None = None) -> dict[str, str]:
    """Return the models of these settings, of all measured seeds, and the method of each.

    A model id also depends on the data: a run keeps the model it had, even if data were imported since.
    """
    with Catalogue(store) as catalogue:
        seeds = catalogue.query("SELECT DISTINCT seed FROM metrics WHERE seed IS NOT NULL")["seed"].to_pylist()
    corpus = corpus_of(store, settings.backbone, settings.selection)
    names: dict[str, str] = {}
    for seed in sorted({*seeds, settings.seed}):
        for positions in (False, True):
            variant = settings.changed(seed=seed, tan_text_positions=positions)
            ids = model_ids(variant, corpus)
            names[ids.tan] = tan_method(variant)
            if positions == settings.tan_text_positions:
                names[ids.student] = VINA
    recorded = _recorded(store, run_id) if run_id else None
    if recorded and recorded["model_id"] not in names:
        ids = model_ids(settings, corpus)
        del names[ids.tan], names[ids.student]
        names |= {recorded["tan"]: tan_method(settings), recorded["model_id"]: VINA}
    return names


def _recorded(store: Store, run_id: str) -> dict[str, Any] | None:
    """Return the row of `models` of a run, if there is one."""
    try:
        return find_model(store, run_id)
    except ValueError:
        return None


def _missing(
    store: Store, metrics: Sequence[dict[str, Any]], run: tuple[str, TrainingSettings] | None
) -> Iterator[str]:
    """Yield notes on what the table lacks, and what to do about it."""
    with Catalogue(store) as catalogue:
        annotated = catalogue.query(
            "SELECT benchmark, count(DISTINCT video_id) AS videos FROM annotations GROUP BY ALL"
        )
    videos = dict(zip(annotated["benchmark"].to_pylist(), annotated["videos"].to_pylist(), strict=True))
    for benchmark in BENCHMARKS:
        name = benchmark.name
        if name not in videos:
            yield f"{name}: no annotations are imported: `vina import {benchmark.source} PATH`"
        elif not any(metric["benchmark"] == name for metric in metrics):
            count = f"{videos[name]:,} annotated videos"
            yield f"{name}: none of its {count} were measured: they need features, then run the stage `evaluation`"
    for model in sorted({metric["model_id"] for metric in metrics if metric["method"] == SENTENCES}):
        if not model.startswith(MPNET.rpartition("/")[2]):
            yield f"{SENTENCES}: by {model} instead of MPNet, so not comparable with the paper"
    if run is None:
        yield "no run has measured a model yet: `vina run`, or `vina ablate main`"
    methods = {metric["method"] for metric in metrics}
    for method in (TAN_LC, TAN_PE_LC, VINA):
        if run and method not in methods:
            options = f"--seeds {run[1].seed} --set selection={run[1].selection}"
            yield f"{method}: not trained as in run {run[0]}: `vina ablate main {options}` with its other settings"
    if MILNCE not in methods:
        yield (
            f"{MILNCE}: there are no features in its joint space, or no texts: "
            "`vina run --stages features --set joint=true --set weights=s3d_howto100m.pth` makes both"
        )
    if CLIP not in methods:
        yield (
            f"{CLIP}, InternVideo, ...: import features and texts under one name: "
            "`vina import features DIR --backbone clip-vit-b-32`, `vina import texts clip-vit-b-32.parquet`"
        )


def _partial(metrics: Sequence[dict[str, Any]], of_run: Sequence[dict[str, Any]]) -> list[str]:
    """Return notes on the split and the number of videos that each benchmark was measured on."""
    lines = []
    for benchmark in dict.fromkeys(metric["benchmark"] for metric in metrics):
        numbers = [metric for metric in metrics if metric["benchmark"] == benchmark]
        sizes = sorted({(metric["num_videos"], metric["num_missing"]) for metric in numbers})
        counts = ", ".join(
            f"{count:,} videos" + (f" ({lost:,} have no features)" if lost else "") for count, lost in sizes
        )
        split = numbers[0]["split"]
        others = sorted({metric["split"] for metric in of_run if metric["benchmark"] == benchmark} - {split})
        also = f"; also on {', '.join(others)} (--split NAME)" if others else ""
        lines.append(f"{benchmark}: measured on {split}, {counts}{also}")
    return lines
