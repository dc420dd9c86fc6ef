"""The tools of the demo world's actions: a few polygons each, and the hand that holds them.

Tools differ in shape and colour from one action to the next, so that even a still frame shows which action it is.
"""

from typing import NamedTuple

from tasks.demo_world.pose import disc, line
from tasks.demo_world.sprites import Colour, Point, box, wheel

EDGE: Colour = (40, 34, 40)
"""Colour of all outlines."""
_STEEL, _WOOD, _WHITE, _RED = (196, 202, 212), (150, 98, 52), (244, 244, 240), (206, 40, 46)


class Implement(NamedTuple):
    """A tool's polygons, with the tip at (0, 0); where a hand holds it, if one does; the direction of the arm."""

    polygons: tuple[tuple[Colour, list[Point]], ...]
    grip: Point | None = None
    arm: float = 35.0
    """Degrees clockwise from straight up."""


TOOLS = {
    "hand": Implement((), (0, 0)),
    "palm": Implement((), (0, -0.3), 0),
    "knife": Implement(
        ((_STEEL, [(0, 0), (0.3, -0.5), (0.3, -1.3), (-0.12, -1.3)]), (_WOOD, box(-0.1, -1.8, 0.22, -1.3))),
        (0.06, -1.75),
    ),
    "tap": Implement(((_STEEL, [(-0.3, 0), (-0.3, -0.7), (2.5, -0.7), (2.5, -0.3), (0.3, -0.3), (0.3, 0)]),)),
    "spoon": Implement(((_WOOD, wheel(16, 0.34)), (_WOOD, line((0, -0.3), (0.5, -1.5), 0.18))), (0.5, -1.5)),
    "pan": Implement(
        ((EDGE, [(-1.4, 0), (1.4, 0), (1.2, 0.35), (-1.2, 0.35)]), (EDGE, box(1.3, 0, 2.3, 0.16))), (2.2, 0.08), 90
    ),
    "peeler": Implement(
        ((_RED, line((0, 0), (1.2, 0.25), 0.22)), (_STEEL, box(-0.4, -0.14, 0.4, 0.06))), (1.2, 0.25), 100
    ),
    "spatula": Implement(((_STEEL, box(-0.22, -1.0, 0.22, 0)), (_RED, line((0, -1), (0, -1.5), 0.2))), (0, -1.5)),
    "pencil": Implement(
        ((_WOOD, [(0, 0), (0.14, -0.35), (-0.14, -0.35)]), ((250, 190, 30), box(-0.14, -1.5, 0.14, -0.35))),
        (0, -1.0),
        10,
    ),
    "lid": Implement(
        (((120, 134, 160), [(1.6 * x, 2.2 * y) for x, y in wheel(40, 1) if y < 0.01]), (EDGE, disc(0, -2.25, 0.2))),
        (0, -2.4),
        0,
    ),
    "scoop": Implement((((120, 190, 200), [(-0.5, -0.1), (0.1, 0), (0.6, -0.6), (-0.5, -0.6)]),), (0.5, -0.5), 70),
    "bottle": Implement(
        ((_RED, [(0, 0), (0.12, -0.35), (-0.12, -0.35)]), (_WHITE, box(-0.32, -1.3, 0.32, -0.35))), (0.1, -0.9)
    ),
    "brush": Implement(
        (
            ((230, 200, 150), box(-0.22, -0.3, 0.22, 0.3)),
            (_STEEL, box(-0.26, -0.5, 0.26, -0.25)),
            (_WOOD, box(-0.09, -1.4, 0.09, -0.5)),
        ),
        (0, -1.3),
        20,
    ),
    "block": Implement(
        (((196, 120, 60), box(-0.55, -0.35, 0.55, 0.15)), (EDGE, box(-0.55, 0.05, 0.55, 0.2))), (0, -0.45), 20
    ),
    "drill": Implement(
        (
            (_STEEL, [(0, 0), (0.15, -0.08), (0.8, -0.08), (0.8, 0.08), (0.15, 0.08)]),
            ((20, 130, 120), box(0.8, -0.32, 1.9, 0.32)),
            ((20, 130, 120), box(1.4, 0.3, 1.8, 1.0)),
        ),
        (1.6, 0.8),
        130,
    ),
    "cloth": Implement(
        (((250, 250, 252), wheel(12, 0.85, 0.66)), ((90, 150, 220), box(-0.5, -0.08, 0.5, 0.08))), (0.1, -0.1)
    ),
    "scraper": Implement(
        (
            (_STEEL, [(-0.42, 0.1), (0.42, 0.1), (0.22, -0.6), (-0.22, -0.6)]),
            ((30, 90, 60), box(-0.12, -1.2, 0.12, -0.6)),
        ),
        (0, -1.2),
    ),
    "hook": Implement(((EDGE, box(-0.09, -0.5, 0.09, 0)), (EDGE, box(-0.25, -0.05, 0.25, 0.12)))),
}
