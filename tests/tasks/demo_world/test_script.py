"""What videos show and say: consistent within themselves, and turned by the knobs as the knobs say."""

from collections.abc import Callable
from dataclasses import fields, replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from tasks.demo_world.features import ConceptSpace
from tasks.demo_world.knobs import PRESETS, Knobs, choose_knobs, explain_knobs
from tasks.demo_world.lexicon import ACTIONS, THEMES
from tasks.demo_world.scenes import PRESENTER
from tasks.demo_world.script import Video, World

MANY = 120


def videos(preset: str = "htstep", **changes: float) -> list[Video]:
    return list(World(replace(PRESETS[preset], num_videos=MANY, **changes), 0))


def mean(values: list[float]) -> float:
    return float(np.mean(values))


def is_in_sync(narration: object) -> bool:
    seen = narration.seen_s  # type: ignore[attr-defined]
    return seen is not None and narration.start_s < seen[1] and narration.end_s > seen[0]  # type: ignore[attr-defined]


def test_a_world_is_a_function_of_its_seed() -> None:
    one, same, other = (World(replace(PRESETS["htstep"], num_videos=5), seed) for seed in (1, 1, 2))
    assert list(one) == list(same) and one.articles == same.articles
    assert one.articles != other.articles and one.video(0) != other.video(0)
    np.testing.assert_array_equal(ConceptSpace(one).watch(one.video(3)), ConceptSpace(same).watch(same.video(3)))


@pytest.mark.parametrize("preset", list(PRESETS))
def test_scenes_follow_each_other_and_narrations_do_not_overlap(preset: str) -> None:
    for video in videos(preset, overlap_rate=0.3):
        assert video.scenes[0].start_s == 0 and video.scenes[-1].end_s == video.duration_s
        assert all(a.end_s == b.start_s for a, b in pairwise(video.scenes))
        assert all(a.end_s <= b.start_s for a, b in pairwise(video.narrations))
        assert all(0 <= narration.start_s < narration.end_s <= video.duration_s for narration in video.narrations)
        assert video.segments and all(0 <= s.start_s < s.end_s <= video.duration_s for s in video.segments)
        for one, other in combinations(video.segments, 2):
            assert one.step != other.step or one.end_s <= other.start_s


def test_scenes_and_narrations_show_and_name_the_steps_of_their_segments() -> None:
    for video in videos(overlap_rate=0.2):
        shown = {(segment.start_s, segment.end_s): segment.step for segment in video.segments}
        others = {(scene.start_s, scene.end_s) for scene in video.scenes if scene.step is None and scene.shows_action}
        for narration in video.narrations:
            if narration.seen_s is not None:
                assert shown.get(narration.seen_s) == narration.step or narration.seen_s in others
        for scene in video.scenes:
            assert scene.start_s < scene.end_s
            is_annotated = any(s.start_s <= scene.start_s and scene.end_s <= s.end_s for s in video.segments)
            assert is_annotated == (scene.step is not None)
            if scene.step is not None:
                assert (scene.action, scene.object) in video.article.steps[scene.step].actions


def test_other_scenes_are_no_steps_of_the_article() -> None:
    kinds = set()
    for video in videos():
        others = [scene for scene in video.scenes if scene.step is None]
        assert not {(scene.action, scene.object) for scene in others} & video.article.pairs
        kinds |= {scene.action for scene in others}
    assert kinds == {*ACTIONS, "presenter", "title", "finished"}


def test_narrations_have_the_shares_of_the_knobs() -> None:
    narrations = [narration for video in videos() for narration in video.narrations]
    assert mean([video.duration_s / len(video.narrations) for video in videos()]) == pytest.approx(5, abs=0.3)
    assert mean([narration.seen_s is not None for narration in narrations]) == pytest.approx(0.3, abs=0.02)
    assert mean([is_in_sync(narration) for narration in narrations]) == pytest.approx(0.15, abs=0.03)


def shown_share(video: Video) -> float:
    return len({segment.step for segment in video.segments}) / len(video.article.steps)


def lag(video: Video) -> float:
    aligned = [narration for narration in video.narrations if narration.seen_s]
    return mean([abs(narration.start_s - sum(narration.seen_s) / 2) for narration in aligned if narration.seen_s])


def unlike_the_article(video: Video) -> float:
    """Share of narrations about steps that do not name the object as the article's author would."""
    told = [narration for narration in video.narrations if narration.step is not None]
    objects = [video.article.steps[narration.step or 0].object for narration in told]
    return mean([thing not in narration.text for thing, narration in zip(objects, told, strict=True)] or [0.5])


def repeated(video: Video) -> float:
    return len(video.segments) - len({segment.step for segment in video.segments})


def out_of_order(video: Video) -> float:
    rows = list(dict.fromkeys(segment.step for segment in video.segments))
    return mean([a > b for a, b in combinations(rows, 2)]) if len(rows) > 1 else 0.0


def overlaps(video: Video) -> float:
    return sum(a.end_s > b.start_s for a, b in pairwise(video.segments))


def pronouns(video: Video) -> float:
    return sum(bool({"it", "this", "that", "them"} & set(narration.text.split())) for narration in video.narrations)


def talk(video: Video) -> float:
    return sum(s.end_s - s.start_s for s in video.scenes if s.action == PRESENTER) / video.duration_s


@pytest.mark.parametrize(
    ("knob", "low", "high", "effect"),
    [
        ("duration_p90_s", 400, 900, lambda video: video.duration_s),
        ("shown_share", 0.1, 0.8, shown_share),
        ("repeat_rate", 0.0, 1.0, repeated),
        ("segment_s", 3, 12, lambda video: mean([s.end_s - s.start_s for s in video.segments])),
        ("order_noise", 0.0, 1.0, out_of_order),
        ("overlap_rate", 0.0, 0.5, overlaps),
        ("talk_share", 0.1, 0.9, talk),
        ("narration_every_s", 5, 20, lambda video: video.duration_s / len(video.narrations)),
        ("narration_lag_s", 1.0, 60.0, lag),
        ("alignable_share", 0.2, 0.8, lambda video: mean([n.seen_s is not None for n in video.narrations])),
        ("in_sync_share", 0.0, 0.3, lambda video: mean([is_in_sync(n) for n in video.narrations])),
        ("paraphrase_rate", 0.0, 1.0, unlike_the_article),
        ("pronoun_rate", 0.0, 1.0, pronouns),
        ("steps_per_article", 4, 12, lambda video: len(video.article.steps)),
    ],
)
def test_a_knob_does_what_it_says(knob: str, low: float, high: float, effect: Callable[[Video], float]) -> None:
    few, many = (mean([effect(video) for video in videos(**{knob: value})]) for value in (low, high))
    assert few < 0.8 * many


def test_noise_and_look_are_in_the_features() -> None:
    quiet = World(replace(PRESETS["short"], feature_noise=0, look_strength=0, num_videos=40), 0)
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
    ids = {video.video_id for video in videos("short")}
    assert len(ids) == MANY and all(len(video_id) == 11 for video_id in ids)
    assert any(video_id[0] in "-_" for video_id in ids)


def test_no_training_video_is_about_an_unseen_article() -> None:
    world = World(PRESETS["htstep"], 0)
    splits = [world.split_of(number) for number in range(100)]
    counts = {split: splits.count(split) for split in splits}
    assert counts == {"train": 80, "val_seen": 5, "test_seen": 5, "val_unseen": 5, "test_unseen": 5}
    assert all(video.article.is_unseen == video.split.endswith("unseen") for video in videos())
    without = World(replace(PRESETS["htstep"], unseen_share=0), 0)
    assert {without.split_of(number) for number in range(100)} == {"train", "val_seen", "test_seen"}


def test_knobs_are_chosen_by_name() -> None:
    assert choose_knobs("coin", {"num_videos": "7", "feature_noise": "0.25"}) == replace(
        PRESETS["coin"], num_videos=7, feature_noise=0.25
    )
    assert len(explain_knobs()) == len(fields(Knobs))


@pytest.mark.parametrize(
    ("preset", "changes", "message"),
    [
        ("middling", {}, "there is no preset 'middling'; the presets are default"),
        ("short", {"noise": "1"}, "there is no knob 'noise'; the knobs are duration_s"),
        ("short", {"num_videos": "1.5"}, "knob num_videos: '1.5' is not a whole number"),
        ("short", {"num_videos": "0"}, "knob num_videos is 0; it goes from 1 to 1,000,000"),
        ("short", {"feature_noise": "nan"}, "knob feature_noise is nan; it goes from 0 to 100"),
        ("short", {"repeat_rate": "many"}, "knob repeat_rate: 'many' is not a number"),
        ("short", {"shown_share": "1"}, "knob shown_share is 1.0; it goes from 0.02 to 0.98"),
        ("short", {"duration_p10_s": "50"}, "duration_p10_s <= duration_s <= duration_p90_s"),
        ("short", {"in_sync_share": "0.9"}, "in_sync_share is 0.9, more than alignable_share"),
    ],
)
def test_wrong_knobs_are_refused(preset: str, changes: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_knobs(preset, changes)
