"""Make the ablation tables: train and measure what is missing, and store every cell.

A part trains and measures the models of one set of settings, so that parts run side by side on the pool. Every model is
the one that `vina run` would train with the same settings: it is reused if it exists, and continued if its training was
interrupted.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from storage import Store, fingerprint_of
from storage.catalogue import Catalogue, quoted
from tasks.ablations.tables import DISCARDED, MEASURED_ON, Row, on_all_benchmarks, rows_of
from tasks.evaluation.benchmarks.sql import open_catalogue
from tasks.evaluation.families import BURNT_IN, SENTENCES, STUDENTS, TAN_LC, TAN_PE_LC
from tasks.evaluation.methods import Method, trained
from tasks.evaluation.queries import read_queries
from tasks.evaluation.stage import Evaluation, trained_methods, untrained_methods
from tasks.evaluation.truth import splits_of
from tasks.pairing.encoders import foresee_encoder
from tasks.pairing.settings import PairingSettings
from tasks.pipeline import progress
from tasks.pipeline.job import Job
from tasks.pipeline.parts import Part, PartKind, RunParts, run_here
from tasks.training.corpus import Corpus
from tasks.training.curriculum import Curriculum
from tasks.training.model_ids import model_ids
from tasks.training.processes import alone
from tasks.training.settings import TrainingSettings
from tasks.training.stage import burn_in, rounds, train

CODE_VERSION = "1"
LOG = logging.getLogger("vina.ablations")
LABELS = {
    "kept_percent": "kept",
    "kept_right_percent": "right, of the kept",
    "shown_right_percent": "right, of the shown",
}
"""Columns of the view `label_precision`, and their titles in the table."""


@dataclass(frozen=True)
class Result:
    """One cell of one seed, in percent."""

    row: int
    variant: str
    measure: str
    model_id: str
    seed: int
    value: float
    paper: float | None = None


def train_and_measure(job: Job, part: Part) -> None:
    """Train the missing models of one set of settings, and measure them."""
    settings, methods = TrainingSettings(**part["settings"]), part["methods"]
    job = job.changed(settings)
    if not {TAN_LC, TAN_PE_LC}.isdisjoint(methods):
        train(job, {"model": "tan"})
    if not set(STUDENTS).isdisjoint(methods):
        burn_in(job)
        rounds(job)
    if part["is_measured"]:
        evaluation = Evaluation(Store(job.store), job.run_id)
        curriculum = Curriculum(job, alone(settings.device))
        for method in _methods(curriculum, job, methods, part["on_all_benchmarks"]):
            evaluation.measure(method, None if part["on_all_benchmarks"] else MEASURED_ON)


def _methods(curriculum: Curriculum, job: Job, names: Collection[str], with_baselines: bool) -> Iterator[Method]:
    yield from trained_methods(job, curriculum.corpus)
    if with_baselines or SENTENCES in names:
        yield from untrained_methods(job)
    if BURNT_IN in names:
        teacher = curriculum.teacher(1)
        yield trained(teacher.name, BURNT_IN, teacher, curriculum.corpus, curriculum.settings)


ABLATION = PartKind("ablation", train_and_measure, needs_own_process=True)


@dataclass(frozen=True)
class _Variant:
    """Rows of a table that have equal settings, with their positions in the table."""

    settings: TrainingSettings
    rows: list[tuple[int, Row]]

    @property
    def methods(self) -> list[str]:
        """The methods whose numbers the rows show."""
        return sorted({cell.method for _, row in self.rows for cell in row.cells.values()})


class Ablation:
    """Makes ablation tables in a store, starting from one set of settings."""

    def __init__(self, job: Job) -> None:
        self.job, self.store = job, Store(job.store)
        self.settings = job.settings_of(TrainingSettings)
        measured = {each: each.measured_splits(splits_of(self.store, each)) for each in MEASURED_ON}
        self.splits = {each: each.split_to_choose_on(splits) for each, splits in measured.items() if splits}
        """The split of each benchmark that is measured: validation, as in the paper, if it exists."""

    def make(self, table: str, seeds: Sequence[int], run_parts: RunParts = run_here) -> list[Result]:
        """Train and measure what is missing, store all cells, and return them."""
        self.check(table)
        variants = [variant for seed in seeds for variant in self._variants(table, seed)]
        for number, parts in enumerate((self._tan_parts(variants), [_part(variant, table) for variant in variants])):
            with progress.part(number, 2):
                run_parts(self.job, ABLATION, parts)
        results = []
        for seed in seeds:
            cells = self.cells(table, seed)
            self._store(table, seed, cells)
            results += cells
        return results

    def check(self, table: str) -> None:
        """Raise ValueError if the trained models could not be measured."""
        corpus = Corpus(self.store, self.settings.backbone, self.settings.selection)
        benchmarks = Evaluation(self.store, self.job.run_id).benchmarks if on_all_benchmarks(table) else MEASURED_ON[:1]
        if not any(read_queries(self.store, benchmark, corpus).pairs for benchmark in benchmarks):
            name = "any benchmark" if on_all_benchmarks(table) else MEASURED_ON[0].title
            raise ValueError(
                f"no held-out video of {name} has {corpus.backbone} features: import both, or a demo world, first"
            )

    def cells(self, table: str, seed: int) -> list[Result]:
        """Return the cells of one seed that are measured."""
        cells = [cell for variant in self._variants(table, seed) for cell in self._cells(variant)]
        return sorted(cells, key=lambda cell: cell.row)

    def _variants(self, table: str, seed: int) -> list[_Variant]:
        variants: dict[TrainingSettings, _Variant] = {}
        for number, row in enumerate(rows_of(table, self.settings)):
            settings = self.settings.changed(seed=seed, **row.changes)
            variants.setdefault(settings, _Variant(settings, [])).rows.append((number, row))
        return list(variants.values())

    def _tan_parts(self, variants: Sequence[_Variant]) -> list[Part]:
        """Return one part for each distinct TAN*: the students of several variants begin with its labels."""
        settings_by_tan: dict[str, TrainingSettings] = {}
        for variant in variants:
            if variant.settings.tan == "train":
                settings_by_tan.setdefault(self._curriculum(variant.settings).tan_id, variant.settings)
        return [
            {"settings": settings.model_dump(), "methods": [TAN_LC], "is_measured": False, "on_all_benchmarks": False}
            for settings in settings_by_tan.values()
        ]

    def _curriculum(self, settings: TrainingSettings) -> Curriculum:
        return Curriculum(self.job.changed(settings), alone("cpu"))

    def _cells(self, variant: _Variant) -> Iterator[Result]:
        curriculum, seed = self._curriculum(variant.settings), variant.settings.seed
        metrics = self._metrics(curriculum, variant)
        for number, row in variant.rows:
            for column, cell in row.cells.items():
                key = cell.protocol, cell.method, cell.pathway.value, cell.metric
                if key in metrics:
                    model_id, value = metrics[key]
                    LOG.info("%s, seed %d: %s %.1f %%", row.name, seed, column, value)
                    yield Result(number, row.name, column, model_id, seed, value, row.paper.get(column))
            if row.labels:
                yield from self._labels(number, row, curriculum)

    def _metrics(self, curriculum: Curriculum, variant: _Variant) -> dict[tuple[str, str, str, str], tuple[str, float]]:
        """Return the model and the value by protocol, method, pathway and metric."""
        names = [curriculum.tan_id, curriculum.student_id]
        if BURNT_IN in variant.methods:
            names.append(curriculum.labels_of(1).teacher_name)
        if SENTENCES in variant.methods:
            names.append(foresee_encoder(self.job.settings_of(PairingSettings).encoder))
        splits = [f"({quoted(each.name)}, {quoted(split)})" for each, split in self.splits.items()] or ["('', '')"]
        with Catalogue(self.store) as catalogue:
            rows = catalogue.query(f"""SELECT model_id, protocol, method, pathway, metric, value FROM metrics
                WHERE model_id IN ({", ".join(map(quoted, names))}) AND (benchmark, split) IN ({", ".join(splits)})""")
        return {
            (row["protocol"], row["method"], row["pathway"], row["metric"]): (row["model_id"], row["value"])
            for row in rows.to_pylist()
        }

    def _labels(self, number: int, row: Row, curriculum: Curriculum) -> Iterator[Result]:
        of_student, seed = f"model_id = {quoted(curriculum.student_id)}", curriculum.settings.seed
        with open_catalogue(self.store) as catalogue:
            dropped = catalogue.query(f"""SELECT 100.0 * avg((NOT kept)::INT) AS discarded FROM pseudo_labels
                WHERE {of_student} AND round > 0 GROUP BY round ORDER BY discarded DESC""").to_pylist()
            judged = catalogue.query(f"FROM label_precision WHERE {of_student} ORDER BY round").to_pylist()
        if row.labels == "discarded":
            worst = dropped[0]["discarded"]
            yield Result(number, row.name, DISCARDED, curriculum.student_id, seed, worst, row.paper.get(DISCARDED))
            return
        for position, labels in enumerate(judged, number + 1):
            for name, measure in LABELS.items():
                if labels[name] is not None:  # None if there are no labels
                    variant = f"labels of round {labels['round']}"
                    yield Result(position, variant, measure, curriculum.student_id, seed, labels[name])

    def _store(self, table: str, seed: int, results: Sequence[Result]) -> None:
        if not results:
            return
        stored = self.store.table("ablations")
        name = self._name()
        rows = [vars(result) | {"settings": name} for result in results]
        cells = pa.Table.from_pylist(rows, schema=stored.schema.files)
        fingerprint = fingerprint_of({"rows": rows}, {}, CODE_VERSION)
        stored.commit(cells, {"ablation": table}, f"{name}-{seed}", fingerprint=fingerprint, run_id=self.job.run_id)

    def _name(self) -> str:
        """Return a hash of the settings that the tables change, the training data and the annotations."""
        settings = self.settings.changed(seed=0)
        student = model_ids(settings, Corpus(self.store, settings.backbone, settings.selection)).student
        annotations = self.store.table("annotations").snapshot().content_version
        return fingerprint_of({"model_id": student}, {"annotations": annotations}, CODE_VERSION)[:8]


def _part(variant: _Variant, table: str) -> Part:
    return {
        "settings": variant.settings.model_dump(),
        "methods": variant.methods,
        "is_measured": True,
        "on_all_benchmarks": on_all_benchmarks(table),
    }
