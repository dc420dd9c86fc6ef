"""The stage `evaluation`: every method on every benchmark that the store has, in `predictions` and `metrics`.

A method is measured once: again only if what it would answer, or what it is held against, has changed.
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
from tasks.evaluation.methods import Method, oracle, rules, trained
from tasks.evaluation.predicting import PROTOCOLS_OF, as_in_files, predict
from tasks.evaluation.protocols import ALL, TEST
from tasks.evaluation.questions import BENCHMARKS, NARRATIONS, Question, question_of
from tasks.evaluation.scoring import Predictions, Scored, score
from tasks.evaluation.text_methods import sentences_by_asr_times, zero_shot
from tasks.evaluation.truth import Truth, read_truth, splits_of
from tasks.pipeline.device import checked_device
from tasks.pipeline.job import Job
from tasks.pipeline.parts import Part, RunParts, run_here
from tasks.pipeline.progress import say
from tasks.pipeline.stage import Dependencies, Stage, versions
from tasks.training.corpus import Corpus, corpus_of
from tasks.training.curriculum import Curriculum, NothingToTrain
from tasks.training.model_files import is_calibrated, write_model
from tasks.training.model_ids import model_ids
from tasks.training.models import published_teacher
from tasks.training.processes import alone
from tasks.training.settings import TrainingSettings
from tasks.training.stage import dependencies as training_dependencies

CODE_VERSION = "2"
LOG = logging.getLogger("vina.evaluation")


def evaluate(job: Job, run_parts: RunParts = run_here) -> str:
    """Measure what is trained, and what needs no training; returns what was done."""
    store = Store(job.store)
    benchmarks = Evaluation(store, job.run_id).benchmarks
    if not benchmarks:
        return "no benchmark's annotations are imported: nothing to evaluate on"
    before = {shard.path for shard in store.table("metrics").snapshot().shards}
    run_parts(job, measure, [{}])
    measured = len({shard.path for shard in store.table("metrics").snapshot().shards} - before)
    if not measured:
        return "nothing has changed since all was measured"
    return f"{measured} measurements on {', '.join(benchmarks)}: `vina results` shows them"


def measure(job: Job, part: Part) -> None:
    """All methods on all benchmarks; what was measured before is not measured again."""
    evaluation = Evaluation(Store(job.store), job.run_id, job.force)
    methods = list(chain(untrained_methods(job), trained_methods(job)))
    for number, method in enumerate(methods):
        say(LOG, number / len(methods), f"measuring {method.name}")
        evaluation.measure(method)
        if method.name == "vina":
            evaluation.calibrate(method, job.training)


def dependencies(job: Job) -> Dependencies:
    """What the metrics are made of."""
    store, dependencies = job.open_store(), training_dependencies(job)
    trained = store.table("completions").snapshot()
    for stage in ("burn-in", "rounds"):
        done = trained.find({"stage": stage}, dependencies.scope)
        dependencies.inputs[stage] = done.path if done else ""
    backbones = {shard.constants["backbone"] for shard in store.table("features").snapshot().shards}
    texts = store.table("sentence_embeddings").snapshot().shards
    own = [shard.path for shard in texts if str(shard.constants["encoder"]).partition("@")[0] in backbones]
    dependencies.inputs["texts in the space of features"] = fingerprint_of({"shards": own}, {}, "")
    settings = dependencies.settings | {"encoder": job.pairing.encoder}
    return replace(
        dependencies, settings=settings, inputs=dependencies.inputs | versions(store, "articles", "features")
    )


def reset(job: Job) -> None:
    """Nothing is taken out: what is measured anew replaces what was measured."""


EVALUATION = Stage("evaluation", evaluate, dependencies, reset, CODE_VERSION)


def untrained_methods(job: Job) -> Iterator[Method]:
    """What needs no training here, as far as the store has what it takes; a published TAN, if the settings name one."""
    store = Store(job.store)
    corpus = corpus_of(store, job.training.backbone, job.training.selection)
    if corpus.num_seconds:
        yield from rules(corpus)
        yield oracle(store, corpus)
        if sentences := sentences_by_asr_times(store, job.run_id, corpus, job.pairing):
            yield sentences
    yield from zero_shot(store)
    if job.training.tan != "train":
        published = published_teacher(Path(job.training.tan), checked_device(job.training.device))
        yield replace(trained(published.name, "tan", published, corpus, job.training), seed=None)


def trained_methods(job: Job, corpus: Corpus | None = None) -> Iterator[Method]:
    """The models of the job's settings that are trained to their end: both variants of TAN*, and the student."""
    positions = job.training.tan_text_positions
    for settings in (job.training, replace(job.training, tan_text_positions=not positions)):
        try:
            work = Curriculum(replace(job, training=settings), alone(settings.device), corpus)
        except NothingToTrain:
            return
        corpus = work.corpus
        for model in work.trained():
            if model.method != "vina" or settings is job.training:
                yield trained(model.model_id, model.method, model.teacher, work.corpus, settings)


class Evaluation:
    """The benchmarks of a store: what they ask, and what they know."""

    def __init__(self, store: Store, run_id: str, force: bool = False) -> None:
        self.store, self.run_id, self.force = store, run_id, force
        self.benchmarks = [benchmark for benchmark in BENCHMARKS if splits_of(store, benchmark)]
        self._truths = cache(self._read_truths)
        self._questions: dict[tuple[str, str, str], Question] = {}

    def measure(self, method: Method, only: Collection[str] = BENCHMARKS) -> int:
        """A method on all of them, or only on some; returns on how many it was not measured before, and is now."""
        able = [name for name in self.benchmarks if name in only and (name != NARRATIONS or method.knows_narrations)]
        return sum(self._measure(method, benchmark) for benchmark in able)

    def _measure(self, method: Method, benchmark: str) -> bool:
        table, partition = self.store.table("metrics"), {"model_id": method.model_id, "benchmark": benchmark}
        version = self._version(benchmark)
        fingerprint = self._fingerprint(method, version)
        if table.has(partition, method.name, fingerprint) and not self.force:
            return False
        question = self._question(method.corpus, benchmark, version)
        if not question.pairs:
            return False
        LOG.info("%s: %d videos of %s", method.name, len({video for video, _ in question.pairs}), benchmark)
        rows: list[dict[str, Any]] = []
        for (protocol, way), found in predict(method, question).items():
            place = {"model_id": method.model_id, "protocol": protocol.name, "method": method.name + way}
            self.store.table("predictions").commit(
                found, place, "all", fingerprint=fingerprint, run_id=self.run_id, force=self.force
            )
            for truth in self._truths(benchmark, version):
                known = truth.only(method.corpus.num_seconds)
                if known.num_videos:
                    scored = score(protocol, known, Predictions.of(as_in_files(found, protocol), protocol, known))
                    rows += _metrics(scored, truth.num_videos - known.num_videos, method, way)
        if rows:
            found = pa.Table.from_pylist(rows, schema=table.schema.files)
            table.commit(found, partition, method.name, fingerprint=fingerprint, run_id=self.run_id, force=self.force)
        return bool(rows)

    def calibrate(self, method: Method, settings: TrainingSettings) -> None:
        """A student's answer to whether a step is shown at all; then the model's file is complete."""
        table, partition = self.store.table("metrics"), {"model_id": method.model_id, "benchmark": presence.BENCHMARK}
        version = self._version(presence.BENCHMARK)
        fingerprint = fingerprint_of(
            {"presence": presence.VERSION}, {"method": self._fingerprint(method, version)}, CODE_VERSION
        )
        name = f"{method.name}, presence"
        if table.has(partition, name, fingerprint) and is_calibrated(self.store, method.model_id) and not self.force:
            return
        found = {}
        if presence.BENCHMARK in self.benchmarks:
            found = presence.calibrate(self.store, method, self._question(method.corpus, presence.BENCHMARK, version))
        missing = {
            truth.split: truth.num_videos - truth.only(method.corpus.num_seconds).num_videos
            for truth in (self._truths(presence.BENCHMARK, version) if found else ())
        }
        rows: list[dict[str, Any]] = []
        for way, (_, judged) in found.items():
            place = {"model_id": method.model_id, "method": method.name + way}
            told = {"fingerprint": fingerprint, "run_id": self.run_id, "force": self.force}
            self.store.table("presences").commit(judged, place, "all", **told)
            rows += presence.measured(judged, method.name + way, method.seed, missing)
        weights = {presence.WAYS[way]: own for way, (own, _) in found.items()}
        tan = model_ids(settings, method.corpus).tan
        write_model(self.store, self.run_id, method.model_id, tan, settings, weights)
        if rows:
            numbers = pa.Table.from_pylist(rows, schema=table.schema.files)
            table.commit(numbers, partition, name, fingerprint=fingerprint, run_id=self.run_id, force=self.force)

    def _version(self, benchmark: str) -> str:
        """Changes with what the benchmark asks and knows."""
        annotations = self.store.table("annotations").snapshot().where(benchmark=benchmark)
        steps = self.store.table("steps").snapshot().where(source=benchmark)
        whole = {name: self.store.table(name).snapshot() for name in ("videos", "articles")}
        inputs = {"annotations": annotations, "steps": steps, **whole}
        asked = {protocol.name: protocol.version for protocol in PROTOCOLS_OF[benchmark]}
        return fingerprint_of(asked, {name: found.content_version for name, found in inputs.items()}, CODE_VERSION)

    def _fingerprint(self, method: Method, version: str) -> str:
        """Changes with what the benchmark asks, and with what the method would answer."""
        seen = self.store.table("features").snapshot().where(backbone=method.corpus.backbone).content_version
        read = {name: self.store.table(name).snapshot().content_version for name in method.reads}
        what = {"method": method.name, "version": method.version}
        return fingerprint_of(what, {"benchmark": version, "features": seen, **read}, CODE_VERSION)

    def _read_truths(self, benchmark: str, version: str) -> list[Truth]:
        """The annotations of each split."""
        splits = [TEST, ALL] if benchmark == "crosstask" else splits_of(self.store, benchmark)
        return [read_truth(self.store, benchmark, split) for split in splits]

    def _question(self, corpus: Corpus, benchmark: str, version: str) -> Question:
        key = corpus.backbone, benchmark, version
        if key not in self._questions:
            self._questions[key] = question_of(self.store, benchmark, corpus)
        return self._questions[key]


def _metrics(scored: Scored, missing: int, method: Method, way: str) -> list[dict[str, Any]]:
    return [
        {
            "protocol": scored.protocol.name,
            "protocol_version": scored.protocol.version,
            "split": scored.split,
            "method": method.name + way,
            "metric": metric,
            **found._asdict(),
            "num_videos": scored.num_videos,
            "num_missing": missing,
            "seed": method.seed,
        }
        for metric, found in scored.metrics.items()
        if math.isfinite(found.value)  # there was something to measure
    ]
