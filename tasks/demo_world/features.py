"""Features of demo videos, computed from the script: one vector per second.

The concept of a second is the output of a fixed random two-layer network for the vectors of its action and its object.
The look of a video scales and shifts all its vectors; independent noise is added to every second.
"""

import numpy as np
import numpy.typing as npt

from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import ACTIONS, THEMES
from tasks.demo_world.scenes import FINISHED, PRESENTER, TITLE
from tasks.demo_world.script import Video, World

_HIDDEN = 256
Vectors = npt.NDArray[np.float32]


class ConceptSpace:
    """Computes the feature vectors of a world's scenes."""

    def __init__(self, world: World) -> None:
        self._knobs, self._seed = world.knobs, world.seed
        rng = np.random.default_rng([world.seed, 3])
        objects = [thing.written for theme in THEMES for thing in theme.objects]
        self._action = {name: rng.standard_normal(32) for name in (*ACTIONS, PRESENTER)}
        self._object = {name: rng.standard_normal(32) for name in (*objects, "")}
        self._into = rng.standard_normal((64, _HIDDEN)) / 8
        self._out = rng.standard_normal((_HIDDEN, world.knobs.feature_width)) * np.sqrt(2 / _HIDDEN)
        self._action |= {name: rng.standard_normal(32) for name in (TITLE, FINISHED)}  # last: keeps the other vectors
        self._concepts: dict[tuple[str, str], Vectors] = {}

    def concept(self, action: str, thing: str) -> Vectors:
        """Return the vector of an action on an object, without look and noise."""
        if (action, thing) not in self._concepts:
            both = np.concatenate([self._action[action], self._object[thing]])
            hidden = np.maximum(both @ self._into, 0) - 0.4
            self._concepts[action, thing] = (hidden @ self._out).astype(np.float32)
        return self._concepts[action, thing]

    def watch(self, video: Video) -> npt.NDArray[np.float16]:
        """Return the features of a video, T x D: vector t is of the scene in the middle of [t, t + 1)."""
        rng = np.random.default_rng([self._seed, 4, video.number])
        knobs: Knobs = self._knobs
        middles = np.arange(int(np.ceil(video.duration_s))) + 0.5
        ends = np.array([scene.end_s for scene in video.scenes])
        rows = np.minimum(np.searchsorted(ends, middles, side="right"), len(ends) - 1)
        seen = np.stack([self.concept(scene.action, scene.object) for scene in video.scenes])[rows]
        gain = np.exp(knobs.look_strength * 0.3 * rng.standard_normal(knobs.feature_width))
        shift = knobs.look_strength * rng.standard_normal(knobs.feature_width)
        noise = knobs.feature_noise * rng.standard_normal(seen.shape)
        return (seen * gain + shift + noise).astype(np.float16)
