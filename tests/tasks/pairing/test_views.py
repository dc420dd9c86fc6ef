"""What the views say of votes and pairs, as a person would count it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from storage import Store
from tasks.pairing.candidates import candidates_of
from tasks.pairing.pairs import write_pairs
from tasks.pairing.plot import draw_accuracy
from tests.tasks.pairing.corpora import add_articles, add_videos, ask

Counts = Mapping[str, Sequence[tuple[str, int, float]]]


def rank_by_hand(store: Store, counts: Counts, encoder: str = "m@1") -> None:
    """Votes: of each video its articles in their order, their votes, and their summed similarities."""
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
    found = pa.Table.from_pylist(rows, schema=table.schema.files)
    table.commit(found, {"encoder": encoder}, "0", fingerprint="f", run_id="r")


def pair_by_hand(store: Store, counts: Counts, tasks: Mapping[str, str | None]) -> None:
    """Pairs by these votes and tasks."""
    rank_by_hand(store, counts)
    add_videos(store, "howto100m", tasks)
    write_pairs(store, "r", "mark", "m@1", candidates_of(store, None))


def test_the_views_say_what_a_person_would_count(store: Store) -> None:
    add_articles(store, "wikihow", {name: f"Title {name}" for name in "abcdefg"})
    counts = {
        "right": [("a", 8, 4.0), ("b", 2, 1.0)],  # margins 0.6 and 3
        "close": [("b", 3, 2.0), ("a", 2, 2.5)],  # margins 0.2 and -0.5, wrong, second
        "tied": [("c", 1, 0.75), ("a", 1, 0.5)],  # margins 0 and 0.25
        "late": [(name, 1, 0.5) for name in "bcdefa"],  # margins 0 and 0, wrong, sixth
        "unnamed": [("g", 5, 5.0)],
    }
    named = {"right": "a", "close": "a", "tied": "c", "late": "a", "unnamed": None, "without votes": "g"}
    rank_by_hand(store, {"right": [("b", 9, 9.0)]}, "a model that voted before@1")
    pair_by_hand(store, counts, named)
    assert ask(store, "FROM pairing_agreement") == [
        {"encoder": "m@1", "videos": 4, "top1_percent": 50.0, "top5_percent": 75.0}
    ]
    # By votes: late, tied, close, right. By similarity: close, late, tied, right. None of 4 is in the last tenth.
    table = [tuple(row.values())[1:] for row in ask(store, "FROM pairing_by_confidence")]
    assert table == [
        (0, 4, 50.0, 50.0),
        (10, 3, 66.67, 66.67),
        (25, 3, 66.67, 66.67),
        (50, 2, 50.0, 100.0),
        (75, 1, 100.0, 100.0),
    ]
    hubs = [tuple(row.values()) for row in ask(store, "FROM hub_titles")]
    assert hubs == [
        ("m@1", "a", "Title a", 12, 42.86, 1, 3),
        ("m@1", "b", "Title b", 6, 21.43, 2, 0),
        ("m@1", "g", "Title g", 5, 17.86, 1, 1),
        ("m@1", "c", "Title c", 2, 7.14, 1, 1),
        ("m@1", "d", "Title d", 1, 3.57, 0, 0),
        ("m@1", "e", "Title e", 1, 3.57, 0, 0),
        ("m@1", "f", "Title f", 1, 3.57, 0, 0),
    ]


def test_a_vote_for_an_equal_title_is_right(store: Store) -> None:
    """Two articles with the same title cannot be distinguished by it."""
    add_articles(store, "wikihow", {"a": "Make Tea", "b": "How to make tea!", "c": "Make Teacups"})
    add_articles(store, "youwikihow", {"a": "Make Tea"})
    counts = {
        "equal title": [("b", 2, 2.0)],
        "same article": [("a", 2, 2.0)],
        "both": [("b", 2, 2.0), ("a", 1, 1.0)],
        "second": [("c", 2, 2.0), ("b", 1, 1.0)],
        "neither": [("c", 2, 2.0)],
    }
    pair_by_hand(store, counts, dict.fromkeys(counts, "a"))
    assert ask(store, "FROM pairing_agreement") == [
        {"encoder": "m@1", "videos": 5, "top1_percent": 60.0, "top5_percent": 80.0}
    ]


def test_one_video_is_told_and_drawn_too(store: Store, tmp_path: Path) -> None:
    add_articles(store, "wikihow", {"a": "Make Tea"})
    pair_by_hand(store, {"v": [("a", 1, 1.0)]}, {"v": "a"})
    rows = ask(store, "FROM pairing_by_confidence")
    assert [tuple(row.values()) for row in rows] == [("m@1", 0, 1, 100.0, 100.0)]
    draw_accuracy(rows, tmp_path / "plot.svg")
    drawn = (tmp_path / "plot.svg").read_text()
    assert "<!-- m@1, by vote margin (1 videos) -->" in drawn and "by similarity margin (1 videos) -->" in drawn
