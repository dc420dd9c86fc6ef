"""The articles of the demo world: tasks that share actions, objects and whole steps, in the style of wikiHow."""

from dataclasses import dataclass

import numpy as np

from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import ACTIONS, THEMES, Object, Theme

MOST_STEPS = 14


@dataclass(frozen=True)
class DemoStep:
    """One step: an action on an object. `short` is its name in CrossTask's style."""

    action: str
    object: str
    headline: str
    paragraph: str

    @property
    def short(self) -> str:
        """Short name of the step, e.g. `chop watering_can`."""
        return f"{self.action} {self.object.replace(' ', '_')}"


@dataclass(frozen=True)
class DemoArticle:
    """A task and its article."""

    task_id: str
    title: str
    theme: str
    category: str
    steps: tuple[DemoStep, ...]


def write_articles(knobs: Knobs, seed: int) -> tuple[DemoArticle, ...]:
    """Return all articles. Titles are distinct; the two objects of a title occur in its steps."""
    rng = np.random.default_rng([seed, 1])
    titles: set[str] = set()
    articles: list[DemoArticle] = []
    for number in range(knobs.num_tasks):
        theme = THEMES[number % len(THEMES)]
        title, mains = _title(rng, theme, objects_of(theme, knobs), titles)
        titles.add(title)
        steps = _steps(rng, theme, knobs, mains)
        articles.append(DemoArticle(str(1000 + 7 * number), title, theme.name, theme.category, steps))
    return tuple(articles)


def objects_of(theme: Theme, knobs: Knobs) -> tuple[Object, ...]:
    """Return the objects of a theme that are in use."""
    rank = THEMES.index(theme)
    return theme.objects[: len(range(rank, knobs.num_objects, len(THEMES)))]


def actions_of(theme: Theme, knobs: Knobs) -> tuple[str, ...]:
    """Return the actions of a theme that are in use."""
    in_use = list(ACTIONS)[: knobs.num_actions]
    return tuple(action for action in theme.actions if action in in_use)


def step_of(action: str, thing: str) -> DemoStep:
    """Return the step of an action on an object, worded the same in every article."""
    story = ACTIONS[action]
    return DemoStep(action, thing, story.written.format(f"the {thing}") + ".", story.advice)


def _title(
    rng: np.random.Generator, theme: Theme, objects: tuple[Object, ...], taken: set[str]
) -> tuple[str, list[str]]:
    for _ in range(1_000):
        mains = [objects[i].written for i in rng.choice(len(objects), 2, replace=False)]
        title = str(rng.choice(theme.titles)).format(*(main.title() for main in mains))
        if title not in taken:
            return title, mains
    raise ValueError(f"{len(objects)} objects do not give enough distinct titles: lower num_tasks or raise num_objects")


def _steps(rng: np.random.Generator, theme: Theme, knobs: Knobs, mains: list[str]) -> tuple[DemoStep, ...]:
    """Return distinct steps, about half of them on the objects of the title."""
    actions = actions_of(theme, knobs)
    things = [thing.written for thing in objects_of(theme, knobs)]
    most = min(knobs.steps_per_task + 2, MOST_STEPS, len(actions) * len(things))
    count = int(rng.integers(max(2, knobs.steps_per_task - 2), most + 1))
    chosen: dict[tuple[str, str], None] = {}
    for main in mains:
        chosen[str(rng.choice(actions)), main] = None
    while len(chosen) < count:
        thing = str(rng.choice(mains)) if rng.random() < 0.5 else str(rng.choice(things))
        chosen[str(rng.choice(actions)), thing] = None
    order = rng.permutation(len(chosen))
    pairs = list(chosen)
    return tuple(step_of(*pairs[i]) for i in order)
