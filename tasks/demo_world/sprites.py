"""The 60 objects of the demo world as pictures: 12 shapes, 10 colours and 5 textures.

The number of an object in the lexicon chooses all three, never the seed: modulo 12 and modulo 10 it gives 60 distinct
pairs of shape and colour. The pictures do not resemble the objects; they only have to differ.
"""

from functools import cache
from math import cos, pi, sin

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from tasks.demo_world.lexicon import THEMES

Point = tuple[float, float]
Colour = tuple[int, ...]
SIDE = 241
"""Width and height of a picture, odd so that it has a middle. Shapes are given on a square from -1 to 1."""
_OUTLINE: Colour = (28, 26, 34)
_OBJECTS = [thing.written for theme in THEMES for thing in theme.objects]


def wheel(corners: int, *radii: float, x: float = 0.0, y: float = 0.0) -> list[Point]:
    """Return points around a centre, the first one above it, at distances taken from `radii` in turn."""
    turns = [2 * pi * corner / corners for corner in range(corners)]
    far = [radii[corner % len(radii)] for corner in range(corners)]
    return [(x + r * sin(turn), y - r * cos(turn)) for r, turn in zip(far, turns, strict=True)]


def box(left: float, top: float, right: float, bottom: float) -> list[Point]:
    """Return the corners of a rectangle."""
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def _petals(turn: float) -> Point:
    reach = 0.76 + 0.22 * cos(5 * turn)
    return reach * sin(turn), -reach * cos(turn)


def _heart(turn: float) -> Point:
    high = 13 * cos(turn) - 5 * cos(2 * turn) - 2 * cos(3 * turn) - cos(4 * turn)
    return sin(turn) ** 3, -high / 16 - 0.1


_FINE = [2 * pi * step / 60 for step in range(60)]
_CROSS = [(-0.32, -1), (0.32, -1), (0.32, -0.32), (1, -0.32), (1, 0.32), (0.32, 0.32),
          (0.32, 1), (-0.32, 1), (-0.32, 0.32), (-1, 0.32), (-1, -0.32), (-0.32, -0.32)]  # fmt: skip
_SHAPES: tuple[tuple[list[Point], list[Point]], ...] = (  # outline, hole
    (wheel(60, 0.9), []),  # disc
    (box(-0.8, -0.8, 0.8, 0.8), []),  # square
    ([(0, -1), (1, 0.85), (-1, 0.85)], []),  # triangle
    (wheel(10, 1, 0.45), []),  # star
    (wheel(60, 0.98), wheel(60, 0.5)),  # ring
    (_CROSS, []),  # cross
    ([(0, -1), (0.68, 0), (0, 1), (-0.68, 0)], []),  # diamond
    (wheel(60, 0.98), wheel(60, 0.66, x=0.48, y=-0.24)),  # crescent
    (box(-1, -0.45, 1, 0.45), []),  # bar
    ([_heart(turn) for turn in _FINE], []),  # heart
    ([_petals(turn) for turn in _FINE], []),  # flower
    ([(-0.9, -0.95), (0.9, -0.95), (0.2, 0), (0.9, 0.95), (-0.9, 0.95), (-0.2, 0)], []),  # hourglass
)
_COLOURS: tuple[Colour, ...] = (
    (216, 36, 40), (250, 206, 40), (30, 80, 200), (240, 132, 186), (22, 116, 64),
    (246, 128, 24), (40, 196, 206), (116, 72, 42), (136, 204, 48), (120, 44, 160),
)  # fmt: skip
_TEXTURES = 5


def _pattern(texture: int, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return a mask of the texture's ink: plain, stripes, dots, checks or rings."""
    if texture == 0:
        return np.zeros_like(x, dtype=bool)
    if texture == 1:
        return np.sin(11 * (x + y)) > 0.2
    if texture == 2:
        return np.cos(10 * x) + np.cos(10 * y) > 1.0
    if texture == 3:
        return np.sin(8 * x) * np.sin(8 * y) > 0
    return np.sin(17 * np.hypot(x, y)) > 0.2


def look_of_object(thing: str) -> tuple[int, int, int]:
    """Return the numbers of an object's shape, colour and texture, distinct for all objects."""
    if thing not in _OBJECTS:
        raise ValueError(f"no object of the lexicon is called {thing!r}: add it to THEMES in lexicon.py")
    number = _OBJECTS.index(thing)
    return number % len(_SHAPES), number % len(_COLOURS), number // len(_SHAPES) % _TEXTURES


@cache
def sprite(thing: str) -> Image.Image:
    """Return the object's picture, SIDE x SIDE, on a transparent background, lit from the top left to show rotation."""
    shape, colour, texture = look_of_object(thing)
    outline, hole = _SHAPES[shape]
    mask = Image.new("L", (SIDE, SIDE))
    pen = ImageDraw.Draw(mask)
    pen.polygon(_pixels(outline), fill=255)
    if hole:
        pen.polygon(_pixels(hole), fill=0)
    x, y = np.meshgrid(*[np.linspace(-1, 1, SIDE)] * 2)
    base = np.array(_COLOURS[colour], dtype=float)
    ink = np.array((250, 248, 240) if base @ (0.3, 0.6, 0.1) < 120 else (50, 42, 60), dtype=float)
    surface = np.where(_pattern(texture, x, y)[..., None], ink, base) * (1 - 0.22 * (x + y))[..., None]
    inside = Image.fromarray(surface.clip(0, 255).astype(np.uint8))
    picture = Image.new("RGB", (SIDE, SIDE), _OUTLINE)
    picture.paste(inside, mask=shrunk(mask, 5))
    picture.putalpha(mask)
    return picture


def shrunk(mask: Image.Image, pixels: int) -> Image.Image:
    """Return the mask eroded by some pixels, with a box blur: much faster than a minimum filter."""
    return mask.filter(ImageFilter.BoxBlur(pixels)).point([0] * 250 + [255] * 6)


def _pixels(points: list[Point]) -> list[Point]:
    middle = SIDE // 2  # 0.95 leaves a margin for the outline
    return [(middle * (1 + 0.95 * x), middle * (1 + 0.95 * y)) for x, y in points]
