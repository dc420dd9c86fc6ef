"""Write the pairs of every selection, and reject videos without an article."""

import pyarrow as pa

from storage import Store
from storage.catalogue import Catalogue, quoted
from storage.fingerprint import content_hash
from storage.views import TITLE_KEY
from tasks.pairing.candidates import OFFERED, CandidateArticles
from tasks.pairing.selections import SELECTIONS
from tasks.pipeline.text_embedding import MEMORY_LIMIT

TOP = 5


def write_pairs(
    store: Store, run_id: str, fingerprint: str, encoder: str | None, candidates: CandidateArticles
) -> dict[str, int]:
    """Write every selection as one shard, after everything that it depends on; return their sizes.

    Without an encoder there are no votes.
    """
    with Catalogue(store, MEMORY_LIMIT) as catalogue:
        voted = catalogue.query(_voted(encoder or ""))
        named = catalogue.query(_named(candidates.source))
        silent = _silent(catalogue)
    _write_rejects(store, run_id, candidates.source, silent, named.filter(named["article_id"].is_null()))
    metadata = named.filter(named["article_id"].is_valid()).select(["video_id", "article_id"])
    metadata = pa.concat_tables([voted.slice(0, 0), metadata], promote_options="default")  # the other columns are null
    pairs = {selection: select(metadata, voted) for selection, select in SELECTIONS.items()}
    for selection, rows in pairs.items():
        store.table("pairs").commit(rows, {"selection": selection}, "all", fingerprint=fingerprint, run_id=run_id)
    return {selection: len(rows) for selection, rows in pairs.items()}


def clear_votes(store: Store) -> None:
    """Retire all votes, because there are no narrations."""
    votes = store.table("votes")
    for encoder in {str(shard.constants["encoder"]) for shard in votes.snapshot().shards}:
        votes.retire({"encoder": encoder})


def clear_pairs(store: Store, run_id: str) -> None:
    """Retire all votes and pairs, because there are no articles."""
    clear_votes(store)
    for selection in {str(shard.constants["selection"]) for shard in store.table("pairs").snapshot().shards}:
        store.table("pairs").retire({"selection": selection})
    with Catalogue(store, MEMORY_LIMIT) as catalogue:
        silent = _silent(catalogue)
    _write_rejects(store, run_id, "", silent, pa.table({"video_id": [], "named_id": []}))


def _silent(catalogue: Catalogue) -> pa.Table:
    return catalogue.query("SELECT DISTINCT video_id FROM videos ANTI JOIN narrations USING (video_id)")


def _voted(encoder: str) -> str:
    return f"""
        SELECT video_id, article_id, rank, encoder,
               (votes - lead(votes, 1, 0) OVER video) / num_narrations AS confidence,
               similarity_sum - lead(similarity_sum, 1, 0) OVER video AS similarity_margin
        FROM votes WHERE encoder = {quoted(encoder)} AND rank <= {TOP} + 1
        WINDOW video AS (PARTITION BY video_id ORDER BY rank) QUALIFY rank <= {TOP} ORDER BY video_id, rank"""


def _named(source: str) -> str:
    """Return a query for videos whose metadata names a task, and its article, by id or title; null if there is none.

    Of several tasks, one with an article is preferred, then HowTo100M's; of equal titles, the smallest id.
    """
    return f"""
        WITH offered AS (SELECT article_id, {TITLE_KEY} AS key FROM ({OFFERED}) WHERE source = {quoted(source)}),
             by_title AS (SELECT key, min(article_id) AS article_id FROM offered GROUP BY key),
             named AS (SELECT article_id AS named_id, min({TITLE_KEY}) AS key FROM articles GROUP BY ALL),
             resolved AS (SELECT named_id, coalesce(offered.article_id, by_title.article_id) AS article_id
                       FROM (SELECT DISTINCT article_id AS named_id FROM videos WHERE article_id IS NOT NULL)
                       LEFT JOIN offered ON offered.article_id = named_id
                       LEFT JOIN named USING (named_id) LEFT JOIN by_title ON by_title.key = named.key)
        SELECT DISTINCT ON (v.video_id) v.video_id, k.named_id, k.article_id
        FROM videos v JOIN resolved k ON k.named_id = v.article_id
        ORDER BY v.video_id, k.article_id IS NULL, v.source <> 'howto100m', v.source, k.named_id"""


def _write_rejects(store: Store, run_id: str, source: str, silent: pa.Table, unknown: pa.Table) -> None:
    table, partition = store.table("rejects"), {"stage": "pairing"}
    rows = [
        {"item": video, "reason": "no narrations", "detail": "it cannot vote: import its narrations"}
        for video in sorted(silent["video_id"].to_pylist())
    ]
    rows += [
        {"item": row["video_id"], "reason": "unknown task", "detail": f"{source} has no article for {row['named_id']}"}
        for row in unknown.to_pylist()
    ]
    if rows or table.snapshot().where(**partition).shards:
        rejects = pa.Table.from_pylist(rows, schema=table.schema.files)
        table.commit(rejects, partition, "all", fingerprint=content_hash([rejects]), run_id=run_id)
