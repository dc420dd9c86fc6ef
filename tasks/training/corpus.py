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

from storage import Store, fingerprint
from storage.catalogue import Catalogue, quoted
from storage.feature_reader import FeatureReader
from storage.vectors import Floats
from tasks.text_embedding import MEMORY_LIMIT

Span = tuple[float, float]


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
            pairs = catalogue.query(
                f"SELECT video_id, article_id FROM pairs WHERE selection = {quoted(selection)} ORDER BY video_id, rank"
            )
            held_out = catalogue.query(_HELD_OUT)
        self.steps = _grouped(steps["article_id"], steps["headline"].to_pylist())
        self.articles = _grouped(pairs["video_id"], pairs["article_id"].to_pylist())
        self.held_out = set(held_out["video_id"].to_pylist())

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
        """Changes with what training reads."""
        tables = {
            "narrations": self.store.table("narrations").snapshot(),
            "pairs": self.store.table("pairs").snapshot().where(selection=self.selection),
            "features": self.store.table("features").snapshot().where(backbone=self.backbone),
        }
        texts = {"steps": self._steps_to_learn, "held out": sorted(self.held_out & self.num_seconds.keys())}
        return fingerprint(texts, {name: snapshot.content_version for name, snapshot in tables.items()}, "2")

    @cached_property
    def _steps_to_learn(self) -> Mapping[str, list[str]]:
        """The articles that training may see."""
        chosen = {article for name in self.paired for article in self.articles[name] if article in self.steps}
        return {article: self.steps[article] for article in sorted(chosen)}

    @cached_property
    def video_width(self) -> int:
        """Numbers in a feature vector."""
        return int(self.reader.read(next(iter(self.num_seconds))).shape[1])

    @cached_property
    def feature_scale(self) -> float:
        """The features' standard deviation, over some of the videos to train on: the unit of noise."""
        some = self.paired[:: max(len(self.paired) // 50, 1)][:50]
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
        """All that is said and written in what is trained on: for word vectors."""
        said = [text for name in self.narrated for text in self.narrations(name).texts]
        return [*said, *(step for steps in self._steps_to_learn.values() for step in steps)]


_HELD_OUT = """
    SELECT video_id FROM annotations WHERE split <> 'train'
    UNION SELECT video_id FROM videos WHERE split IS NOT NULL AND split <> 'train'"""
_SPOKEN = """
    SELECT video_id, text, start_s, end_s FROM narrations
    WHERE (video_id, source) IN (SELECT (video_id, min(source)) FROM narrations GROUP BY video_id)
    ORDER BY video_id, row"""


def _places(keys: pa.ChunkedArray) -> dict[str, tuple[int, int]]:
    """Where each key's rows begin and end, in a column in which they stand together."""
    runs = pa.compute.run_end_encode(keys.combine_chunks())
    ends = runs.run_ends.to_pylist()
    return dict(zip(runs.values.to_pylist(), pairwise([0, *ends]), strict=True))


def _grouped(keys: pa.ChunkedArray, values: Sequence[str]) -> Mapping[str, list[str]]:
    return {key: list(values[begin:end]) for key, (begin, end) in _places(keys).items()}
