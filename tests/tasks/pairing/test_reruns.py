"""The stage run again: after nothing, after a change of what it reads, after a broken model or a killed process."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from storage import Store
from tasks.pairing.candidates import NoCandidates
from tests.tasks.pairing.corpora import (
    FakeEncoder,
    add_articles,
    add_narrations,
    add_rows,
    add_videos,
    ask,
    make_pairs,
    random_corpus,
    rows_of,
    tables_of,
    versions_of,
)

pytestmark = pytest.mark.slow


def test_a_rerun_changes_nothing(corpus: Store, encoder: FakeEncoder) -> None:
    make_pairs(corpus)
    before, embedded = versions_of(corpus), len(encoder.texts)
    assert len(set(encoder.texts)) == embedded, "a text was embedded twice"
    assert "nothing has changed since fake@1 voted" in make_pairs(corpus, "run-2")
    assert versions_of(corpus) == before and len(encoder.texts) == embedded


def test_new_narrations_embed_new_texts_only_and_end_as_if_all_had_come_at_once(
    corpus: Store, encoder: FakeEncoder, tmp_path: Path
) -> None:
    make_pairs(corpus, texts_per_shard=5)
    known = set(encoder.texts)
    more = {"late": ["text 3", "a new text", "nor this"]}
    add_narrations(corpus, "howto100m", more, "late")
    encoder.texts.clear()
    assert "embedded 2 new texts" in make_pairs(corpus, "run-2", texts_per_shard=5)
    assert sorted(encoder.texts) == sorted(set(more["late"]) - known)
    fresh = Store(tmp_path / "fresh")
    random_corpus(fresh, 1)
    add_narrations(fresh, "howto100m", more, "late")
    make_pairs(fresh)
    assert tables_of(fresh) == tables_of(corpus)


def test_new_articles_change_votes_and_keep_embeddings(corpus: Store, encoder: FakeEncoder) -> None:
    make_pairs(corpus)
    before, kept = tables_of(corpus), [shard.path for shard in corpus.table("sentence_embeddings").snapshot().shards]
    titles = {f"wikihow/new-{number}": f"new title {number}" for number in range(12)}
    add_rows(corpus, "articles", "wikihow", [{"article_id": name, "title": titles[name]} for name in titles], "new")
    steps = [{"article_id": name, "row": 0, "step_id": name, "headline": "Stir"} for name in titles]
    add_rows(corpus, "steps", "wikihow", steps, "new")
    encoder.texts.clear()
    make_pairs(corpus, "run-2")
    assert sorted(encoder.texts) == sorted(titles.values())
    after = tables_of(corpus)
    assert after["votes"] != before["votes"]
    assert set(kept) < {shard.path for shard in corpus.table("sentence_embeddings").snapshot().shards}


def test_narrations_that_are_gone_leave_no_votes(corpus: Store, encoder: FakeEncoder) -> None:
    add_narrations(corpus, "htm-align", {"gone": ["text 1"]}, "gone")
    make_pairs(corpus)
    assert "gone" in {video for (video,) in rows_of(corpus, "votes", "video_id")}
    corpus.table("narrations").retire({"source": "htm-align"})
    make_pairs(corpus, "run-2")
    for table in ("votes", "pairs"):
        assert "gone" not in {video for (video,) in rows_of(corpus, table, "video_id")}


def test_two_models_vote_side_by_side(corpus: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeEncoder().install(monkeypatch, 'it\'s "one"@1')
    make_pairs(corpus)
    FakeEncoder().install(monkeypatch, "two@2")
    make_pairs(corpus)
    counts = [row["n"] for row in ask(corpus, "SELECT encoder, count(*) AS n FROM votes GROUP BY 1")]
    assert len(counts) == 2 and counts[0] == counts[1]


def test_a_model_that_breaks_half_way_is_gone_on_with(
    corpus: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = FakeEncoder(patience=12).install(monkeypatch)
    with pytest.raises(RuntimeError, match="the model broke"):
        make_pairs(corpus, texts_per_shard=4)
    assert len(broken.texts) == 12 and rows_of(corpus, "pairs", "video_id") == []
    whole = FakeEncoder().install(monkeypatch)
    make_pairs(corpus, texts_per_shard=4)
    assert not set(whole.texts) & set(broken.texts)
    undisturbed = Store(tmp_path / "undisturbed")
    random_corpus(undisturbed, 1)
    make_pairs(undisturbed, texts_per_shard=4)
    assert tables_of(undisturbed) == tables_of(corpus)


SLOW = """
import sys, time
from tests.tasks.pairing.corpora import FakeEncoder, make_pairs
from storage import Store

class Patcher:
    setattr = staticmethod(setattr)

class Slow(FakeEncoder):
    def embed(self, texts):
        time.sleep(0.2)
        return super().embed(texts)

Slow().install(Patcher())
make_pairs(Store(sys.argv[1]), texts_per_shard=2)
"""


def test_a_killed_run_is_gone_on_with(corpus: Store, encoder: FakeEncoder, tmp_path: Path) -> None:
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
    assert encoder.texts and not set(encoder.texts) & done
    undisturbed = Store(tmp_path / "undisturbed")
    random_corpus(undisturbed, 1)
    make_pairs(undisturbed, texts_per_shard=2)
    assert tables_of(undisturbed) == tables_of(corpus)


def test_without_narrations_or_articles_the_stage_says_so(store: Store, encoder: FakeEncoder) -> None:
    assert "no articles of wikihow with steps" in make_pairs(store) and "(here: none yet)" in make_pairs(store)
    assert set(versions_of(store).values()) == {-1}
    add_narrations(store, "howto100m", {"v": ["text 1"]})
    assert "(here: none yet)" in make_pairs(store)
    add_articles(store, "wikihow", {"wikihow/1": "Make Tea"}, with_steps=False)
    add_articles(store, "youwikihow", {"youwikihow/1": "Make Tea"})
    assert "(here: youwikihow)" in make_pairs(store)
    with pytest.raises(NoCandidates, match=r"no articles of nowhere .* \(here: youwikihow\)"):
        make_pairs(store, articles="nowhere")
    assert versions_of(store)["sentence_embeddings"] == -1 and encoder.texts == []


def test_without_narrations_videos_are_paired_by_metadata_alone(store: Store, encoder: FakeEncoder) -> None:
    add_articles(store, "wikihow", {"wikihow/1": "Make Tea"})
    add_videos(store, "howto100m", {"v": "wikihow/1", "w": "wikihow/2"})
    assert make_pairs(store) == "there are no narrations: nobody votes; 1 pairs by metadata"
    assert rows_of(store, "pairs", "selection", "video_id", "article_id", "encoder") == [
        ("metadata", "v", "wikihow/1", None)
    ]
    assert rows_of(store, "rejects", "item", "reason", stage="pairing") == [
        ("v", "no narrations"),
        ("w", "no narrations"),
        ("w", "unknown task"),
    ]
    before = versions_of(store)
    make_pairs(store, "run-2")
    assert versions_of(store) == before and encoder.texts == []


def test_narrations_that_are_all_gone_leave_no_votes_of_any_model(
    corpus: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_videos(corpus, "howto100m", {"v": rows_of(corpus, "articles", "article_id", source="wikihow")[0][0]})
    for name in ("one@1", "two@2"):
        FakeEncoder().install(monkeypatch, name)
        make_pairs(corpus)
    whole = tables_of(corpus)
    for source in ("howto100m", "videos"):
        corpus.table("narrations").retire({"source": source})
    assert "nobody votes; 1 pairs by metadata" in make_pairs(corpus, "run-2")
    assert rows_of(corpus, "votes", "video_id") == []
    assert rows_of(corpus, "pairs", "selection", "video_id") == [("metadata", "v")]
    random_corpus(corpus, 1)
    make_pairs(corpus, "run-3")
    assert tables_of(corpus)["pairs"] == whole["pairs"], "they may come again"


def test_without_articles_nothing_is_paired(corpus: Store, encoder: FakeEncoder) -> None:
    add_videos(corpus, "howto100m", {"silent": None})
    make_pairs(corpus)
    before = tables_of(corpus)
    corpus.table("articles").retire({"source": "wikihow"})
    with pytest.raises(NoCandidates):
        make_pairs(corpus, "run-2", articles="wikihow")
    assert tables_of(corpus) == before, "a mistake changes nothing"
    assert "no articles of wikihow with steps" in make_pairs(corpus, "run-2")
    assert rows_of(corpus, "votes", "video_id") == rows_of(corpus, "pairs", "video_id") == []
    assert rows_of(corpus, "rejects", "item", "reason", stage="pairing") == [("silent", "no narrations")]
    versions = versions_of(corpus)
    make_pairs(corpus, "run-3")
    assert versions_of(corpus) == versions


def test_votes_that_are_gone_or_other_ones_are_made_again(corpus: Store, encoder: FakeEncoder) -> None:
    make_pairs(corpus)
    before = tables_of(corpus)
    encoder.texts.clear()
    corpus.table("votes").retire({"encoder": "fake@1"})
    assert "nothing has changed" not in make_pairs(corpus, "run-2")
    assert tables_of(corpus) == before and encoder.texts == []
    make_pairs(corpus, "run-3", articles="youwikihow")
    assert {article for (article,) in rows_of(corpus, "votes", "article_id")} == {"youwikihow/1"}
    make_pairs(corpus, "run-4")
    assert all(tables_of(corpus)[table] == before[table] for table in ("votes", "pairs"))
    assert encoder.texts == ["title of another source"]


def test_new_narrations_are_ranked_alone(corpus: Store, encoder: FakeEncoder) -> None:
    """Of the last source, for others may speak of its videos first."""
    make_pairs(corpus)
    add_narrations(corpus, "videos", {"late": ["a new text", "text 1"]}, "late")
    make_pairs(corpus, "run-2")
    shards = corpus.table("votes").snapshot().shards
    assert [shard.name for shard in shards if shard.written_by == "run-2"] == ["videos/late"] and len(shards) > 2


class Odd(FakeEncoder):
    """Gives wrong numbers."""

    def __init__(self, wrong: float = 0.0, width: int = 3) -> None:
        super().__init__()
        self.wrong, self.width = wrong, width

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float16]:
        vectors = np.resize(super().embed(texts), (len(texts), self.width))
        vectors[[text == "text 7" for text in texts], -1] = self.wrong
        return vectors


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_with_their_text(
    corpus: Store, monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    add_narrations(corpus, "videos", {"v": ["text 7"]}, "more")
    Odd(wrong).install(monkeypatch)
    with pytest.raises(ValueError, match="fake@1 gives numbers that are not finite for the text 'text 7'"):
        make_pairs(corpus)
    assert rows_of(corpus, "sentence_embeddings", "text") == rows_of(corpus, "pairs", "video_id") == []


def test_vectors_of_another_width_than_the_stores_are_refused(corpus: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeEncoder().install(monkeypatch)
    make_pairs(corpus)
    before = tables_of(corpus)
    add_narrations(corpus, "videos", {"v": ["a new text"]}, "more")
    Odd(width=4).install(monkeypatch)
    with pytest.raises(ValueError, match="fake@1 gives 4 numbers per text, but the store has 3"):
        make_pairs(corpus, "run-2")
    assert tables_of(corpus) == before
