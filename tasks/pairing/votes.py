"""Each distinct narration votes for a title, and each video ranks the articles that its narrations voted for.

Each shard of embeddings has a shard of `text_votes`; each shard of narrations has one of `votes`. A shard whose
fingerprint has not changed is not written again.
"""

import logging

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage import Store, fingerprint_of
from storage.catalogue import Catalogue, quoted
from storage.snapshot import Shard, Snapshot
from storage.vectors import Floats, decode
from storage.views import narrations_of_shard
from tasks.pairing.candidates import CandidateArticles
from tasks.pairing.settings import PairingSettings
from tasks.pipeline.device import best_device
from tasks.pipeline.text_embedding import MEMORY_LIMIT
from vina_model.voting import TitleIndex, hub_handicaps

CODE_VERSION = "1"
SAMPLE = 20_000
"""Texts by which hub titles are recognised."""
LOG = logging.getLogger("vina.pairing")


def vote(store: Store, run_id: str, encoder: str, candidates: CandidateArticles, settings: PairingSettings) -> str:
    """Write the most similar title of every embedded text; return the version of the voting rules."""
    table, partition = store.table("text_votes"), {"encoder": encoder}
    embedded = store.table("sentence_embeddings").snapshot().where(**partition)
    index = _index(store, embedded, candidates, settings)
    rules = {"candidates": candidates.version, "handicaps": index.handicaps_C.tolist() if settings.correct_hubs else 0}
    stored = {shard.name: shard.fingerprint for shard in table.snapshot().where(**partition).shards}
    version = fingerprint_of(rules, {}, CODE_VERSION)
    fingerprints = {
        shard.name: fingerprint_of({"rules": version}, {"texts": shard.fingerprint}, "") for shard in embedded.shards
    }
    todo = [shard for shard in embedded.shards if stored.get(shard.name) != fingerprints[shard.name]]
    ids = np.array(candidates.article_ids, dtype=object)
    for number, shard in enumerate(todo, 1):
        rows = embedded.where(_shard=shard.name).read(["text", "vector"])
        nearest = index.nearest(decode(rows["vector"], "float16"))
        articles = pa.array(ids[nearest.rows], pa.string())
        votes = pa.table({"text": rows["text"], "article_id": articles, "similarity": nearest.similarities})
        table.commit(votes, partition, shard.name, fingerprint=fingerprints[shard.name], run_id=run_id)
        if number % 50 == 0:
            LOG.info("voted in %s of %s shards of texts", f"{number:,}", f"{len(todo):,}")
    if stored.keys() - fingerprints.keys():
        table.retire(partition, keep=fingerprints)
    return version


def _index(store: Store, embedded: Snapshot, candidates: CandidateArticles, settings: PairingSettings) -> TitleIndex:
    titles, device = candidates.vectors(embedded), settings.device or best_device()
    if not settings.correct_hubs:
        return TitleIndex(titles, device)
    return TitleIndex(titles, device, hub_handicaps(titles, _sample(store, embedded), device))


def _sample(store: Store, embedded: Snapshot) -> Floats:
    """Return vectors of the narrations with the smallest hashes: a uniform sample that depends on nothing else."""
    with Catalogue(store, MEMORY_LIMIT) as catalogue:
        chosen = catalogue.query(
            f"SELECT DISTINCT sha256(text) AS text_sha256 FROM narrations ORDER BY ALL LIMIT {SAMPLE}"
        )["text_sha256"].combine_chunks()
    last, parts = chosen[-1].as_py(), []
    for shard in embedded.shards:
        if shard.key_range is None or shard.key_range[0] <= last:
            rows = embedded.where(_shard=shard.name).read(
                ["text_sha256", "vector"], where=pc.field("text_sha256").isin(chosen)
            )
            parts.append(rows)
    rows = pa.concat_tables(parts)
    _, first_rows = np.unique(rows["text_sha256"].to_pylist(), return_index=True)  # in order, each text once
    return decode(rows["vector"].take(first_rows), "float16")


def rank(store: Store, run_id: str, encoder: str, version: str) -> int:
    """Rank every video's articles by their votes; return the number of newly ranked videos.

    `version` is that of the voting rules.
    """
    table, partition = store.table("votes"), {"encoder": encoder}
    narrations, ranked = store.table("narrations").snapshot(), table.snapshot().where(**partition)
    stored = {shard.name: shard.fingerprint for shard in ranked.shards}
    fingerprints = {_name(shard): _fingerprint(shard, narrations.shards, version) for shard in narrations.shards}
    todo = [shard for shard in narrations.shards if stored.get(_name(shard)) != fingerprints[_name(shard)]]
    count = 0
    if todo:
        with Catalogue(store, MEMORY_LIMIT) as catalogue:
            for shard in todo:
                rows = catalogue.query(_ranking(encoder, shard))
                count += sum(number == 1 for number in rows["rank"].to_pylist())
                table.commit(rows, partition, _name(shard), fingerprint=fingerprints[_name(shard)], run_id=run_id)
    if stored.keys() - fingerprints.keys():
        table.retire(partition, keep=fingerprints)
    return count


def _name(shard: Shard) -> str:
    return f"{shard.constants['source']}/{shard.name}"


def _fingerprint(shard: Shard, shards: tuple[Shard, ...], version: str) -> str:
    """Return the fingerprint of a shard's votes: its narrations, the rules, and the sources that come before it."""
    before = sorted(other.fingerprint for other in shards if other.constants["source"] < shard.constants["source"])
    return fingerprint_of({"before": before, "rules": version}, {"narrations": shard.fingerprint}, CODE_VERSION)


def _ranking(encoder: str, shard: Shard) -> str:
    """Return a query for the ranked articles of one shard's videos."""
    return f"""
        WITH spoken AS (
            SELECT video_id, text FROM ({narrations_of_shard(quoted(shard.constants["source"]), quoted(shard.name))})
        ), ballots AS (  -- two runs at once may both have embedded a text
            SELECT text, any_value(article_id) AS article_id, any_value(similarity)::DOUBLE AS similarity
            FROM text_votes SEMI JOIN spoken USING (text) WHERE encoder = {quoted(encoder)} GROUP BY text
        ), tally AS (
            SELECT video_id, article_id, count(*) AS votes, sum(similarity) AS similarity_sum
            FROM spoken JOIN ballots USING (text) GROUP BY ALL
        )
        SELECT video_id, row_number() OVER (PARTITION BY video_id
                                            ORDER BY votes DESC, similarity_sum DESC, article_id) AS rank,
               article_id, votes, similarity_sum, sum(votes) OVER (PARTITION BY video_id) AS num_narrations
        FROM tally ORDER BY video_id, rank"""
