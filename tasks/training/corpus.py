"""The training data: videos with features, their narrations, and the articles they are paired with.

Features are read when they are needed; texts and lists are held in memory. Videos that a benchmark holds out are never
trained on.
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
class VideoNarrations:
    """A video's narrations in spoken order, and the span of each in seconds."""

    texts: list[str]
    spans: list[Span]


class Corpus:
    """The store's videos for one backbone and one selection of articles."""

    def __init__(self, store: Store, backbone: str, selection: str) -> None:
        self.store, self.backbone, self.selection = store, backbone, selection
        self.reader = FeatureReader(store, backbone)
        self.num_seconds = self.reader.num_seconds
        with Catalogue(store, MEMORY_LIMIT) as catalogue:
            narrations = catalogue.query(_NARRATIONS)
            self._narrations = narrations.drop_columns(["video_id"]).combine_chunks()
            self._narration_rows = _row_ranges(narrations["video_id"])
            steps = catalogue.query("SELECT article_id, headline FROM steps ORDER BY article_id, row")
            self._pairs = catalogue.query(
                f"SELECT video_id, article_id FROM pairs WHERE selection = {quoted(selection)} ORDER BY video_id, rank"
            )
            all_pairs = catalogue.query("SELECT DISTINCT video_id, article_id FROM pairs")
            held_out = catalogue.query(_HELD_OUT)
        self.steps = _grouped(steps["article_id"], steps["headline"].to_pylist())
        self.articles = _grouped(self._pairs["video_id"], self._pairs["article_id"].to_pylist())
        self.held_out = set(held_out["video_id"].to_pylist())
        self._all_articles = self._articles_to_train(all_pairs)

    @cached_property
    def narrated(self) -> list[str]:
        """The videos to train narrations on: those that have any, in the order of their ids."""
        return [name for name in self.num_seconds if name in self._narration_rows and name not in self.held_out]

    @cached_property
    def paired(self) -> list[str]:
        """The videos to train steps on: those that are paired with articles that have steps."""
        paired = (name for name in self.num_seconds if name in self.articles and name not in self.held_out)
        return [name for name in paired if any(article in self.steps for article in self.articles[name])]

    @cached_property
    def version(self) -> str:
        """A hash of everything that a student is trained on, except its word vectors."""
        pairs = self._pairs.filter(pc.is_in(self._pairs["video_id"], self._trainable))
        steps = {article: self.steps[article] for article in self._articles_to_train(self._pairs)}
        inputs = {"narrated": self.narrated_version, "pairs": content_hash([pairs.combine_chunks()])}
        return fingerprint_of({"steps": steps}, inputs, VERSION)

    @cached_property
    def narrated_version(self) -> str:
        """A hash of the features and narrations of the videos that may be trained on: everything that TAN* learns from.

        Held-out videos that are imported later are in other shards, and do not change it.
        """
        with Catalogue(self.store, MEMORY_LIMIT) as catalogue:
            shards = catalogue.query("SELECT DISTINCT video_id, _fingerprint FROM video_narrations")
        is_trainable = pc.is_in(shards["video_id"], self._trainable)
        narrations = sorted(shards.filter(is_trainable)["_fingerprint"].unique().to_pylist())
        video_ids = self._trainable.to_pylist()
        features = self.reader.fingerprints(set(video_ids))
        # The keys are part of every model's id: another word here would train all models again.
        return fingerprint_of({"videos": video_ids, "said": narrations, "shown": features}, {}, VERSION)

    @cached_property
    def words_version(self) -> str:
        """A hash of what `sentences` reads."""
        steps = {article: self.steps[article] for article in self._all_articles}
        return fingerprint_of({"steps": steps}, {"narrated": self.narrated_version}, VERSION)

    @cached_property
    def _trainable(self) -> pa.Array:
        """The videos that may be trained on."""
        return pa.array([name for name in self.num_seconds if name not in self.held_out], pa.string())

    def _articles_to_train(self, pairs: pa.Table) -> list[str]:
        """Return the articles with steps that are paired with videos that may be trained on."""
        articles = pairs.filter(pc.is_in(pairs["video_id"], self._trainable))["article_id"].unique().to_pylist()
        return sorted(article for article in articles if article in self.steps)

    @cached_property
    def video_width(self) -> int:
        """Width of the feature vectors."""
        return int(self.reader.read(next(iter(self.num_seconds))).shape[1])

    @cached_property
    def feature_scale(self) -> float:
        """Standard deviation of the features of a sample of the videos that may be trained on: the unit of noise."""
        sample = self._trainable.to_pylist()[:: max(len(self._trainable) // 50, 1)][:50]
        return float(np.concatenate([self.features(name) for name in sample]).astype(np.float32).std())

    def features(self, video_id: str) -> Floats:
        """Return a video's features, T x V. Raise ValueError if a value is not finite."""
        vectors = self.reader.read(video_id)
        if not np.isfinite(vectors).all():
            second = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise ValueError(
                f"the {self.backbone} features of video {video_id!r} are not finite in second {second}: make them again"
            )
        return vectors

    def narrations(self, video_id: str) -> VideoNarrations:
        """Return the narrations of a video; empty lists if it has none."""
        begin, end = self._narration_rows.get(video_id, (0, 0))
        rows = self._narrations.slice(begin, end - begin).to_pydict()
        return VideoNarrations(rows["text"], list(zip(rows["start_s"], rows["end_s"], strict=True)))

    def with_steps(self, steps: Mapping[str, list[str]]) -> "Corpus":
        """Return a corpus of the same videos with other articles, e.g. of a benchmark."""
        other = copy(self)
        other.steps = steps
        return other

    def sentences(self) -> list[str]:
        """Return the sentences to train word vectors on: all narrations of the videos to train on, and the steps of all
        articles that any selection pairs them with, so that every selection has the same vectors."""
        narrations = [text for name in self.narrated for text in self.narrations(name).texts]
        return [*narrations, *(step for article in self._all_articles for step in self.steps[article])]


def corpus_of(store: Store, backbone: str, selection: str) -> Corpus:
    """Return the corpus as it is now; it is read again only if it has changed since the last call."""
    global _last
    tables = {name: store.table(name).snapshot() for name in ("narrations", "steps", "annotations", "videos", "pairs")}
    tables["features"] = store.table("features").snapshot().where(backbone=backbone)
    versions = {name: snapshot.content_version for name, snapshot in tables.items()}
    key = fingerprint_of({"store": store.uri, "backbone": backbone, "selection": selection}, versions, VERSION)
    last = _last  # read once: parts in other threads replace it
    if last is None or last[0] != key:
        last = _last = key, Corpus(store, backbone, selection)
    return last[1]


_last: tuple[str, Corpus] | None = None
_HELD_OUT = """
    SELECT video_id FROM annotations WHERE split <> 'train'
    UNION SELECT video_id FROM videos WHERE split IS NOT NULL AND split <> 'train'"""
_NARRATIONS = "SELECT video_id, text, start_s, end_s FROM video_narrations ORDER BY video_id, row"


def _row_ranges(keys: pa.ChunkedArray) -> dict[str, tuple[int, int]]:
    """Return the first row of each key and the one after its last, in a column where equal keys are neighbours."""
    runs = pc.run_end_encode(keys.combine_chunks())
    ends = runs.run_ends.to_pylist()
    return dict(zip(runs.values.to_pylist(), pairwise([0, *ends]), strict=True))


def _grouped(keys: pa.ChunkedArray, values: Sequence[str]) -> Mapping[str, list[str]]:
    return {key: list(values[begin:end]) for key, (begin, end) in _row_ranges(keys).items()}
