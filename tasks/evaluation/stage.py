"""The stage `evaluation`: every method on every benchmark that the store has, in `predictions` and `metrics`.

A method is measured once, and again only if its answers or the benchmark may have changed.
"""

import logging
import math
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from storage import Store, fingerprint_of
from tasks.evaluation import presence
from tasks.evaluation.benchmarks.benchmark import Benchmark
from tasks.evaluation.benchmarks.registry import BENCHMARKS, benchmark_of_whole_articles
from tasks.evaluation.families import TAN, VINA, Pathway
from tasks.evaluation.methods import Method, oracle, rules, trained
from tasks.evaluation.predicting import as_in_files, predict
from tasks.evaluation.queries import BenchmarkQueries, read_queries
from tasks.evaluation.scoring import Predictions, Scored, score
from tasks.evaluation.text_methods import sentences_by_asr_times, zero_shot
from tasks.evaluation.truth import Truth, read_truth, splits_of
from tasks.pairing.settings import PairingSettings
from tasks.pipeline.device import checked_device
from tasks.pipeline.job import Job
from tasks.pipeline.parts import Part, PartKind, RunParts, run_here
from tasks.pipeline.progress import say
from tasks.pipeline.stage import Dependencies, Stage, versions
from tasks.training.corpus import Corpus, corpus_of
from tasks.training.curriculum import Curriculum, NothingToTrain
from tasks.training.model_files import is_calibrated, write_model
from tasks.training.model_ids import model_ids
from tasks.training.models import published_teacher
from tasks.training.processes import alone
from tasks.training.settings import TrainingSettings
from tasks.training.stage import BURN_IN, ROUNDS
from tasks.training.stage import dependencies as training_dependencies

CODE_VERSION = "2"
LOG = logging.getLogger("vina.evaluation")


def evaluate(job: Job, run_parts: RunParts = run_here) -> str:
    """Measure all models and baselines; return a report."""
    store = Store(job.store)
    benchmarks = Evaluation(store, job.run_id).benchmarks
    if not benchmarks:
        return "no benchmark's annotations are imported: nothing to evaluate on"
    before = {shard.path for shard in store.table("metrics").snapshot().shards}
    run_parts(job, MEASUREMENT, [{}])
    measured = len({shard.path for shard in store.table("metrics").snapshot().shards} - before)
    if not measured:
        return "nothing has changed since the last measurement"
    return f"{measured} measurements on {', '.join(each.name for each in benchmarks)}: `vina results` shows them"


def measure(job: Job, part: Part) -> None:
    """Measure all methods on all benchmarks, except those already measured."""
    evaluation = Evaluation(Store(job.store), job.run_id, job.force)
    methods = list(chain(untrained_methods(job), trained_methods(job)))
    for number, method in enumerate(methods):
        say(LOG, number / len(methods), f"measuring {method.family}")
        evaluation.measure(method)
        if method.family == VINA:
            evaluation.calibrate(method, job.settings_of(TrainingSettings))


def dependencies(job: Job) -> Dependencies:
    """Return what the metrics depend on."""
    store, dependencies = job.open_store(), training_dependencies(job)
    trained = store.table("completions").snapshot()
    for stage in (BURN_IN, ROUNDS):
        done = trained.find({"stage": stage.name}, dependencies.scope)
        dependencies.inputs[stage.name] = done.path if done else ""
    backbones = {shard.constants["backbone"] for shard in store.table("features").snapshot().shards}
    texts = store.table("sentence_embeddings").snapshot().shards
    paths = [shard.path for shard in texts if str(shard.constants["encoder"]).partition("@")[0] in backbones]
    dependencies.inputs["texts in the space of features"] = fingerprint_of({"shards": paths}, {}, "")
    settings = dependencies.settings | {"encoder": job.settings_of(PairingSettings).encoder}
    return replace(
        dependencies, settings=settings, inputs=dependencies.inputs | versions(store, "articles", "features")
    )


MEASUREMENT = PartKind("evaluation", measure, is_whole=True)
EVALUATION = Stage(
    "evaluation", evaluate, dependencies, CODE_VERSION, parts=(MEASUREMENT,), measures=True,
    artifacts={
        "metrics": """SELECT benchmark, protocol, split, method, pathway, metric, round(ours, 1) AS ours, paper
            FROM metrics_beside_paper LIMIT 500"""
    },
)  # fmt: skip


def untrained_methods(job: Job) -> Iterator[Method]:
    """Yield the baselines whose inputs are in the store, and a published TAN if the settings name one."""
    store, settings = Store(job.store), job.settings_of(TrainingSettings)
    corpus = corpus_of(store, settings.backbone, settings.selection)
    if corpus.num_seconds:
        yield from rules(corpus)
        yield oracle(store, corpus)
        if sentences := sentences_by_asr_times(store, job.run_id, corpus, job.settings_of(PairingSettings)):
            yield sentences
    yield from zero_shot(store)
    if settings.tan != "train":
        published = published_teacher(Path(settings.tan), checked_device(settings.device))
        yield replace(trained(published.name, TAN, published, corpus, settings), seed=None)


def trained_methods(job: Job, corpus: Corpus | None = None) -> Iterator[Method]:
    """Yield the models of the job's settings that are fully trained: both variants of TAN*, and the student."""
    chosen = job.settings_of(TrainingSettings)
    for settings in (chosen, chosen.changed(tan_text_positions=not chosen.tan_text_positions)):
        try:
            work = Curriculum(job.changed(settings), alone(settings.device), corpus)
        except NothingToTrain:
            return
        corpus = work.corpus
        for model_id, family, model in work.trained():
            if family != VINA or settings is chosen:
                yield trained(model_id, family, model, work.corpus, settings)


class Evaluation:
    """Measures methods on the benchmarks of a store."""

    def __init__(self, store: Store, run_id: str, force: bool = False) -> None:
        self.store, self.run_id, self.force = store, run_id, force
        self.benchmarks = [benchmark for benchmark in BENCHMARKS if splits_of(store, benchmark)]
        self._truths = cache(self._read_truths)
        self._queries: dict[tuple[str, str, str], BenchmarkQueries] = {}

    def measure(self, method: Method, only: Collection[Benchmark] | None = None) -> int:
        """Measure a method on all benchmarks, or on some; return the number of new measurements."""
        suitable = [
            benchmark
            for benchmark in self.benchmarks
            if (only is None or benchmark in only) and (method.takes_narrations or not benchmark.has_narrations)
        ]
        return sum(self._measure(method, benchmark) for benchmark in suitable)

    def _measure(self, method: Method, benchmark: Benchmark) -> bool:
        table, partition = self.store.table("metrics"), {"model_id": method.model_id, "benchmark": benchmark.name}
        version = self._version(benchmark)
        fingerprint = self._fingerprint(method, version)
        if table.has(partition, method.family, fingerprint) and not self.force:
            return False
        queries = self._read_queries(method.corpus, benchmark, version)
        if not queries.pairs:
            return False
        LOG.info("%s: %d videos of %s", method.family, len({video for video, _ in queries.pairs}), benchmark.name)
        rows: list[dict[str, Any]] = []
        for (protocol, pathway), predictions in predict(method, queries).items():
            variant = {"model_id": method.model_id, "protocol": protocol.name}
            variant |= {"method": method.family, "pathway": pathway.value}
            self.store.table("predictions").commit(
                predictions, variant, "all", fingerprint=fingerprint, run_id=self.run_id, force=self.force
            )
            for truth in self._truths(benchmark, version):
                visible = truth.only(method.corpus.num_seconds)
                if visible.num_videos:
                    answers = Predictions.of(as_in_files(predictions, protocol), protocol, visible)
                    num_missing = truth.num_videos - visible.num_videos
                    rows += _metrics(score(protocol, visible, answers), num_missing, method, pathway)
        if rows:
            numbers = pa.Table.from_pylist(rows, schema=table.schema.files)
            name = method.family
            table.commit(numbers, partition, name, fingerprint=fingerprint, run_id=self.run_id, force=self.force)
        return bool(rows)

    def calibrate(self, method: Method, settings: TrainingSettings) -> None:
        """Calibrate and measure the presence of steps, and write the calibration into the model's file."""
        benchmark, articles = benchmark_of_whole_articles()
        table, partition = self.store.table("metrics"), {"model_id": method.model_id, "benchmark": benchmark.name}
        version = self._version(benchmark)
        fingerprint = fingerprint_of(
            {"presence": f"{presence.VERSION}, {articles.presence_version}"},
            {"method": self._fingerprint(method, version)},
            CODE_VERSION,
        )
        name = "presence"
        if table.has(partition, name, fingerprint) and is_calibrated(self.store, method.model_id) and not self.force:
            return
        calibrated = {}
        if benchmark in self.benchmarks:
            queries = self._read_queries(method.corpus, benchmark, version)
            calibrated = presence.calibrate(self.store, method, queries)
        missing = {
            truth.split: truth.num_videos - truth.only(method.corpus.num_seconds).num_videos
            for truth in (self._truths(benchmark, version) if calibrated else ())
        }
        rows: list[dict[str, Any]] = []
        for pathway, (_, judged) in calibrated.items():
            variant = {"model_id": method.model_id, "method": method.family, "pathway": pathway.value}
            self.store.table("presences").commit(
                judged, variant, "all", fingerprint=fingerprint, run_id=self.run_id, force=self.force
            )
            rows += presence.measured(judged, articles, method, pathway, missing)
        weights = {presence.CALIBRATED[pathway]: fitted for pathway, (fitted, _) in calibrated.items()}
        tan = model_ids(settings, method.corpus).tan
        write_model(self.store, self.run_id, method.model_id, tan, settings, weights)
        if rows:
            numbers = pa.Table.from_pylist(rows, schema=table.schema.files)
            table.commit(numbers, partition, name, fingerprint=fingerprint, run_id=self.run_id, force=self.force)

    def _version(self, benchmark: Benchmark) -> str:
        """Return a version that changes with the benchmark's queries and annotations."""
        annotations = self.store.table("annotations").snapshot().where(benchmark=benchmark.name)
        steps = self.store.table("steps").snapshot().where(source=benchmark.name)
        whole = {name: self.store.table(name).snapshot() for name in ("videos", "articles")}
        inputs = {"annotations": annotations, "steps": steps, **whole}
        asked = {protocol.name: protocol.version for protocol in benchmark.protocols}
        return fingerprint_of(
            asked, {name: snapshot.content_version for name, snapshot in inputs.items()}, CODE_VERSION
        )

    def _fingerprint(self, method: Method, version: str) -> str:
        """Return a fingerprint that changes with the benchmark and with the method."""
        features = self.store.table("features").snapshot().where(backbone=method.corpus.backbone).content_version
        read = {name: self.store.table(name).snapshot().content_version for name in method.reads}
        what = {"method": method.family, "version": method.version}
        return fingerprint_of(what, {"benchmark": version, "features": features, **read}, CODE_VERSION)

    def _read_truths(self, benchmark: Benchmark, version: str) -> list[Truth]:
        """Return the annotations of each split."""
        splits = benchmark.measured_splits(splits_of(self.store, benchmark))
        return [read_truth(self.store, benchmark, split) for split in splits]

    def _read_queries(self, corpus: Corpus, benchmark: Benchmark, version: str) -> BenchmarkQueries:
        key = corpus.backbone, benchmark.name, version
        if key not in self._queries:
            self._queries[key] = read_queries(self.store, benchmark, corpus)
        return self._queries[key]


def _metrics(scored: Scored, num_missing: int, method: Method, pathway: Pathway) -> list[dict[str, Any]]:
    return [
        {
            "protocol": scored.protocol.name,
            "protocol_version": scored.protocol.version,
            "split": scored.split,
            "method": method.family,
            "pathway": pathway.value,
            "metric": metric,
            **number._asdict(),
            "num_videos": scored.num_videos,
            "num_missing": num_missing,
            "seed": method.seed,
        }
        for metric, number in scored.metrics.items()
        if math.isfinite(number.value)  # NaN if there was nothing to measure
    ]
