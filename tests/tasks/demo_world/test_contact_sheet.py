"""Contact sheets of real but very short videos."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image, ImageDraw

from tasks.demo_world.contact_sheet import BORDER, OTHER_COLOUR, STEP_COLOUR, draw_contact_sheet
from tasks.demo_world.knobs import PRESETS
from tasks.demo_world.pixels import FPS, HEIGHT, WIDTH, render
from tasks.demo_world.scenes import FINISHED, PRESENTER, TITLE, Scene
from tasks.demo_world.script import Video, World
from tasks.demo_world.timeline import Segment

WORLD = World(replace(PRESETS["short"], num_articles=4), 0)
FRAME_AREA = (WIDTH + 2 * BORDER) * (HEIGHT + 2 * BORDER) - WIDTH * HEIGHT


def short_video(number: int, *rows: int | None) -> Video:
    """Half a second of each of these steps (None: another scene), after a presenter."""
    video = WORLD.video(number)
    scenes = [Scene(0.0, 0.5, PRESENTER, "", None)]
    for row in rows:
        step = video.article.steps[row or 0]
        start = scenes[-1].end_s
        scenes.append(Scene(start, start + 0.5, step.action, step.object, row))
    segments = [Segment(scene.step, scene.start_s, scene.end_s) for scene in scenes if scene.step is not None]
    return replace(video, scenes=tuple(scenes), segments=tuple(segments), duration_s=scenes[-1].end_s)


@pytest.fixture
def with_video(tmp_path: Path) -> Callable[..., tuple[Video, Path]]:
    def video_file(number: int, *rows: int | None) -> tuple[Video, Path]:
        video = short_video(number, *rows)
        render(WORLD, video, tmp_path / f"{number}.mp4")
        return video, tmp_path / f"{number}.mp4"

    return video_file


@pytest.fixture
def title_and_finished(tmp_path: Path) -> tuple[Video, Path]:
    """A title card and a finished lamp; drawn before `written` looks at texts."""
    scenes = (Scene(0.0, 0.5, TITLE, "", None), Scene(0.5, 1.0, FINISHED, "lamp", None))
    video = replace(WORLD.video(1), scenes=scenes, duration_s=1.0)
    render(WORLD, video, tmp_path / "video.mp4")
    return video, tmp_path / "video.mp4"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are put on the sheet."""
    texts: list[str] = []
    draw_text = ImageDraw.ImageDraw.text

    def keep(pen: ImageDraw.ImageDraw, xy: tuple[float, float], text: str, *args: Any, **kwargs: Any) -> None:
        texts.append(text)
        assert xy[0] + kwargs["font"].getlength(text) <= pen.im.size[0], f"{text!r} runs off the sheet"
        draw_text(pen, xy, text, *args, **kwargs)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", keep)
    return texts


def count_borders(sheet: Image.Image, colour: tuple[int, int, int]) -> float:
    return float((np.asarray(sheet) == colour).all(axis=2).sum() / FRAME_AREA)


def test_every_scene_has_a_frame_and_steps_a_border_of_their_own(
    with_video: Callable[..., tuple[Video, Path]], tmp_path: Path
) -> None:
    path = tmp_path / "deep" / "sheet.png"
    draw_contact_sheet([with_video(1, 0, None, 2, 0, 1, 3, 3, None), with_video(2, 1)], path)
    with Image.open(path) as sheet:
        assert sheet.format == "PNG" and sheet.width <= 1600
        assert count_borders(sheet, STEP_COLOUR) == pytest.approx(6 + 1, abs=0.02)
        assert count_borders(sheet, OTHER_COLOUR) == pytest.approx(3 + 1, abs=0.02)
    assert [item.name for item in path.parent.iterdir()] == ["sheet.png"]


def test_frames_come_from_the_file_and_the_middle_of_the_scene(
    with_video: Callable[..., tuple[Video, Path]], tmp_path: Path
) -> None:
    video, video_file = with_video(1, 2)
    draw_contact_sheet([(video, video_file)], tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as picture:
        sheet = np.asarray(picture)
    top, left = np.argwhere((sheet == STEP_COLOUR).all(axis=2))[0] + BORDER
    with av.open(str(video_file)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert np.array_equal(sheet[top : top + HEIGHT, left : left + WIDTH], frames[round(0.75 * FPS)])


def test_captions_say_what_is_seen_and_what_is_missing(
    with_video: Callable[..., tuple[Video, Path]], written: list[str], tmp_path: Path
) -> None:
    video, video_file = with_video(1, 2, None)
    draw_contact_sheet([(video, video_file)], tmp_path / "sheet.png")
    text = " ".join(written)
    steps = video.article.steps
    assert written[0] == f"{video.video_id}   {video.article.title}   1.5 s"
    assert text.index("0.0 - 0.5 s presenter") < text.index(f"0.5 - 1.0 s step 3: {steps[2].headline}")
    assert "1.0 - 1.5 s other scene" in text
    missing = text.split("not shown: ")[1]
    assert [f"step {row + 1}:" in missing for row in range(len(steps))] == [row != 2 for row in range(len(steps))]
    assert all(step.headline in missing.replace("  ", " ") for row, step in enumerate(steps) if row != 2)


def test_title_cards_and_finished_objects_are_named(
    title_and_finished: tuple[Video, Path], written: list[str], tmp_path: Path
) -> None:
    draw_contact_sheet([title_and_finished], tmp_path / "sheet.png")
    assert written[1:5] == ["0.0 - 0.5 s", "title card", "0.5 - 1.0 s", "finished: lamp"]
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert count_borders(sheet, OTHER_COLOUR) == pytest.approx(2, abs=0.02)


def test_long_words_are_cut_to_fit(
    with_video: Callable[..., tuple[Video, Path]], written: list[str], tmp_path: Path
) -> None:
    video, video_file = with_video(1, 0)
    first, *others = video.article.steps
    endless = replace(first, headline="x" * 300 + " very" * 40)
    article = replace(video.article, title="Soup " * 90, steps=(endless, *others))
    draw_contact_sheet([(replace(video, article=article), video_file)], tmp_path / "sheet.png")
    assert sum(text.endswith("...") for text in written) == 2


def test_a_file_that_is_too_short_is_named(with_video: Callable[..., tuple[Video, Path]], tmp_path: Path) -> None:
    _, video_file = with_video(1, 2)
    with pytest.raises(ValueError, match=r"1\.mp4 has no frame at 1\.25 s.*render it again"):
        draw_contact_sheet([(short_video(1, 2, 0), video_file)], tmp_path / "sheet.png")
    with pytest.raises(ValueError, match=r"no videos to put on sheet\.png"):
        draw_contact_sheet([], tmp_path / "sheet.png")
    assert not (tmp_path / "sheet.png").exists()
