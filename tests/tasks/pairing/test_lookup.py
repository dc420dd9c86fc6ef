"""One video's vote: as the stage counted it, or cast now."""

import pytest

from storage import Store
from tasks.pairing.lookup import Lookup, look_up
from tasks.pairing.settings import PairingSettings
from tests.tasks.pairing.corpora import FakeEncoder, add_narrations, make_pairs, rows_of, versions_of

pytestmark = pytest.mark.slow

NOW = PairingSettings(device="cpu")


def content(found: Lookup) -> object:
    ranking = [(one.article_id, one.title, one.votes, pytest.approx(one.similarity_sum)) for one in found.ranking]
    return found.encoder, found.ballots, ranking


def test_what_was_counted_is_what_a_vote_now_would_give(corpus: Store, encoder: FakeEncoder) -> None:
    """Of videos that two sources speak in too: the first one's narrations count."""
    make_pairs(corpus, texts_per_shard=5)
    encoder.texts.clear()
    videos = sorted({video for (video,) in rows_of(corpus, "narrations", "video_id")})[::3]
    stored = {video: look_up(corpus, video) for video in videos}
    assert encoder.texts == [], "what is stored needs no model"
    before = versions_of(corpus)
    for video, found in stored.items():
        assert content(look_up(corpus, video, NOW)) == content(found)
    assert encoder.texts and versions_of(corpus) == before
    assert any(video.startswith("shared") for video in videos)


def test_the_model_is_that_of_the_pairs_or_the_one_asked_for(corpus: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one@1", "two@2", "one@1"):  # the last time its votes are there
        FakeEncoder().install(monkeypatch, name)
        make_pairs(corpus)
    FakeEncoder().install(monkeypatch, "three@3")
    video = rows_of(corpus, "votes", "video_id")[0][0]
    assert look_up(corpus, video).encoder == "one@1"
    assert look_up(corpus, video, NOW).encoder == "three@3"


def test_a_video_that_has_not_voted_votes_now(corpus: Store, encoder: FakeEncoder) -> None:
    make_pairs(corpus)
    add_narrations(corpus, "howto100m", {"new": ["a new text", "text 1"]}, "new")
    found = look_up(corpus, "new")
    assert [ballot.text for ballot in found.ballots] == ["a new text", "text 1"]
    assert sum(ranked.votes for ranked in found.ranking) == 2


def test_votes_of_a_run_that_did_not_come_to_pairs_do_not_count(corpus: Store, encoder: FakeEncoder) -> None:
    make_pairs(corpus)
    for selection in ("top1", "random_top5"):
        corpus.table("pairs").retire({"selection": selection})
    encoder.texts.clear()
    look_up(corpus, rows_of(corpus, "votes", "video_id")[0][0])
    assert encoder.texts
