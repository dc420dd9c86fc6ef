"""Videos of short scripts of our own: cut to a second or two, they take milliseconds."""

from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
import pytest

from storage import StoreError
from tasks.demo_world import pixels
from tasks.demo_world.knobs import PRESETS
from tasks.demo_world.lexicon import ACTIONS, THEMES
from tasks.demo_world.motions import MOTIONS
from tasks.demo_world.pixels import FPS, HEIGHT, WIDTH, draw_frames, render
from tasks.demo_world.scenes import FINISHED, PRESENTER, TITLE, Scene
from tasks.demo_world.script import Video, World
from tasks.demo_world.sprites import look_of_object

OBJECTS = [thing.written for theme in THEMES for thing in theme.objects]
VideoFile = npt.NDArray[np.int16]


def world_of_looks(strength: float, seed: int = 0) -> World:
    return World(replace(PRESETS["short"], look_strength=strength, num_articles=4), seed)


def script(world: World, *shots: tuple[str, str, float], number: int = 0) -> Video:
    """A video of these actions, objects and seconds."""
    clock, scenes = 0.0, []
    for action, thing, seconds in shots:
        scenes.append(Scene(clock, clock + seconds, action, thing, None))
        clock += seconds
    return replace(world.video(number), scenes=tuple(scenes), narrations=(), duration_s=clock)


def drawn(world: World, video: Video) -> VideoFile:
    return np.stack([frame.astype(np.int16) for frame in draw_frames(world, video)])


def decoded(path: Path) -> VideoFile:
    with av.open(str(path)) as video_file:
        return np.stack([frame.to_ndarray(format="rgb24").astype(np.int16) for frame in video_file.decode(video=0)])


SHOTS = (
    (PRESENTER, "", 1.3),
    ("roll", "tomato", 1.27),
    (PRESENTER, "", 0.9),
    ("heat", "egg", 1.02),
    ("mix", "egg", 1.0),
)


def test_the_file_is_h264_of_the_scripts_length(tmp_path: Path) -> None:
    world = world_of_looks(0.5)
    video = script(world, *SHOTS)
    path = tmp_path / "deep" / "video.mp4"
    render(world, video, path)
    with av.open(str(path)) as video_file:
        (stream,) = video_file.streams
        assert isinstance(stream, av.VideoStream)
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert [stream.width, stream.height, stream.average_rate] == [WIDTH, HEIGHT, FPS] == [224, 168, 12]
        times = [frame.time for frame in video_file.decode(video=0)]
        assert stream.duration is not None and stream.time_base is not None
        assert float(stream.duration * stream.time_base) == pytest.approx(video.duration_s, abs=0.5 / FPS)
    assert times == pytest.approx([frame / FPS for frame in range(round(video.duration_s * FPS))])
    assert [item.name for item in path.parent.iterdir()] == ["video.mp4"]


def test_the_same_script_gives_the_same_file_whatever_is_in_memory(tmp_path: Path) -> None:
    files = []
    for seed in (*[0] * 20, 1):
        np.full(1_000_000 + 100_000 * len(files), len(files), dtype=np.uint8)  # freed: what malloc may give next
        world = world_of_looks(0.5, seed)
        render(world, script(world, ("paint", "board", 0.5)), tmp_path / "video")
        files.append((tmp_path / "video").read_bytes())
    *same, other_seed = files
    assert len(set(same)) == 1
    assert other_seed != same[0]


def test_scenes_change_when_the_script_says(tmp_path: Path) -> None:
    world = world_of_looks(0.5)
    video = script(world, *SHOTS)
    render(world, video, tmp_path / "video.mp4")
    video_file = decoded(tmp_path / "video.mp4")
    change = np.abs(np.diff(video_file, axis=0)).mean(axis=(1, 2, 3))  # change[i]: from frame i to frame i + 1
    for scene in video.scenes[1:]:
        near = round(scene.start_s * FPS) - 1
        window = change[near - 4 : near + 5]
        assert abs(int(window.argmax()) - 4) <= 1, f"the scene at {scene.start_s} s"
        assert window.max() > 2 * np.median(window)


def test_all_objects_look_different() -> None:
    assert len({look_of_object(thing)[:2] for thing in OBJECTS}) == 60  # shape and colour alone tell them apart
    world = world_of_looks(0)
    stills = {thing: drawn(world, script(world, ("cover", thing, 1 / FPS)))[0, ::2, ::2] for thing in OBJECTS}
    empty = np.median(np.stack(list(stills.values())), axis=0)
    size = np.mean([np.abs(still - empty).mean() for still in stills.values()])
    close = {
        (a, b): distance
        for a, b in combinations(OBJECTS, 2)
        if (distance := float(np.abs(stills[a] - stills[b]).mean())) < size / 3
    }
    assert close == {}


def test_all_actions_move_differently_within_a_second() -> None:
    assert set(MOTIONS) == {*ACTIONS, FINISHED}
    world = world_of_looks(0)
    moves = {}
    for action in (*ACTIONS, PRESENTER, FINISHED):
        video_file = drawn(world, script(world, (action, "" if action == PRESENTER else "lamp", 1.0)))
        change = np.abs(np.diff(video_file, axis=0)).mean(axis=3)
        moves[action] = change.mean(axis=0).reshape(HEIGHT // 8, 8, WIDTH // 8, 8).mean(axis=(1, 3))  # where it moves
        assert np.mean(change.mean(axis=(1, 2)) > 0.05) > 0.6, f"{action} stands still"
    too_similar = {}
    for a, b in combinations(moves, 2):
        distance = np.abs(moves[a] - moves[b]).sum() / (moves[a].sum() + moves[b].sum())  # from 0 (same) to 1
        if distance < 0.25:
            too_similar[a, b] = float(distance)
    assert too_similar == {}


def test_looks_are_a_videos_own_and_can_be_switched_off() -> None:
    shots = (("stack", "tile", 0.5), (PRESENTER, "", 0.5))

    def video_files(strength: float) -> list[VideoFile]:
        world = world_of_looks(strength)
        return [drawn(world, script(world, *shots, number=number)) for number in (1, 2, 3)]

    assert all(np.array_equal(a, b) for a, b in pairwise(video_files(0)))
    distances = {s: np.mean([np.abs(a - b).mean() for a, b in combinations(video_files(s), 2)]) for s in (0.1, 1.0)}
    assert 0.5 < distances[0.1] < distances[1.0] / 2


def test_the_object_stays_in_sight_however_strong_the_look() -> None:
    world = world_of_looks(3)
    for number in range(6):
        stills = [
            drawn(world, script(world, ("cover", thing, 1 / FPS), number=number))[0] for thing in ("rice", "tile")
        ]
        seen = np.abs(stills[0] - stills[1]).mean(axis=2) > 40
        assert seen.mean() > 0.03
        assert not seen[:, :8].any() and not seen[:, -8:].any()


def test_a_title_card_shows_the_title_of_the_article_inside_the_frame_however_strong_the_look() -> None:
    world = world_of_looks(3)
    for number in range(6):
        video = script(world, (TITLE, "", 1 / FPS), number=number)
        cards = [
            drawn(world, replace(video, article=replace(video.article, title=title)))[0]
            for title in ("", video.article.title, "W" * 60 + " Wheelbarrow" * 60)
        ]
        for card in cards[1:]:
            text = np.abs(card - cards[0]).mean(axis=2) > 20
            assert 0.02 < text.mean() < 0.3
            assert not text[:12].any() and not text[-12:].any() and not text[:, :12].any() and not text[:, -12:].any()


def test_a_title_card_stands_still_and_has_no_room() -> None:
    world = world_of_looks(0)
    card = drawn(world, script(world, (TITLE, "", 1.0)))
    assert (card == card[0]).all()
    corners = card[0][[0, 0, -1, -1], [0, -1, 0, -1]]
    assert (corners == corners[0]).all(), "wall and table are not seen"


def test_the_finished_object_rests_while_the_light_moves() -> None:
    world = world_of_looks(0)
    frames = drawn(world, script(world, (FINISHED, "tile", 2.0)))
    middle = frames[:, HEIGHT // 2 - 25 : HEIGHT // 2 + 20, WIDTH // 2 - 25 : WIDTH // 2 + 25]
    assert (middle == middle[0]).all()
    assert np.abs(np.diff(frames, axis=0)).mean(axis=(1, 2, 3)).min() > 0.05
    other = drawn(world, script(world, (FINISHED, "rice", 2.0)))
    assert np.abs(other - frames).mean() > 2


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of_looks(0)
    video = script(world, ("roll", "tomato", 2.0))
    path = tmp_path / "video.mp4"
    path.write_bytes(b"an older video")
    seen: list[str] = []

    def break_off(world: World, video: Video) -> object:
        for count, frame in enumerate(draw_frames(world, video)):
            if count == 12:
                seen.extend(item.name for item in tmp_path.iterdir())
                raise OSError("no space left")
            yield frame

    monkeypatch.setattr(pixels, "draw_frames", break_off)
    with pytest.raises(StoreError, match="no space left"):
        render(world, video, path)
    assert len(seen) == 2, "the video goes to a file of another name first"
    assert [item.name for item in tmp_path.iterdir()] == ["video.mp4"]
    assert path.read_bytes() == b"an older video"


@pytest.mark.parametrize(
    ("shots", "message"),
    [
        ((), "0 scenes in 0.0 s"),
        ((("roll", "tomato", 0.01),), "1 scenes in 0.01 s"),
        ((("juggle", "tomato", 1.0),), "the action 'juggle': add a motion"),
        (((FINISHED, "", 1.0),), "called '': add it to THEMES"),
        ((("roll", "unicorn", 1.0),), "called 'unicorn': add it to THEMES"),
    ],
)
def test_what_cannot_be_drawn_is_named(tmp_path: Path, shots: tuple[tuple[str, str, float], ...], message: str) -> None:
    world = world_of_looks(0)
    with pytest.raises(ValueError, match=message):
        render(world, script(world, *shots), tmp_path / "video.mp4")
    assert list(tmp_path.iterdir()) == []
