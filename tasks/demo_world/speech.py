"""How speakers of demo videos talk: synonyms, pronouns, chit-chat, asides, narrations that come early or late."""

from collections.abc import Sequence

import numpy as np

from tasks.demo_world.articles import DemoArticle, DemoStep
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import ACTIONS
from tasks.demo_world.phrases import (
    ANNOUNCEMENTS,
    ASIDES,
    CHAT,
    MENTIONS,
    OPENERS,
    PRONOUNS,
    RECALLS,
    RECAPS,
    SUGGESTIONS,
    TAILS,
    TOPICS,
)
from tasks.demo_world.wording import OBJECTS, fill_in, one_of, with_rare_word

EARLY_OR_LATE_S = 6.0
"""Beyond this lag, half of the sentences say that it comes later or was before."""
ASIDE_SHARE = 0.4
"""Share of chit-chat that is about a step of another article."""


class Speaker:
    """The speaker of one video. `it` stands only for something that was named before."""

    def __init__(self, rng: np.random.Generator, knobs: Knobs, articles: Sequence[DemoArticle]) -> None:
        self._rng, self._knobs, self._articles = rng, knobs, articles
        self._named: set[str] = set()

    def tell(self, action: str, thing: str, lag_s: float) -> str:
        """Return a sentence about an action that is shown; `lag_s` is how much later than the action it is spoken."""
        openers: Sequence[str] = OPENERS
        if abs(lag_s) > EARLY_OR_LATE_S and self._rng.random() < 0.5:
            openers = ANNOUNCEMENTS if lag_s < 0 else RECALLS
        clause = self._clause(action, thing)
        if self._rng.random() < 0.6:
            clause = f"{clause} {one_of(self._rng, TAILS)}"
        return self._sentence(f"{one_of(self._rng, openers)} {clause}")

    def mention(self, thing: str) -> str:
        """Return a sentence that names an object, and no action."""
        return self._sentence(one_of(self._rng, MENTIONS), self._noun(thing))

    def unseen(self, step: DemoStep) -> str:
        """Return a sentence about a step that the video does not show."""
        openers = SUGGESTIONS if self._rng.random() < 0.7 else ANNOUNCEMENTS
        return self._sentence(f"{one_of(self._rng, openers)} {self._clauses(step)}")

    def introduce(self, article: DemoArticle) -> str:
        """Return a sentence about the topic of the video."""
        return self._sentence(one_of(self._rng, TOPICS), article.title.lower())

    def recap(self, article: DemoArticle) -> str:
        """Return a sentence that closes the topic of the video."""
        return self._sentence(one_of(self._rng, RECAPS), article.title.lower())

    def chat(self, article: DemoArticle) -> str:
        """Return a sentence about no step of this article: chit-chat, or a step of another article."""
        if self._rng.random() < ASIDE_SHARE:
            for _ in range(5):  # articles of small worlds may share all of their steps
                step = one_of(self._rng, one_of(self._rng, self._articles).steps)
                if article.pairs.isdisjoint(step.actions):
                    return self._sentence(f"{one_of(self._rng, ASIDES)} {self._clauses(step)}")
        return self._sentence(one_of(self._rng, CHAT))

    def _sentence(self, template: str, content: str = "") -> str:
        return fill_in(self._rng, template, content) + "."

    def _clauses(self, step: DemoStep) -> str:
        """The first action of a step, or both."""
        actions = step.actions if self._rng.random() < 0.5 else step.actions[:1]
        return " and ".join([self._clause(*pair) for pair in actions])

    def _clause(self, action: str, thing: str) -> str:
        verbs = ACTIONS[action].spoken if self._rng.random() < self._knobs.paraphrase_rate else ACTIONS[action].written
        if thing in self._named and self._rng.random() < self._knobs.pronoun_rate:
            noun = one_of(self._rng, PRONOUNS)
        else:
            noun = self._noun(thing)
        return one_of(self._rng, verbs).replace("{}", noun)

    def _noun(self, thing: str) -> str:
        words = OBJECTS[thing]
        noun = one_of(self._rng, words.spoken if self._rng.random() < self._knobs.paraphrase_rate else words.forms)
        self._named.add(thing)
        return with_rare_word(self._rng, noun) if self._rng.random() < self._knobs.rare_word_rate else noun
