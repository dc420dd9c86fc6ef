"""What is spoken in a demo video, and when: about steps, other things on the screen, or nothing of the kind."""

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from tasks.demo_world.articles import DemoArticle
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.scenes import Scene
from tasks.demo_world.speech import Speaker
from tasks.demo_world.timeline import Timeline
from tasks.demo_world.wording import one_of

WORDS_PER_S = 2.8


@dataclass(frozen=True)
class Narration:
    """A sentence. `step` is the step it is about, if any; `seen_s` is when its content is shown, if it is."""

    text: str
    start_s: float
    end_s: float
    step: int | None
    seen_s: tuple[float, float] | None


class Narrator:
    """Speaks in one video."""

    def __init__(
        self,
        rng: np.random.Generator,
        knobs: Knobs,
        article: DemoArticle,
        timeline: Timeline,
        scenes: tuple[Scene, ...],
        speaker: Speaker,
    ) -> None:
        self._rng, self._knobs, self._article, self._speaker = rng, knobs, article, speaker
        self._timeline, self._scenes = timeline, scenes
        self._starts = [scene.start_s for scene in scenes]
        self._actions = [scene for scene in scenes if scene.shows_action]
        self._action_starts = [scene.start_s for scene in self._actions]
        active_s = sum(scene.end_s - scene.start_s for scene in self._actions)
        self._in_sync_rate = min(knobs.in_sync_share * timeline.duration_s / active_s, 1.0) if active_s else 0.0
        self._late_rate = max(knobs.alignable_share - knobs.in_sync_share, 0) / max(1 - knobs.in_sync_share, 1e-9)
        shown = {segment.step for segment in timeline.segments}
        self._unseen = [row for row in range(len(article.steps)) if row not in shown]

    def narrate(self) -> tuple[Narration, ...]:
        """Return the sentences in spoken order, one at a time."""
        knobs, duration_s = self._knobs, self._timeline.duration_s
        clock, spoken = 0.0, []
        times = (np.arange(int(duration_s / knobs.narration_every_s)) + self._rng.random()) * knobs.narration_every_s
        times += knobs.narration_every_s * self._rng.uniform(-0.4, 0.4, len(times))
        for time in times.tolist():
            start = round(max(clock, time), 2)
            text, step, seen_s = self._sentence(start)
            end = round(start + max(1.0, (text.count(" ") + 1) / WORDS_PER_S), 2)
            if end > duration_s:
                break
            spoken.append(Narration(text, start, end, step, seen_s))
            clock = end
        return tuple(spoken)

    def _sentence(self, time: float) -> tuple[str, int | None, tuple[float, float] | None]:
        scene = self._scenes[bisect_right(self._starts, time) - 1]
        kind, which = self._rng.random(2)
        if scene.shows_action and which < self._in_sync_rate:
            return self._tell(scene, 0.0)
        if self._actions and kind < self._late_rate:
            lag_s = float(self._rng.laplace(0, self._knobs.narration_lag_s)) if self._knobs.narration_lag_s else 0.0
            return self._tell(self._action_near(time - lag_s, scene), lag_s)
        knobs, kind = self._knobs, (kind - self._late_rate) / max(1 - self._late_rate, 1e-9)
        if kind < knobs.mention_share:
            return self._speaker.mention(scene.object or self._article.steps[0].object), None, None
        if (kind := kind - knobs.mention_share) < knobs.unseen_step_share and self._unseen:
            row = one_of(self._rng, self._unseen)
            return self._speaker.unseen(self._article.steps[row]), row, None
        if kind - knobs.unseen_step_share < knobs.topic_share:
            return self._topic(time / self._timeline.duration_s), None, None
        return self._speaker.chat(self._article), None, None

    def _topic(self, place: float) -> str:
        return self._speaker.recap(self._article) if place > 0.5 else self._speaker.introduce(self._article)

    def _action_near(self, time: float, current: Scene) -> Scene:
        """Return the action that is shown at a time, or the last one before it; a neighbour rather than `current`."""
        place = max(bisect_right(self._action_starts, time) - 1, 0)
        if self._actions[place] is current:
            place += 1 if place + 1 < len(self._actions) and (time > current.end_s or place == 0) else -1
        return self._actions[max(place, 0)]

    def _tell(self, scene: Scene, lag_s: float) -> tuple[str, int | None, tuple[float, float]]:
        text = self._speaker.tell(scene.action, scene.object, lag_s)
        if scene.step is None:
            return text, None, (scene.start_s, scene.end_s)
        segment = next(
            segment
            for segment in self._timeline.segments
            if segment.step == scene.step and segment.start_s <= scene.start_s and scene.end_s <= segment.end_s
        )
        return text, scene.step, (segment.start_s, segment.end_s)
