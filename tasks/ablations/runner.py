"""Tables of ablations, made: what is missing is trained, what is trained is measured, and every cell is kept.

Every training is one that `vina run` would make of the same settings: what is there is used, what broke off goes on,
and two processes with other seeds may work on one store.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from storage import Store, fingerprint_of
from storage.catalogue import Catalogue, quoted
from tasks.ablations.tables import DISCARDED, Row, rows_of
from tasks.evaluation.benchmarks.htm_align import HTM_ALIGN
from tasks.evaluation.benchmarks.htstep import HTSTEP
from tasks.evaluation.families import BURNT_IN, SENTENCES, STUDENTS, TAN_LC, TAN_PE_LC
from tasks.evaluation.methods import Method, trained
from tasks.evaluation.queries import read_queries
from tasks.evaluation.stage import Evaluation, trained_methods, untrained_methods
from tasks.evaluation.truth import splits_of
from tasks.pipeline.job import Job
from tasks.training.corpus import Corpus
from tasks.training.curriculum import Curriculum
from tasks.training.model_ids import model_ids
from tasks.training.processes import alone
from tasks.training.settings import TrainingSettings
from tasks.training.stage import burn_in, rounds

CODE_VERSION = "1"
LOG = logging.getLogger("vina.ablations")
LABELS = {
    "kept_percent": "kept",
    "kept_right_percent": "right, of the kept",
    "shown_right_percent": "right, of the shown",
}
"""Columns of the view `label_precision`, and what they are called."""


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


class Ablation:
    """The tables of one store and one set of settings, whatever they change."""

    def __init__(self, job: Job) -> None:
        self.job, self.store = job, Store(job.store)
        self.settings = job.settings_of(TrainingSettings)
        self.evaluation = Evaluation(self.store, job.run_id)
        splits = splits_of(self.store, HTSTEP)
        self.split = next((split for split in splits if split.startswith("val")), splits[0] if splits else "")
        """Where steps are measured: as in the paper, on validation videos, if there are any."""

    def check(self, table: str) -> None:
        """A ValueError if nothing could be measured after all the training."""
        corpus = Corpus(self.store, self.settings.backbone, self.settings.selection)
        wanted = self.evaluation.benchmarks if table == "main" else [HTSTEP]
        if not any(read_queries(self.store, benchmark, corpus).pairs for benchmark in wanted):
            what = "any benchmark" if table == "main" else HTSTEP.title
            raise ValueError(
                f"no held-out video of {what} has {corpus.backbone} features: import both, or a demo world, first"
            )

    def make(self, table: str, seeds: Sequence[int]) -> list[Result]:
        """Train, measure, keep; returns all cells. Rows of equal settings are worked on together."""
        self.check(table)
        results = []
        for seed in seeds:
            groups: dict[TrainingSettings, list[tuple[int, Row]]] = {}
            for number, row in enumerate(rows_of(table, self.settings)):
                settings = self.settings.changed(seed=seed, **row.changes)
                groups.setdefault(settings, []).append((number, row))
            cells = [cell for settings, rows in groups.items() for cell in self._cells(settings, rows, table == "main")]
            cells.sort(key=lambda cell: cell.row)
            self._keep(table, seed, cells)
            results += cells
        return results

    def _cells(self, settings: TrainingSettings, rows: Sequence[tuple[int, Row]], everywhere: bool) -> Iterator[Result]:
        """The cells of some rows that are one training."""
        job = self.job.changed(settings)
        work = Curriculum(job, alone(settings.device))
        asked = {cell.method for _, row in rows for cell in row.cells.values()}
        if not asked.isdisjoint((TAN_LC, TAN_PE_LC)):
            work.train_tan()
        if not asked.isdisjoint(STUDENTS):
            burn_in(job)
            rounds(job)
        found = self._metrics(self._measure(work, asked, everywhere))
        for number, row in rows:
            for column, cell in row.cells.items():
                if (place := (cell.protocol, cell.method, cell.pathway.value, cell.metric)) in found:
                    model_id, value = found[place]
                    LOG.info("%s, seed %d: %s %.1f %%", row.name, settings.seed, column, value)
                    yield Result(number, row.name, column, model_id, settings.seed, value, row.paper.get(column))
            if row.labels:
                yield from self._labels(number, row, work)

    def _measure(self, work: Curriculum, asked: Collection[str], everywhere: bool) -> list[Method]:
        """What is asked for, on the benchmarks of the ablations, or on all; returns what was measured."""
        job = self.job.changed(work.settings)
        able = list(trained_methods(job, work.corpus))
        if everywhere or SENTENCES in asked:
            able += untrained_methods(job)
        if BURNT_IN in asked:
            begun = work.teacher(1)
            able.append(trained(begun.name, BURNT_IN, begun, work.corpus, work.settings))
        for method in able:
            self.evaluation.measure(method, None if everywhere else (HTSTEP, HTM_ALIGN))
        return able

    def _metrics(self, measured: Sequence[Method]) -> dict[tuple[str, str, str, str], tuple[str, float]]:
        """The model and the value by protocol, method, pathway and metric."""
        names = ", ".join(quoted(method.model_id) for method in measured)
        with Catalogue(self.store) as catalogue:
            rows = catalogue.query(f"""SELECT model_id, protocol, method, pathway, metric, value FROM metrics
                WHERE model_id IN ({names})
                AND split = CASE benchmark WHEN {quoted(HTSTEP.name)} THEN {quoted(self.split)} ELSE 'test' END""")
        return {
            (row["protocol"], row["method"], row["pathway"], row["metric"]): (row["model_id"], row["value"])
            for row in rows.to_pylist()
        }

    def _labels(self, number: int, row: Row, work: Curriculum) -> Iterator[Result]:
        own, seed = f"model_id = {quoted(work.student_id)}", work.settings.seed
        with Catalogue(self.store) as catalogue:
            dropped = catalogue.query(f"""SELECT 100.0 * avg((NOT kept)::INT) AS discarded FROM pseudo_labels
                WHERE {own} AND round > 0 GROUP BY round ORDER BY discarded DESC""").to_pylist()
            judged = catalogue.query(f"FROM label_precision WHERE {own} ORDER BY round").to_pylist()
        if row.labels == "discarded":
            worst = dropped[0]["discarded"]
            yield Result(number, row.name, DISCARDED, work.student_id, seed, worst, row.paper.get(DISCARDED))
            return
        for place, found in enumerate(judged, number + 1):
            for name, measure in LABELS.items():
                if found[name] is not None:  # of no labels, none are right or wrong
                    variant = f"labels of round {found['round']}"
                    yield Result(place, variant, measure, work.student_id, seed, found[name])

    def _keep(self, table: str, seed: int, results: Sequence[Result]) -> None:
        if not results:
            return
        place = self.store.table("ablations")
        name = self._name()
        rows = [vars(result) | {"settings": name} for result in results]
        found = pa.Table.from_pylist(rows, schema=place.schema.files)
        fingerprint = fingerprint_of({"rows": rows}, {}, CODE_VERSION)
        place.commit(found, {"ablation": table}, f"{name}-{seed}", fingerprint=fingerprint, run_id=self.job.run_id)

    def _name(self) -> str:
        """Of the settings that the tables change, what is learnt from, and what it is held against."""
        settings = self.settings.changed(seed=0)
        student = model_ids(settings, Corpus(self.store, settings.backbone, settings.selection)).student
        annotations = self.store.table("annotations").snapshot().content_version
        return fingerprint_of({"model_id": student}, {"annotations": annotations}, CODE_VERSION)[:8]
