"""The stage `pairing`: embed titles and narrations, count votes, rank articles, write the pairs."""

from functools import lru_cache
from pathlib import Path

from storage import Store, fingerprint_of
from tasks.pairing import pairs, votes
from tasks.pairing.candidates import CandidateArticles, NoCandidates, candidates_of
from tasks.pairing.encoders import find_encoder, foresee_encoder, load_encoder, name_encoder
from tasks.pairing.selections import SELECTIONS
from tasks.pairing.settings import PairingSettings
from tasks.pipeline.artifacts import REJECTS
from tasks.pipeline.job import Job
from tasks.pipeline.parts import Part, PartKind, RunParts, run_here
from tasks.pipeline.stage import Dependencies, Stage, versions
from tasks.pipeline.text_embedding import Embed, embed_texts, plan_ranges

CODE_VERSION = "2"
INPUTS = ("narrations", "videos", "articles", "steps")
MOST_PARTS = 64
"""Limit, because each part of the embedding scans all narrations."""


def make_pairs(job: Job, run_parts: RunParts = run_here) -> str:
    """Write votes and pairs of all videos that have narrations; return a report."""
    settings, store = job.settings_of(PairingSettings), Store(job.store)
    try:
        candidates = candidates_of(store, settings.articles)
    except NoCandidates as nothing:
        if settings.articles is not None:
            raise
        pairs.clear_pairs(store, job.run_id)
        return str(nothing)
    inputs = {name: store.table(name).snapshot().content_version for name in INPUTS}
    rules = {"articles": candidates.source, "correct_hubs": settings.correct_hubs}
    if not store.table("narrations").snapshot().num_rows:
        pairs.clear_votes(store)
        sizes = pairs.write_pairs(store, job.run_id, fingerprint_of(rules, inputs, CODE_VERSION), None, candidates)
        return f"there are no narrations: nobody votes; {sizes['metadata']:,} pairs by metadata"
    folder = find_encoder(settings.encoder)
    encoder = name_encoder(settings.encoder, folder)

    def fingerprint() -> str:
        voted = store.table("votes").snapshot().where(encoder=encoder).content_version
        return fingerprint_of(rules | {"encoder": encoder}, inputs | {"votes": voted}, CODE_VERSION)

    if all(store.table("pairs").has({"selection": name}, "all", fingerprint()) for name in SELECTIONS):
        return f"nothing has changed since {encoder} voted"
    before = _num_embedded(store, encoder)
    ranges = plan_ranges(store, encoder, _texts(candidates), settings.texts_per_shard, MOST_PARTS)
    run_parts(job, EMBEDDING, [{"low": low, "high": high, "encoder": encoder} for low, high in ranges])
    embedded = _num_embedded(store, encoder) - before
    version = votes.vote(store, job.run_id, encoder, candidates, settings)
    ranked = votes.rank(store, job.run_id, encoder, version)
    sizes = pairs.write_pairs(store, job.run_id, fingerprint(), encoder, candidates)
    return (
        f"{encoder} embedded {embedded:,} new texts; {ranked:,} videos ranked {len(candidates.titles):,} articles; "
        + ", ".join(f"{size:,} pairs {selection}" for selection, size in sizes.items())
    )


def embed_range(job: Job, part: Part) -> None:
    """Embed the new texts of a range of hashes."""
    settings, store = job.settings_of(PairingSettings), Store(job.store)
    folder = find_encoder(settings.encoder)
    encoder = name_encoder(settings.encoder, folder)
    if encoder != part["encoder"]:
        raise ValueError(
            f"the run embeds by {part['encoder']}, this worker finds {encoder}: give all machines the same one"
        )
    embed = load_once(encoder, folder, settings.batch_size, settings.device)
    texts, between = _texts(candidates_of(store, settings.articles)), (part["low"], part["high"])
    embed_texts(store, job.run_id, encoder, embed, texts, settings.texts_per_shard, between)


@lru_cache(1)
def load_once(encoder: str, folder: Path, batch_size: int, device: str | None) -> Embed:
    """Load the encoder once for all parts of this process."""
    return load_encoder(folder, batch_size, device)


def _texts(candidates: CandidateArticles) -> str:
    return f"SELECT text FROM narrations UNION ALL {candidates.titles_sql}"


def _num_embedded(store: Store, encoder: str) -> int:
    return store.table("sentence_embeddings").snapshot().where(encoder=encoder).num_rows


def dependencies(job: Job) -> Dependencies:
    """Return what the pairs depend on."""
    store, settings = job.open_store(), job.settings_of(PairingSettings)
    has_narrations = store.table("narrations").snapshot().num_rows
    encoder = foresee_encoder(settings.encoder) if has_narrations else None
    rules = {"encoder": encoder, "articles": settings.articles, "correct_hubs": settings.correct_hubs}
    return Dependencies(rules, versions(store, *INPUTS), versions(store, "pairs", "votes"))


def reset(job: Job) -> None:
    """Retire embeddings, votes and pairs of this encoder; imported texts stay."""
    store, settings = Store(job.store), job.settings_of(PairingSettings)
    encoder = name_encoder(settings.encoder, find_encoder(settings.encoder))
    for name in ("sentence_embeddings", "text_votes", "votes"):
        store.table(name).retire({"encoder": encoder})
    for selection in SELECTIONS:
        store.table("pairs").retire({"selection": selection})


EMBEDDING = PartKind("embedding", embed_range)
PAIRING = Stage(
    "pairing", make_pairs, dependencies, CODE_VERSION, reset, (PairingSettings,), (EMBEDDING,),
    REJECTS
    | {"pairs": "SELECT selection, count(DISTINCT video_id) AS videos, count(*) AS pairs FROM pairs GROUP BY ALL"},
)  # fmt: skip
