"""Pairs by metadata, and the videos that none fits."""

import pytest

from storage import Store
from tasks.pairing.candidates import NoCandidates
from tests.tasks.pairing.corpora import FakeEncoder, add_articles, add_narrations, add_videos, make_pairs, rows_of


def test_metadata_is_found_by_id_and_by_equal_title(store: Store, encoder: FakeEncoder) -> None:
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


def test_what_cannot_be_paired_is_rejected_until_it_can(store: Store, encoder: FakeEncoder) -> None:
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


def test_of_two_tasks_one_that_has_an_article_is_taken(store: Store, encoder: FakeEncoder) -> None:
    add_articles(store, "wikihow", {"wikihow/1": "Make Tea", "wikihow/2": "Boil Water"})
    add_videos(store, "howto100m", {"one known": "wikihow/99", "both known": "wikihow/2", "none known": "wikihow/99"})
    add_videos(store, "crosstask", {"one known": "wikihow/1", "both known": "wikihow/1", "none known": "wikihow/98"})
    make_pairs(store)
    assert rows_of(store, "pairs", "video_id", "article_id", selection="metadata") == [
        ("both known", "wikihow/2"),
        ("one known", "wikihow/1"),
    ]
    unknown = [row for row in rows_of(store, "rejects", "item", "detail", "reason") if row[2] == "unknown task"]
    assert [row[:2] for row in unknown] == [("none known", "wikihow has no article for wikihow/99")]


def test_titles_without_letters_are_no_candidates(store: Store, encoder: FakeEncoder) -> None:
    add_articles(store, "youwikihow", {"youwikihow/1": "?!", "youwikihow/2": "How to ..."})
    add_videos(store, "howto100m", {"v": "youwikihow/1"})
    add_narrations(store, "howto100m", {"v": ["?!", "?!", "How to ..."]})
    with pytest.raises(NoCandidates, match=r"no articles of youwikihow .*\(here: none yet\)"):
        make_pairs(store, articles="youwikihow")
    add_articles(store, "wikihow", {"wikihow/1": "...", "wikihow/2": "お茶", "wikihow/3": "5"})
    make_pairs(store)
    assert {article for (article,) in rows_of(store, "votes", "article_id")} <= {"wikihow/2", "wikihow/3"}
    assert {text for (text,) in rows_of(store, "sentence_embeddings", "text")} == {"?!", "How to ...", "お茶", "5"}
    assert rows_of(store, "pairs", "video_id", selection="metadata") == []
