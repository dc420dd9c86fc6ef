"""Small corpora for the stage `pairing`, and a sentence model that takes no time: every text has a fixed vector."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage import Store
from storage.catalogue import Catalogue
from storage.fingerprint import content_hash
from tasks.pairing import lookup, stage
from tasks.pairing.settings import PairingSettings
from tasks.pipeline.job import Job

Rows = list[dict[str, Any]]
Ranking = list[tuple[int, str, int, float]]
DIRECTIONS = np.array(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.8, 0], [0.8, 0.6, 0], [0.6, 0, 0.8], [-1, 0, 0]], np.float16
)
"""Few, so that texts are equally similar to several titles."""


def vector_of(text: str) -> npt.NDArray[np.float16]:
    return DIRECTIONS[hashlib.sha256(text.encode()).digest()[0] % len(DIRECTIONS)]


class FakeEncoder:
    """In place of a sentence model: notes what it embeds, and breaks after `patience` texts if that is set."""

    def __init__(self, patience: int | None = None) -> None:
        self.texts: list[str] = []
        self.patience = patience

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float16]:
        if self.patience is not None and len(self.texts) + len(texts) > self.patience:
            raise RuntimeError("the model broke")
        self.texts += texts
        return np.stack([vector_of(text) for text in texts])

    def install(self, patcher: Any, name: str = "fake@1") -> "FakeEncoder":
        """`patcher` is pytest's monkeypatch, or what sets attributes as it does."""
        stage.load_once.cache_clear()
        patcher.setattr(stage, "foresee_encoder", lambda asked: name)
        for module in (stage, lookup):
            patcher.setattr(module, "find_encoder", lambda asked: Path("nowhere"))
            patcher.setattr(module, "name_encoder", lambda asked, folder: name)
            patcher.setattr(module, "load_encoder", lambda *settings: self.embed)
        return self


def add_rows(store: Store, table: str, source: str, rows: Rows, shard: str = "0") -> None:
    """A shard of an importer's; columns that are not given are empty."""
    schema = store.table(table).schema.files
    found = pa.Table.from_pylist(rows, schema=schema)
    store.table(table).commit(found, {"source": source}, shard, fingerprint=content_hash([found]), run_id="import")


def add_articles(store: Store, source: str, titles: Mapping[str, str], with_steps: bool = True) -> None:
    """Articles by id, a step each."""
    add_rows(store, "articles", source, [{"article_id": name, "title": title} for name, title in titles.items()])
    steps = [{"article_id": name, "row": 0, "step_id": name, "headline": "Stir"} for name in titles]
    if with_steps:
        add_rows(store, "steps", source, steps)


def add_narrations(store: Store, source: str, narrations: Mapping[str, Sequence[str]], shard: str = "0") -> None:
    """Add the narrations of each video."""
    rows = [
        {"video_id": video, "row": row, "text": text, "start_s": float(row), "end_s": row + 1.0}
        for video, texts in narrations.items()
        for row, text in enumerate(texts)
    ]
    add_rows(store, "narrations", source, rows, shard)


def add_videos(store: Store, source: str, tasks: Mapping[str, str | None]) -> None:
    """Videos and the tasks that their metadata names."""
    add_rows(store, "videos", source, [{"video_id": video, "article_id": task} for video, task in tasks.items()])


def make_pairs(store: Store, run_id: str = "run-1", **settings: Any) -> str:
    return stage.make_pairs(Job.of(store.uri, run_id, PairingSettings(**{"device": "cpu"} | settings)))


def rows_of(store: Store, table: str, *columns: str, **partition: str) -> list[tuple[Any, ...]]:
    """Rows in their order of columns, sorted."""
    snapshot = store.table(table).snapshot().where(**partition)
    rows = snapshot.read(columns).to_pylist() if snapshot.shards else []
    return sorted(tuple(row.values()) for row in rows)


def tables_of(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """All that the stage leaves, without the names of shards and runs."""
    wanted = {
        "sentence_embeddings": ("encoder", "text_sha256", "text", "vector"),
        "text_votes": ("encoder", "text", "article_id", "similarity"),
        "votes": ("encoder", "video_id", "rank", "article_id", "votes", "similarity_sum", "num_narrations"),
        "pairs": ("selection", "video_id", "rank", "article_id", "encoder", "confidence", "similarity_margin"),
        "rejects": ("stage", "item", "reason", "detail"),
    }
    return {table: sorted(rows_of(store, table, *columns), key=repr) for table, columns in wanted.items()}


def versions_of(store: Store) -> dict[str, int]:
    return {table.name: table.snapshot().version for table in store.tables()}


def ask(store: Store, query: str) -> list[dict[str, Any]]:
    with Catalogue(store) as catalogue:
        return list(catalogue.query(query).to_pylist())


def brute_force(
    narrations: Sequence[str], titles: Mapping[str, str], handicaps: Mapping[str, float] | None = None
) -> Ranking:
    """The vote as SPEC says it: rank, article, votes, summed similarity."""
    ballots = defaultdict(list)
    for text in narrations:
        exact = {name: float(vector_of(text).astype(float) @ vector_of(titles[name])) for name in sorted(titles)}
        winner = max(exact, key=lambda name: exact[name] - (handicaps[name] if handicaps else 0))
        ballots[winner].append(float(np.float32(exact[winner])))
    order = sorted(ballots, key=lambda name: (-len(ballots[name]), -sum(ballots[name]), name))
    return [(place, name, len(ballots[name]), sum(ballots[name])) for place, name in enumerate(order, 1)]


def random_corpus(store: Store, seed: int) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Titles and what each video says in the end: two sources, some shards, few texts, so that much is tied."""
    rng = np.random.default_rng(seed)
    titles = {f"wikihow/{name}": f"title {rng.integers(9)}" for name in rng.permutation(30)[: rng.integers(1, 9)]}
    add_articles(store, "wikihow", titles)
    add_articles(store, "youwikihow", {"youwikihow/1": "title of another source"})
    chosen: dict[str, list[str]] = {}
    for source in ("howto100m", "videos"):
        for shard in range(int(rng.integers(1, 4))):
            names = [f"{source if rng.random() < 0.6 else 'shared'}-{shard}-{number}" for number in range(4)]
            narrations = {name: [f"text {rng.integers(25)}" for _ in range(rng.integers(1, 9))] for name in names}
            add_narrations(store, source, narrations, str(shard))
            chosen = narrations | chosen  # those of the first source stay
    return titles, chosen
