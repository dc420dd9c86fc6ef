"""Embed every distinct text once, into `sentence_embeddings`; a rerun embeds only new texts.

Texts are sorted by their hashes, so a rerun continues an interrupted run with the same shards, and any part of them is
a uniform sample.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage import Store, fingerprint_of
from storage.catalogue import Catalogue, quoted
from storage.fingerprint import shard_name
from storage.vectors import encode
from tasks.pipeline.progress import say

CODE_VERSION = "1"
MEMORY_LIMIT = "800MB"
TEXTS_AT_ONCE = 1024
UPDATE_EVERY_S = 5.0
LOG = logging.getLogger("vina.pairing")
Embed = Callable[[Sequence[str]], npt.NDArray[np.float16]]


def plan_ranges(store: Store, encoder: str, texts_sql: str, texts_per_shard: int, most: int) -> list[tuple[str, str]]:
    """Divide new texts into at most `most` ranges of their hashes, both ends included, of whole shards each."""
    new = _new(encoder, texts_sql)
    with Catalogue(store, MEMORY_LIMIT) as catalogue:
        total = int(catalogue.query(f"SELECT count(*) AS n FROM ({new})")["n"][0].as_py())
        size = texts_per_shard * (-(-total // (texts_per_shard * most)) or 1)
        rows = catalogue.query(f"""
            SELECT min(text_sha256) AS low, max(text_sha256) AS high
            FROM (SELECT text_sha256, (row_number() OVER (ORDER BY text_sha256) - 1) // {size} AS part FROM ({new}))
            GROUP BY part ORDER BY low""")
    return list(zip(rows["low"].to_pylist(), rows["high"].to_pylist(), strict=True))


def _new(encoder: str, texts_sql: str, between: tuple[str, str] | None = None) -> str:
    """Return SQL for the texts of a query that have no embedding."""
    within = f"WHERE text_sha256 BETWEEN {quoted(between[0])} AND {quoted(between[1])}" if between else ""
    return f"""SELECT DISTINCT text, text_sha256 FROM (SELECT text, sha256(text) AS text_sha256 FROM ({texts_sql}))
        ANTI JOIN (SELECT text FROM sentence_embeddings WHERE encoder = {quoted(encoder)}) USING (text) {within}"""


def embed_texts(
    store: Store,
    run_id: str,
    encoder: str,
    embed: Embed,
    texts_sql: str,
    texts_per_shard: int,
    between: tuple[str, str] | None = None,
) -> int:
    """Embed the texts that a query (one column, `text`) selects and that have no embedding; return their number.

    With `between`, only texts whose hashes are in this range.
    """
    new = _new(encoder, texts_sql, between)
    with Catalogue(store, MEMORY_LIMIT) as catalogue:
        total = catalogue.query(f"SELECT count(*) AS n FROM ({new})")["n"][0].as_py()
        progress = _EmbeddingProgress(total)
        ordered = catalogue.stream(f"{new} ORDER BY text_sha256", texts_per_shard) if total else ()
        width = store.table("sentence_embeddings").snapshot().where(encoder=encoder).vector_width()
        for texts in _cut(ordered, texts_per_shard):
            vectors = _embed_by_length(texts["text"].to_pylist(), embed, progress)
            if width not in (None, vectors.shape[1]):
                raise ValueError(f"{encoder} gives {vectors.shape[1]} numbers per text, but the store has {width}")
            _write_shard(store, run_id, encoder, texts, vectors)
    return int(total)


def _embed_by_length(texts: Sequence[str], embed: Embed, progress: "_EmbeddingProgress") -> npt.NDArray[np.float16]:
    """Embed texts; texts of similar length share a batch, to reduce padding."""
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    parts = []
    for begin in range(0, len(order), TEXTS_AT_ONCE):
        chosen = order[begin : begin + TEXTS_AT_ONCE]
        parts.append(embed([texts[row] for row in chosen]))
        progress.add(len(chosen))
    return np.concatenate(parts)[np.argsort(order)]


def _cut(batches: Iterator[pa.RecordBatch] | pa.RecordBatchReader | tuple[()], size: int) -> Iterator[pa.Table]:
    """Yield the same rows in tables of `size`."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += len(batch)
        while count >= size:
            rows = pa.Table.from_batches(held)
            yield rows.slice(0, size)
            held, count = rows.slice(size).to_batches(), count - size
    if count:
        yield pa.Table.from_batches(held)


def _write_shard(store: Store, run_id: str, encoder: str, texts: pa.Table, vectors: npt.NDArray[np.float16]) -> None:
    if not np.isfinite(vectors).all():
        text = texts["text"][int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])].as_py()
        raise ValueError(
            f"{encoder} gives numbers that are not finite for the text {text[:100]!r}: use another encoder"
        )
    hashes = texts["text_sha256"].combine_chunks()
    name = shard_name(hashes.to_pylist())
    rows = pa.table({"text_sha256": hashes, "text": texts["text"], "vector": encode(vectors, "float16")})
    fingerprint = fingerprint_of({"encoder": encoder, "texts": name}, {}, CODE_VERSION)
    store.table("sentence_embeddings").commit(rows, {"encoder": encoder}, name, fingerprint=fingerprint, run_id=run_id)


class _EmbeddingProgress:
    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._begin = self._reported_at = time.monotonic()

    def add(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if now - self._reported_at < UPDATE_EVERY_S:
            return
        self._reported_at, rate = now, self._done / (now - self._begin)
        left = int((self._total - self._done) / rate)
        counts = f"{self._done:,} of {self._total:,} texts, {rate:,.0f} per second"
        say(LOG, self._done / max(self._total, 1), f"embedded {counts}, {left // 60} min {left % 60} s left")
