"""The 24 actions of the demo world and the finished object as motions: poses of everything at each phase of a loop.

Each motion is a pure function of a phase in [0, 1). Loops last 1 to 2 s, so that any second shows the action;
most of them jump back to their start.
"""

from collections.abc import Callable
from itertools import pairwise
from math import cos, floor, pi, sin
from typing import NamedTuple

from tasks.demo_world.finished import finished_pose
from tasks.demo_world.pose import Part, Patch, Pose, Tool, disc, falling, line
from tasks.demo_world.scenes import FINISHED
from tasks.demo_world.sprites import box, wheel


class Motion(NamedTuple):
    """A loop and its length in frames."""

    frames: int
    pose: Callable[[float], Pose]


_WATER, _STEAM, _CREAM, _FLESH = (70, 150, 250), (245, 245, 250, 190), (248, 238, 205), (250, 228, 170)
_FLAME, _DUST, _DIRT, _STEEL = (255, 130, 10), (225, 205, 165), (62, 44, 30), (150, 158, 172)
_RIBBON, _LEAD, _GLUE, _PAINT = (235, 20, 70), (15, 15, 20), (255, 255, 255), (165, 60, 235)


def _wave(p: float, times: float = 1.0) -> float:
    return sin(2 * pi * p * times)


def _dip(p: float) -> float:
    """Return 0 at the ends of the loop and 1 in its middle."""
    return (1 - cos(2 * pi * p)) / 2


def _ramp(p: float, start: float, end: float) -> float:
    return min(max((p - start) / (end - start), 0.0), 1.0)


def _chop(p: float) -> Pose:
    cuts, stroke = floor(3 * p + 0.5), (3 * p) % 1
    parts = []
    for i in range(4):
        apart = max(0, cuts - (3 - i))
        parts.append(Part(x=0.2 * apart, angle=4.0 * apart, window=(i / 2 - 1, -1, i / 2 - 0.5, 1)))
    return Pose(parts, [Tool("knife", 0.5 - 0.5 * floor(3 * p), -1.2 + 2.1 * _dip(stroke))])


def _wash(p: float) -> Pose:
    streaks = [
        Patch(box(x - 0.07, y, x + 0.07, y + 0.55), _WATER)
        for i in range(8)
        for x, y in [(0.13 * (i * 3 % 8 - 3.5), -1.5 + 3.1 * ((2 * p + i / 8) % 1))]
    ]
    splash = falling(2 * p, 5, (0, 1.2), -0.5, 1.5, _WATER, 0.1)
    return Pose(
        [Part(angle=10 * _wave(p))], [Tool("tap", 0, -1.4), Tool("hand", 0.7 * _wave(p, 2), 0.6, 115)], streaks + splash
    )


def _mix(p: float) -> Pose:
    bowl = [(x, y) for x, y in wheel(40, 1.6) if y >= 0.4]
    spoon = Tool("spoon", 1.0 * cos(4 * pi * p), 0.1 + 0.4 * _wave(p, 2))
    return Pose([Part(y=-0.05, angle=360 * p, wide=0.85, high=0.85)], [spoon], [Patch(bowl, _STEEL)])


def _pour(p: float) -> Pose:
    tilt = _ramp(p, 0, 0.25) - _ramp(p, 0.88, 1)
    level = 1.75 - 0.9 * _ramp(p, 0.25, 0.88)
    glass = [Patch(box(0.5, 0.75, 1.5, 1.8), (225, 235, 245, 120)), Patch(box(0.5, level, 1.5, 1.8), _WATER)]
    drops = falling(3 * p, 6, (0.85, -0.7), 2.2, 0.15, _WATER, 0.13) if tilt == 1 else []
    return Pose([Part(-0.3, -0.75, 105 * tilt, 0.75, 0.75)], [Tool("hand", -0.95, -0.75, -75)], glass + drops)


def _heat(p: float) -> Pose:
    flames = [
        Patch([(x - 0.26, 1.8), (x, 1.4 - 0.3 * _wave(3 * p + 0.37 * i)), (x + 0.26, 1.8)], _FLAME)
        for i, x in enumerate((-1, -0.5, 0, 0.5, 1))
    ]
    steam = [
        Patch(disc(x + 0.2 * _wave(p + i / 3), -0.9 - 1.1 * ((p + i / 3) % 1), 0.24), _STEAM)
        for i, x in enumerate((-0.6, 0, 0.6))
    ]
    glow = Patch(box(-1.2, -1.2, 1.2, 1.2), (255, 50, 0, round(130 * _dip(p))), "on")
    return Pose([Part(y=0.06 * _wave(p, 3))], [Tool("pan", 0, 0.97)], [*flames, glow, *steam])


def _peel(p: float) -> Pose:
    row, down = floor(2 * p), 2 * ((2 * p) % 1) - 1
    lefts = [-0.7 + 0.7 * k for k in range(row + 1)]
    bare = [Patch(box(x, -1, x + 0.6, 1 if k < row else down), _FLESH, "on") for k, x in enumerate(lefts)]
    left = lefts[-1]
    side = -1 if row == 0 else 1
    curl = Part(0.75 * side, 0.4, 15 * side, window=(left, -1.0, left + 0.6, max(down, -0.99)))
    return Pose([Part(), curl], [Tool("peeler", left + 0.3, down)], bare)


def _spread(p: float) -> Pose:
    out = _ramp(p, 0, 0.85) - _ramp(p, 0.9, 1)
    wide, high = 0.75 + 1.1 * out, 0.9 - 0.5 * out
    return Pose([Part(y=0.5, wide=wide, high=high)], [Tool("spatula", 0.8 * wide * _wave(p, 2), 0.5, 15)])


def _press(p: float) -> Pose:
    down = _dip(p)
    high = 1 - 0.6 * down
    return Pose([Part(y=1 - high, wide=1 + 0.35 * down, high=high)], [Tool("palm", 0, 1.05 - 2 * high)])


def _fold(p: float) -> Pose:
    turn = pi * (_ramp(p, 0.1, 0.7) - _ramp(p, 0.92, 1))
    flap = Part(y=-0.3 * sin(turn), wide=cos(turn), window=(0, -1, 1, 1))
    crease = Patch(line((0, -1), (0, 1), 0.08), _LEAD, "on")
    hand = Tool("hand", 0.95 * cos(turn), 0.1 - 0.6 * sin(turn), 20)
    return Pose([Part(window=(-1, -1, 0, 1)), flap], [hand], [crease])


def _roll(p: float) -> Pose:
    x = 1.35 * _wave(p)
    return Pose([Part(x, 0.2, 130 * x, 0.85, 0.85)], [Tool("palm", 0.8 * x, -0.62)])


def _measure(p: float) -> Pose:
    end = -1.5 + 3.0 * (_ramp(p, 0, 0.7) - _ramp(p, 0.85, 1))
    tape = Patch(box(-1.6, 0.25, max(end, -1.5), 0.75), (255, 232, 60))
    ticks = [Patch(box(x, 0.25, x + 0.06, 0.5), _LEAD) for x in (-1.4 + 0.3 * i for i in range(10)) if x < end - 0.06]
    return Pose(
        tools=[Tool("hand", end, 0.5, 60)], patches=[tape, *ticks, Patch(box(-1.9, 0.1, -1.45, 0.9), (200, 30, 30))]
    )


def _mark(p: float) -> Pose:
    corners = [(-0.85, 0.4), (-0.4, -0.5), (-0.05, 0.4), (0.35, -0.5), (0.75, 0.4)]
    along = 4 * _ramp(p, 0, 0.9)
    row = min(floor(along), 3)
    (ax, ay), (bx, by) = corners[row], corners[row + 1]
    tip = (ax + (bx - ax) * (along - row), ay + (by - ay) * (along - row))
    path = [*corners[: row + 1], tip]
    pale = [Patch(line(a, b, 0.26), _GLUE, "on") for a, b in pairwise(path)]
    dark = [Patch(line(a, b, 0.13), _LEAD, "on") for a, b in pairwise(path)]
    return Pose(tools=[Tool("pencil", *tip, 30)], patches=pale + dark)


def _cover(p: float) -> Pose:
    shut = _ramp(p, 0.1, 0.5) - _ramp(p, 0.75, 1)
    return Pose(tools=[Tool("lid", 0, -1.3 + 2.4 * shut)])


def _fill(p: float) -> Pose:
    full = _ramp(p, 0.05, 0.9)
    grains = falling(3 * p, 7, (0, -1.3), 1.2 + 0.9 * (1 - full), 0.2, _CREAM, 0.1)
    level = Patch(box(-1, 0.95 - 1.9 * full, 1, 1), _CREAM, "on")
    return Pose(tools=[Tool("scoop", 0, -1.3, 12 * _wave(p, 3))], patches=[level, *grains])


def _tie(p: float) -> Pose:
    pull = _dip(2 * p)
    out = 1.15 + 0.55 * pull
    bands = [
        Patch(line((-out, -0.25 * (1 - pull)), (out, -0.25 * (1 - pull)), 0.22), _RIBBON),
        Patch(box(-0.11, -1, 0.11, 1), _RIBBON, "on"),
    ]
    bow = [Patch([(0, 0), (s * (0.75 - 0.35 * pull), -0.5), (s * (0.75 - 0.35 * pull), 0.2)], _RIBBON) for s in (-1, 1)]
    hands = [Tool("hand", -out, -0.25 * (1 - pull), 205), Tool("hand", out, -0.25 * (1 - pull), 85)]
    return Pose([Part(wide=1 - 0.2 * pull)], hands, bands + bow)


def _glue(p: float) -> Pose:
    row, hop = floor(4 * p), (4 * p) % 1
    spots = [(-0.6, -0.3), (0.0, 0.35), (0.25, -0.4), (0.65, 0.3)]
    blobs = [Patch(disc(x, y, 0.22), _GLUE) for x, y in spots[: row + (hop > 0.4)]]
    x, y = spots[row]
    return Pose(tools=[Tool("bottle", x, y - 0.8 * (1 - _dip(hop)))], patches=blobs)


def _paint(p: float) -> Pose:
    x = -1 + 2 * _ramp(p, 0, 0.9)
    return Pose(tools=[Tool("brush", x, 0.75 * _wave(p, 3), 130)], patches=[Patch(box(-1, -1, x, 1), _PAINT, "on")])


def _sand(p: float) -> Pose:
    rub = _wave(p, 3)
    dust = [bit for s in (-1.1, 1.1) for bit in falling(2 * p, 5, (s, 0.1), 1.6, 0.35, _DUST, 0.08)]
    return Pose([Part(x=0.06 * rub)], [Tool("block", 0.85 * rub, 0.1)], dust)


def _drill(p: float) -> Pose:
    deep, hum = _ramp(p, 0.1, 0.85), 0.06 * (-1) ** floor(p * 18)
    hole = Patch(disc(0, 0, 0.1 + 0.4 * deep), _LEAD, "on")
    chips = falling(3 * p, 6, (0.1, 0.1), 1.7, 0.7, _DUST, 0.09) if deep else []
    return Pose([Part(y=hum / 2)], [Tool("drill", 1.3 - 1.3 * deep, hum)], [hole, *chips])


def _shake(p: float) -> Pose:
    x, y = 0.5 * _wave(p, 3), -0.3 * _wave(p, 3)
    return Pose(
        [Part(x, y, 20 * _wave(p, 3), 0.9, 0.9)],
        [Tool("hand", x - 0.85, y + 0.3, 205), Tool("hand", x + 0.85, y + 0.3, 85)],
    )


def _dry(p: float) -> Pose:
    wet = [(-0.55, -0.4), (0.0, -0.55), (0.5, -0.3), (0.45, 0.4), (0.0, 0.55), (-0.5, 0.35)]
    drops = [Patch(disc(x, y, 0.17), _WATER) for i, (x, y) in enumerate(wet) if i >= floor(6 * p)]
    turn = 2 * pi * p
    lift = 0.35 * _dip(3 * p)
    return Pose(tools=[Tool("cloth", -0.6 * cos(turn), -0.5 * sin(turn) - lift, 200)], patches=drops)


def _stack(p: float) -> Pose:
    top, fall = floor(3 * p), _ramp((3 * p) % 1, 0, 0.7)
    rests = [Part(y=1.15 - 0.8 * k, wide=0.5, high=0.5) for k in range(top)]
    y = -1.7 + (2.85 - 0.8 * top) * fall
    return Pose([*rests, Part(y=y, wide=0.5, high=0.5)], [Tool("hand", 0.45, y, 60)])


def _scrape(p: float) -> Pose:
    along = 2.2 * (_ramp(p, 0, 0.65) - _ramp(p, 0.7, 1)) - 1.1
    lift = 0.6 if p > 0.67 else 0.0
    dirt = [(-0.6, 0.3), (-0.35, -0.25), (0.0, 0.2), (0.1, -0.45), (0.4, 0.05), (0.65, 0.4)]
    left = [Patch(wheel(7, 0.22, 0.14, x=x, y=y), _DIRT, "on") for x, y in dirt if x > along and not lift]
    crumbs = [] if lift else falling(3 * p, 5, (along + 0.2, 0.3), 1.5, 0.5, _DIRT, 0.1)
    return Pose([Part(angle=-14)], [Tool("scraper", along, 0.5 - 0.25 * along - lift, -55)], left + crumbs)


def _hang(p: float) -> Pose:
    rise = _ramp(p, 0, 0.3)
    lean = 0.5 * sin(2 * pi * _ramp(p, 0.3, 1) * 2) * (1 - 0.5 * _ramp(p, 0.3, 1))
    far = 1.7 + 1.5 * (1 - rise)
    x, y = -far * sin(lean), -1.75 + far * cos(lean)
    cords = [Patch(line((0, -1.75), (x + s, y - 0.45), 0.08), _LEAD, "behind") for s in (-0.35, 0.35) if rise == 1]
    hand = [Tool("hand", x + 0.7, y + 0.3, 120)] if rise < 1 else []
    return Pose([Part(x, y, 57.3 * lean, 0.72, 0.72)], [Tool("hook", 0, -1.75), *hand], cords)


MOTIONS = {
    "chop": Motion(18, _chop), "wash": Motion(18, _wash), "mix": Motion(18, _mix), "pour": Motion(24, _pour),
    "heat": Motion(18, _heat), "peel": Motion(18, _peel), "spread": Motion(18, _spread), "press": Motion(12, _press),
    "fold": Motion(18, _fold), "roll": Motion(18, _roll), "measure": Motion(18, _measure), "mark": Motion(18, _mark),
    "cover": Motion(18, _cover), "fill": Motion(18, _fill), "tie": Motion(24, _tie), "glue": Motion(24, _glue),
    "paint": Motion(18, _paint), "sand": Motion(18, _sand), "drill": Motion(18, _drill), "shake": Motion(12, _shake),
    "dry": Motion(24, _dry), "stack": Motion(18, _stack), "scrape": Motion(18, _scrape), "hang": Motion(24, _hang),
    FINISHED: Motion(24, finished_pose),
}  # fmt: skip
"""By the action's `short` name in the lexicon, and `FINISHED`."""
