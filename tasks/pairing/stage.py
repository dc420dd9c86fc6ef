"""The stage `pairing`: embed the titles and narrations, let them vote, rank the articles, choose the pairs."""

from storage import Store, fingerprint
from tasks.job import Job
from tasks.pairing import pairs, votes
from tasks.pairing.candidates import NoCandidates, candidates_of
from tasks.pairing.sentence_models import find_model, load_model, name_model
from tasks.text_embedding import embed_texts

CODE_VERSION = "2"
INPUTS = ("narrations", "videos", "articles", "steps")


def make_pairs(job: Job) -> str:
    """Votes and pairs of every video that has narrations; returns what was done."""
    settings, store = job.pairing, Store(job.store)
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
        sizes = pairs.write_pairs(store, job.run_id, fingerprint(rules, inputs, CODE_VERSION), None, candidates)
        return f"there are no narrations: nobody votes; {sizes['metadata']:,} pairs by metadata"
    folder = find_model(settings.model)
    model = name_model(settings.model, folder)

    def mark() -> str:
        voted = store.table("votes").snapshot().where(model=model).content_version
        return fingerprint(rules | {"model": model}, inputs | {"votes": voted}, CODE_VERSION)

    if all(store.table("pairs").has({"selection": name}, "all", mark()) for name in pairs.SELECTIONS):
        return f"nothing has changed since {model} voted"
    embed = load_model(folder, settings.batch_size, settings.device)
    texts = f"SELECT text FROM narrations UNION ALL {candidates.titles_sql}"
    embedded = embed_texts(store, job.run_id, model, embed, texts, settings.texts_per_shard)
    version = votes.vote(store, job.run_id, model, candidates, settings)
    ranked = votes.rank(store, job.run_id, model, version)
    sizes = pairs.write_pairs(store, job.run_id, mark(), model, candidates)
    return (
        f"{model} embedded {embedded:,} new texts; {ranked:,} videos ranked {len(candidates.titles):,} articles; "
        + ", ".join(f"{size:,} pairs {selection}" for selection, size in sizes.items())
    )
