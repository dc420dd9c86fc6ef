"""What training reads: videos with features, their narrations, and the articles they are paired with.

Features are read when they are needed; texts and lists are held. What a benchmark holds out is never trained on.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage import Store, fingerprint_of
from storage.catalogue import Catalogue, quoted
from storage.feature_reader import FeatureReader
from storage.fingerprint import content_hash
from storage.vectors import Floats
from tasks.pipeline.text_embedding import MEMORY_LIMIT

Span = tuple[float, float]
VERSION = "4"


@dataclass(frozen=True)
class Narrations:
    """A video's narrations in spoken order, and when each is said."""

    texts: list[str]
    spans: list[Span]


class Corpus:
    """The store's videos for one backbone and one selection of articles."""

    def __init__(self, store: Store, backbone: str, selection: str) -> None:
        self.store, self.backbone, self.selection = store, backbone, selection
        self.reader = FeatureReader(store, backbone)
        self.num_seconds = self.reader.num_seconds
        with Catalogue(store, MEMORY_LIMIT) as catalogue:
            said = catalogue.query(_SPOKEN)
            self._said = said.drop_columns(["video_id"]).combine_chunks()
            self._places = _places(said["video_id"])
            steps = catalogue.query("SELECT article_id, headline FROM steps ORDER BY article_id, row")
            self._pairs = catalogue.query(
                f"SELECT video_id, article_id FROM pairs WHERE selection = {quoted(selection)} ORDER BY video_id, rank"
            )
            written = catalogue.query("SELECT DISTINCT video_id, article_id FROM pairs")
            held_out = catalogue.query(_HELD_OUT)
        self.steps = _grouped(steps["article_id"], steps["headline"].to_pylist())
        self.articles = _grouped(self._pairs["video_id"], self._pairs["article_id"].to_pylist())
        self.held_out = set(held_out["video_id"].to_pylist())
        self._written = self._to_learn(written)

    @cached_property
    def narrated(self) -> list[str]:
        """The videos to train narrations on, in the order of their ids."""
        return [name for name in self.num_seconds if name in self._places and name not in self.held_out]

    @cached_property
    def paired(self) -> list[str]:
        """The videos to train steps on: those that are paired with articles that have steps."""
        known = (name for name in self.num_seconds if name in self.articles and name not in self.held_out)
        return [name for name in known if any(article in self.steps for article in self.articles[name])]

    @cached_property
    def version(self) -> str:
        """Changes with what training reads, but for its words."""
        pairs = self._pairs.filter(pc.is_in(self._pairs["video_id"], self._seen))
        steps = {article: self.steps[article] for article in self._to_learn(self._pairs)}
        inputs = {"narrated": self.narrated_version, "pairs": content_hash([pairs.combine_chunks()])}
        return fingerprint_of({"steps": steps}, inputs, VERSION)

    @cached_property
    def narrated_version(self) -> str:
        """Changes with what is seen and said in videos that may be trained on: all that TAN* learns from.

        Held-out videos that come in later have shards of their own, and change nothing.
        """
        with Catalogue(self.store, MEMORY_LIMIT) as catalogue:
            said = catalogue.query("SELECT DISTINCT video_id, _fingerprint FROM narrations")
        heard = said.filter(pc.is_in(said["video_id"], self._seen))["_fingerprint"].unique().to_pylist()
        shown = self.reader.fingerprints(set(self._seen.to_pylist()))
        return fingerprint_of({"videos": self._seen.to_pylist(), "said": sorted(heard), "shown": shown}, {}, VERSION)

    @cached_property
    def words_version(self) -> str:
        """Changes with `sentences`."""
        steps = {article: self.steps[article] for article in self._written}
        return fingerprint_of({"steps": steps}, {"narrated": self.narrated_version}, VERSION)

    @cached_property
    def _seen(self) -> pa.Array:
        """The videos that may be trained on."""
        return pa.array([name for name in self.num_seconds if name not in self.held_out], pa.string())

    def _to_learn(self, pairs: pa.Table) -> list[str]:
        """The articles with steps among the pairs of videos that may be trained on."""
        chosen = pairs.filter(pc.is_in(pairs["video_id"], self._seen))["article_id"].unique().to_pylist()
        return sorted(article for article in chosen if article in self.steps)

    @cached_property
    def video_width(self) -> int:
        """Numbers in a feature vector."""
        return int(self.reader.read(next(iter(self.num_seconds))).shape[1])

    @cached_property
    def feature_scale(self) -> float:
        """The features' standard deviation, over some of the videos to train on: the unit of noise."""
        some = self._seen.to_pylist()[:: max(len(self._seen) // 50, 1)][:50]
        return float(np.concatenate([self.reader.read(name) for name in some]).astype(np.float32).std())

    def features(self, video_id: str) -> Floats:
        """T x V; a ValueError if a value is not finite."""
        vectors = self.reader.read(video_id)
        if not np.isfinite(vectors).all():
            second = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise ValueError(
                f"the {self.backbone} features of video {video_id!r} are not finite in second {second}: make them anew"
            )
        return vectors

    def narrations(self, video_id: str) -> Narrations:
        """What is said in a video; nothing, if it has no narrations."""
        begin, end = self._places.get(video_id, (0, 0))
        rows = self._said.slice(begin, end - begin).to_pydict()
        return Narrations(rows["text"], list(zip(rows["start_s"], rows["end_s"], strict=True)))

    def with_steps(self, steps: Mapping[str, list[str]]) -> "Corpus":
        """The same videos with other articles: a benchmark's."""
        other = copy(self)
        other.steps = steps
        return other

    def sentences(self) -> list[str]:
        """All that is said in what is trained on, and written in articles that any selection pairs it with: for word
        vectors, which are the same whichever articles are chosen."""
        said = [text for name in self.narrated for text in self.narrations(name).texts]
        return [*said, *(step for article in self._written for step in self.steps[article])]


def corpus_of(store: Store, backbone: str, selection: str) -> Corpus:
    """The corpus as it is now; read anew only if it has changed since this was last asked."""
    global _last
    tables = {name: store.table(name).snapshot() for name in ("narrations", "steps", "annotations", "videos", "pairs")}
    tables["features"] = store.table("features").snapshot().where(backbone=backbone)
    versions = {name: snapshot.content_version for name, snapshot in tables.items()}
    key = fingerprint_of({"store": store.uri, "backbone": backbone, "selection": selection}, versions, VERSION)
    if _last is None or _last[0] != key:
        _last = key, Corpus(store, backbone, selection)
    return _last[1]


_last: tuple[str, Corpus] | None = None
_HELD_OUT = """
    SELECT video_id FROM annotations WHERE split <> 'train'
    UNION SELECT video_id FROM videos WHERE split IS NOT NULL AND split <> 'train'"""
_SPOKEN = """
    SELECT video_id, text, start_s, end_s FROM video_narrations ORDER BY video_id, row"""


def _places(keys: pa.ChunkedArray) -> dict[str, tuple[int, int]]:
    """Where each key's rows begin and end, in a column in which they stand together."""
    runs = pc.run_end_encode(keys.combine_chunks())
    ends = runs.run_ends.to_pylist()
    return dict(zip(runs.values.to_pylist(), pairwise([0, *ends]), strict=True))


def _grouped(keys: pa.ChunkedArray, values: Sequence[str]) -> Mapping[str, list[str]]:
    return {key: list(values[begin:end]) for key, (begin, end) in _places(keys).items()}
