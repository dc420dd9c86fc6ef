"""The articles that videos can be paired with."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from storage import Store
from storage.catalogue import Catalogue, quoted
from storage.fingerprint import fingerprint_of
from storage.snapshot import Snapshot
from storage.vectors import decode
from storage.views import TITLE_KEY

DEFAULT_SOURCE = "wikihow"
OFFERED = f"FROM articles SEMI JOIN steps USING (source, article_id) WHERE {TITLE_KEY} IS NOT NULL"
"""Articles that can be voted for: they have steps, and a title with a letter or digit."""


class NoCandidates(ValueError):
    """There are no articles to vote for."""


@dataclass(frozen=True)
class CandidateArticles:
    """Articles with steps, in the order of their ids: among equal titles the first one gets the votes."""

    source: str
    article_ids: list[str]
    titles: list[str]

    @property
    def titles_sql(self) -> str:
        """Query for their titles, as the column `text`."""
        return f"SELECT title AS text FROM ({OFFERED}) WHERE source = {quoted(self.source)}"

    @property
    def version(self) -> str:
        """A hash that changes with the articles."""
        return fingerprint_of({"articles": self.article_ids, "titles": self.titles}, {}, "1")

    def vectors(self, embedded: Snapshot) -> npt.NDArray[np.float16]:
        """Return the embeddings of the titles, row by row, from those of an encoder."""
        wanted = pc.field("text").isin(pa.array(sorted(set(self.titles)), pa.string()))
        by_title: dict[str, npt.NDArray[np.float16]] = {}
        for shard in embedded.shards:  # one at a time, to bound the memory: titles are few of their rows
            rows = embedded.where(_shard=shard.name).read(["text", "vector"], where=wanted)
            vectors = np.asarray(decode(rows["vector"], "float16"), np.float16)
            by_title.update(zip(rows["text"].to_pylist(), vectors, strict=True))
        return np.stack([by_title[title] for title in self.titles])


def candidates_of(store: Store, source: str | None) -> CandidateArticles:
    """Return the articles of a source (default: wikiHow) that have steps. Raise NoCandidates if there are none."""
    source = DEFAULT_SOURCE if source is None else source
    with Catalogue(store) as catalogue:
        offered = catalogue.query(f"SELECT source, article_id, title FROM ({OFFERED}) ORDER BY ALL")
    rows = [row for row in offered.to_pylist() if row["source"] == source]
    if not rows:
        sources = ", ".join(sorted({row["source"] for row in offered.to_pylist()})) or "none yet"
        raise NoCandidates(
            f"the store has no articles of {source} with steps: import them, or name a source that has some with "
            f"articles=SOURCE (here: {sources})"
        )
    return CandidateArticles(source, [row["article_id"] for row in rows], [row["title"] for row in rows])
