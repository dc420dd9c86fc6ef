"""Voting against the machine's matrix product and against `semantic_search`, its memory, embedding against the model.

The last test says what HowTo100M would cost: 3e7 narrations and 14,541 titles of 768 numbers.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the command does, before torch is loaded

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import semantic_search

from storage import Store
from storage.vectors import Floats, decode, encode
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.script import World
from tasks.pairing import votes
from tasks.pairing.candidates import candidates_of
from tasks.pairing.encoders import load_encoder, packaged_encoder
from tasks.pairing.settings import PairingSettings
from tasks.pipeline.text_embedding import embed_texts
from tests.benchmarks.measure import ratio_of_times, report
from vina_model.voting import TitleIndex

NARRATIONS, TITLES, WIDTH, PER_SHARD = 200_000, 14_541, 768, 8_192
ALL = 30_000_000
ENCODER = "random@0"


def unit_vectors(count: int, width: int, seed: int) -> npt.NDArray[np.float16]:
    vectors = np.random.default_rng(seed).standard_normal((count, width), np.float32)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)


def shards_of(count: int, width: int) -> Iterator[npt.NDArray[np.float16]]:
    """Random vectors in the stage's shards: one block, its columns turned for each shard."""
    block = unit_vectors(PER_SHARD, width, 1)
    for number, begin in enumerate(range(0, count, PER_SHARD)):
        yield np.roll(block, number, axis=1)[: count - begin]


def write_corpus(store: Store, narrations: int, titles: int, width: int = WIDTH) -> None:
    """Articles, and the embeddings of their titles and of narrations, as the stage would have left them."""
    ids = [f"wikihow/{number:06d}" for number in range(titles)]
    names = [f"title {number}" for number in range(titles)]
    said = {"fingerprint": "f", "run_id": "bench"}
    articles = {"article_id": ids, "title": names, "variation": pa.nulls(titles, pa.string())}
    store.table("articles").commit(
        pa.table(articles | {"category": pa.nulls(titles, pa.string())}), {"source": "wikihow"}, "0", **said
    )
    steps = {"article_id": ids, "row": [0] * titles, "step_id": ids, "headline": names}
    store.table("steps").commit(
        pa.table(steps | {"paragraph": pa.nulls(titles, pa.string())}), {"source": "wikihow"}, "0", **said
    )
    _write_embeddings(store, "titles", names, unit_vectors(titles, width, 0))
    for number, vectors in enumerate(shards_of(narrations, width)):
        begin = number * PER_SHARD
        texts = [f"narration {place}" for place in range(begin, begin + len(vectors))]
        _write_embeddings(store, f"{number:06d}", texts, vectors)


def _write_embeddings(store: Store, shard: str, texts: list[str], vectors: npt.NDArray[np.float16]) -> None:
    rows = pa.table({"text_sha256": texts, "text": texts, "vector": encode(vectors, "float16")})
    store.table("sentence_embeddings").commit(rows, {"encoder": ENCODER}, shard, fingerprint=shard, run_id="bench")


def write_narrations(store: Store, count: int, per_shard: int = 500_000, per_video: int = 80) -> None:
    """Every narration is said once."""
    for begin in range(0, count, per_shard):
        places = np.arange(begin, min(count, begin + per_shard))
        texts = pa.array([f"narration {place}" for place in places])
        videos = pa.array([f"video {place // per_video}" for place in places])
        seconds = pa.array((places % per_video).astype(np.float32))
        rows = pa.table(
            {"video_id": videos, "row": places % per_video, "text": texts, "start_s": seconds, "end_s": seconds}
        )
        store.table("narrations").commit(
            rows, {"source": "howto100m"}, f"{begin:010d}", fingerprint=str(begin), run_id="bench"
        )


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


class Peak:
    """Large float32 products, taken in turns with what is measured: both meet the same other load."""

    def __init__(self) -> None:
        self._a, self._b, self._out = torch.rand(4096, 4096), torch.rand(4096, 2048), torch.empty(4096, 2048)
        self.seconds = self.work = 0.0

    def take(self) -> None:
        self.seconds += seconds_of(lambda: torch.mm(self._a, self._b, out=self._out))
        self.work += 2.0 * 4096 * 4096 * 2048

    @property
    def speed(self) -> float:
        return self.work / self.seconds


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("bench") / "store")
    write_corpus(store, NARRATIONS, TITLES)
    return store


def report_share(what: str, seconds: float, peak: Peak) -> None:
    speed = 2 * NARRATIONS * TITLES * WIDTH / seconds
    detail = f"{speed / 1e9:.0f} / {peak.speed / 1e9:.0f} GFLOPS at {NARRATIONS:,} x {TITLES:,} x {WIDTH}"
    report(f"voting, {what}, as a share of the matmul peak", speed / peak.speed, ">= 0.7", detail)


def test_voting_alone_as_a_share_of_the_machines_matrix_product() -> None:
    index, peak, seconds = TitleIndex(unit_vectors(TITLES, WIDTH, 0)), Peak(), 0.0
    for block in shards_of(NARRATIONS, WIDTH):
        peak.take()
        seconds += seconds_of(lambda block=block: index.nearest(block))
    report_share("kernel alone", seconds, peak)


def test_voting_through_the_store_as_a_share_of_the_machines_matrix_product(
    corpus: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    peak, candidates = Peak(), candidates_of(corpus, None)

    def decode_after_a_product(column: pa.ChunkedArray, dtype: str) -> Floats:
        peak.take()
        return decode(column, dtype)

    monkeypatch.setattr(votes, "decode", decode_after_a_product)
    settings = PairingSettings(device="cpu")
    seconds = seconds_of(lambda: votes.vote(corpus, "bench", ENCODER, candidates, settings)) - peak.seconds
    report_share("through the store", seconds, peak)


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_voting_against_semantic_search(kind: str) -> None:
    """Of float32, and of float16 as the store has them."""
    count = 5_000 if kind == "float32" else 1_000
    titles, sentences = unit_vectors(TITLES, WIDTH, 0), unit_vectors(count, WIDTH, 1)
    index = TitleIndex(titles)
    queries, corpus = (torch.from_numpy(vectors.astype(kind)) for vectors in (sentences, titles))
    slow, fast, ratio = ratio_of_times(
        lambda: semantic_search(queries, corpus, top_k=1), lambda: index.nearest(sentences), repeats=5
    )
    detail = f"{slow:.2f} / {fast:.2f} s for {count:,} x {TITLES:,}"
    report(f"voting, semantic_search of {kind} / ours", ratio, ">= 3", detail)
    if kind == "float32":
        found = [hits[0]["corpus_id"] for hits in semantic_search(queries, corpus, top_k=1)]
        assert np.mean(index.nearest(sentences).rows == found) > 0.999


MEMORY = """
import sys, time
from pathlib import Path
from storage import Store
from tasks.pairing.candidates import candidates_of
from tasks.pairing.settings import PairingSettings
from tasks.pairing.votes import vote

store = Store(sys.argv[1])
started = time.perf_counter()
vote(store, "bench", "random@0", candidates_of(store, None), PairingSettings(device="cpu"))
peak_kb = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
print(store.table("text_votes").snapshot().num_rows, peak_kb, time.perf_counter() - started)
"""


def peak_of_vote(store: Store) -> tuple[int, float, float]:
    """Texts that voted, peak memory in MB, seconds."""
    answer = subprocess.run([sys.executable, "-c", MEMORY, store.uri], capture_output=True, text=True, check=True)
    count, peak_kb, seconds = answer.stdout.split()
    return int(count), int(peak_kb) / 1000, float(seconds)


def test_memory(tmp_path: Path) -> None:
    """At 1,024 titles, to be done in minutes; then at all titles, where the scores of a block are largest."""
    peaks = []
    for count in (200_000, 2_000_000):
        store = Store(tmp_path / f"{count}")
        write_corpus(store, count, 1_024)
        voted, peak_mb, seconds = peak_of_vote(store)
        assert voted == count + 1_024
        print(f"\nvote: {count:,} narrations, 1,024 titles: {peak_mb:.0f} MB, {seconds:.0f} s")
        peaks.append(peak_mb)
    report(
        "peak memory of voting, 2,000,000 / 200,000 narrations",
        peaks[1] / peaks[0],
        "<= 1.1",
        f"{peaks[1]:.0f} / {peaks[0]:.0f} MB",
    )
    assert peaks[1] <= 1.1 * peaks[0]


def test_memory_with_all_titles(corpus: Store) -> None:
    table = corpus.table("text_votes")
    table.retire({"encoder": ENCODER})
    _, peak_mb, seconds = peak_of_vote(corpus)
    detail = f"{NARRATIONS:,} narrations, {TITLES:,} titles, {seconds:.0f} s"
    report("peak memory of voting, GB", peak_mb / 1000, "<= 1.5", detail)
    assert peak_mb < 1500


def test_embedding(tmp_path: Path) -> None:
    """Narrations of the demo world, through the store and through the bare model, in every batch size."""
    folder = packaged_encoder()
    assert folder is not None
    texts = sorted({said.text for video in World(Knobs(num_videos=400), 0) for said in video.narrations})
    texts = [texts[place] for place in np.random.default_rng(0).permutation(len(texts))[:4_000]]
    network = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    by_length = sorted(texts, key=len)
    chosen = PairingSettings().batch_size
    times: dict[int, list[float]] = {size: [] for size in (16, 32, 64, 128)}
    for _ in range(3):  # in turns: all meet the same other load
        for size, seconds in times.items():
            seconds.append(
                seconds_of(lambda size=size: network.encode(by_length, batch_size=size, show_progress_bar=False))
            )
    for size, seconds in times.items():
        print(f"\nbare model, {size} at once: {len(texts) / min(seconds):.0f} texts a second", flush=True)
    store, runs = Store(tmp_path / "store"), iter(range(100))
    rows = pa.table({"video_id": texts, "row": [0] * len(texts), "text": texts, "start_s": [0.0] * len(texts)})
    rows = rows.append_column("end_s", rows["start_s"])
    store.table("narrations").commit(rows, {"source": "howto100m"}, "0", fingerprint="f", run_id="bench")
    embed = load_encoder(folder, chosen, "cpu")

    def ours() -> None:
        encoder = f"model@{next(runs)}"
        count = embed_texts(
            store, "bench", encoder, embed, "SELECT text FROM narrations", PairingSettings().texts_per_shard
        )
        assert count == len(texts)

    bare_s, ours_s, ratio = ratio_of_times(
        lambda: network.encode(by_length, batch_size=chosen, normalize_embeddings=True, show_progress_bar=False),
        ours,
        repeats=3,
    )
    detail = f"{len(texts) / ours_s:.0f} / {len(texts) / bare_s:.0f} texts a second, {chosen} at once"
    report("embedding through the store, as a share of the bare model's speed", ratio, ">= 0.95", detail)


def line_through(sizes: tuple[int, int], seconds: list[float]) -> float:
    """Seconds at ALL, on the straight line through two points."""
    slope = (seconds[1] - seconds[0]) / (sizes[1] - sizes[0])
    return seconds[0] + slope * (ALL - sizes[0])


def parabola_through(sizes: tuple[int, int], seconds: list[float]) -> float:
    """Seconds at ALL, on the parabola through the origin and two points: every shard is joined with all votes."""
    slopes = [second / size for size, second in zip(sizes, seconds, strict=True)]
    bend = (slopes[1] - slopes[0]) / (sizes[1] - sizes[0])
    return (slopes[0] + bend * (ALL - sizes[0])) * ALL


def test_what_all_of_howto100m_would_cost(tmp_path: Path) -> None:
    sizes, voting = (25_000, 100_000), []
    for size in sizes:
        store = Store(tmp_path / f"vote-{size}")
        write_corpus(store, size, TITLES)
        candidates = candidates_of(store, None)
        voting.append(
            seconds_of(lambda s=store, c=candidates: votes.vote(s, "bench", ENCODER, c, PairingSettings(device="cpu")))
        )
    print(
        f"\nvote: {voting[0]:.1f} s for {sizes[0]:,} narrations, {voting[1]:.1f} s for {sizes[1]:,}; "
        f"{ALL:,} would take {line_through(sizes, voting) / 3600:.2f} h"
    )
    sizes, ranking = (1_000_000, 3_000_000), []
    for size in sizes:
        store = Store(tmp_path / f"rank-{size}")
        write_corpus(store, size, TITLES, width=1)
        write_narrations(store, size)
        write_votes(store, size)
        ranking.append(seconds_of(lambda s=store: votes.rank(s, "bench", ENCODER, "rules")))
    print(
        f"\nrank: {ranking[0]:.1f} s for {sizes[0]:,} narrations, {ranking[1]:.1f} s for {sizes[1]:,}; "
        f"{ALL:,} would take {parabola_through(sizes, ranking) / 3600:.2f} h"
    )


def write_votes(store: Store, count: int) -> None:
    """What each text voted for, in the shards of the embeddings; texts lie in another order than they are said in."""
    order = np.random.default_rng(0).permutation(count)
    for begin in range(0, count, PER_SHARD):
        places = order[begin : begin + PER_SHARD]
        articles = [f"wikihow/{place * 7 % 97 * (place // 80) % TITLES:06d}" for place in places.tolist()]
        texts = [f"narration {place}" for place in places]
        rows = pa.table({"text": texts, "article_id": articles, "similarity": (places % 89 / 89).astype(np.float32)})
        store.table("text_votes").commit(rows, {"encoder": ENCODER}, f"{begin}", fingerprint="f", run_id="bench")
