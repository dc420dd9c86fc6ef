"""The votes of one video, narration by narration: stored, or counted now. Nothing is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from storage import Store
from storage.catalogue import Catalogue, quoted
from tasks.pairing.candidates import CandidateArticles, candidates_of
from tasks.pairing.encoders import find_encoder, load_encoder, name_encoder
from tasks.pairing.settings import PairingSettings
from tasks.pipeline.device import best_device
from tasks.pipeline.text_embedding import Embed
from vina_model.voting import TitleIndex


class Ballot(NamedTuple):
    """The vote of one narration."""

    text: str
    article_id: str
    title: str
    similarity: float


@dataclass(frozen=True)
class Ranked:
    """An article and its votes from one video."""

    article_id: str
    title: str
    votes: int
    similarity_sum: float


@dataclass(frozen=True)
class Lookup:
    """A video's ballots in spoken order, and the articles by their votes."""

    encoder: str
    ballots: tuple[Ballot, ...]
    ranking: tuple[Ranked, ...]


def look_up(store: Store, video_id: str, settings: PairingSettings | None = None) -> Lookup:
    """Return the stored votes of a video's narrations; without them, or with settings, count votes now."""
    texts = _narrations(store, video_id)
    stored = _stored(store, video_id) if settings is None else None
    return stored or vote_now(store, texts, settings or PairingSettings())


def _stored(store: Store, video_id: str) -> Lookup | None:
    """Return the ballots as the stage counted them."""
    with Catalogue(store) as catalogue:
        encoders = catalogue.query("SELECT DISTINCT encoder FROM pairs WHERE selection = 'top1'")["encoder"].to_pylist()
        if not encoders:
            return None
        (encoder,) = encoders
        ranked = catalogue.query(
            f"""SELECT v.article_id, any_value(a.title) AS title, v.votes, v.similarity_sum
            FROM votes v JOIN articles a USING (article_id)
            WHERE v.encoder = {quoted(encoder)} AND v.video_id = {quoted(video_id)}
            GROUP BY v.rank, v.article_id, v.votes, v.similarity_sum ORDER BY v.rank"""
        ).to_pylist()
        ballots = catalogue.query(
            f"""SELECT n.text, any_value(t.article_id) AS article_id, any_value(a.title) AS title,
                       any_value(t.similarity) AS similarity
            FROM video_narrations n JOIN text_votes t USING (text) JOIN articles a USING (article_id)
            WHERE t.encoder = {quoted(encoder)} AND n.video_id = {quoted(video_id)}
            GROUP BY n.row, n.text ORDER BY n.row"""
        ).to_pylist()
    if not ranked:
        return None
    return Lookup(encoder, tuple(Ballot(**row) for row in ballots), tuple(Ranked(**row) for row in ranked))


def vote_now(store: Store, texts: list[str], settings: PairingSettings) -> Lookup:
    """Count the votes of any texts."""
    candidates = candidates_of(store, settings.articles)
    folder = find_encoder(settings.encoder)
    encoder = name_encoder(settings.encoder, folder)
    embed = load_encoder(folder, settings.batch_size, settings.device)
    titles = _title_vectors(store, encoder, candidates, embed)
    nearest = TitleIndex(titles, settings.device or best_device()).nearest(embed(texts))
    ballots = tuple(
        Ballot(text, candidates.article_ids[row], candidates.titles[row], float(similarity))
        for text, row, similarity in zip(texts, nearest.rows, nearest.similarities, strict=True)
    )
    return Lookup(encoder, ballots, rank(ballots))


def rank(ballots: Sequence[Ballot]) -> tuple[Ranked, ...]:
    """Rank articles: more votes, then the higher summed similarity, then the smaller id."""
    groups: dict[str, list[Ballot]] = {}
    for ballot in ballots:
        groups.setdefault(ballot.article_id, []).append(ballot)
    articles = (
        Ranked(article_id, group[0].title, len(group), sum(ballot.similarity for ballot in group))
        for article_id, group in groups.items()
    )
    return tuple(sorted(articles, key=lambda ranked: (-ranked.votes, -ranked.similarity_sum, ranked.article_id)))


def _narrations(store: Store, video_id: str) -> list[str]:
    with Catalogue(store) as catalogue:
        texts = catalogue.query(f"SELECT text FROM video_narrations WHERE video_id = {quoted(video_id)} ORDER BY row")[
            "text"
        ].to_pylist()
        if not texts:
            near = catalogue.query(
                f"SELECT video_id FROM (SELECT DISTINCT video_id FROM narrations) "
                f"ORDER BY levenshtein(video_id, {quoted(video_id)}), video_id LIMIT 3"
            )["video_id"].to_pylist()
            hint = f"; the nearest ids that have: {', '.join(near)}" if near else ": import some"
            raise ValueError(f"the store has no narrations of a video {video_id!r}{hint}")
    return texts


def _title_vectors(store: Store, encoder: str, candidates: CandidateArticles, embed: Embed) -> npt.NDArray[np.float16]:
    """Return the vectors of titles: the stored ones if all are stored, otherwise embed all now."""
    with Catalogue(store) as catalogue:
        stored_texts = catalogue.query(f"""
            SELECT DISTINCT text FROM sentence_embeddings SEMI JOIN ({candidates.titles_sql}) USING (text)
            WHERE encoder = {quoted(encoder)}""")["text"].to_pylist()
    if set(candidates.titles) <= set(stored_texts):
        return candidates.vectors(store.table("sentence_embeddings").snapshot().where(encoder=encoder))
    return embed(candidates.titles)
