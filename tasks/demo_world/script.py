"""The script of each demo video: its timeline, scenes and narrations, the truth behind all files.

A video is a pure function of the world and the video's number, so worlds of any size are made one by one.
"""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from tasks.demo_world.articles import DemoArticle, write_articles
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.narration import Narration, Narrator
from tasks.demo_world.scenes import Scene, draw_scenes
from tasks.demo_world.speech import Speaker
from tasks.demo_world.timeline import Segment, Timeline, draw_timeline
from tasks.demo_world.wording import one_of

SPLITS = ("train", "val_seen", "test_seen", "val_unseen", "test_unseen")


@dataclass(frozen=True)
class Video:
    """One video's script."""

    number: int
    video_id: str
    article: DemoArticle
    split: str
    duration_s: float
    segments: tuple[Segment, ...]
    scenes: tuple[Scene, ...]
    narrations: tuple[Narration, ...]


@dataclass(frozen=True)
class World:
    """All articles, and every video by its number."""

    knobs: Knobs
    seed: int

    @cached_property
    def articles(self) -> tuple[DemoArticle, ...]:
        """The articles, those of unseen splits too."""
        return write_articles(self.knobs, self.seed)

    def __len__(self) -> int:
        return self.knobs.num_videos

    def __iter__(self) -> Iterator[Video]:
        return (self.video(number) for number in range(len(self)))

    def video(self, number: int) -> Video:
        """Return the script of one video."""
        rng = np.random.default_rng([self.seed, 2, number])
        article, timeline = self._plan(rng, number)
        scenes = draw_scenes(rng, self.knobs, article, timeline)
        speaker = Speaker(rng, self.knobs, self.articles)
        narrations = Narrator(rng, self.knobs, article, timeline, scenes, speaker).narrate()
        return Video(
            number,
            self.video_id(number),
            article,
            self.split_of(number),
            timeline.duration_s,
            timeline.segments,
            scenes,
            narrations,
        )

    def video_id(self, number: int) -> str:
        """Return an id in the form of YouTube's: 11 letters, digits, dashes and underscores."""
        digest = hashlib.blake2b(f"{self.seed}/{number}".encode(), digest_size=8).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def split_of(self, number: int) -> str:
        """Return the split: of twenty videos 16 are for training, and one for each other split, if any is unseen."""
        if number % 10 < 8:
            return "train"
        group = "unseen" if number // 10 % 2 and self._articles_by_seen[False] else "seen"
        return f"{'val' if number % 10 == 8 else 'test'}_{group}"

    @cached_property
    def rendered(self) -> list[int]:
        """The numbers of the videos that are drawn as files: the shortest of the first ones for testing."""
        testing = (number for number in range(len(self)) if self.split_of(number).startswith("test"))
        first = islice(testing, 8 * self.knobs.num_rendered)
        return sorted(sorted(first, key=lambda number: self.video(number).duration_s)[: self.knobs.num_rendered])

    @cached_property
    def _articles_by_seen(self) -> dict[bool, list[DemoArticle]]:
        return {
            is_seen: [article for article in self.articles if article.is_unseen != is_seen] for is_seen in (True, False)
        }

    def _plan(self, rng: np.random.Generator, number: int) -> tuple[DemoArticle, Timeline]:
        """Return what a video is about, and when it shows what."""
        article = one_of(rng, self._articles_by_seen[not self.split_of(number).endswith("unseen")])
        return article, draw_timeline(rng, self.knobs, len(article.steps))
