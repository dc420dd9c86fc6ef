"""Files for a benchmark's evaluation server: predictions for videos whose annotations only the server has."""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from storage import Store
from storage.catalogue import Catalogue, quoted
from storage.objects import atomic_file
from tasks.evaluation.benchmarks.benchmark import Benchmark, Protocol
from tasks.evaluation.families import VINA, Pathway, label_of
from tasks.evaluation.predicting import as_in_files
from tasks.evaluation.results import student_of

Variant = tuple[str, str]
"""A method and its pathway."""
PREFERRED: tuple[Variant, ...] = ((VINA, Pathway.FUSED.value), (VINA, Pathway.DIRECT.value))


class Exported(NamedTuple):
    """Summary of a written file: model, method, numbers of predictions and of videos."""

    model_id: str
    method: str
    pathway: str
    num_rows: int
    num_videos: int
    num_listed: int


def export_predictions(
    store: Store,
    benchmark: Benchmark,
    run: str,
    split: str,
    path: Path,
    method: str | None = None,
    pathway: str | None = None,
) -> Exported:
    """Write a run's (or a model's) predictions for a split; the file appears whole or not at all."""
    if benchmark.server is None:
        raise ValueError(f"{benchmark.title} has no evaluation server: use `vina score` with its annotations")
    protocol = benchmark.protocol(benchmark.server.protocol)
    model_id = student_of(store, run)
    variants = _variants(store, benchmark, protocol, model_id, run)
    chosen_method, chosen_pathway = _choose(variants, run, method, pathway)
    videos = _listed_videos(store, benchmark, split)
    snapshot = store.table("predictions").snapshot().where(model_id=model_id, protocol=protocol.name)
    rows = snapshot.where(method=chosen_method, pathway=chosen_pathway).read()
    rows = rows.filter(pc.is_in(rows["video_id"], videos.combine_chunks()))
    if not len(rows):
        raise ValueError(
            f"{model_id} ({label_of(chosen_method, chosen_pathway)}) has no predictions for {split}: its videos need "
            "features, and HowTo100M's metadata (or annotations), which name their activity; then run the stage "
            "`evaluation`"
        )
    _write(as_in_files(rows, protocol), path)
    num_videos = pc.count_distinct(rows["video_id"]).as_py()
    return Exported(model_id, chosen_method, chosen_pathway, len(rows), num_videos, len(videos))


def _listed_videos(store: Store, benchmark: Benchmark, split: str) -> pa.ChunkedArray:
    """Return the videos of a split, annotated or not."""
    with Catalogue(store) as catalogue:
        listed = catalogue.query(f"""SELECT DISTINCT video_id, split FROM videos
            WHERE source = {quoted(benchmark.name)} AND split IS NOT NULL""")
    splits = sorted(set(listed["split"].to_pylist()))
    if split not in splits:
        names = ", ".join(splits) or f"none: `vina import {benchmark.source} PATH` with the lists of its splits"
        raise ValueError(f"{benchmark.title} has no split {split!r} in the store; there are {names}")
    return listed.filter(pc.equal(listed["split"], split))["video_id"]


def _variants(store: Store, benchmark: Benchmark, protocol: Protocol, model_id: str, run: str) -> list[Variant]:
    """Return the methods and pathways that a model has predictions for."""
    shards = store.table("predictions").snapshot().where(protocol=protocol.name).shards
    constants = sorted((str(s.constants["model_id"]), s.constants["method"], s.constants["pathway"]) for s in shards)
    variants = [(str(method), str(pathway)) for each_id, method, pathway in constants if each_id == model_id]
    if not variants:
        listed = ", ".join(dict.fromkeys(each_id for each_id, _, _ in constants)) or "none: run the stage `evaluation`"
        raise ValueError(f"{run} has no predictions for {benchmark.title}; models that have some: {listed}")
    return variants


def _choose(variants: list[Variant], run: str, method: str | None, pathway: str | None) -> Variant:
    """Return the preferred one, or else the first, of the variants with this method and pathway."""
    fitting = [variant for variant in variants if method in (None, variant[0]) and pathway in (None, variant[1])]
    if not fitting:
        asked = " ".join(
            f"{name} {value!r}" for name, value in (("method", method), ("pathway", pathway)) if value is not None
        )
        listed = " or ".join(f"--method {each_method!r} --pathway {each!r}" for each_method, each in variants)
        raise ValueError(f"{run} has no {asked}: choose {listed}")
    return next((variant for variant in PREFERRED if variant in fitting), fitting[0])


def _write(rows: pa.Table, path: Path) -> None:
    with atomic_file(path) as partial:
        pacsv.write_csv(rows, partial, pacsv.WriteOptions(quoting_style="none", quoting_header="none"))
