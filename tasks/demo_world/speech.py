"""How speakers of demo videos talk: synonyms, pronouns, chit-chat, asides, narrations that come early or late."""

from collections.abc import Sequence

import numpy as np

from tasks.demo_world.articles import DemoArticle, DemoStep
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import (
    ACTIONS,
    ANNOUNCEMENTS,
    ASIDES,
    CHAT,
    OPENERS,
    PRONOUNS,
    RECALLS,
    TAILS,
    THEMES,
    TOPICS,
)

_SPOKEN = {thing.written: thing.spoken for theme in THEMES for thing in theme.objects}
EARLY_OR_LATE_S = 6.0


class Speaker:
    """The speaker of one video. Pronouns stand only for objects that were named before."""

    def __init__(self, rng: np.random.Generator, knobs: Knobs, articles: Sequence[DemoArticle]) -> None:
        self._rng, self._knobs, self._articles = rng, knobs, articles
        self._named: set[str] = set()

    def tell(self, step: DemoStep, lag_s: float) -> str:
        """Return a sentence about a step; `lag_s` is how much later than the step it is spoken."""
        openers: Sequence[str] = OPENERS
        if abs(lag_s) > EARLY_OR_LATE_S and self._rng.random() < 0.5:
            openers = ANNOUNCEMENTS if lag_s < 0 else RECALLS
        return f"{self._one_of(openers)} {self._clause(step)} {self._one_of(TAILS)}".strip() + "."

    def introduce(self, article: DemoArticle) -> str:
        """Return a sentence about the topic of the video."""
        return self._one_of(TOPICS).format(article.title.lower()) + "."

    def chat(self, article: DemoArticle) -> str:
        """Return a sentence that is about no step of this article."""
        if self._rng.random() < self._knobs.topic_rate / 2:
            return self.introduce(article)
        if self._rng.random() < 0.6:
            return self._one_of(CHAT) + "."
        article_steps = {(step.action, step.object) for step in article.steps}
        other = self._articles[int(self._rng.integers(len(self._articles)))]
        foreign_steps = [step for step in other.steps if (step.action, step.object) not in article_steps]
        if not foreign_steps:
            return self._one_of(CHAT) + "."
        step = foreign_steps[int(self._rng.integers(len(foreign_steps)))]
        return f"{self._one_of(ASIDES)} {self._clause(step)}."

    def _clause(self, step: DemoStep) -> str:
        action, (first, *_) = ACTIONS[step.action], step.object.split()
        has_other_verb, has_other_noun, has_pronoun = self._rng.random(3) < (
            self._knobs.paraphrase_rate,
            self._knobs.paraphrase_rate,
            self._knobs.pronoun_rate,
        )
        noun = self._one_of(_SPOKEN[step.object]) if has_other_noun else f"the {step.object}"
        if has_pronoun and first in self._named:
            noun = self._one_of(PRONOUNS)
        self._named.add(first)
        verb = self._one_of(action.spoken) if has_other_verb else action.written[0].lower() + action.written[1:]
        return verb.format(noun)

    def _one_of(self, choices: Sequence[str]) -> str:
        return choices[int(self._rng.integers(len(choices)))]
