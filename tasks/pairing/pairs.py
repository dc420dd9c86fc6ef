"""Which article each video is trained with, in three selections, and the videos that none fits."""

import pyarrow as pa
import pyarrow.compute as pc

from storage import Store
from storage.catalogue import Catalogue, quoted
from storage.fingerprint import content_hash
from tasks.pairing.candidates import TITLE_KEY, Candidates
from tasks.text_embedding import MEMORY_LIMIT

SELECTIONS = ("metadata", "top1", "random_top5")
TOP = 5


def write_pairs(store: Store, run_id: str, mark: str, model: str, candidates: Candidates) -> dict[str, int]:
    """Each selection is one shard, written last: it is there when all that it stands on is. Returns their sizes.

    The rows of `random_top5` are what is drawn from, each time a video is seen.
    """
    with Catalogue(store, MEMORY_LIMIT) as catalogue:
        voted = catalogue.query(_voted(model))
        named = catalogue.query(_named(candidates.source))
        silent = catalogue.query("SELECT DISTINCT video_id FROM videos ANTI JOIN narrations USING (video_id)")
    _write_rejects(store, run_id, candidates.source, silent, named.filter(named["article_id"].is_null()))
    metadata = named.filter(named["article_id"].is_valid()).select(["video_id", "article_id"])
    metadata = metadata.append_column("rank", pa.nulls(len(metadata), pa.int32()))
    metadata = metadata.append_column("confidence", pa.nulls(len(metadata), pa.float32()))
    top1 = voted.filter(pc.equal(voted["rank"], 1))
    chosen = dict(zip(SELECTIONS, (metadata, top1, voted), strict=True))
    for selection, rows in chosen.items():
        table = store.table("pairs")
        table.commit(rows, {"selection": selection}, "all", fingerprint=mark, run_id=run_id)
    return {selection: len(rows) for selection, rows in chosen.items()}


def _voted(model: str) -> str:
    return f"""
        SELECT video_id, article_id, rank,
               (votes - lead(votes, 1, 0) OVER (PARTITION BY video_id ORDER BY rank)) / num_narrations AS confidence
        FROM votes WHERE model = {quoted(model)} AND rank <= {TOP} + 1
        QUALIFY rank <= {TOP} ORDER BY video_id, rank"""


def _named(source: str) -> str:
    """Every video whose metadata names a task, and the article of that id, or of the same title; null if there is none.

    Of two data sets that name a task HowTo100M goes first; of equal titles the smallest id.
    """
    return f"""
        WITH offered AS (SELECT article_id, {TITLE_KEY} AS key FROM articles SEMI JOIN steps USING (source, article_id)
                         WHERE source = {quoted(source)}),
             by_title AS (SELECT key, min(article_id) AS article_id FROM offered GROUP BY key),
             tasks AS (SELECT article_id AS task_id, min({TITLE_KEY}) AS key FROM articles GROUP BY ALL),
             named AS (SELECT DISTINCT ON (video_id) video_id, task_id FROM videos WHERE task_id IS NOT NULL
                       ORDER BY video_id, source <> 'howto100m', source, task_id)
        SELECT video_id, task_id, coalesce(offered.article_id, by_title.article_id) AS article_id
        FROM named LEFT JOIN offered ON offered.article_id = task_id
                   LEFT JOIN tasks USING (task_id) LEFT JOIN by_title ON by_title.key = tasks.key
        ORDER BY video_id"""


def _write_rejects(store: Store, run_id: str, source: str, silent: pa.Table, unknown: pa.Table) -> None:
    table, partition = store.table("rejects"), {"stage": "pairing"}
    rows = [
        {"item": video, "reason": "no narrations", "detail": "it cannot vote: import its narrations"}
        for video in sorted(silent["video_id"].to_pylist())
    ]
    rows += [
        {"item": row["video_id"], "reason": "unknown task", "detail": f"{source} has no article for {row['task_id']}"}
        for row in unknown.to_pylist()
    ]
    if rows or table.snapshot().where(**partition).shards:
        found = pa.Table.from_pylist(rows, schema=table.schema.files)
        table.commit(found, partition, "all", fingerprint=content_hash([found]), run_id=run_id)
