"""The articles of the demo world: tasks that share actions, objects and steps, each in words of its own."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import ACTIONS, THEMES, Theme
from tasks.demo_world.objects import Object
from tasks.demo_world.wording import Pair, explain, one_of, phrase

FEWEST_STEPS, MOST_STEPS = 2, 30
TWO_OBJECTS_SHARE = 0.3
"""Share of steps with two actions that have two objects as well."""


@dataclass(frozen=True)
class DemoStep:
    """One step: one or two actions, each on an object. No pair occurs twice in an article."""

    actions: tuple[Pair, ...]
    headline: str
    paragraph: str

    @property
    def action(self) -> str:
        """The first action."""
        return self.actions[0][0]

    @property
    def object(self) -> str:
        """The object of the first action."""
        return self.actions[0][1]

    @property
    def short(self) -> str:
        """What a CrossTask annotator would call the step, e.g. `chop watering_can`."""
        return f"{self.action} {self.object.replace(' ', '_')}"


@dataclass(frozen=True)
class DemoArticle:
    """A task and its article. No training video is about an article that `is_unseen`."""

    task_id: str
    title: str
    theme: str
    category: str
    steps: tuple[DemoStep, ...]
    is_unseen: bool

    @cached_property
    def pairs(self) -> frozenset[Pair]:
        """All actions and objects of its steps."""
        return frozenset(pair for step in self.steps for pair in step.actions)


def write_articles(knobs: Knobs, seed: int) -> tuple[DemoArticle, ...]:
    """Return all articles. Titles are distinct; the two objects of a title occur in its steps.

    Each article draws its steps, then its words, from a generator of its own.
    """
    rng = np.random.default_rng([seed, 1])
    counts = _step_counts(rng, knobs)
    unseen = _unseen_articles(rng, knobs)
    articles: list[DemoArticle] = []
    for number, (theme, title, mains) in enumerate(_titles(rng, knobs, knobs.num_articles)):
        article_rng = np.random.default_rng([seed, 1, number, 1])
        steps = tuple(
            DemoStep(actions, phrase(article_rng, knobs, actions), explain(article_rng, actions[0][0]))
            for actions in _choose_actions(article_rng, theme, knobs, mains, counts[number])
        )
        task_id = str(1000 + 7 * number)
        articles.append(DemoArticle(task_id, title, theme.name, theme.category, steps, number in unseen))
    return tuple(articles)


def write_titles(knobs: Knobs, seed: int, count: int) -> list[tuple[Theme, str]]:
    """Return distinct titles, with their themes."""
    return [(theme, title) for theme, title, _ in _titles(np.random.default_rng([seed, 1]), knobs, count)]


def objects_of(theme: Theme, knobs: Knobs) -> tuple[Object, ...]:
    """Return the objects of a theme that are in use."""
    rank = THEMES.index(theme)
    return theme.objects[: len(range(rank, knobs.num_objects, len(THEMES)))]


def actions_of(theme: Theme, knobs: Knobs) -> tuple[str, ...]:
    """Return the actions of a theme that are in use."""
    in_use = list(ACTIONS)[: knobs.num_actions]
    return tuple(action for action in theme.actions if action in in_use)


def _step_counts(rng: np.random.Generator, knobs: Knobs) -> list[int]:
    """Evenly spaced quantiles of a lognormal distribution, in random order: their mean hardly depends on the seed."""
    centre = math.log(knobs.steps_per_article) - knobs.steps_spread**2 / 2
    counts = []
    for rank in rng.permutation(knobs.num_articles):
        deviation = NormalDist().inv_cdf((int(rank) + 0.5) / knobs.num_articles)
        count = round(math.exp(centre + knobs.steps_spread * deviation))
        counts.append(min(max(count, FEWEST_STEPS), MOST_STEPS))
    return counts


def _unseen_articles(rng: np.random.Generator, knobs: Knobs) -> set[int]:
    """At least one article is seen."""
    count = min(round(knobs.unseen_share * knobs.num_articles), knobs.num_articles - 1)
    return set(rng.permutation(knobs.num_articles)[:count].tolist())


def _titles(rng: np.random.Generator, knobs: Knobs, count: int) -> Iterator[tuple[Theme, str, list[str]]]:
    """Yield the theme, the title and its two objects for each article."""
    taken: set[str] = set()
    for number in range(count):
        theme = THEMES[number % len(THEMES)]
        title, mains = _title(rng, theme, objects_of(theme, knobs), taken)
        taken.add(title)
        yield theme, title, mains


def _title(
    rng: np.random.Generator, theme: Theme, objects: tuple[Object, ...], taken: set[str]
) -> tuple[str, list[str]]:
    for _ in range(1_000):
        mains = [objects[i].written for i in rng.choice(len(objects), 2, replace=False)]
        title = one_of(rng, theme.titles).format(*(main.title() for main in mains))
        if title not in taken:
            return title, mains
    raise ValueError(f"{len(objects)} objects give no more titles: lower num_articles or raise num_objects")


def _choose_actions(
    rng: np.random.Generator, theme: Theme, knobs: Knobs, mains: list[str], count: int
) -> list[tuple[Pair, ...]]:
    """The actions of each step, without a repetition; half of the steps are on the title's objects.

    There are fewer steps than `count` if the actions and objects in use do not suffice.
    """
    objects = [thing.written for thing in objects_of(theme, knobs)]
    free = {(action, thing): None for action in actions_of(theme, knobs) for thing in objects}  # an ordered set

    def take(things: list[str]) -> Pair | None:
        pairs = [pair for pair in free if pair[1] in things]
        if not pairs:
            return None
        pair = one_of(rng, pairs)
        del free[pair]
        return pair

    firsts = [take([main]) for main in mains]
    for _ in range(count - len(firsts)):
        firsts.append((take(mains) if rng.random() < 0.5 else None) or take(objects))
    steps = []
    for first in firsts:
        second = None
        if first and rng.random() < knobs.two_action_share:
            second = take(objects if rng.random() < TWO_OBJECTS_SHARE else [first[1]])
        steps.append(tuple(pair for pair in (first, second) if pair))
    order = rng.permutation(len(steps))
    return [steps[i] for i in order if steps[i]]
