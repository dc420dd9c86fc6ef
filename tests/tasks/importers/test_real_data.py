"""The published annotation files themselves, where the variable VINA_DATA names a folder that has them."""

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

from storage import Store
from storage.catalogue import Catalogue
from tasks.importers.sources import import_source

DATA = Path(os.environ.get("VINA_DATA", ""))
pytestmark = pytest.mark.skipif("VINA_DATA" not in os.environ, reason="VINA_DATA names no folder of real files")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("real") / "store")
    for source, folder in (
        ("crosstask", "crosstask"),
        ("htstep", "htstep"),
        ("coin", "coin"),
        ("youwikihow", "youwikihow"),
        ("videos", "narrations_sample"),
    ):
        summary = import_source(store, "run-1", source, DATA / folder)
        assert summary.damaged == []
        repeated = {"duplicate id": 360} if source == "youwikihow" else {}  # its test list names 360 videos twice
        assert dict(summary.rejected) == repeated
    return store


def ask(store: Store, query: str) -> list[tuple[object, ...]]:
    with Catalogue(store) as catalogue:
        return [tuple(row.values()) for row in catalogue.query(query).to_pylist()]


def test_crosstask(corpus: Store) -> None:
    assert ask(corpus, "SELECT category, count(*) FROM articles WHERE source = 'crosstask' GROUP BY 1 ORDER BY 1") == [
        ("primary", 18),
        ("related", 65),
    ]
    rows = ask(corpus, "SELECT count(*), count(*) FILTER (split = 'validation') FROM videos WHERE source = 'crosstask'")
    assert rows == [(4_700, 360)]
    assert ask(corpus, "SELECT count(*), count(DISTINCT video_id) FROM annotations WHERE benchmark = 'crosstask'") == [
        (20_919, 2_750)
    ]
    past_the_end = """SELECT count(*) FROM annotations a JOIN videos v USING (video_id, article_id)
        WHERE benchmark = 'crosstask' AND a.end_s > v.duration_s + 1"""
    assert ask(corpus, past_the_end) == [(39,)]
    primary_steps = """SELECT count(*), count(DISTINCT headline) FROM steps JOIN articles USING (article_id)
        WHERE articles.source = 'crosstask' AND category = 'primary'"""
    assert ask(corpus, primary_steps) == [(133, 105)]


def test_ids_that_begin_with_odd_characters(corpus: Store) -> None:
    folder = DATA / "crosstask/crosstask_release/annotations"
    expected = {path.stem.split("_", 1)[1] for path in folder.glob("*.csv")}
    found = {
        str(video)
        for (video,) in ask(corpus, "SELECT DISTINCT video_id FROM annotations WHERE benchmark = 'crosstask'")
    }
    assert found == expected and any(video[0] in "_-" for video in found)


def test_htstep(corpus: Store) -> None:
    query = (
        "SELECT count(*), count(DISTINCT video_id), count(DISTINCT split) FROM annotations WHERE benchmark = 'htstep'"
    )
    assert ask(corpus, query) == [(3_441, 600, 1)]
    assert ask(corpus, "SELECT count(*), max(step_id::INT) FROM steps WHERE source = 'htstep'") == [(4_958, 5_784)]
    splits = ask(corpus, "SELECT split, count(*) FROM videos WHERE source = 'htstep' GROUP BY 1")
    assert dict(splits) == {"train": 17_472, "val_seen": 600, "val_unseen": 963, "test_seen": 600, "test_unseen": 1_000}
    labels = json.loads((DATA / "htstep/annotations.json").read_text())
    given = {
        (video, str(shown["id"]), shown["label"]) for video, value in labels.items() for shown in value["annotations"]
    }
    assert (
        set(ask(corpus, "SELECT DISTINCT video_id, step_id, text FROM annotations WHERE benchmark = 'htstep'")) == given
    )


def test_coin(corpus: Store) -> None:
    query = "SELECT split, count(*), count(DISTINCT video_id) FROM annotations WHERE benchmark = 'coin' GROUP BY 1"
    assert ask(corpus, query) == [("testing", 9_190, 2_354)]
    assert ask(corpus, "SELECT count(*), count(duration_s) FROM videos WHERE source = 'coin'") == [(2_354, 2_354)]
    database = json.loads((DATA / "coin/COIN.json").read_text())["database"]
    labels = {
        (f"coin/{video['class']}", shown["id"], " ".join(shown["label"].split()))  # one label has two spaces in a row
        for video in database.values()
        for shown in video["annotation"]
    }
    steps = ask(corpus, "SELECT article_id, step_id, headline FROM steps WHERE source = 'coin' ORDER BY ALL")
    assert sorted(labels) == steps and len(steps) == 774
    rows = ask(corpus, "SELECT article_id, step_id::INT FROM steps WHERE source = 'coin' ORDER BY article_id, row")
    assert rows == sorted(rows) and len({article for article, _ in rows}) == 180
    title = ask(corpus, "SELECT title FROM articles WHERE article_id = 'coin/ReplaceCDDriveWithSSD'")
    assert title == [("Replace CD Drive With SSD",)]


def test_youwikihow(corpus: Store) -> None:
    assert ask(corpus, "SELECT count(*) FROM articles WHERE source = 'youwikihow'") == [(1_383,)]
    assert ask(corpus, "SELECT count(*) FROM steps WHERE source = 'youwikihow'") == [(8_720,)]
    assert ask(corpus, "SELECT count(*), count(DISTINCT video_id) FROM videos WHERE source = 'youwikihow'") == [
        (46_902, 46_902)
    ]
    titles = ask(corpus, "SELECT title, variation FROM articles WHERE article_id = 'crosstask-articles/23521'")
    assert titles == [("Make Jello Shots", "1")]


def test_article_grounding(corpus: Store) -> None:
    query = """SELECT count(DISTINCT article_id), count(DISTINCT video_id) FROM annotations
        WHERE benchmark = 'crosstask-articles' AND split = 'test'"""
    assert ask(corpus, query) == [(15, 2_407)]
    segments = """SELECT count(DISTINCT (video_id, start_s, end_s, article_id)) FROM annotations
        WHERE benchmark = '{}'"""
    assert ask(corpus, segments.format("crosstask-articles")) == ask(corpus, segments.format("crosstask"))


def test_captions_become_sentences_that_do_not_overlap(corpus: Store) -> None:
    rows = ask(corpus, "SELECT video_id, row, text, start_s, end_s FROM narrations ORDER BY video_id, row")
    assert len({row[0] for row in rows}) == 2
    for (video, _, text, start, end), (following, _, _, begin, _) in pairwise(rows):
        assert text and start < end and (video != following or end <= begin)
    for path in (DATA / "narrations_sample").rglob("*.srt"):
        spoken = [line for line in path.read_text().splitlines() if line and "-->" not in line and not line.isdigit()]
        stored = [str(row[2]) for row in rows if row[0] == path.stem]
        assert " ".join(stored).split() == " ".join(spoken).split()
