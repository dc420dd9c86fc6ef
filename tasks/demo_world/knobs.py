"""Size, shape and difficulty of a demo world: every knob with its limits, and the presets."""

from dataclasses import dataclass, field, fields, replace
from typing import Any


def _knob(default: float, low: float, high: float, meaning: str) -> Any:
    return field(default=default, metadata={"low": low, "high": high, "meaning": meaning})


@dataclass(frozen=True)
class Knobs:
    """Knobs of time, of what is seen, of speech, of articles, and sizes.

    The defaults are those of the preset `htstep`. The knobs of time name the statistic of real annotations that they
    are set by (`vina stats --compare demo:htstep FOLDER` compares them).
    """

    duration_s: float = _knob(331, 20, 10_000, "Median duration of a video, in seconds.")
    duration_p10_s: float = _knob(150, 10, 10_000, "Duration that one video in ten stays below.")
    duration_p90_s: float = _knob(699, 20, 20_000, "Duration that one video in ten exceeds.")
    shown_share: float = _knob(0.42, 0.02, 0.98, "Mean share of an article's steps that a video shows.")
    shown_spread: float = _knob(0.212, 0.01, 0.5, "Standard deviation of that share: set by its p10 and p90.")
    repeat_rate: float = _knob(0.257, 0, 1, "Share of shown steps that have more than one segment.")
    segment_s: float = _knob(8.2, 1, 600, "Median length of a segment, before those that do not fit are shortened.")
    segment_spread: float = _knob(1.22, 0, 3, "Standard deviation of the log of lengths: set by their mean and p90.")
    order_noise: float = _knob(
        0.168, 0, 10, "How far a step moves from its place in the article (0 to 1): set by the pairs of steps in order."
    )
    gap_shape: float = _knob(
        0.45, 0.05, 50, "Evenness of the gaps between segments: set by the R@1 of steps that are spread evenly."
    )
    gap_tilt: float = _knob(
        0.235, 0, 1, "How much a gap grows with the steps that are left out: set by the spread of (start - place)."
    )
    gap_ends: float = _knob(
        5.1, 0.1, 20, "Length of the first and the last gap, in mean gaps: set by the R@1 of the video's centre."
    )
    overlap_rate: float = _knob(
        0.005, 0, 0.9, "How often a segment begins before the one before it ends: set by the seconds with two steps."
    )
    time_unit_s: float = _knob(0.01, 0.01, 10, "Start and end of a segment are multiples of this.")

    feature_noise: float = _knob(
        1.0,
        0,
        100,
        "Standard deviation of the noise in a second's feature vector; that of the concepts is about 1.",
    )
    look_strength: float = _knob(
        0.5,
        0,
        3,
        "How much the look of each video (light, colours, camera) changes its features; 0: not at all.",
    )
    talk_share: float = _knob(0.4, 0, 1, "Share of the time between steps in which somebody talks.")
    same_object_share: float = _knob(
        0.4, 0, 1, "Share of the other actions between steps that are done with an object of the article's steps."
    )

    narration_every_s: float = _knob(5.0, 1, 1_000, "Seconds per narration, on average.")
    alignable_share: float = _knob(0.3, 0, 1, "Share of narrations about something that the video shows.")
    in_sync_share: float = _knob(0.15, 0, 1, "Share of narrations that are spoken while it is shown.")
    narration_lag_s: float = _knob(
        15.0, 0, 600, "Mean distance between an alignable narration that is not in sync and what it is about."
    )
    mention_share: float = _knob(
        0.15, 0, 1, "Share of the other narrations that name an object on the screen and no action."
    )
    unseen_step_share: float = _knob(0.1, 0, 1, "Share of the other narrations about steps that are not shown.")
    topic_share: float = _knob(0.1, 0, 1, "Share of the other narrations about the topic of the video.")
    paraphrase_rate: float = _knob(
        0.7, 0, 1, "How often a speaker uses words for the action, or the object, that no article uses."
    )
    pronoun_rate: float = _knob(0.2, 0, 1, "How often a speaker says `it` where the article names the object.")

    steps_per_article: float = _knob(10.1, 2, 20, "Steps of an article, on average.")
    steps_spread: float = _knob(0.5, 0, 1, "Standard deviation of the log of an article's number of steps.")
    wording_rate: float = _knob(
        0.8, 0, 1, "How often an article has its own words for a step: another verb, another order, a clause more."
    )
    two_action_share: float = _knob(0.15, 0, 1, "Share of steps with two actions.")
    rare_word_rate: float = _knob(0.1, 0, 1, "How often a step or a sentence has a rare word in it.")

    num_articles: int = _knob(40, 2, 2_000, "Articles.")
    unseen_share: float = _knob(0.2, 0, 0.9, "Share of the articles that no training video is about.")
    num_actions: int = _knob(24, 8, 24, "Actions in use, at most 24.")
    num_objects: int = _knob(60, 16, 60, "Objects in use, at most 60, in four themes.")
    num_videos: int = _knob(2_000, 1, 1_000_000, "Videos; of twenty, four are held out.")
    num_rendered: int = _knob(3, 0, 1_000, "How many of the test videos are drawn as MP4 files as well.")
    feature_width: int = _knob(128, 8, 4_096, "Numbers in a feature vector.")

    def __post_init__(self) -> None:
        for knob in fields(self):
            value, low, high = getattr(self, knob.name), knob.metadata["low"], knob.metadata["high"]
            if not low <= value <= high:  # also false for NaN
                raise ValueError(f"knob {knob.name} is {value}; it goes from {low:,} to {high:,}")
        if not self.duration_p10_s <= self.duration_s <= self.duration_p90_s:
            raise ValueError("the durations must be duration_p10_s <= duration_s <= duration_p90_s: change all three")
        if self.in_sync_share > self.alignable_share:
            raise ValueError(f"in_sync_share is {self.in_sync_share}, more than alignable_share {self.alignable_share}")


_HTSTEP = Knobs()
PRESETS = {
    "default": replace(
        _HTSTEP,
        talk_share=0.7,
        feature_noise=0.7,
        look_strength=0.3,
        paraphrase_rate=0.5,
        num_articles=24,
        num_actions=12,
        num_objects=24,
        num_videos=500,
    ),
    "htstep": _HTSTEP,
    "crosstask": replace(
        _HTSTEP,
        duration_s=263,
        duration_p10_s=113,
        duration_p90_s=484,
        steps_per_article=7.5,
        steps_spread=0.3,
        shown_share=0.705,
        shown_spread=0.206,
        repeat_rate=0.265,
        segment_s=5.3,
        segment_spread=1.14,
        order_noise=0.235,
        gap_shape=0.4,
        gap_tilt=0.15,
        gap_ends=8.5,
        overlap_rate=0.1,
    ),
    "coin": replace(
        _HTSTEP,
        duration_s=139,
        duration_p10_s=58,
        duration_p90_s=222,
        steps_per_article=4.35,
        steps_spread=0.42,
        shown_share=0.705,
        shown_spread=0.18,
        repeat_rate=0.2,
        segment_s=10.1,
        segment_spread=1.2,
        order_noise=0.16,
        gap_shape=0.45,
        gap_tilt=0.36,
        gap_ends=11.0,
        overlap_rate=0.0,
        time_unit_s=1.0,
    ),
    "short": replace(
        _HTSTEP,
        duration_s=40,
        duration_p10_s=28,
        duration_p90_s=60,
        steps_per_article=5,
        steps_spread=0.25,
        shown_share=0.6,
        segment_s=5,
        segment_spread=0.4,
        repeat_rate=0.15,
        order_noise=0.1,
        gap_shape=1.0,
        alignable_share=0.7,
        in_sync_share=0.4,
        narration_lag_s=4,
        feature_noise=0.5,
        unseen_share=0,
        num_videos=400,
    ),
}
ABOUT = {
    "default": "the temporal shape of HT-Step, with few articles, actions and objects, to be learned in minutes",
    "htstep": "the temporal shape of HT-Step",
    "crosstask": "the temporal shape of CrossTask",
    "coin": "the temporal shape of COIN",
    "short": "short and easy videos, for tests and first tries",
}
"""What each preset is."""


def explain_knobs() -> list[str]:
    """Return one line a knob."""
    return [
        f"{knob.name} = {knob.default} ({about['low']:,} to {about['high']:,}): {about['meaning']}"
        for knob in fields(Knobs)
        for about in [knob.metadata]
    ]


def choose_knobs(preset: str, changes: dict[str, str]) -> Knobs:
    """Return a preset with other values for some knobs, given as text."""
    if preset not in PRESETS:
        raise ValueError(f"there is no preset {preset!r}; the presets are {', '.join(PRESETS)}")
    kinds: dict[str, Any] = {knob.name: knob.type for knob in fields(Knobs)}
    values: dict[str, Any] = {}
    for name, text in changes.items():
        if name not in kinds:
            raise ValueError(f"there is no knob {name!r}; the knobs are {', '.join(kinds)}")
        try:
            values[name] = kinds[name](text)
        except ValueError:
            raise ValueError(
                f"knob {name}: {text!r} is not {'a whole' if kinds[name] is int else 'a'} number"
            ) from None
    return replace(PRESETS[preset], **values)
