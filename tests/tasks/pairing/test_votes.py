"""From narrations to votes and pairs through a real store, against brute force."""

import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import Store
from tasks.pairing import votes
from tasks.pairing.lookup import look_up
from tests.tasks.pairing.corpora import (
    FakeEncoder,
    add_articles,
    add_narrations,
    add_videos,
    ask,
    brute_force,
    make_pairs,
    random_corpus,
    rows_of,
    tables_of,
    vector_of,
    versions_of,
)
from vina_model.voting import hub_handicaps

pytestmark = pytest.mark.slow


def check_votes(store: Store, titles: Mapping[str, str], narrations: Mapping[str, Sequence[str]]) -> None:
    found = defaultdict(list)
    columns = ("video_id", "rank", "article_id", "votes", "similarity_sum", "num_narrations")
    for video, place, article, count, total, size in rows_of(store, "votes", *columns):
        assert size == len(narrations[video])
        found[video].append((place, article, count, total))
    expected = {video: brute_force(texts, titles) for video, texts in narrations.items()}
    assert found == {
        video: [(*row[:3], float(np.float32(row[3]))) for row in ranking] for video, ranking in expected.items()
    }
    pairs = []
    for video, ranking in expected.items():
        for (place, article, count, total), (_, _, following, less) in zip(
            ranking[:5], [*ranking[1:], (0, "", 0, 0.0)], strict=False
        ):
            share, margin = (
                np.float32((count - following) / len(narrations[video])),
                np.float32(total) - np.float32(less),
            )
            row = (video, place, article, "fake@1", float(share), float(margin))
            pairs += [("random_top5", *row)]
            pairs += [("top1", *row)] if place == 1 else []
    columns = ("selection", "video_id", "rank", "article_id", "encoder", "confidence", "similarity_margin")
    assert rows_of(store, "pairs", *columns) == sorted(pairs)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_votes_and_pairs_are_those_of_brute_force_in_any_size_of_shards(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patcher:
        FakeEncoder().install(patcher)
        tables = []
        for texts_per_shard in (3, 8192):
            store = Store(Path(folder) / str(texts_per_shard))
            titles, narrations = random_corpus(store, seed)
            make_pairs(store, texts_per_shard=texts_per_shard)
            check_votes(store, titles, narrations)
            tables.append(tables_of(store))
        assert tables[0] == tables[1]


def test_it_is_the_same_on_s3(s3_uri: str, encoder: FakeEncoder) -> None:
    store = Store(s3_uri)
    titles, narrations = random_corpus(store, 4)
    make_pairs(store, texts_per_shard=10)
    check_votes(store, titles, narrations)
    before = versions_of(store)
    assert "nothing has changed" in make_pairs(store, texts_per_shard=10) and versions_of(store) == before


def test_ties_go_to_more_votes_then_to_the_higher_sum_then_to_the_smaller_id(
    store: Store, encoder: FakeEncoder
) -> None:
    """Titles x, y, z in three directions; the texts are found by what they are similar to."""
    by_direction = {tuple(vector_of(f"t{number}").tolist()): f"t{number}" for number in range(200)}
    x, y = by_direction[(1, 0, 0)], by_direction[(0, 1, 0)]
    far_x = by_direction[tuple(np.array([0.8, 0.6, 0], np.float16).tolist())]
    add_articles(store, "wikihow", {"wikihow/b": x, "wikihow/a": y, "wikihow/c": x})
    narrations = {"sum": [far_x, y], "id": [y, x], "votes": [y, far_x, far_x]}
    add_narrations(store, "howto100m", narrations)
    make_pairs(store)
    assert rows_of(store, "votes", "video_id", "rank", "article_id") == [
        ("id", 1, "wikihow/a"),
        ("id", 2, "wikihow/b"),
        ("sum", 1, "wikihow/a"),
        ("sum", 2, "wikihow/b"),
        ("votes", 1, "wikihow/b"),
        ("votes", 2, "wikihow/a"),
    ]
    assert rows_of(store, "pairs", "video_id", "confidence", selection="top1") == [
        ("id", 0.0),
        ("sum", 0.0),
        ("votes", float(np.float32(1 / 3))),
    ]


def test_the_fifth_articles_confidence_counts_the_sixth(store: Store, encoder: FakeEncoder) -> None:
    """Six titles in six directions; the texts are the titles themselves."""
    by_direction = {tuple(vector_of(f"t{number}").tolist()): f"t{number}" for number in range(200)}
    texts = sorted(by_direction.values())[:6]
    add_articles(store, "wikihow", {f"wikihow/{text}": text for text in texts})
    add_narrations(store, "howto100m", {"v": [*texts, *texts[:5], *texts[:5]]})
    make_pairs(store)
    shares = [row[1:] for row in rows_of(store, "pairs", "rank", "confidence", selection="random_top5")]
    assert shares == [(0.0,)] * 4 + [(float(np.float32(2 / 16)),)]


def test_quotes_in_ids_titles_texts_and_names_are_letters_like_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeEncoder().install(monkeypatch, "a 'quoted' \"model\" %s {x}@1")
    titles = {"it's/1'": 'Don\'t "stir" 100%', "it's/2": "x'; DROP TABLE votes; --"}
    add_articles(store, "it's", titles)
    narrations = {"v'1": ['it\'s "hot"', "o'clock\nand more", "\\'"], '"v2"': ["don't"]}
    add_narrations(store, "a 'source'", narrations, "shard '0'")
    add_videos(store, "a 'source'", {"v'1": "it's/1'"})
    make_pairs(store, articles="it's")
    check = {video: brute_force(texts, titles)[0][1] for video, texts in narrations.items()}
    assert dict(rows_of(store, "pairs", "video_id", "article_id", selection="top1")) == check
    assert rows_of(store, "pairs", "video_id", "article_id", selection="metadata") == [("v'1", "it's/1'")]


def test_hubs_are_told_by_the_narrations_with_the_smallest_hashes(
    store: Store, encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither titles nor the order in which narrations came count."""
    monkeypatch.setattr(votes, "SAMPLE", 3)
    titles, _ = random_corpus(store, 1)
    make_pairs(store, texts_per_shard=5)
    add_narrations(store, "howto100m", {"late": [f"late {number}" for number in range(20)]}, "late")
    make_pairs(store, texts_per_shard=5, correct_hubs=True)
    hashes = sorted(row["h"] for row in ask(store, "SELECT DISTINCT sha256(text) AS h FROM narrations"))[:3]
    known = {row["h"]: row["text"] for row in ask(store, "SELECT DISTINCT sha256(text) AS h, text FROM narrations")}
    names = sorted(titles)
    sample = np.stack([vector_of(known[text]) for text in hashes])
    costs = hub_handicaps(np.stack([vector_of(titles[name]) for name in names]), sample)
    handicaps = dict(zip(names, costs.tolist(), strict=True))
    for text, article in rows_of(store, "text_votes", "text", "article_id"):
        assert article == brute_force([text], titles, handicaps)[0][1]
    fresh = Store(tmp_path / "fresh")
    random_corpus(fresh, 1)
    add_narrations(fresh, "howto100m", {"late": [f"late {number}" for number in range(20)]}, "late")
    make_pairs(fresh, correct_hubs=True)
    assert tables_of(fresh) == tables_of(store)


class Interrupted(FakeEncoder):
    """While it embeds its first texts, another run does everything, in other shards."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store: Store | None = store

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float16]:
        if self.store is not None:
            store, self.store = self.store, None
            make_pairs(store, "another run", texts_per_shard=3)
        return super().embed(texts)


@pytest.mark.parametrize("correct_hubs", [False, True])
def test_a_text_that_two_runs_at_once_embedded_has_one_vote(
    corpus: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, correct_hubs: bool
) -> None:
    Interrupted(corpus).install(monkeypatch)
    make_pairs(corpus, correct_hubs=correct_hubs)
    (counts,) = ask(corpus, "SELECT count(*) AS rows, count(DISTINCT text) AS texts FROM text_votes")
    assert counts["rows"] == 2 * counts["texts"]
    alone = Store(tmp_path / "alone")
    _, narrations = random_corpus(alone, 1)
    make_pairs(alone, correct_hubs=correct_hubs)
    assert {table: tables_of(corpus)[table] for table in ("votes", "pairs")} == {
        table: tables_of(alone)[table] for table in ("votes", "pairs")
    }
    versions = [store.table("votes").snapshot().content_version for store in (corpus, alone)]
    assert versions[0] == versions[1], "what tells hubs is the same"
    for video, texts in sorted(narrations.items())[:3]:
        assert [ballot.text for ballot in look_up(corpus, video).ballots] == texts
