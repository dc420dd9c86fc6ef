"""The finished object: on a garnished plate with a foot, in a soft glow, and nobody touches it.

Rays turn slowly behind it and sparks twinkle around it, so that a still object is not mistaken for an action that
has just begun.
"""

from math import cos, pi, sin

from tasks.demo_world.pose import Part, Patch, Pose, disc
from tasks.demo_world.sprites import wheel

_EDGE, _GOLD, _WHITE = (15, 15, 20), (212, 170, 70), (250, 249, 244)
_LEAF, _BERRY, _SPARK = (60, 150, 60), (214, 40, 60), (255, 255, 255)
_RAY, _GLOW = (255, 236, 150, 70), (255, 240, 170)
_NUM_RAYS = 12


def finished_pose(p: float) -> Pose:
    """The object at a phase of the loop, in which the rays turn by one ray."""
    turns = [2 * pi * (ray + p) / _NUM_RAYS for ray in range(_NUM_RAYS)]
    rays = [Patch([(0, 0), *((6 * sin(a), -6 * cos(a)) for a in (turn, turn + 0.2))], _RAY) for turn in turns]
    glow = [Patch(wheel(40, 2.1 - 0.07 * i), (*_GLOW, 20 + 20 * i)) for i in range(10)]
    foot = [
        Patch([(-x, 1.1), (x, 1.1), (x + 0.35, bottom), (-x - 0.35, bottom)], colour)
        for x, bottom, colour in ((0.35, 1.61, _EDGE), (0.3, 1.57, _GOLD))
    ]
    plate = [Patch(wheel(40, radius), colour) for radius, colour in ((1.4, _EDGE), (1.36, _GOLD), (1.28, _WHITE))]
    leaves = [Patch(wheel(8, 0.3, 0.2, x=x, y=1.08), _LEAF) for x in (-0.42, 0.42)]
    berries = [Patch(disc(x, y, 0.13), _BERRY) for x, y in ((-0.14, 1.12), (0.14, 1.12), (0, 0.94))]
    sparks = [
        Patch(wheel(8, 0.08 + 0.14 * (1 - cos(2 * pi * (p + i / 4))), 0.07, x=x, y=y), _SPARK)
        for i, (x, y) in enumerate(((-1.2, -0.95), (1.25, -0.7), (-1.35, 0.55), (1.2, 0.75)))
    ]
    behind = [patch._replace(layer="behind") for patch in (*rays, *glow, *foot, *plate)]
    return Pose([Part(y=-0.08, wide=0.9, high=0.9)], [], [*behind, *leaves, *berries, *sparks])
