"""Speech: what each kind of sentence says and does not say, and how often knobs change its words."""

import re
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle, islice

import numpy as np
import pytest

from tasks.demo_world.articles import DemoStep, write_articles
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import ACTIONS
from tasks.demo_world.phrases import ANNOUNCEMENTS, CHAT, OPENERS, PRONOUNS, RARE_WORDS, RECALLS
from tasks.demo_world.speech import Speaker
from tasks.demo_world.wording import OBJECTS

ARTICLES = write_articles(Knobs(), 0)
MANY = 2_000


def speaker(seed: int = 0, **changes: float) -> Speaker:
    return Speaker(np.random.default_rng(seed), replace(Knobs(), **changes), ARTICLES)


def starts_with(text: str, openers: tuple[str, ...]) -> bool:
    return any(re.match(re.sub(r"\\{\w+\\}", r"\\w+", re.escape(opener)) + " ", text) for opener in openers)


def says(text: str, phrases: tuple[str, ...]) -> bool:
    """Whether a sentence has one of the phrases, with anything for `{}`."""
    return any(re.search(re.escape(phrase).replace(r"\{\}", ".+"), text) for phrase in phrases)


KINDS: dict[str, Callable[[Speaker, int], str]] = {
    "tell": lambda who, i: who.tell(*ARTICLES[i % 40].steps[0].actions[0], float(i % 30 - 15)),
    "mention": lambda who, i: who.mention(ARTICLES[i % 40].steps[0].object),
    "unseen": lambda who, i: who.unseen(ARTICLES[i % 40].steps[1]),
    "introduce": lambda who, i: who.introduce(ARTICLES[i % 40]),
    "recap": lambda who, i: who.recap(ARTICLES[i % 40]),
    "chat": lambda who, i: who.chat(ARTICLES[i % 40]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_sentence_is_one_sentence_in_lower_case(kind: str) -> None:
    who = speaker(rare_word_rate=0.5)
    for i in range(MANY):
        text = KINDS[kind](who, i)
        assert re.fullmatch(r"[a-z' -]+\.", text) and "  " not in text, text


def test_a_speaker_is_a_function_of_the_seed() -> None:
    texts = [[KINDS["tell"](speaker(seed), i) for i in range(20)] for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize("rate", [0, 0.7, 1])
def test_the_paraphrase_rate_is_how_often_words_are_not_those_of_articles(rate: float) -> None:
    who = speaker(paraphrase_rate=rate, pronoun_rate=0, rare_word_rate=0)
    verbs, nouns = [], []
    for pair in islice(cycle(sorted(ARTICLES[0].pairs)), MANY):
        text = who.tell(*pair, 0.0)
        verbs.append(says(text, ACTIONS[pair[0]].spoken) and not says(text, ACTIONS[pair[0]].written))
        nouns.append(says(text, OBJECTS[pair[1]].spoken))
    assert np.mean(verbs) == pytest.approx(rate, abs=0.04) and np.mean(nouns) == pytest.approx(rate, abs=0.04)


def test_an_object_is_named_before_it_is_called_it() -> None:
    for seed in range(50):
        who = speaker(seed, pronoun_rate=1, paraphrase_rate=0, rare_word_rate=0)
        first, second = (who.tell("peel", "candle", 0.0) for _ in range(2))
        assert "candle" in first and "candle" not in second
        assert any(f" {pronoun}" in second for pronoun in PRONOUNS)
    assert all("candle" in speaker(seed, pronoun_rate=0, paraphrase_rate=0).mention("candle") for seed in range(50))


@pytest.mark.parametrize(("lag_s", "openers"), [(-7.0, ANNOUNCEMENTS), (7.0, RECALLS)])
def test_half_of_the_sentences_far_away_say_that_they_are(lag_s: float, openers: tuple[str, ...]) -> None:
    who = speaker()
    far = [starts_with(who.tell("chop", "potato", lag_s), openers) for _ in range(MANY)]
    near = [who.tell("chop", "potato", lag_s * 5 / 7) for _ in range(MANY)]
    assert np.mean(far) == pytest.approx(0.5, abs=0.04)
    assert all(starts_with(text, OPENERS) for text in near)


def test_a_mention_names_the_object_and_no_action() -> None:
    who = speaker(rare_word_rate=0)
    for thing in islice(cycle(OBJECTS), MANY):
        text = who.mention(thing)
        assert says(text, OBJECTS[thing].forms + OBJECTS[thing].spoken)
        words = set(text.rstrip(".").split()) - set(" ".join(OBJECTS[thing].forms + OBJECTS[thing].spoken).split())
        assert words.isdisjoint(ACTIONS)


def test_an_unseen_step_is_never_told_as_if_it_were_shown() -> None:
    who = speaker(rare_word_rate=0, pronoun_rate=0)
    step = DemoStep((("chop", "potato"), ("peel", "onion")), "", "")
    texts = [who.unseen(step) for _ in range(MANY)]
    assert all(says(text, ACTIONS["chop"].spoken + ACTIONS["chop"].written) for text in texts)
    both = np.mean([says(text, OBJECTS["onion"].spoken + OBJECTS["onion"].forms) for text in texts])
    assert both == pytest.approx(0.5, abs=0.04)
    assert not any(starts_with(text, ("so now i'm going to", "as you can see i", "alright let's")) for text in texts)


def test_topics_name_the_title() -> None:
    who = speaker()
    for article in ARTICLES:
        assert article.title.lower() in who.introduce(article) and article.title.lower() in who.recap(article)
    assert len({who.introduce(ARTICLES[0]) for _ in range(300)}) > 40


def test_chat_is_about_no_step_of_the_article() -> None:
    """Asides tell steps of other articles; those that share an action and object with this one are left out."""
    article = ARTICLES[0]
    twin = replace(article, title="The same steps")
    who = Speaker(np.random.default_rng(0), Knobs(), (article, twin))
    starts = [re.split(r"[{]", template)[0] for template in CHAT]
    assert all(any(text.startswith(start) for start in starts) for text in (who.chat(article) for _ in range(MANY)))


def test_chat_varies() -> None:
    who = speaker()
    texts = [who.chat(ARTICLES[0]) for _ in range(MANY)]
    assert len(set(texts)) > 1_000 and len(CHAT) >= 60


def test_rare_words_occur_at_their_rate() -> None:
    who = speaker(rare_word_rate=0.1, pronoun_rate=0)
    rare = [bool(set(who.mention("rice").rstrip(".").split()) & set(RARE_WORDS)) for _ in range(MANY)]
    assert np.mean(rare) == pytest.approx(0.1, abs=0.03)


def test_a_sentence_is_made_in_microseconds() -> None:
    """Worlds of a million videos have 77 million sentences. Measured: 3 microseconds."""
    who = speaker()
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        for i in range(600):
            for kind in KINDS.values():
                kind(who, i)
        seconds.append((time.perf_counter() - start) / 600 / len(KINDS))
    assert min(seconds) < 30e-6
