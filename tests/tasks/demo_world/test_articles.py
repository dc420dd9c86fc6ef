"""Articles: as many steps as the knobs say, no step twice, and words that differ between articles."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from tasks.demo_world.articles import DemoArticle, DemoStep, write_articles
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import ACTIONS, THEMES
from tasks.demo_world.phrases import DETERMINERS, RARE_WORDS
from tasks.demo_world.wording import OBJECTS

MANY = 400
SMALL_WORDS = {
    *DETERMINERS, "in", "on", "to", "up", "down", "off", "out", "over", "with", "and", "all", "for", "from", "into",
    "through", "under", "at", "as", "is", "it", "you", "no", "both", "around", "together", "bit", "back",
    "other", "side", "make", "take", "get", "put", "give", "can", "little", "like", "until", "round",
    "across", "bring",
}  # fmt: skip
"""Words that say nothing about an action or an object."""


def steps_of(**changes: float) -> list[DemoStep]:
    knobs = replace(Knobs(), **{"num_articles": MANY} | changes)
    return [step for article in write_articles(knobs, 0) for step in article.steps]


def content(*phrases: str) -> set[str]:
    return {word for phrase in phrases for word in phrase.replace("{}", "").split()} - SMALL_WORDS


def pairs_of_equal_actions(steps: list[DemoStep]) -> Iterator[tuple[DemoStep, DemoStep]]:
    """Pairs of steps with one equal action: of two articles, as no article has an action twice."""
    groups = defaultdict(list)
    for step in steps:
        if len(step.actions) == 1:
            groups[step.actions].append(step)
    return (pair for group in groups.values() for pair in combinations(group, 2))


def test_articles_are_a_function_of_their_seed() -> None:
    assert write_articles(Knobs(), 1) == write_articles(Knobs(), 1) != write_articles(Knobs(), 2)


def test_articles_share_actions_and_objects() -> None:
    articles = write_articles(Knobs(), 0)
    assert len({article.title for article in articles}) == len(articles) == 40
    for article in articles:
        mains = [step for step in article.steps if step.object.title() in article.title]
        assert len(mains) >= 2
    steps = [step for article in articles for step in article.steps]
    assert len({step.actions for step in steps}) < len(steps)


@pytest.mark.parametrize("changes", [{}, {"two_action_share": 1}, {"num_actions": 8, "num_objects": 16}])
def test_no_article_has_an_action_on_an_object_twice(changes: dict[str, float]) -> None:
    for article in write_articles(replace(Knobs(), steps_per_article=20, **changes), 0):
        pairs = [pair for step in article.steps for pair in step.actions]
        assert len(set(pairs)) == len(pairs) and article.pairs == set(pairs)
        assert len({step.short for step in article.steps}) == len(article.steps) >= 2


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("mean", "spread"), [(10.1, 0.45), (4, 0.2), (7.4, 0.6), (6, 0)])
def test_numbers_of_steps_follow_the_knobs(mean: float, spread: float, seed: int) -> None:
    articles = write_articles(replace(Knobs(), steps_per_article=mean, steps_spread=spread), seed)
    counts = [len(article.steps) for article in articles]
    assert np.mean(counts) == pytest.approx(mean, rel=0.04)
    assert np.std(np.log(counts)) == pytest.approx(spread, abs=0.06)


@pytest.mark.parametrize(("share", "expected"), [(0, 0), (0.2, 8), (0.9, 36)])
def test_a_share_of_the_articles_is_unseen(share: float, expected: int) -> None:
    articles = write_articles(replace(Knobs(), unseen_share=share), 0)
    assert sum(article.is_unseen for article in articles) == expected


def test_one_article_is_always_seen() -> None:
    articles = write_articles(replace(Knobs(), num_articles=2, unseen_share=0.9), 0)
    assert sorted(article.is_unseen for article in articles) == [False, True]


@pytest.mark.parametrize("share", [0, 0.15, 1])
def test_a_share_of_the_steps_has_two_actions(share: float) -> None:
    steps = steps_of(two_action_share=share)
    double = [step for step in steps if len(step.actions) == 2]
    assert len(double) / len(steps) == pytest.approx(share, abs=0.02)
    if share:
        assert np.mean([len({thing for _, thing in step.actions}) == 2 for step in double]) == pytest.approx(
            0.3, abs=0.05
        )


def test_equal_steps_seldom_have_equal_headlines() -> None:
    equal = [a.headline == b.headline for a, b in pairs_of_equal_actions(steps_of(num_articles=800))]
    assert len(equal) > 20_000 and 0.02 < np.mean(equal) < 0.05


def test_without_wording_equal_steps_have_equal_headlines() -> None:
    steps = steps_of(wording_rate=0, rare_word_rate=0)
    assert all(a.headline == b.headline for a, b in pairs_of_equal_actions(steps))
    headlines = {step.short: step.headline for step in steps if len(step.actions) == 1}
    assert headlines["chop potato"] == "Chop the potato into small pieces."


def test_knobs_of_words_leave_the_actions_alone() -> None:
    actions = [step.actions for step in steps_of()]
    assert [step.actions for step in steps_of(wording_rate=0, rare_word_rate=1)] == actions


def test_the_words_of_an_action_occur_in_many_articles() -> None:
    steps = [step for step in steps_of(wording_rate=1) if len(step.actions) == 1]
    assert {step.action for step in steps} == set(ACTIONS)
    for action in ACTIONS.values():
        headlines = [step.headline.lower() for step in steps if step.action == action.short]
        for written in action.written:
            start = written.split("{}")[0].strip()
            assert sum(start in headline for headline in headlines) >= 3, written


@pytest.mark.parametrize("rate", [0, 0.1, 1])
def test_rare_words_occur_at_their_rate_and_most_of_them_seldom(rate: float) -> None:
    steps = steps_of(rare_word_rate=rate)
    words = [word for step in steps for word in step.headline.lower().strip(".").split() if word in RARE_WORDS]
    assert len(words) / len(steps) == pytest.approx(rate, abs=0.02)
    if rate == 1:
        counts = sorted((words.count(word) for word in RARE_WORDS), reverse=True)
        assert counts[0] > 500 and counts[len(counts) // 2] < 20 and counts[-5] > 0


def test_headlines_and_paragraphs_are_sentences() -> None:
    for step in steps_of(rare_word_rate=0.5, two_action_share=0.5):
        for text in (step.headline, step.paragraph):
            assert text[0].isupper() and text.endswith(".") and not set("{}|") & set(text) and "  " not in text
        assert 1 <= step.paragraph.count(".") <= 2


def test_too_many_articles_are_refused() -> None:
    with pytest.raises(ValueError, match="lower num_articles or raise num_objects"):
        write_articles(replace(Knobs(), num_articles=400, num_objects=16), 0)


def test_speakers_have_words_that_articles_do_not_have() -> None:
    for action in ACTIONS.values():
        assert 4 <= len(action.written) <= 6 and 5 <= len(action.spoken) <= 6
        assert content(*action.written, action.tool).isdisjoint(content(*action.spoken)), action.short
        assert all(content(spoken) for spoken in action.spoken)
    for thing in OBJECTS.values():
        assert 3 <= len(thing.forms) <= 4 and 3 <= len(thing.spoken) <= 4
        assert content(*thing.forms, thing.written).isdisjoint(content(*thing.spoken)), thing.written


def test_rare_words_fit_before_every_object() -> None:
    """`a` stays `a`, and a word follows the last determiner."""
    assert len(set(RARE_WORDS)) == len(RARE_WORDS) >= 150 and not any(word[0] in "aeiou" for word in RARE_WORDS)
    phrases = [phrase for thing in OBJECTS.values() for phrase in (*thing.forms, *thing.spoken)]
    assert all(phrase.split()[0] in DETERMINERS and phrase.split()[-1] not in DETERMINERS for phrase in phrases)
    assert set(RARE_WORDS).isdisjoint(word for phrase in phrases for word in phrase.split())


def test_names_that_trained_networks_depend_on_stay() -> None:
    assert " ".join(ACTIONS) == (
        "chop wash mix pour heat peel spread press fold roll measure mark cover fill tie glue paint sand drill shake "
        "dry stack scrape hang"
    )
    assert [len(theme.objects) for theme in THEMES] == [15] * 4 and len(OBJECTS) == 60
    assert [theme.objects[6].written for theme in THEMES] == ["butter", "watering can", "wire", "clay"]


def test_a_step_is_called_by_its_first_action() -> None:
    step = DemoStep((("chop", "watering can"), ("wash", "soil")), "Chop.", "Use a knife.")
    assert (step.action, step.object, step.short) == ("chop", "watering can", "chop watering_can")
    article = DemoArticle("1", "Grow", "garden", "Home", (step,), False)
    assert article.pairs == {("chop", "watering can"), ("wash", "soil")}
