"""Baselines of ready-made embeddings: by loops over the same vectors, and in a space where the answer is known."""

import math
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage import Store
from storage.feature_reader import FeatureReader
from tasks.evaluation.benchmarks.htstep import HTSTEP
from tasks.evaluation.families import Pathway
from tasks.evaluation.queries import read_queries
from tasks.evaluation.stage import evaluate
from tasks.evaluation.text_methods import read_embeddings, sentences_by_asr_times, zero_shot
from tasks.importers.sources import Options, forget_source, import_source
from tasks.pairing.settings import PairingSettings
from tasks.pipeline.job import Job
from tasks.training.corpus import Corpus
from tasks.training.settings import TrainingSettings
from tests.tasks.evaluation.conftest import Measured

WIDTH = 24


def test_steps_are_put_where_similar_narrations_are_said(measured: Measured) -> None:
    store = measured.store
    corpus = Corpus(store, measured.job.settings_of(TrainingSettings).backbone, "metadata")
    method = sentences_by_asr_times(store, "run-2", corpus, measured.job.settings_of(PairingSettings))
    assert method is not None and method.model_id.startswith("all-MiniLM-L6-v2@"), (
        "its name says whose numbers they are"
    )
    queries = read_queries(store, HTSTEP, corpus)
    vectors = read_embeddings(
        store, method.model_id, "SELECT headline AS text FROM steps UNION SELECT text FROM narrations"
    )
    checked = 0
    for answer in method.answer(queries):
        for row, (video, article) in enumerate(answer.pairs):
            said = corpus.narrations(video)
            for step, headline in enumerate(queries.corpus.steps[article]):
                likes = [
                    math.exp(float(vectors[headline].astype(float) @ vectors[t].astype(float)) / 0.07)
                    for t in said.texts
                ]
                expected = np.zeros(corpus.num_seconds[video])
                for like, (start, end) in zip(likes, said.spans, strict=True):
                    expected[math.floor(start) : max(math.ceil(end), math.floor(start) + 1)] += like / sum(likes)
                found = answer.scores[Pathway.INDIRECT_BY_ASR][row, step, : len(expected)].numpy()
                np.testing.assert_allclose(found, expected, atol=2e-3)
                checked += 1
    assert checked > 20


def make_space(measured: Measured, folder: Path, scale: float = 1.0) -> tuple[Store, Job]:
    """A store with a network in whose space every shown step's second looks like its headline."""
    shutil.copytree(measured.job.store, folder / "store")
    store = Store(folder / "store")
    queries = read_queries(
        store, HTSTEP, Corpus(store, measured.job.settings_of(TrainingSettings).backbone, "metadata")
    )
    rng = np.random.default_rng(0)
    texts = sorted({text for steps in queries.corpus.steps.values() for text in steps})
    looks = {
        text: vector / np.linalg.norm(vector)
        for text, vector in zip(texts, rng.normal(size=(len(texts), WIDTH)), strict=True)
    }
    rows = store.table("annotations").snapshot().where(benchmark="htstep").read().to_pylist()
    (folder / "space").mkdir()
    for video, _ in queries.pairs:
        vectors = 0.1 * rng.normal(size=(queries.corpus.num_seconds[video], WIDTH))
        for row in rows:
            if row["video_id"] == video:
                vectors[int(row["start_s"]) + 1 : int(row["end_s"])] += looks[row["text"]]
        np.save(folder / "space" / f"{video}.npy", scale * vectors.astype(np.float32))
    pq.write_table(
        pa.table({"text": list(looks), "vector": [v.tolist() for v in looks.values()]}), folder / "space.parquet"
    )
    return store, measured.job.changed(store=store.uri)


@pytest.mark.parametrize("name", ["space", "s3d-milnce-joint"])
def test_a_network_with_texts_is_a_zero_shot_baseline(measured: Measured, tmp_path: Path, name: str) -> None:
    store, job = make_space(measured, tmp_path)
    import_source(store, "run-2", "features", tmp_path / "space", Options(backbone=name))
    import_source(store, "run-2", "texts", tmp_path / "space.parquet", Options(backbone=name))
    evaluate(job)
    rows = store.table("metrics").snapshot().read().to_pylist()
    found = {
        (row["protocol"], row["split"]): row["value"]
        for row in rows
        if row["method"] == f"{name} zero-shot" and row["metric"] in ("R@1", "R@50 IoU 0.1")
    }
    assert found == {
        ("htstep-r1", "test_seen"): 100,
        ("htstep-r1", "val_seen"): 100,
        ("crosstask-articles", "test"): 100,
    }
    assert {row["model_id"] for row in rows if row["method"] == f"{name} zero-shot"} == {
        next(zero_shot(store)).model_id
    }


def test_milnce_compares_by_dot_product_and_others_by_cosine(measured: Measured, tmp_path: Path) -> None:
    store, _ = make_space(measured, tmp_path, scale=3.0)
    answers = {}
    for name in ("space", "s3d-milnce-joint"):
        import_source(store, "run-2", "features", tmp_path / "space", Options(backbone=name))
        import_source(store, "run-2", "texts", tmp_path / "space.parquet", Options(backbone=name))
    for method in zero_shot(store):
        queries = read_queries(store, HTSTEP, method.corpus)
        answers[method.corpus.backbone] = next(iter(method.answer(queries)))
    plain, joint = answers["space"], answers["s3d-milnce-joint"]
    video, _ = plain.pairs[0]
    lengths = np.linalg.norm(FeatureReader(store, "space").read(video).astype(np.float32), axis=1)
    scaled = plain.scores[Pathway.DIRECT][0, :, : len(lengths)].numpy() * lengths
    np.testing.assert_allclose(joint.scores[Pathway.DIRECT][0, :, : len(lengths)].numpy(), scaled, atol=0.02)


def test_texts_are_imported_once_and_forgotten(measured: Measured, tmp_path: Path) -> None:
    store, _ = make_space(measured, tmp_path)
    first = import_source(store, "run-2", "texts", tmp_path / "space.parquet")
    again = import_source(store, "run-3", "texts", tmp_path / "space.parquet")
    count = first.kept["sentence_embeddings"]
    assert count > 10 and (again.kept, again.present["sentence_embeddings"]) == ({}, count)
    with pytest.raises(ValueError, match="name the texts to forget with --backbone"):
        forget_source(store, "texts")
    assert forget_source(store, "texts", "space") == {"sentence_embeddings": count}


def test_texts_of_several_files_are_one_model_and_those_without_a_vector_are_missed(
    measured: Measured, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, job = make_space(measured, tmp_path)
    texts = pq.read_table(tmp_path / "space.parquet")
    (tmp_path / "texts").mkdir()
    pq.write_table(texts.slice(0, 4), tmp_path / "texts/a.parquet")
    pq.write_table(texts.slice(4, 4), tmp_path / "texts/b.parquet")
    import_source(store, "run-2", "features", tmp_path / "space", Options(backbone="space"))
    import_source(store, "run-2", "texts", tmp_path / "texts")  # of the networks `a` and `b`, which have no features
    assert list(zero_shot(store)) == []
    import_source(store, "run-2", "texts", tmp_path / "texts", Options(backbone="space"))
    (method,) = zero_shot(store)
    evaluate(job)
    assert "texts of htstep have no embedding: they count as missed" in caplog.text
    rows = store.table("predictions").snapshot().where(protocol="htstep-r1", method=method.family).read().to_pylist()
    steps = {
        int(row["step_id"]): row["headline"]
        for row in store.table("steps").snapshot().where(source="htstep").read().to_pylist()
    }
    assert {steps[row["label"]] for row in rows} <= set(texts["text"].to_pylist()[:8]) and rows


def test_networks_and_texts_of_other_widths_are_not_compared(
    measured: Measured, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, _ = make_space(measured, tmp_path)
    import_source(store, "run-2", "features", tmp_path / "space", Options(backbone="space"))
    pq.write_table(pa.table({"text": ["a"], "vector": [[1.0, 2.0]]}), tmp_path / "narrow.parquet")
    import_source(store, "run-2", "texts", tmp_path / "narrow.parquet", Options(backbone="space"))
    assert list(zero_shot(store)) == []
    assert f"features have width {WIDTH} and texts 2: not compared" in caplog.text


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"sentence": ["a"], "vector": [[1.0]]}, "wrong columns"),
        ({"text": ["a"], "vector": [1.0]}, "wrong columns"),
        ({"text": ["a", "b"], "vector": [[1.0], [1.0, 2.0]]}, "wrong width"),
        ({"text": ["a"], "vector": [[math.nan]]}, "not finite"),
    ],
)
def test_odd_texts_are_rejected(tmp_path: Path, columns: dict[str, list[object]], reason: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "odd.parquet")
    summary = import_source(Store(tmp_path / "store"), "run-1", "texts", tmp_path / "odd.parquet")
    assert dict(summary.rejected) == {reason: 1} and summary.damaged
