"""One moment of a scene: where the parts of the object, the tools and loose bits are.

Lengths are in halves of an object, y goes downwards, (0, 0) is the object at rest. Everything except the
object is a polygon of one colour.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tasks.demo_world.sprites import Colour, Point, wheel


class Part(NamedTuple):
    """A window of the object's picture: stretched, turned (clockwise) and moved, about the object's middle."""

    x: float = 0.0
    y: float = 0.0
    angle: float = 0.0
    wide: float = 1.0
    high: float = 1.0
    window: tuple[float, float, float, float] = (-1.0, -1.0, 1.0, 1.0)


class Tool(NamedTuple):
    """A tool of `tools.TOOLS` with its tip at a point, turned about it by `angle` degrees."""

    kind: str
    x: float
    y: float
    angle: float = 0.0


class Patch(NamedTuple):
    """A coloured polygon: `behind` the object, `on` it (seen only where the object is) or in `front` of it."""

    points: Sequence[Point]
    colour: Colour
    layer: str = "front"


class Pose(NamedTuple):
    """One moment of a motion."""

    parts: Sequence[Part] = (Part(),)
    tools: Sequence[Tool] = ()
    patches: Sequence[Patch] = ()


def disc(x: float, y: float, radius: float) -> list[Point]:
    """Return the points of a small disc."""
    return wheel(14, radius, x=x, y=y)


def line(a: Point, b: Point, thick: float) -> list[Point]:
    """Return the corners of a straight stroke."""
    (ax, ay), (bx, by) = a, b
    length = max(((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5, 1e-6)
    x, y = (by - ay) / length * thick / 2, (ax - bx) / length * thick / 2
    return [(ax + x, ay + y), (bx + x, by + y), (bx - x, by - y), (ax - x, ay - y)]


def falling(p: float, count: int, at: Point, drop: float, width: float, colour: Colour, size: float) -> list[Patch]:
    """Return bits that keep falling from a point."""
    bits = []
    for i in range(count):
        fallen = (p + i / count) % 1
        side = width * ((i * 0.618) % 1 - 0.5) * 2
        bits.append(Patch(disc(at[0] + side * (0.4 + 0.6 * fallen), at[1] + drop * fallen, size), colour))
    return bits
