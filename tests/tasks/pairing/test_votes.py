"""From narrations to pairs through a real store, against brute force; reruns, kills, rejects, what the views say."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import Store
from storage.catalogue import Catalogue
from tasks.pairing import votes
from tasks.pairing.candidates import NoCandidates
from tests.tasks.pairing.corpora import (
    FakeModel,
    add_articles,
    add_narrations,
    add_rows,
    add_videos,
    make_pairs,
    rows_of,
    tables_of,
    vector_of,
    versions_of,
)
from vina_model.voting import hub_handicaps

Ranking = list[tuple[int, str, int, float]]


def brute_force(
    said: Sequence[str], titles: Mapping[str, str], handicaps: Mapping[str, float] | None = None
) -> Ranking:
    """The vote as SPEC says it: rank, article, votes, summed similarity."""
    ballots = defaultdict(list)
    for text in said:
        exact = {name: float(vector_of(text).astype(float) @ vector_of(titles[name])) for name in sorted(titles)}
        winner = max(exact, key=lambda name: exact[name] - (handicaps[name] if handicaps else 0))
        ballots[winner].append(float(np.float32(exact[winner])))
    order = sorted(ballots, key=lambda name: (-len(ballots[name]), -sum(ballots[name]), name))
    return [(place, name, len(ballots[name]), sum(ballots[name])) for place, name in enumerate(order, 1)]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> FakeModel:
    return FakeModel().install(monkeypatch)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def ask(store: Store, query: str) -> list[dict[str, Any]]:
    with Catalogue(store) as catalogue:
        return list(catalogue.query(query).to_pylist())


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
            said = {name: [f"text {rng.integers(25)}" for _ in range(rng.integers(1, 9))] for name in names}
            add_narrations(store, source, said, str(shard))
            chosen = said | chosen  # what the first source says stays
    return titles, chosen


def check_votes(store: Store, titles: Mapping[str, str], said: Mapping[str, Sequence[str]]) -> None:
    found = defaultdict(list)
    columns = ("video_id", "rank", "article_id", "votes", "similarity_sum", "num_narrations")
    for video, place, article, count, total, size in rows_of(store, "votes", *columns):
        assert size == len(said[video])
        found[video].append((place, article, count, total))
    expected = {video: brute_force(texts, titles) for video, texts in said.items()}
    assert found == {
        video: [(*row[:3], float(np.float32(row[3]))) for row in ranking] for video, ranking in expected.items()
    }
    pairs = []
    for video, ranking in expected.items():
        counts = [row[2] for row in ranking] + [0]
        for (place, article, count, _), following in zip(ranking[:5], counts[1:], strict=False):
            share = float(np.float32((count - following) / len(said[video])))
            pairs += [("random_top5", video, place, article, share)]
            pairs += [("top1", video, place, article, share)] if place == 1 else []
    assert rows_of(store, "pairs", "selection", "video_id", "rank", "article_id", "confidence") == sorted(pairs)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_votes_and_pairs_are_those_of_brute_force_in_any_size_of_shards(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patcher:
        FakeModel().install(patcher)
        tables = []
        for texts_per_shard in (3, 8192):
            store = Store(Path(folder) / str(texts_per_shard))
            titles, said = random_corpus(store, seed)
            make_pairs(store, texts_per_shard=texts_per_shard)
            check_votes(store, titles, said)
            tables.append(tables_of(store))
        assert tables[0] == tables[1]


def test_it_is_the_same_on_s3(s3_uri: str, model: FakeModel) -> None:
    store = Store(s3_uri)
    titles, said = random_corpus(store, 4)
    make_pairs(store, texts_per_shard=10)
    check_votes(store, titles, said)
    before = versions_of(store)
    assert "nothing has changed" in make_pairs(store, texts_per_shard=10) and versions_of(store) == before


def test_ties_go_to_more_votes_then_to_the_higher_sum_then_to_the_smaller_id(store: Store, model: FakeModel) -> None:
    """Titles x, y, z in three directions; the texts are found by what they are similar to."""
    by_direction = {tuple(vector_of(f"t{number}").tolist()): f"t{number}" for number in range(200)}
    x, y = by_direction[(1, 0, 0)], by_direction[(0, 1, 0)]
    far_x = by_direction[tuple(np.array([0.8, 0.6, 0], np.float16).tolist())]
    add_articles(store, "wikihow", {"wikihow/b": x, "wikihow/a": y, "wikihow/c": x})
    said = {"sum": [far_x, y], "id": [y, x], "votes": [y, far_x, far_x]}
    add_narrations(store, "howto100m", said)
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


@pytest.fixture
def corpus(store: Store) -> Store:
    random_corpus(store, 1)
    return store


def test_a_rerun_changes_nothing(corpus: Store, model: FakeModel) -> None:
    make_pairs(corpus)
    before, embedded = versions_of(corpus), len(model.texts)
    assert len(set(model.texts)) == embedded, "a text was embedded twice"
    assert "nothing has changed since fake@1 voted" in make_pairs(corpus, "run-2")
    assert versions_of(corpus) == before and len(model.texts) == embedded


def test_new_narrations_embed_new_texts_only_and_end_as_if_all_had_come_at_once(
    corpus: Store, model: FakeModel, tmp_path: Path
) -> None:
    make_pairs(corpus, texts_per_shard=5)
    known = set(model.texts)
    more = {"late": ["text 3", "never said before", "nor this"]}
    add_narrations(corpus, "howto100m", more, "late")
    model.texts.clear()
    assert "embedded 2 new texts" in make_pairs(corpus, "run-2", texts_per_shard=5)
    assert sorted(model.texts) == sorted(set(more["late"]) - known)
    fresh = Store(tmp_path / "fresh")
    random_corpus(fresh, 1)
    add_narrations(fresh, "howto100m", more, "late")
    make_pairs(fresh)
    assert tables_of(fresh) == tables_of(corpus)


def test_new_articles_change_votes_and_keep_embeddings(corpus: Store, model: FakeModel) -> None:
    make_pairs(corpus)
    before, kept = tables_of(corpus), [shard.path for shard in corpus.table("sentence_embeddings").snapshot().shards]
    titles = {f"wikihow/new-{number}": f"new title {number}" for number in range(12)}
    add_rows(corpus, "articles", "wikihow", [{"article_id": name, "title": titles[name]} for name in titles], "new")
    steps = [{"article_id": name, "row": 0, "step_id": name, "headline": "Stir"} for name in titles]
    add_rows(corpus, "steps", "wikihow", steps, "new")
    model.texts.clear()
    make_pairs(corpus, "run-2")
    assert sorted(model.texts) == sorted(titles.values())
    after = tables_of(corpus)
    assert after["votes"] != before["votes"]
    assert set(kept) < {shard.path for shard in corpus.table("sentence_embeddings").snapshot().shards}


def test_narrations_that_are_gone_leave_no_votes(corpus: Store, model: FakeModel) -> None:
    add_narrations(corpus, "htm-align", {"gone": ["text 1"]}, "gone")
    make_pairs(corpus)
    assert "gone" in {video for (video,) in rows_of(corpus, "votes", "video_id")}
    corpus.table("narrations").retire({"source": "htm-align"})
    make_pairs(corpus, "run-2")
    for table in ("votes", "pairs"):
        assert "gone" not in {video for (video,) in rows_of(corpus, table, "video_id")}


def test_two_models_vote_side_by_side(corpus: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeModel().install(monkeypatch, 'it\'s "one"@1')
    make_pairs(corpus)
    FakeModel().install(monkeypatch, "two@2")
    make_pairs(corpus)
    counts = [row["n"] for row in ask(corpus, "SELECT model, count(*) AS n FROM votes GROUP BY 1")]
    assert len(counts) == 2 and counts[0] == counts[1]


def test_a_model_that_breaks_half_way_is_gone_on_with(
    corpus: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = FakeModel(patience=12).install(monkeypatch)
    with pytest.raises(RuntimeError, match="the model broke"):
        make_pairs(corpus, texts_per_shard=4)
    assert len(broken.texts) == 12 and rows_of(corpus, "pairs", "video_id") == []
    whole = FakeModel().install(monkeypatch)
    make_pairs(corpus, texts_per_shard=4)
    assert not set(whole.texts) & set(broken.texts)
    undisturbed = Store(tmp_path / "undisturbed")
    random_corpus(undisturbed, 1)
    make_pairs(undisturbed, texts_per_shard=4)
    assert tables_of(undisturbed) == tables_of(corpus)


SLOW = """
import sys, time
from tests.tasks.pairing.corpora import FakeModel, make_pairs
from storage import Store

class Patcher:
    setattr = staticmethod(setattr)

class Slow(FakeModel):
    def embed(self, texts):
        time.sleep(0.2)
        return super().embed(texts)

Slow().install(Patcher())
make_pairs(Store(sys.argv[1]), texts_per_shard=2)
"""


def test_a_killed_run_is_gone_on_with(corpus: Store, model: FakeModel, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    running = subprocess.Popen([sys.executable, "-c", SLOW, corpus.uri], env=environment)
    deadline = time.monotonic() + 60
    while len(corpus.table("sentence_embeddings").snapshot().shards) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    running.kill()
    assert running.wait() == -signal.SIGKILL
    done = {text for (text,) in rows_of(corpus, "sentence_embeddings", "text")}
    assert len(done) >= 6
    make_pairs(corpus, texts_per_shard=2)
    assert model.texts and not set(model.texts) & done
    undisturbed = Store(tmp_path / "undisturbed")
    random_corpus(undisturbed, 1)
    make_pairs(undisturbed, texts_per_shard=2)
    assert tables_of(undisturbed) == tables_of(corpus)


def test_metadata_is_found_by_id_and_by_equal_title(store: Store, model: FakeModel) -> None:
    offered = {"wikihow/1": "Make Jell-O Shots", "wikihow/2": "Café au lait kochen", "wikihow/3": "お茶を入れる"}
    add_articles(store, "wikihow", offered | {"wikihow/4": "make jell o SHOTS!", "wikihow/5": "水を飲む"})
    tasks = {
        "crosstask/7": "How to make jell-o shots",
        "crosstask/8": "Caf au lait kochen",
        "crosstask/9": "水を飲む",
        "crosstask/10": "???",
    }
    add_articles(store, "crosstask", tasks, with_steps=False)
    named = {
        "by id": "wikihow/4",
        "by title": "crosstask/7",
        "other letters": "crosstask/8",
        "in Japanese": "crosstask/9",
        "no letters": "crosstask/10",
        "unheard of": "howto100m/9999",
        "nothing named": None,
    }
    add_videos(store, "howto100m", named)
    add_videos(store, "crosstask", {"by id": "crosstask/7"})
    add_narrations(store, "howto100m", {video: ["Stir"] for video in named})
    make_pairs(store)
    assert rows_of(store, "pairs", "video_id", "article_id", "rank", "confidence", selection="metadata") == [
        ("by id", "wikihow/4", None, None),
        ("by title", "wikihow/1", None, None),
        ("in Japanese", "wikihow/5", None, None),
    ]
    assert rows_of(store, "rejects", "item", "reason", "detail", stage="pairing") == [
        (video, "unknown task", f"wikihow has no article for {named[video]}")
        for video in ("no letters", "other letters", "unheard of")
    ]


def test_what_cannot_be_paired_is_rejected_until_it_can(store: Store, model: FakeModel) -> None:
    add_articles(store, "wikihow", {"wikihow/1": "Make Tea"})
    add_videos(store, "howto100m", {"silent": "wikihow/1", "it's lost": "wikihow/2", "both": "wikihow/2", "fine": None})
    add_narrations(store, "howto100m", {"it's lost": ["a"], "fine": ["b"]})
    make_pairs(store)
    assert rows_of(store, "rejects", "item", "reason", stage="pairing") == [
        ("both", "no narrations"),
        ("both", "unknown task"),
        ("it's lost", "unknown task"),
        ("silent", "no narrations"),
    ]
    assert rows_of(store, "pairs", "video_id", selection="metadata") == [("silent",)]
    add_articles(store, "youwikihow", {"wikihow/2": 'Boil "Water"'})
    add_narrations(store, "videos", {"silent": ["c"], "both": ["d"]})
    make_pairs(store, articles="youwikihow")
    assert rows_of(store, "rejects", "item", stage="pairing") == [("silent",)]
    add_videos(store, "howto100m", {"fine": None})
    make_pairs(store, articles="youwikihow")
    assert rows_of(store, "rejects", "item", stage="pairing") == []


def test_quotes_in_ids_titles_texts_and_names_are_letters_like_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeModel().install(monkeypatch, "a 'quoted' \"model\" %s {x}@1")
    titles = {"it's/1'": 'Don\'t "stir" 100%', "it's/2": "x'; DROP TABLE votes; --"}
    add_articles(store, "it's", titles)
    said = {"v'1": ['it\'s "hot"', "o'clock\nand more", "\\'"], '"v2"': ["don't"]}
    add_narrations(store, "a 'source'", said, "shard '0'")
    add_videos(store, "a 'source'", {"v'1": "it's/1'"})
    make_pairs(store, articles="it's")
    check = {video: brute_force(texts, titles)[0][1] for video, texts in said.items()}
    assert dict(rows_of(store, "pairs", "video_id", "article_id", selection="top1")) == check
    assert rows_of(store, "pairs", "video_id", "article_id", selection="metadata") == [("v'1", "it's/1'")]


def test_without_narrations_or_articles_the_stage_says_so(store: Store, model: FakeModel) -> None:
    assert make_pairs(store) == "there are no narrations: nobody votes"
    add_narrations(store, "howto100m", {"v": ["text 1"]})
    assert "no articles of wikihow with steps" in make_pairs(store) and "(here: none yet)" in make_pairs(store)
    add_articles(store, "wikihow", {"wikihow/1": "Make Tea"}, with_steps=False)
    add_articles(store, "youwikihow", {"youwikihow/1": "Make Tea"})
    assert "(here: youwikihow)" in make_pairs(store)
    with pytest.raises(NoCandidates, match=r"no articles of nowhere .* \(here: youwikihow\)"):
        make_pairs(store, articles="nowhere")
    assert versions_of(store)["sentence_embeddings"] == -1 and model.texts == []


def test_hubs_are_told_by_the_narrations_with_the_smallest_hashes(
    store: Store, model: FakeModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither titles nor the order in which narrations came count."""
    monkeypatch.setattr(votes, "SAMPLE", 12)
    titles, _ = random_corpus(store, 1)
    make_pairs(store, texts_per_shard=5)
    add_narrations(store, "howto100m", {"late": [f"late {number}" for number in range(20)]}, "late")
    make_pairs(store, texts_per_shard=5, correct_hubs=True)
    hashes = sorted(row["h"] for row in ask(store, "SELECT DISTINCT sha256(text) AS h FROM narrations"))[:12]
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


def rank_by_hand(store: Store, counts: Mapping[str, Sequence[tuple[str, int, float]]]) -> None:
    rows = []
    for video, ranking in counts.items():
        for place, (article, count, total) in enumerate(ranking, 1):
            rows.append(
                {
                    "video_id": video,
                    "rank": place,
                    "article_id": article,
                    "votes": count,
                    "similarity_sum": total,
                    "num_narrations": sum(row[1] for row in ranking),
                }
            )
    table = store.table("votes")
    table.commit(table.schema.files.empty_table().from_pylist(rows), {"model": "m@1"}, "0", fingerprint="f", run_id="r")


def test_the_views_say_what_a_person_would_count(store: Store) -> None:
    add_articles(store, "wikihow", {name: f"Title {name}" for name in "abcdefg"})
    rank_by_hand(
        store,
        {
            "right": [("a", 8, 4.0), ("b", 2, 1.0)],  # margin 0.6
            "close": [("b", 3, 2.0), ("a", 2, 1.0)],  # margin 0.2, wrong, second
            "tied": [("c", 1, 0.9), ("a", 1, 0.8)],  # margin 0, similarity 0.1
            "late": [(name, 1, 0.5) for name in "bcdefa"],  # margin 0, wrong, sixth
            "unnamed": [("g", 5, 5.0)],
        },
    )
    pairs = store.table("pairs")
    named = {"right": "a", "close": "a", "tied": "c", "late": "a", "without votes": "g"}
    rows = [{"video_id": video, "article_id": article} for video, article in named.items()]
    files = pairs.schema.files
    pairs.commit(
        files.empty_table().from_pylist(rows, schema=files),
        {"selection": "metadata"},
        "all",
        fingerprint="f",
        run_id="r",
    )
    assert ask(store, "FROM pairing_agreement") == [
        {"model": "m@1", "videos": 4, "top1_percent": 50.0, "top5_percent": 75.0}
    ]
    # Places by confidence, of 4: late 0 %, tied 33 %, close 67 %, right 100 %.
    table = [tuple(row.values())[1:] for row in ask(store, "FROM pairing_by_confidence")]
    assert table == [
        (0, 4, 0.0, 50.0),
        (10, 3, 0.0, 66.67),
        (25, 3, 0.0, 66.67),
        (50, 2, 0.2, 50.0),
        (75, 1, 0.6, 100.0),
        (90, 1, 0.6, 100.0),
    ]
    hubs = [tuple(row.values())[1:] for row in ask(store, "FROM hub_titles")]
    assert hubs == [
        ("a", "Title a", 12, 42.86, 1, 3),
        ("b", "Title b", 6, 21.43, 2, 0),
        ("g", "Title g", 5, 17.86, 1, 1),
        ("c", "Title c", 2, 7.14, 1, 1),
        ("d", "Title d", 1, 3.57, 0, 0),
        ("e", "Title e", 1, 3.57, 0, 0),
        ("f", "Title f", 1, 3.57, 0, 0),
    ]
