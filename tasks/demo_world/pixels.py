"""Draw a video's script as an MP4 file: H.264, 224 x 168 pixels, 12 frames per second, no sound.

The look of each action and object is fixed; light, colours, position, camera and grain differ between videos. One loop
of a scene's motion is drawn and then repeated, so that a minute of video takes a few seconds to draw.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import pi, sin
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
from PIL import Image

from storage.objects import atomic_file
from tasks.demo_world.drawing import Viewpoint, draw_action, draw_presenter, draw_title
from tasks.demo_world.motions import MOTIONS
from tasks.demo_world.scenes import PRESENTER, TITLE, Scene
from tasks.demo_world.script import Video, World
from tasks.demo_world.sprites import Colour, sprite

WIDTH, HEIGHT, FPS = 224, 168, 12
_ZOOM, _MARGIN = 2, 10
_CANVAS = (_ZOOM * (WIDTH + 2 * _MARGIN), _ZOOM * (HEIGHT + 2 * _MARGIN))
_UNIT = 40 * _ZOOM
"""Size of half an object in pixels of the canvas: an object is about half as high as the video."""
_FRAMES = {PRESENTER: 24, TITLE: 1}
"""Frames in the loop of a scene without an object."""
_FAIR, _DARK = (240, 196, 165), (110, 70, 48)
Frame = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Look:
    """How one video differs from others: colours, light, position of the object, and movement of the camera."""

    wall: Colour
    table: Colour
    skin: Colour
    shirt: Colour
    light: tuple[float, ...]
    """Factors of red, green and blue, for brightness and tint."""
    view: Viewpoint
    drift: tuple[float, float]
    """How far the camera drifts to each side, in pixels of the video."""
    drift_s: tuple[float, float]
    grain: float


def render(world: World, video: Video, path: Path) -> None:
    """Draw a video and write it as an MP4 file, which appears complete or not at all."""
    with atomic_file(path) as partial:
        _encode(draw_frames(world, video), partial)


def draw_frames(world: World, video: Video) -> Iterator[Frame]:
    """Yield the frames of a video. A frame shows the scene at the middle of its time, as the features do."""
    count = round(video.duration_s * FPS)
    if not video.scenes or count < 1:
        raise ValueError(
            f"video {video.video_id}: {len(video.scenes)} scenes in {video.duration_s} s have no frame to draw; "
            f"give it a scene of at least {1 / FPS:.2f} s"
        )
    look = look_of(world, video)
    rng = np.random.default_rng([world.seed, 6, video.number])
    noise = (look.grain * rng.standard_normal((2 * HEIGHT, 2 * WIDTH, 1))).round().astype(np.int16)
    middles = (np.arange(count) + 0.5) / FPS
    ends = np.array([scene.end_s for scene in video.scenes])
    rows = np.minimum(np.searchsorted(ends, middles, side="right"), len(ends) - 1)
    for row in np.unique(rows):
        frames = np.flatnonzero(rows == row)
        scene = video.scenes[row]
        loop = draw_moments(scene, look, video.article.title, range(min(frames_of_loop(scene), len(frames))))
        for frame in frames:
            y, x = rng.integers(HEIGHT), rng.integers(WIDTH)
            picture = through_camera(loop[(frame - frames[0]) % len(loop)], look, frame / FPS)
            grainy = np.asarray(picture, dtype=np.int16) + noise[y : y + HEIGHT, x : x + WIDTH]
            yield grainy.clip(0, 255).astype(np.uint8)


def look_of(world: World, video: Video) -> Look:
    """Return the look of a video. Limits keep the object in the picture even if `look_strength` is high."""
    rng = np.random.default_rng([world.seed, 5, video.number])
    strength = world.knobs.look_strength

    def number(base: float, deviation: float, limit: float) -> float:
        return base + float(np.clip(strength * deviation * rng.standard_normal(), -limit, limit))

    def colour(*base: int, low: int = 90, high: int = 225) -> Colour:
        random_colour = rng.integers(low, high, 3)
        share = min(strength, 1.0)
        return tuple(round((1 - share) * a + share * int(b)) for a, b in zip(base, random_colour, strict=True))

    bright = number(1, 0.16, 0.35)
    tone = rng.uniform(0, min(strength, 1.0))
    return Look(
        wall=colour(178, 184, 192),
        table=colour(150, 132, 116),
        skin=tuple(round((1 - tone) * fair + tone * dark) for fair, dark in zip(_FAIR, _DARK, strict=True)),
        shirt=colour(60, 90, 150, low=20, high=240),
        light=tuple(bright * number(1, 0.1, 0.2) for _ in range(3)),
        view=Viewpoint(
            _CANVAS[0] / 2 + _UNIT * number(0, 0.3, 0.5),
            _CANVAS[1] / 2 + _UNIT * number(0, 0.1, 0.15),
            _UNIT * number(1, 0.14, 0.2),
        ),
        drift=(number(0, 5, _MARGIN), number(0, 4, _MARGIN)),
        drift_s=(float(rng.uniform(7, 15)), float(rng.uniform(7, 15))),
        grain=min(5 * strength, 10.0),
    )


def frames_of_loop(scene: Scene) -> int:
    """Return the number of frames of one loop of the scene's motion."""
    if scene.action in _FRAMES:
        return _FRAMES[scene.action]
    if scene.action not in MOTIONS:
        raise ValueError(
            f"the scene at {scene.start_s} s has the action {scene.action!r}: add a motion for it to motions.py"
        )
    return MOTIONS[scene.action].frames


def draw_moments(scene: Scene, look: Look, title: str, frames: Iterable[int]) -> list[Image.Image]:
    """Return canvases of some frames of the scene's loop, with the video's light, before `through_camera`."""
    length, room = frames_of_loop(scene), _draw_room(look)
    curve = [min(255, round(factor * value)) for factor in look.light for value in range(256)]
    moments = []
    for frame in frames:
        canvas = room.copy()
        if scene.action == PRESENTER:
            draw_presenter(canvas, look.view, frame / length, look.skin, look.shirt)
        elif scene.action == TITLE:
            draw_title(canvas, 2 * _ZOOM * _MARGIN, title, look.wall, look.shirt)
        else:
            pose = MOTIONS[scene.action].pose(frame / length)
            draw_action(canvas, look.view, sprite(scene.object), pose, look.skin)
        moments.append(canvas.point(curve))
    return moments


def _draw_room(look: Look) -> Image.Image:
    """Return a canvas with a wall that is lighter above and a table that is lighter in front."""
    width, height = _CANVAS
    down = np.linspace(0, 1, height)[:, None, None]
    wall, table = np.array(look.wall) * (1.12 - 0.3 * down), np.array(look.table) * (0.75 + 0.3 * down)
    rows = np.where(down < 0.62, wall, table).clip(0, 255).astype(np.uint8)
    return Image.fromarray(np.repeat(rows, width, axis=1))


def through_camera(canvas: Image.Image, look: Look, seconds: float) -> Image.Image:
    """Return the frame of the video, without grain, that the camera sees of a canvas at a time."""
    left, top = (
        _ZOOM * (_MARGIN + far * sin(2 * pi * seconds / cycle_s))
        for far, cycle_s in zip(look.drift, look.drift_s, strict=True)
    )
    window = (left, top, left + _ZOOM * WIDTH, top + _ZOOM * HEIGHT)
    return canvas.resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR, box=window)


def _encode(frames: Iterable[Frame], path: Path) -> None:
    """Encode frames reproducibly: with one thread, and no macroblock tree, where x264 reads uninitialised memory."""
    options = {"preset": "veryfast", "crf": "23", "threads": "1", "x264-params": "mbtree=0"}
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=FPS, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode(None))
