"""One picture of a few demo videos: a frame from the middle of every scene, decoded from the files themselves.

It shows at a glance which scenes a video has, when, and which steps of its article it leaves out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import av
from PIL import Image, ImageDraw, ImageFont

from storage.objects import atomic_file
from tasks.demo_world.articles import DemoStep
from tasks.demo_world.lettering import wrapped
from tasks.demo_world.pixels import HEIGHT, WIDTH
from tasks.demo_world.scenes import FINISHED, PRESENTER, TITLE, Scene
from tasks.demo_world.script import Video

STEP_COLOUR, OTHER_COLOUR = (0, 128, 92), (170, 170, 170)
"""Colours of the borders around frames of steps and of other scenes."""
BORDER = 5
_COLUMNS, _GAP, _PAGE = 6, 14, 20
_CELL = WIDTH + 2 * BORDER
_SHEET_WIDTH = 2 * _PAGE + _COLUMNS * _CELL + (_COLUMNS - 1) * _GAP
_CAPTION, _TITLE = 14, 22
_CAPTION_LINES = 2
_PAPER, _INK, _PALE_INK = (255, 255, 255), (20, 20, 24), (96, 96, 104)


@dataclass(frozen=True)
class _Item:
    """Something on the sheet: a picture in a border, or a line of text."""

    x: int
    y: int
    picture: Image.Image | None = None
    text: str = ""
    size: int = _CAPTION
    colour: tuple[int, int, int] = _INK


def draw_contact_sheet(videos: Sequence[tuple[Video, Path]], path: Path) -> None:
    """Write a PNG with a block for each video, from its script and its file."""
    if not videos:
        raise ValueError(f"there are no videos to put on {path.name}: give at least one script and its file")
    items: list[_Item] = []
    y = _PAGE
    for video, video_file in videos:
        block, y = _lay_out(video, _middle_frames(video, video_file), y)
        items += block
    sheet = Image.new("RGB", (_SHEET_WIDTH, y), _PAPER)
    pen = ImageDraw.Draw(sheet)
    for item in items:
        if item.picture is None:
            pen.text((item.x, item.y), item.text, fill=item.colour, font=ImageFont.load_default(size=item.size))
        else:
            pen.rectangle((item.x, item.y, item.x + _CELL - 1, item.y + HEIGHT + 2 * BORDER - 1), fill=item.colour)
            sheet.paste(item.picture, (item.x + BORDER, item.y + BORDER))
    with atomic_file(path) as partial:
        sheet.save(partial, format="PNG")


def _middle_frames(video: Video, video_file: Path) -> list[Image.Image]:
    """Return the frame in the middle of each scene."""
    frames: list[Image.Image] = []
    middles = [(scene.start_s + scene.end_s) / 2 for scene in video.scenes]
    with av.open(str(video_file)) as container:
        for frame in container.decode(video=0):
            while len(frames) < len(middles) and frame.time is not None and frame.time >= middles[len(frames)]:
                frames.append(Image.fromarray(frame.to_ndarray(format="rgb24")).resize((WIDTH, HEIGHT)))
    if len(frames) < len(middles):
        raise ValueError(
            f"{video_file.name} has no frame at {middles[len(frames)]:.2f} s, where {video.video_id} has a scene: "
            "the file belongs to another video or to an older world; render it again"
        )
    return frames


def _lay_out(video: Video, frames: Iterable[Image.Image], y: int) -> tuple[list[_Item], int]:
    """Return the items of a video's block from `y` on, and where the next block starts."""
    items = [_Item(_PAGE, y, text=_title_of(video), size=_TITLE)]
    y += _TITLE + 12
    row_height = HEIGHT + 2 * BORDER + (1 + _CAPTION_LINES) * (_CAPTION + 4) + _GAP
    for number, (scene, frame) in enumerate(zip(video.scenes, frames, strict=True)):
        left = _PAGE + number % _COLUMNS * (_CELL + _GAP)
        top = y + number // _COLUMNS * row_height
        items.append(_Item(left, top, frame, colour=OTHER_COLOUR if scene.step is None else STEP_COLOUR))
        below = top + HEIGHT + 2 * BORDER + 3
        items.append(_Item(left, below, text=f"{scene.start_s:.1f} - {scene.end_s:.1f} s", colour=_PALE_INK))
        for line in wrapped(_caption(video, scene), _CELL, _CAPTION_LINES, _CAPTION):
            below += _CAPTION + 4
            items.append(_Item(left, below, text=line))
    y += -(-len(video.scenes) // _COLUMNS) * row_height
    for line in wrapped(_not_shown(video), _SHEET_WIDTH - 2 * _PAGE, 10, _CAPTION):
        items.append(_Item(_PAGE, y, text=line, colour=_PALE_INK))
        y += _CAPTION + 4
    return items, y + 2 * _PAGE


def _title_of(video: Video) -> str:
    title = f"{video.video_id}   {video.article.title}   {video.duration_s:.1f} s"
    return wrapped(title, _SHEET_WIDTH - 2 * _PAGE, 1, _TITLE)[0]


def _caption(video: Video, scene: Scene) -> str:
    if scene.step is not None:
        return _named(scene.step, video.article.steps[scene.step])
    names = {PRESENTER: "presenter", TITLE: "title card", FINISHED: f"finished: {scene.object}"}
    return names.get(scene.action, "other scene")


def _named(row: int, step: DemoStep) -> str:
    return f"step {row + 1}: {step.headline}"


def _not_shown(video: Video) -> str:
    shown = {segment.step for segment in video.segments}
    absent = [_named(row, step) for row, step in enumerate(video.article.steps) if row not in shown]
    return f"not shown: {'  '.join(absent) or 'none, every step is shown'}"
