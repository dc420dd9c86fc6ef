"""The script of each demo video, second by second: scenes and narrations, the truth behind all files.

A video is a pure function of the world's seed and the video's number, so videos are made one by one.
"""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tasks.demo_world.articles import DemoArticle, actions_of, objects_of, write_articles
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import THEMES
from tasks.demo_world.speech import Speaker

PRESENTER = "presenter"
"""The action of a scene in which somebody only talks."""


@dataclass(frozen=True)
class Scene:
    """A scene from `start_s` to `end_s`. `step` is the row of the article's step that it shows, or None."""

    start_s: float
    end_s: float
    action: str
    object: str
    step: int | None


@dataclass(frozen=True)
class Narration:
    """A sentence. `step` is the step it is about, if any; `seen_s` is the time when that step is shown, if it is."""

    text: str
    start_s: float
    end_s: float
    step: int | None
    seen_s: tuple[float, float] | None


@dataclass(frozen=True)
class Video:
    """The script of one video."""

    number: int
    video_id: str
    article: DemoArticle
    split: str
    duration_s: float
    scenes: tuple[Scene, ...]
    narrations: tuple[Narration, ...]

    @property
    def shown(self) -> list[Scene]:
        """The scenes that show a step, in time order."""
        return [scene for scene in self.scenes if scene.step is not None]


@dataclass(frozen=True)
class World:
    """All articles, and every video by its number."""

    knobs: Knobs
    seed: int
    articles: tuple[DemoArticle, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "articles", write_articles(self.knobs, self.seed))

    def __iter__(self) -> Iterator[Video]:
        return (self.video(number) for number in range(self.knobs.num_videos))

    def video(self, number: int) -> Video:
        """Return the script of one video."""
        rng = np.random.default_rng([self.seed, 2, number])
        article = self.articles[int(rng.integers(len(self.articles)))]
        scenes, duration_s = _scenes(rng, self.knobs, article)
        speaker = Speaker(rng, self.knobs, self.articles)
        narrations = _narrations(rng, self.knobs, article, scenes, duration_s, speaker)
        return Video(number, video_id(self.seed, number), article, split_of(number), duration_s, scenes, narrations)

    @property
    def rendered(self) -> list[int]:
        """Numbers of the videos that are drawn as files: the first test videos."""
        testing = (number for number in range(self.knobs.num_videos) if split_of(number) == "test_seen")
        return [number for number, _ in zip(testing, range(self.knobs.num_rendered), strict=False)]


def video_id(seed: int, number: int) -> str:
    """Return an id in the form of YouTube's: 11 letters, digits, dashes and underscores."""
    digest = hashlib.blake2b(f"{seed}/{number}".encode(), digest_size=8).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def split_of(number: int) -> str:
    """Return the split of a video: of ten videos, eight are for training, one for validation, one for testing."""
    return {8: "val_seen", 9: "test_seen"}.get(number % 10, "train")


def _scenes(rng: np.random.Generator, knobs: Knobs, article: DemoArticle) -> tuple[tuple[Scene, ...], float]:
    """Return the scenes of a video, steps in some order with other scenes in between, and its duration."""
    rows = [row for row in range(len(article.steps)) if rng.random() >= knobs.missing_share]
    rows = rows or [int(rng.integers(len(article.steps)))]
    for i in range(len(rows) - 1):
        if rng.random() < knobs.swap_rate:
            rows[i], rows[i + 1] = rows[i + 1], rows[i]
    for row in list(rows):
        if rng.random() < knobs.repeat_rate:
            rows.insert(int(rng.integers(rows.index(row) + 1, len(rows) + 1)), row)
    clock, scenes = 0.0, []

    def show(seconds: float, action: str, thing: str, step: int | None) -> None:
        nonlocal clock
        end = round(clock + seconds, 2)
        scenes.append(Scene(clock, end, action, thing, step))
        clock = end

    show(rng.uniform(2, 6), PRESENTER, "", None)
    for row in rows:
        show(rng.uniform(4, 12), article.steps[row].action, article.steps[row].object, row)
        if rng.random() < 0.7:
            show(rng.uniform(3, 12), *_other_scene(rng, knobs, article), None)
    show(rng.uniform(2, 6), PRESENTER, "", None)
    return tuple(scenes), clock


def _other_scene(rng: np.random.Generator, knobs: Knobs, article: DemoArticle) -> tuple[str, str]:
    """Return a presenter, or an action and an object of the same theme that are not a step of the article."""
    if rng.random() < 0.4:
        return PRESENTER, ""
    theme = next(theme for theme in THEMES if theme.name == article.theme)
    steps = {(step.action, step.object) for step in article.steps}
    things = [thing.written for thing in objects_of(theme, knobs)]
    others = [
        (action, thing) for action in actions_of(theme, knobs) for thing in things if (action, thing) not in steps
    ]
    return others[int(rng.integers(len(others)))] if others else (PRESENTER, "")


def _narrations(
    rng: np.random.Generator,
    knobs: Knobs,
    article: DemoArticle,
    scenes: tuple[Scene, ...],
    duration_s: float,
    speaker: Speaker,
) -> tuple[Narration, ...]:
    """Return sentences in spoken order, which do not overlap, each shifted by about its lag."""
    wanted: list[tuple[float, int | None, tuple[float, float] | None, float]] = []  # when, step, seen, lag
    introduction = speaker.introduce(article) if rng.random() < knobs.topic_rate else None
    for scene in scenes:
        if scene.step is None or rng.random() < knobs.silent_rate:
            continue
        lag = float(rng.laplace(0, knobs.narration_lag_s)) if knobs.narration_lag_s else 0.0
        middle = (scene.start_s + scene.end_s) / 2
        wanted.append((middle + lag - 1.5, scene.step, (scene.start_s, scene.end_s), lag))
    shown = {scene.step for scene in scenes}
    for row in range(len(article.steps)):
        if row not in shown and rng.random() < knobs.unseen_rate:
            wanted.append((float(rng.uniform(0, duration_s)), row, None, 0.0))
    others = knobs.off_topic_share / (1 - knobs.off_topic_share) * len(wanted)
    for _ in range(int(others + rng.random())):
        wanted.append((float(rng.uniform(0, duration_s)), None, None, 0.0))
    clock, spoken = 0.0, []
    if introduction:
        clock = round(len(introduction.split()) / 2.8, 2)
        spoken.append(Narration(introduction, 0.0, clock, None, None))
    for when, step, seen, lag in sorted(wanted, key=lambda item: item[0]):
        text = speaker.tell(article.steps[step], lag) if step is not None else speaker.chat(article)
        start = round(max(clock, when, 0.0), 2)
        end = round(start + max(1.0, len(text.split()) / 2.8), 2)
        if end > duration_s:
            break
        spoken.append(Narration(text, start, end, step, seen))
        clock = end
    return tuple(spoken)
