"""Knobs for the size and difficulty of the demo world, each with a meaning and limits.

The presets `easy`, `default` and `hard` set the first six. A small TAN* (128 wide, 2 layers, two minutes on
one core), trained on 1,500 videos, reached a step R@1 of 87, 45 to 48 and 30 % in them; chance is 10, 13 and 16 %, and
a rule that places an article's steps at even distances reaches 30 %. `paraphrase_rate` changes only the R@1 of
steps; lag, noise and too few videos (400: 25 %) lower that of narrations too.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any


def _knob(default: float, low: float, high: float, meaning: str) -> Any:
    return field(default=default, metadata={"low": low, "high": high, "meaning": meaning})


@dataclass(frozen=True)
class Knobs:
    """Six knobs for the difficulty, then rates that are the same in all presets, then sizes."""

    feature_noise: float = _knob(
        1.0,
        0,
        100,
        "Standard deviation of the noise in every second's feature vector; that of the concepts is about 1.",
    )
    narration_lag_s: float = _knob(
        4.0,
        0,
        60,
        "Mean seconds between a narration and the scene it is about: half of them early, half late.",
    )
    missing_share: float = _knob(0.5, 0, 0.95, "Share of an article's steps that a video does not show.")
    paraphrase_rate: float = _knob(
        0.9,
        0,
        1,
        "How often a speaker uses other words than the article: for the action, and for the object.",
    )
    off_topic_share: float = _knob(
        0.25,
        0,
        0.9,
        "Share of narrations that are not about the video: chit-chat, asides about other tasks.",
    )
    look_strength: float = _knob(
        0.5,
        0,
        3,
        "How much the look of each video (light, colours, camera) changes its features; 0: all look the same.",
    )

    swap_rate: float = _knob(0.2, 0, 1, "How often two neighbouring steps are shown in the other order.")
    repeat_rate: float = _knob(0.15, 0, 1, "How often a shown step is shown again later.")
    silent_rate: float = _knob(0.3, 0, 1, "How often a shown step has no narration.")
    unseen_rate: float = _knob(0.25, 0, 1, "How often a step that is not shown has a narration.")
    topic_rate: float = _knob(0.7, 0, 1, "How often a video begins by saying what it is about.")
    pronoun_rate: float = _knob(0.2, 0, 1, "How often a speaker says `it` where the article names the object.")

    num_tasks: int = _knob(40, 1, 2_000, "Number of tasks, with one article each.")
    num_actions: int = _knob(24, 8, 24, "Number of actions, at most 24.")
    num_objects: int = _knob(60, 16, 60, "Number of objects, at most 60, in four themes.")
    steps_per_task: int = _knob(10, 3, 12, "Mean number of steps of an article; it varies by up to two.")
    num_videos: int = _knob(
        1_500, 1, 1_000_000, "Number of videos; one in ten is for validation, one in ten for testing."
    )
    num_rendered: int = _knob(3, 0, 1_000, "Number of test videos that are also drawn as MP4 files.")
    feature_width: int = _knob(128, 8, 4_096, "Width of the feature vectors.")

    def __post_init__(self) -> None:
        for knob in fields(self):
            value, low, high = getattr(self, knob.name), knob.metadata["low"], knob.metadata["high"]
            if not low <= value <= high:  # also false for NaN
                raise ValueError(f"knob {knob.name} is {value}; its limits are {low:,} to {high:,}")


PRESETS = {
    "easy": Knobs(
        feature_noise=0.5,
        narration_lag_s=2,
        missing_share=0.3,
        paraphrase_rate=0.6,
        off_topic_share=0.15,
        look_strength=0.2,
    ),
    "default": Knobs(),
    "hard": Knobs(
        feature_noise=1.25,
        narration_lag_s=6,
        missing_share=0.6,
        paraphrase_rate=0.92,
        off_topic_share=0.35,
        look_strength=0.6,
    ),
}


def explain_knobs() -> list[str]:
    """Return one line per knob."""
    return [
        f"{knob.name} = {knob.default} ({limits['low']:,} to {limits['high']:,}): {limits['meaning']}"
        for knob in fields(Knobs)
        for limits in [knob.metadata]
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
