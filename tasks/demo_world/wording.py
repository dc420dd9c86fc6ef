"""How an article of the demo world words a step, and the parts that speech shares with it.

Articles that agree on an action and an object seldom agree on a headline: verb, form of the object, clauses and the
order of two actions vary. Rare words follow Zipf's law.
"""

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

import numpy as np

from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import ACTIONS, THEMES
from tasks.demo_world.phrases import AFTER, BEFORE, DETERMINERS, EXPLANATIONS, RARE_WORDS, SLOTS

Pair = tuple[str, str]
"""The short name of an action and the name of an object."""
OBJECTS = {thing.written: thing for theme in THEMES for thing in theme.objects}
_RARE_TOTALS = tuple(accumulate(1 / rank for rank in range(1, len(RARE_WORDS) + 1)))
_T = TypeVar("_T")


def one_of(rng: np.random.Generator, choices: Sequence[_T]) -> _T:
    """Return one of the choices; four times as fast as `rng.choice`."""
    return choices[int(rng.random() * len(choices))]


class _Slots(dict[str, str]):
    """A word for each slot of a sentence."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def __missing__(self, slot: str) -> str:
        return one_of(self._rng, SLOTS[slot])


def fill_in(rng: np.random.Generator, template: str, content: str = "") -> str:
    """Return a sentence: `content` for `{}`, a word of `SLOTS` for every named slot."""
    text = template.replace("{}", content)
    return text.format_map(_Slots(rng)) if "{" in text else text


def with_rare_word(rng: np.random.Generator, noun: str) -> str:
    """Return a form of an object with a rare word after its last determiner."""
    words = noun.split()
    position = max(i for i, word in enumerate(words) if word in DETERMINERS) + 1
    words.insert(position, RARE_WORDS[bisect(_RARE_TOTALS, rng.random() * _RARE_TOTALS[-1])])
    return " ".join(words)


def phrase(rng: np.random.Generator, knobs: Knobs, actions: Sequence[Pair]) -> str:
    """Return the headline of a step with one or two actions."""
    has_own_words = rng.random() < knobs.wording_rate
    verbs, nouns = [], []
    for action, thing in actions:
        verbs.append(one_of(rng, ACTIONS[action].written) if has_own_words else ACTIONS[action].written[0])
        nouns.append(one_of(rng, OBJECTS[thing].forms) if has_own_words else f"the {thing}")
    if rng.random() < knobs.rare_word_rate:
        nouns[0] = with_rare_word(rng, nouns[0])
    if len(actions) == 1:
        clause = verbs[0].format(nouns[0])
        text = _with_more(rng, verbs[0], clause, ACTIONS[actions[0][0]].tool) if has_own_words else clause
    else:
        if actions[0][1] == actions[1][1]:
            nouns[1] = _pronoun(nouns[0])
        text = _joined(rng, verbs, nouns) if has_own_words else " and ".join(map(str.format, verbs, nouns))
    return text[0].upper() + text[1:] + "."


def explain(rng: np.random.Generator, action: str) -> str:
    """Return a paragraph of one or two sentences."""
    advice = one_of(rng, ACTIONS[action].advice)
    return f"{advice} {fill_in(rng, one_of(rng, EXPLANATIONS))}" if rng.random() < 0.7 else advice


def _with_more(rng: np.random.Generator, verb: str, clause: str, tool: str) -> str:
    """One action, alone or with a clause before or after it."""
    kind = rng.random()
    if kind < 0.3:
        return clause
    if kind < 0.55:
        return f"{fill_in(rng, one_of(rng, BEFORE))}, {clause}"
    if kind < 0.8 or " with " in verb:
        return f"{clause}, {fill_in(rng, one_of(rng, AFTER))}"
    return f"using {tool}, {clause}" if kind < 0.9 else f"{clause}, using {tool}"


def _joined(rng: np.random.Generator, verbs: list[str], nouns: list[str]) -> str:
    """Two actions in one sentence, the first one first in time."""
    kind = rng.random()
    if kind < 0.15 and nouns[1] in ("it", "them"):
        return f"before you {verbs[1].format(nouns[0])}, {verbs[0].format(nouns[1])}"
    first, second = map(str.format, verbs, nouns)
    if kind < 0.3:
        return f"after you {first}, {second}"
    return first + one_of(rng, (" and ", ", then ", " and then ", ", and afterwards ")) + second


def _pronoun(noun: str) -> str:
    """`them` for a plural, such as `two slices of bread`; the forms of objects have no other words that end in s."""
    head = noun.split(" of ")[0].split()[-1]
    return "them" if head.endswith("s") and not head.endswith(("ss", "is")) else "it"
