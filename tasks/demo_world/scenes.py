"""What a demo video shows, from its first second to its last: its steps, and other scenes between them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tasks.demo_world.articles import DemoArticle, actions_of, objects_of
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import ACTIONS, THEMES
from tasks.demo_world.timeline import Segment, Timeline
from tasks.demo_world.wording import Pair, one_of

PRESENTER = "presenter"
"""The action of a scene in which somebody talks."""
TITLE = "title"
"""The action of a scene that shows a card with the video's title."""
FINISHED = "finished"
"""The action of a scene that shows the result."""

_CARD_RATE, _CARD_S = 0.4, 3.0
"""How often a video begins with a title card, and for how long."""
_RESULT_RATE, _RESULT_S = 0.6, 5.0
"""How often a video ends with the finished result (half as often it begins with it), and for how long."""
_SHOT_S = (3.0, 15.0)
"""Length of a scene between steps."""
_ALTERNATING_S = 2.0
"""Length of a shot where two steps are shown at once."""
_SHORTEST_S = 0.05


@dataclass(frozen=True)
class Scene:
    """What is seen from `start_s` to `end_s`. `step` is the row of the article's step, or None for another scene."""

    start_s: float
    end_s: float
    action: str
    object: str
    step: int | None

    @property
    def shows_action(self) -> bool:
        """Whether somebody does something."""
        return self.action in ACTIONS


def draw_scenes(rng: np.random.Generator, knobs: Knobs, article: DemoArticle, timeline: Timeline) -> tuple[Scene, ...]:
    """Fill a video with scenes: those of its segments, and others between them."""
    others = OtherScenes(rng, knobs, article, timeline.duration_s)
    shots = _shots(rng, article, timeline.segments)
    cuts = sorted({0.0, timeline.duration_s, *(cut for start, end, _, _ in shots for cut in (start, end))})
    scenes: list[Scene] = []
    for start, end in pairwise(cuts):
        active = [(step, pair) for begin, finish, step, pair in shots if begin <= start and end <= finish]
        scenes += _alternate(start, end, active) if active else others.fill(start, end)
    return tuple(scenes)


Shot = tuple[float, float, int, Pair]
"""Start, end, step, and what is done to what."""


def _shots(rng: np.random.Generator, article: DemoArticle, segments: tuple[Segment, ...]) -> list[Shot]:
    """Return the shots of all segments: one each, or two if the step has two actions."""
    shots: list[Shot] = []
    for segment in segments:
        pairs = article.steps[segment.step].actions
        middle = round(segment.start_s + rng.uniform(0.3, 0.7) * (segment.end_s - segment.start_s), 2)
        if len(pairs) == 1 or not segment.start_s < middle < segment.end_s:
            shots.append((segment.start_s, segment.end_s, segment.step, pairs[0]))
        else:
            shots.append((segment.start_s, middle, segment.step, pairs[0]))
            shots.append((middle, segment.end_s, segment.step, pairs[1]))
    return shots


def _alternate(start: float, end: float, active: list[tuple[int, Pair]]) -> Iterator[Scene]:
    """Show the active steps in turns."""
    turns = max(1, round((end - start) / _ALTERNATING_S)) if len(active) > 1 else 1
    cuts = [round(start + (end - start) * turn / turns, 2) for turn in range(turns)] + [end]
    for turn, (begin, finish) in enumerate(pairwise(cuts)):
        step, (action, thing) = active[turn % len(active)]
        yield Scene(begin, finish, action, thing, step)


class OtherScenes:
    """Scenes that show no step: a presenter, other actions, a title card, the finished result."""

    def __init__(self, rng: np.random.Generator, knobs: Knobs, article: DemoArticle, duration_s: float) -> None:
        self._rng, self._knobs, self._article, self._duration_s = rng, knobs, article, duration_s
        theme = next(theme for theme in THEMES if theme.name == article.theme)
        self._actions = actions_of(theme, knobs)
        self._objects = [thing.written for thing in objects_of(theme, knobs)]
        self._own_objects = [step.object for step in article.steps]
        self._card, self._teaser, self._result = rng.random(3) < (_CARD_RATE, _RESULT_RATE / 2, _RESULT_RATE)

    def fill(self, start: float, end: float) -> Iterator[Scene]:
        """Fill the time from `start` to `end`."""
        if start == 0:
            if self._card and end > 2 * _CARD_S:
                yield Scene(0.0, _CARD_S, TITLE, "", None)
                start = _CARD_S
            if self._teaser and end - start > 2 * _RESULT_S:
                yield self._finished(start, start + _RESULT_S)
                start += _RESULT_S
        last = self._result and end == self._duration_s and end - start > 2 * _RESULT_S
        until = round(end - _RESULT_S, 2) if last else end
        while start < until:
            stop = round(start + self._rng.uniform(*_SHOT_S), 2)
            stop = stop if stop < until - _SHORTEST_S else until
            yield Scene(start, stop, *self._other(), None)
            start = stop
        if last:
            yield self._finished(until, end)

    def _finished(self, start: float, end: float) -> Scene:
        return Scene(start, end, FINISHED, self._own_objects[0], None)

    def _other(self) -> Pair:
        """Return the presenter, or an action that is no step of the article."""
        if self._rng.random() >= self._knobs.talk_share:
            objects = self._own_objects if self._rng.random() < self._knobs.same_object_share else self._objects
            for _ in range(5):  # in small worlds an article may have nearly all pairs
                pair = one_of(self._rng, self._actions), one_of(self._rng, objects)
                if pair not in self._article.pairs:
                    return pair
        return PRESENTER, ""
