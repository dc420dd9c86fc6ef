"""Draw one moment of a demo video: an object with its tools, a presenter who talks to the camera, or a title card.

It is drawn at twice the size of the video and with a margin, so that the camera can drift and edges are smooth.
"""

from collections.abc import Iterable
from math import cos, pi, radians, sin
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tasks.demo_world.lettering import wrapped
from tasks.demo_world.pose import Part, Patch, Pose, Tool, line
from tasks.demo_world.sprites import SIDE, Colour, Point, box, shrunk, wheel
from tasks.demo_world.tools import EDGE, TOOLS

_TITLE_SIZE, _TITLE_LINES = 42, 4
"""Of the text on a title card: height in pixels of the canvas, and how many lines there may be."""


class Viewpoint(NamedTuple):
    """Position of the object on the canvas, and the size of half an object in pixels."""

    x: float
    y: float
    unit: float

    def pixels(self, points: Iterable[Point]) -> list[Point]:
        """Convert points from units of half an object to pixels of the canvas."""
        return [(self.x + self.unit * x, self.y + self.unit * y) for x, y in points]


def draw_action(canvas: Image.Image, view: Viewpoint, picture: Image.Image, pose: Pose, skin: Colour) -> None:
    """Draw an object (its sprite) in a pose, with the tools that work on it."""
    thing = Image.new("RGBA", canvas.size)
    for part in pose.parts:
        if abs(part.wide) > 0.03:  # seen edge-on, it is not visible
            thing.alpha_composite(_placed(picture, part, view, canvas.size))
    _draw_patches(canvas, view, pose.patches, "behind")
    canvas.paste(thing, mask=thing)
    _draw_patches(canvas, view, pose.patches, "on", thing.getchannel("A"))
    _draw_patches(canvas, view, pose.patches, "front")
    for tool in pose.tools:
        _draw_tool(ImageDraw.Draw(canvas), view, tool, skin)


def _placed(picture: Image.Image, part: Part, view: Viewpoint, size: tuple[int, int]) -> Image.Image:
    """Return a transparent canvas with one part of the object on it."""
    half = SIDE // 2
    left, top, right, bottom = (round(half * (1 + side)) for side in part.window)
    shown = picture
    if part.window != (-1, -1, 1, 1):
        shown = Image.new("RGBA", picture.size)
        shown.paste(picture.crop((left, top, right, bottom)), (left, top))
    turn = radians(part.angle)
    stretch = np.array([[cos(turn), -sin(turn)], [sin(turn), cos(turn)]]) @ np.diag([part.wide, part.high])
    back = np.linalg.inv(view.unit * stretch) * half  # Pillow maps pixels of the canvas to pixels of the picture
    shift = half - back @ np.array(view.pixels([(part.x, part.y)])[0])
    matrix = (*back[0], shift[0], *back[1], shift[1])
    return shown.transform(size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)


def _draw_patches(
    canvas: Image.Image, view: Viewpoint, patches: Iterable[Patch], layer: str, within: Image.Image | None = None
) -> None:
    chosen = [patch for patch in patches if patch.layer == layer]
    if not chosen:
        return
    patch_layer = Image.new("RGBA", canvas.size)
    pen = ImageDraw.Draw(patch_layer)
    for patch in chosen:
        pen.polygon(view.pixels(patch.points), fill=patch.colour, outline=EDGE if layer == "front" else None, width=2)
    if within is not None:  # the object keeps its outline
        patch_layer = Image.composite(patch_layer, Image.new("RGBA", canvas.size), shrunk(within, 3))
    canvas.paste(patch_layer, mask=patch_layer)


def _draw_tool(pen: ImageDraw.ImageDraw, view: Viewpoint, tool: Tool, skin: Colour) -> None:
    shape, turn = TOOLS[tool.kind], radians(tool.angle)

    def turned(points: list[Point]) -> list[Point]:
        return view.pixels(
            (tool.x + x * cos(turn) - y * sin(turn), tool.y + x * sin(turn) + y * cos(turn)) for x, y in points
        )

    for colour, points in shape.polygons:
        pen.polygon(turned(points), fill=colour, outline=EDGE, width=4)
    if shape.grip is not None:
        x, y = shape.grip
        away = (x + 6 * sin(radians(shape.arm)), y - 6 * cos(radians(shape.arm)))
        flat = 0.75 if tool.kind == "palm" else 0.36
        pen.polygon(turned(line((x, y), away, 0.42)), fill=skin, outline=EDGE, width=4)
        pen.polygon(turned([(x + flat * a, y + 0.34 * b) for a, b in wheel(18, 1)]), fill=skin, outline=EDGE, width=4)


def draw_presenter(canvas: Image.Image, view: Viewpoint, phase: float, skin: Colour, shirt: Colour) -> None:
    """Draw head and shoulders: the mouth moves, the head nods a little, the eyes blink once per loop."""
    pen = ImageDraw.Draw(canvas)
    sway, nod = 0.07 * sin(2 * pi * phase), 0.04 * sin(4 * pi * phase)

    def polygon(points: Iterable[Point], colour: Colour, head: bool = True) -> None:
        moved = [(x + sway, y + nod) for x, y in points] if head else points
        pen.polygon(view.pixels(moved), fill=colour, outline=EDGE, width=4)

    polygon([(-1.9, 3.5), (-1.6, 1.3), (-0.5, 0.85), (0.5, 0.85), (1.6, 1.3), (1.9, 3.5)], shirt, head=False)
    polygon(box(-0.32, 0.4, 0.32, 1.05), skin, head=False)
    polygon([(0.98 * x, 1.1 * y - 0.55) for x, y in wheel(30, 1)], (70, 46, 30))
    polygon([(0.82 * x, y - 0.35) for x, y in wheel(30, 1)], skin)
    eye_height = 0.02 if 0.45 < phase < 0.55 else 0.13
    for side in (-0.34, 0.34):
        polygon([(side + 0.1 * x, -0.5 + eye_height * y) for x, y in wheel(12, 1)], (30, 30, 40))
    gape = 0.05 + 0.2 * abs(sin(6 * pi * phase)) * (0.6 + 0.4 * sin(2 * pi * phase))
    polygon([(0.3 * x, 0.15 + gape * y) for x, y in wheel(20, 1)], (120, 20, 30))


def draw_title(canvas: Image.Image, margin: int, title: str, wall: Colour, shirt: Colour) -> None:
    """Draw a card with a title. `margin`: how many pixels at each edge the camera may leave out."""
    pen, (width, height) = ImageDraw.Draw(canvas), canvas.size
    pen.rectangle((0, 0, width, height), fill=shirt)
    left, top, right, bottom = margin + 16, margin + 16, width - margin - 17, height - margin - 17
    paper = tuple(round(0.25 * part + 0.75 * 255) for part in wall)
    pen.rounded_rectangle((left, top, right, bottom), 18, fill=paper, outline=EDGE, width=4)
    text = "\n".join(wrapped(title, right - left - 40, _TITLE_LINES, _TITLE_SIZE))
    font = ImageFont.load_default(size=_TITLE_SIZE)
    pen.text((width / 2, height / 2 - 12), text, fill=EDGE, font=font, anchor="mm", align="center", spacing=8)
    pen.rounded_rectangle((width / 2 - 56, bottom - 30, width / 2 + 56, bottom - 22), 4, fill=shirt)
