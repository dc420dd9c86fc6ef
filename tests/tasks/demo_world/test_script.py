"""What videos show and say: consistent within themselves, and turned by the knobs as the knobs say."""

from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest

from tasks.demo_world.features import ConceptSpace
from tasks.demo_world.knobs import PRESETS, Knobs, choose_knobs, explain_knobs
from tasks.demo_world.lexicon import ACTIONS, THEMES
from tasks.demo_world.script import PRESENTER, Video, World, split_of

MANY = 300


def videos(**changes: float) -> list[Video]:
    return list(World(replace(PRESETS["default"], num_videos=MANY, **changes), 0))


def mean(values: list[float]) -> float:
    return float(np.mean(values))


def test_a_world_is_a_function_of_its_seed() -> None:
    one, same, other = (World(replace(PRESETS["default"], num_videos=5), seed) for seed in (1, 1, 2))
    assert list(one) == list(same) and one.articles == same.articles
    assert one.articles != other.articles and one.video(0) != other.video(0)
    np.testing.assert_array_equal(ConceptSpace(one).watch(one.video(3)), ConceptSpace(same).watch(same.video(3)))


def test_articles_share_actions_objects_and_whole_steps() -> None:
    articles = World(PRESETS["default"], 0).articles
    assert len({article.title for article in articles}) == len(articles) == 40
    steps = [step for article in articles for step in article.steps]
    assert len(set(steps)) < len(steps)
    assert {step.action for step in steps} == set(ACTIONS)
    for article in articles:
        assert len(set(article.steps)) == len(article.steps) >= 8
        assert sum(step.object.title() in article.title for step in article.steps) >= 2


def test_scenes_follow_each_other_and_narrations_do_not_overlap() -> None:
    for video in videos(narration_lag_s=20):
        assert video.scenes[0].start_s == 0 and video.scenes[-1].end_s == video.duration_s
        assert all(a.end_s == b.start_s and a.start_s < a.end_s for a, b in pairwise(video.scenes))
        assert all(a.end_s <= b.start_s for a, b in pairwise(video.narrations))
        assert all(0 <= narration.start_s < narration.end_s <= video.duration_s for narration in video.narrations)
        shown = {(scene.start_s, scene.end_s): scene.step for scene in video.shown}
        for narration in video.narrations:
            assert narration.seen_s is None or shown[narration.seen_s] == narration.step
        for scene in video.scenes:
            step = video.article.steps[scene.step] if scene.step is not None else None
            assert step is None or (scene.action, scene.object) == (step.action, step.object)


def missing(video: Video) -> float:
    return 1 - len({scene.step for scene in video.shown}) / len(video.article.steps)


def off_topic(video: Video) -> float:
    return mean([narration.step is None for narration in video.narrations])


def lag(video: Video) -> float:
    return mean(
        [abs(narration.start_s + 1.5 - sum(narration.seen_s) / 2) for narration in video.narrations if narration.seen_s]
    )


def unlike_the_article(video: Video) -> float:
    """Share of narrated steps whose narration does not name the object as the article does."""
    narrated = [narration for narration in video.narrations if narration.step is not None]
    return mean([video.article.steps[narration.step or 0].object not in narration.text for narration in narrated])


def repeated(video: Video) -> float:
    return len(video.shown) - len({scene.step for scene in video.shown})


def swapped(video: Video) -> float:
    rows = list(dict.fromkeys(scene.step for scene in video.shown))
    return mean([a > b for a, b in pairwise(rows)]) if len(rows) > 1 else 0.0  # type: ignore[operator]


def silent(video: Video) -> float:
    narrated = {narration.seen_s for narration in video.narrations}
    return mean([(scene.start_s, scene.end_s) not in narrated for scene in video.shown])


def unseen(video: Video) -> float:
    return sum(narration.step is not None and narration.seen_s is None for narration in video.narrations)


def pronouns(video: Video) -> float:
    return sum(bool({"it", "this", "that", "them"} & set(narration.text.split())) for narration in video.narrations)


@pytest.mark.parametrize(
    ("knob", "low", "high", "effect"),
    [
        ("missing_share", 0.1, 0.8, missing),
        ("off_topic_share", 0.1, 0.7, off_topic),
        ("narration_lag_s", 0.0, 10.0, lag),
        ("paraphrase_rate", 0.0, 1.0, unlike_the_article),
        ("repeat_rate", 0.0, 1.0, repeated),
        ("swap_rate", 0.0, 1.0, swapped),
        ("silent_rate", 0.0, 1.0, silent),
        ("unseen_rate", 0.0, 1.0, unseen),
        ("pronoun_rate", 0.0, 1.0, pronouns),
        ("steps_per_task", 4, 12, lambda video: len(video.article.steps)),
    ],
)
def test_a_knob_does_what_it_says(knob: str, low: float, high: float, effect: Callable[[Video], float]) -> None:
    # Without other reasons for words or sentences to be what they are.
    still = {"pronoun_rate": 0.0, "silent_rate": 0.0, "off_topic_share": 0.0} | {knob: low}
    few, many = (
        mean([effect(v) for v in videos(**(still | {knob: value})) if v.narrations and v.shown])
        for value in (low, high)
    )
    assert few < many
    if knob in ("missing_share", "off_topic_share"):
        assert abs(few - low) < 0.08 and abs(many - high) < 0.08
    if knob == "silent_rate":
        assert many == 1


def test_noise_and_look_are_in_the_features() -> None:
    quiet = World(replace(PRESETS["default"], feature_noise=0, look_strength=0, num_videos=40), 0)
    for video in quiet:
        concept_space = ConceptSpace(quiet)
        vectors = concept_space.watch(video)
        assert vectors.shape == (int(np.ceil(video.duration_s)), 128) and vectors.dtype == np.float16
        for scene in video.scenes:
            second = int(np.ceil(scene.start_s))
            if second + 1 <= scene.end_s:
                expected = concept_space.concept(scene.action, scene.object).astype(np.float16)
                np.testing.assert_array_equal(vectors[second], expected)
    concepts = [ConceptSpace(quiet).concept(action, thing.written) for action in ACTIONS for thing in THEMES[0].objects]
    assert 0.5 < np.std(concepts) < 1.5
    noisy = World(replace(quiet.knobs, feature_noise=2.0), 0)
    difference = ConceptSpace(noisy).watch(noisy.video(0)).astype(float) - ConceptSpace(quiet).watch(quiet.video(0))
    assert abs(difference.std() - 2) < 0.1
    looks = World(replace(quiet.knobs, look_strength=1.0), 0)
    shifts = [
        ConceptSpace(looks).watch(looks.video(n)).astype(float).mean(0)
        - ConceptSpace(quiet).watch(quiet.video(n)).mean(0)
        for n in (0, 1)
    ]
    assert np.abs(shifts[0] - shifts[1]).mean() > 0.5


def test_ids_look_like_youtube_ids() -> None:
    ids = {video.video_id for video in videos()}
    assert len(ids) == MANY and all(len(video_id) == 11 for video_id in ids)
    assert any(video_id[0] in "-_" for video_id in ids)


def test_one_in_ten_is_for_validation_and_one_for_testing() -> None:
    splits = [split_of(number) for number in range(100)]
    assert (splits.count("train"), splits.count("val_seen"), splits.count("test_seen")) == (80, 10, 10)


def test_other_scenes_are_no_steps_of_the_article() -> None:
    for video in videos():
        steps = {(step.action, step.object) for step in video.article.steps}
        others = [scene for scene in video.scenes if scene.step is None and scene.action != PRESENTER]
        assert not {(scene.action, scene.object) for scene in others} & steps


def test_presets_grow_harder() -> None:
    easy, default, hard = (PRESETS[name] for name in ("easy", "default", "hard"))
    for knob in fields(Knobs)[:6]:
        values = [getattr(preset, knob.name) for preset in (easy, default, hard)]
        assert values == sorted(values) and len(set(values)) == 3
    for knob in fields(Knobs)[6:]:
        assert len({getattr(preset, knob.name) for preset in PRESETS.values()}) == 1


def test_knobs_are_chosen_by_name() -> None:
    assert choose_knobs("hard", {"num_videos": "7", "feature_noise": "0.25"}) == replace(
        PRESETS["hard"], num_videos=7, feature_noise=0.25
    )
    assert len(explain_knobs()) == len(fields(Knobs))


@pytest.mark.parametrize(
    ("preset", "changes", "message"),
    [
        ("middling", {}, "there is no preset 'middling'; the presets are easy"),
        ("easy", {"noise": "1"}, "there is no knob 'noise'; the knobs are feature_noise"),
        ("easy", {"num_videos": "1.5"}, "knob num_videos: '1.5' is not a whole number"),
        ("easy", {"num_videos": "0"}, "knob num_videos is 0; its limits are 1 to 1,000,000"),
        ("easy", {"feature_noise": "nan"}, "knob feature_noise is nan; its limits are 0 to 100"),
        ("easy", {"swap_rate": "many"}, "knob swap_rate: 'many' is not a number"),
        ("easy", {"missing_share": "1"}, "knob missing_share is 1.0; its limits are 0 to 0.95"),
    ],
)
def test_wrong_knobs_are_refused(preset: str, changes: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_knobs(preset, changes)
