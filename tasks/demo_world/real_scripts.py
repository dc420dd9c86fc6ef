"""A world whose timelines are those of a real data set: which step is shown when, in videos of their real durations.

Actions, objects, looks and words are the demo's. Equal steps of the data set get equal actions and objects.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice

import numpy as np

from storage import Store
from storage.catalogue import Catalogue
from tasks.demo_world.articles import DemoArticle, DemoStep, actions_of, objects_of, write_titles
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import THEMES
from tasks.demo_world.script import World
from tasks.demo_world.timeline import Segment, Timeline
from tasks.demo_world.wording import Pair, explain, phrase
from tasks.evaluation.annotated_videos import AnnotatedVideo, read_annotated_videos, step_benchmarks
from tasks.importers.open_data import open_data

TRAINING_SPLITS = ("train", "training")


@dataclass(frozen=True)
class RealScripts:
    """The annotated videos of a data set, and the headlines of its articles."""

    videos: tuple[AnnotatedVideo, ...]
    headlines: dict[str, tuple[str, ...]]
    """By article id."""


def read_scripts(address: str) -> RealScripts:
    """Read the scripts of a data set's folder, or of a store."""
    with open_data(address) as store:
        benchmarks = list(step_benchmarks(store))
        if len(benchmarks) != 1:
            listed = ", ".join(benchmarks) or "none"
            raise ValueError(f"{address} must have the annotations of one data set; it has {listed}")
        videos = [video for video in read_annotated_videos(store, benchmarks[0]) if _is_whole(video)]
        if not videos:
            raise ValueError(f"no annotated video at {address} has a known duration: scripts need it")
        return RealScripts(tuple(videos), _headlines(store))


def _is_whole(video: AnnotatedVideo) -> bool:
    return video.duration_s is not None and all(start < video.duration_s for _, start, _ in video.segments)


def _headlines(store: Store) -> dict[str, tuple[str, ...]]:
    query = "SELECT article_id, list(headline ORDER BY row) AS headlines FROM steps GROUP BY article_id"
    with Catalogue(store) as catalogue:
        return {row["article_id"]: tuple(row["headlines"]) for row in catalogue.query(query).to_pylist()}


@dataclass(frozen=True)
class ScriptedWorld(World):
    """A world of real scripts. Held-out videos are the data set's; without training videos, two in ten are held out.

    Further training videos repeat the scripts of training videos, with other looks and words.
    """

    scripts: RealScripts

    @cached_property
    def articles(self) -> tuple[DemoArticle, ...]:
        """One article for each of the data set's."""
        ids = sorted({video.article_id for video in self.scripts.videos})
        trained = {video.article_id for video, split in self._videos if split == "train"}
        titles = write_titles(self.knobs, self.seed, len(ids))
        articles = []
        for number, (article_id, (theme, title)) in enumerate(zip(ids, titles, strict=True)):
            rng = np.random.default_rng([self.seed, 1, number, 1])
            steps = tuple(
                DemoStep(actions, phrase(rng, self.knobs, actions), explain(rng, actions[0][0]))
                for actions in self._actions(self.scripts.headlines[article_id])
            )
            unseen = article_id not in trained
            articles.append(DemoArticle(str(1000 + 7 * number), title, theme.name, theme.category, steps, unseen))
        return tuple(articles)

    def split_of(self, number: int) -> str:
        """Return the split; whether it is seen depends on the article."""
        video, split = self._videos[number]
        if split == "train":
            return split
        return f"{split}_{'unseen' if self._article_of[video.article_id].is_unseen else 'seen'}"

    def _plan(self, rng: np.random.Generator, number: int) -> tuple[DemoArticle, Timeline]:
        video, _ = self._videos[number]
        duration_s = round(float(video.duration_s or 0), 2)
        times = ((row, round(start, 2), round(min(end, duration_s), 2)) for row, start, end in video.segments)
        segments = _joined([Segment(*time) for time in times if time[1] < time[2]])
        return self._article_of[video.article_id], Timeline(duration_s, segments)

    @cached_property
    def _article_of(self) -> dict[str, DemoArticle]:
        return dict(zip(sorted({video.article_id for video in self.scripts.videos}), self.articles, strict=True))

    @cached_property
    def _videos(self) -> list[tuple[AnnotatedVideo, str]]:
        """The script of each video, and whether it is for training, validation or testing."""
        order = np.random.default_rng([self.seed, 5]).permutation(len(self.scripts.videos))
        scripts = [self.scripts.videos[i] for i in order]
        if any(video.split in TRAINING_SPLITS for video in scripts):
            splits = [_split(video.split) for video in scripts]
        else:
            splits = [{8: "val", 9: "test"}.get(place % 10, "train") for place in range(len(scripts))]
        videos = list(zip(scripts, splits, strict=True))
        training = [(video, split) for video, split in videos if split == "train"]
        return list(islice(_then_again(videos, training), self.knobs.num_videos))

    def _actions(self, headlines: tuple[str, ...]) -> list[tuple[Pair, ...]]:
        """Return the actions of each step: by its text, unless the article has that pair already."""
        chosen: dict[Pair, None] = {}
        for headline in headlines:
            attempt = 0
            while (pair := self._pair(headline, attempt)) in chosen:
                attempt += 1
            chosen[pair] = None
        return [(pair,) for pair in chosen]

    def _pair(self, headline: str, attempt: int) -> Pair:
        digest = hashlib.blake2b(f"{self.seed}/{headline}/{attempt}".encode(), digest_size=8).digest()
        return self._pairs[int.from_bytes(digest) % len(self._pairs)]

    @cached_property
    def _pairs(self) -> list[Pair]:
        return all_pairs(self.knobs)


def all_pairs(knobs: Knobs) -> list[Pair]:
    """Return every action with every object of its theme."""
    return [
        (action, thing.written)
        for theme in THEMES
        for action in actions_of(theme, knobs)
        for thing in objects_of(theme, knobs)
    ]


def _split(name: str) -> str:
    return "train" if name in TRAINING_SPLITS else "val" if name.startswith("val") else "test"


Planned = tuple[AnnotatedVideo, str]


def _then_again(videos: list[Planned], training: list[Planned]) -> Iterator[Planned]:
    yield from videos
    yield from cycle(training)


def _joined(segments: list[Segment]) -> tuple[Segment, ...]:
    """Join segments of one step that overlap."""
    joined: list[Segment] = []
    for segment in sorted(segments, key=lambda each: (each.step, each.start_s)):
        if joined and joined[-1].step == segment.step and segment.start_s < joined[-1].end_s:
            before = joined.pop()
            segment = Segment(segment.step, before.start_s, max(segment.end_s, before.end_s))
        joined.append(segment)
    return tuple(sorted(joined, key=lambda each: each.start_s))
