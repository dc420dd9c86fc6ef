"""Clips line up with seconds in every container, codec and rate, with and without sound; pictures are as displayed."""

import math
import random
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import av
import numpy as np
import pytest

from tasks.features.decoding import Frames
from tests.tasks.features.videos import (
    FRAGMENTS,
    clips_of,
    colours_of,
    four_corners,
    number_of,
    numbered,
    show_as,
    write_still,
    write_video,
)


@pytest.mark.parametrize("fps", [24, 25, Fraction(30_000, 1_001), 30, 60, 10, 8, 5])
def test_each_second_is_its_own_at_every_frame_rate(tmp_path: Path, fps: Fraction | int) -> None:
    clips = clips_of(write_video(tmp_path / "x.mp4", 5, fps))
    assert colours_of(clips)[:5] == [[second] * 16 for second in range(5)]
    assert all(clip.shape == (16, 32, 32, 3) and clip.dtype == np.uint8 for clip in clips)


@pytest.mark.parametrize(
    ("name", "codec"), [("x.mp4", "libx264"), ("x.webm", "libvpx-vp9"), ("x.mkv", "libx264"), ("x.avi", "mpeg4")]
)
def test_containers_and_codecs(tmp_path: Path, name: str, codec: str) -> None:
    assert colours_of(clips_of(write_video(tmp_path / name, 3, 25, codec=codec))) == [[0] * 16, [1] * 16, [2] * 16]


def by_hand(path: Path) -> list[list[int]]:
    """The numbers of a video's pictures in the slots of 1/16 s: the one shown last within each, else the one before."""
    slots: dict[int, int] = {}
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            assert frame.pts is not None and frame.time_base is not None
            begin_s = frame.pts * frame.time_base
            slots[int(begin_s * 16)] = number_of(frame.to_ndarray(format="rgb24"))
            end_s = begin_s + frame.duration * frame.time_base
    shown = list(accumulate(range(math.ceil(end_s) * 16), lambda before, slot: slots.get(slot, before), initial=0))[1:]
    return [shown[begin : begin + 16] for begin in range(0, len(shown), 16)]


def numbers_of(clips: list[np.ndarray]) -> list[list[int]]:
    return [[number_of(frame) for frame in clip] for clip in clips]


@pytest.mark.parametrize("name", ["x.mp4", "x.mkv"])
@pytest.mark.parametrize("fps", [24, 25, Fraction(30_000, 1_001), 30, 60, 7])
def test_every_slot_shows_what_an_obvious_decoder_shows(tmp_path: Path, name: str, fps: Fraction | int) -> None:
    count = int(2.6 * fps)
    path = write_video(
        tmp_path / name, 2.6, fps, times=[n / Fraction(fps) for n in range(count)], pictures=numbered(count)
    )
    found = numbers_of(clips_of(path))
    assert found == by_hand(path) and len(found) == 3
    assert max(number for clip in found for number in clip) >= count - 2


@pytest.mark.parametrize("name", ["x.mp4", "x.mkv"])
@pytest.mark.parametrize("seed", range(8))
def test_every_slot_is_right_at_varying_frame_rates(tmp_path: Path, name: str, seed: int) -> None:
    chance = random.Random(seed)
    times = list(accumulate((Fraction(chance.randint(1, 30), 100) for _ in range(30)), initial=Fraction(0)))
    path = write_video(tmp_path / name, 0, 30, times=times, pictures=numbered(len(times)))
    found, expected = numbers_of(clips_of(path)), by_hand(path)
    assert len(found) - (int(times[-1]) + 1) in (0, 1)  # for how long the last one is shown, MP4 does not know
    assert found == expected[: len(found)]


def test_the_colours_of_the_seconds_at_a_varying_frame_rate(tmp_path: Path) -> None:
    steps = [Fraction(1, 50), Fraction(1, 7), Fraction(1, 30)]
    times, clock = [], Fraction(0)
    while clock < 4:
        times.append(clock)
        clock += steps[int(clock * 3) % 3]
    times = sorted({*times, Fraction(1), Fraction(2), Fraction(3)})
    for name in ("x.mkv", "x.mp4"):
        clips = clips_of(write_video(tmp_path / name, 4, 30, times=times))
        assert colours_of(clips)[:4] == [[second] * 16 for second in range(4)], name


@pytest.mark.parametrize("name", ["x.mp4", "x.mkv"])
def test_a_picture_stays_through_a_gap(tmp_path: Path, name: str) -> None:
    times = [Fraction(0), Fraction(1, 2), Fraction(11, 2), Fraction(6)]
    path = write_video(tmp_path / name, 0, times=times, pictures=numbered(4))
    assert numbers_of(clips_of(path)) == [[0] * 8 + [1] * 8, *[[1] * 16] * 4, [1] * 8 + [2] * 8, [3] * 16]


def test_the_last_picture_is_not_shown_for_as_long_as_an_earlier_one(tmp_path: Path) -> None:
    times = [Fraction(0), Fraction(1, 2), Fraction(11, 2), Fraction(6), Fraction(61, 10)]
    path = write_video(tmp_path / "x.mp4", 0, times=times, pictures=numbered(5))
    with av.open(str(path)) as container:
        *_, last = container.decode(video=0)
    assert last.time_base is not None and last.duration * last.time_base == 5, "the file does not say the wrong thing"
    assert len(clips_of(path)) == 7


@pytest.mark.parametrize("name", ["x.mp4", "x.mkv"])
def test_a_still_of_100_seconds(tmp_path: Path, name: str) -> None:
    path = write_video(tmp_path / name, 0, times=[Fraction(0), Fraction(100)], pictures=numbered(2))
    assert numbers_of(clips_of(path)) == [*[[0] * 16] * 100, [1] * 16]


def test_one_picture_that_is_shown_for_100_seconds(tmp_path: Path) -> None:
    path = write_still(tmp_path / "x.mp4", 100)
    assert numbers_of(clips_of(path)) == [[0] * 16] * 100


@pytest.mark.parametrize(("name", "options"), [("x.mp4", {}), ("x.mp4", FRAGMENTS), ("x.mkv", {})])
def test_sound_changes_nothing(tmp_path: Path, name: str, options: dict[str, str]) -> None:
    silent = write_video(tmp_path / f"silent-{name}", 3, pictures=numbered(75), options=options)
    for sound_s in (2, 3, 7):
        path = write_video(tmp_path / name, 3, pictures=numbered(75), options=options, sound_s=sound_s)
        assert numbers_of(clips_of(path)) == by_hand(silent), f"{sound_s} s of sound"


@pytest.mark.parametrize("name", ["x.mp4", "x.mkv"])
def test_a_picture_that_begins_after_the_sound_begins_late(tmp_path: Path, name: str) -> None:
    times = [3 + Fraction(n, 10) for n in range(20)]
    path = write_video(tmp_path / name, 0, 10, times=times, sound_s=7)
    assert colours_of(clips_of(path)) == [[3] * 16, [3] * 16, [3] * 16, [3] * 16, [4] * 16]


def test_a_video_whose_only_stream_begins_late_counts_from_its_first_picture(tmp_path: Path) -> None:
    path = write_video(tmp_path / "x.mp4", 0, 10, times=[3 + Fraction(n, 10) for n in range(20)])
    assert colours_of(clips_of(path)) == [[3] * 16, [4] * 16]


def test_a_transport_stream_counts_from_its_first_picture(tmp_path: Path) -> None:
    path = write_video(tmp_path / "x.ts", 3, 25)
    with av.open(str(path)) as container:
        assert container.start_time
    assert colours_of(clips_of(path)) == [[0] * 16, [1] * 16, [2] * 16]


@pytest.mark.parametrize(("seconds", "expected"), [(2.0, 2), (2.04, 3), (2.5, 3), (2.96, 3), (0.2, 1)])
def test_the_last_second_repeats_its_last_frame(tmp_path: Path, seconds: float, expected: int) -> None:
    clips = clips_of(write_video(tmp_path / "x.mp4", seconds, 25))
    assert len(clips) == expected and colours_of(clips)[-1] == [expected - 1] * 16


def test_one_frame_is_one_second(tmp_path: Path) -> None:
    assert colours_of(clips_of(write_video(tmp_path / "x.mp4", 0.04, 25))) == [[0] * 16]


@pytest.mark.parametrize("size", [(96, 64), (64, 96), (50, 38), (66, 34), (320, 64)])
def test_any_size_is_scaled_by_its_short_side_and_cut(tmp_path: Path, size: tuple[int, int]) -> None:
    (clip,) = clips_of(write_video(tmp_path / "x.mp4", 1, 25, size))
    assert clip.shape == (16, 32, 32, 3) and colours_of([clip]) == [[0] * 16]


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ((1, 0, 0, 1), lambda picture: picture),
        ((0, 1, -1, 0), lambda picture: np.rot90(picture, -1)),
        ((-1, 0, 0, -1), lambda picture: np.rot90(picture, 2)),
        ((0, -1, 1, 0), lambda picture: np.rot90(picture, 1)),
        ((-1, 0, 0, 1), np.fliplr),
        ((1, 0, 0, -1), np.flipud),
        ((0, 1, 1, 0), lambda picture: picture.transpose(1, 0, 2)),
        ((0, -1, -1, 0), lambda picture: np.rot90(picture, 2).transpose(1, 0, 2)),
    ],
    ids=["upright", "clockwise", "upside down", "counter-clockwise", "mirrored", "flipped", "main", "anti"],
)
def test_the_picture_is_turned_and_mirrored_as_the_file_asks(
    tmp_path: Path, matrix: tuple[int, int, int, int], expected: Callable[[np.ndarray], np.ndarray]
) -> None:
    path = write_video(tmp_path / "x.mp4", 1, 5, pictures=[four_corners()] * 5)
    show_as(path, *matrix)
    assert corners(clips_of(path)[0][0]) == corners(expected(four_corners()))


def corners(picture: np.ndarray) -> list[int]:
    """The colours in the middle of the four quarters, above and below."""
    near, far = len(picture) // 4, 3 * len(picture) // 4
    (found,) = colours_of([np.stack([picture[y, x][None, None] for y in (near, far) for x in (near, far)])])
    return found


def test_pixels_that_are_not_square_are_shown_as_wide_as_they_are_meant(tmp_path: Path) -> None:
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, 16:48] = 255  # displayed at 128 x 64 these are the 64 in the middle: all that the cut sees
    path = write_video(tmp_path / "wide.mp4", 1, 5, pictures=[stripes] * 5, pixel_aspect=Fraction(2, 1))
    assert clips_of(path)[0][0][:, 1:-1].min() > 200
    path = write_video(tmp_path / "square.mp4", 1, 5, pictures=[stripes] * 5)
    assert clips_of(path)[0][0][:, :6].max() < 50
    high = stripes.transpose(1, 0, 2).copy()
    path = write_video(tmp_path / "high.mp4", 1, 5, pictures=[high] * 5, pixel_aspect=Fraction(1, 2))
    assert clips_of(path)[0][0][1:-1].min() > 200


def test_a_larger_short_side_cuts_the_middle_out(tmp_path: Path) -> None:
    framed = np.zeros((256, 320, 3), np.uint8)
    framed[16:-16, 48:-48] = 255  # the 224 px in the middle
    path = write_video(tmp_path / "x.mp4", 0.2, 5, pictures=[framed])
    cut = clips_of(path, Frames(16, 224, 256))[0][0]
    assert cut.shape == (224, 224, 3) and cut.min() > 200
    whole = clips_of(path, Frames(16, 224))[0][0]
    assert whole[:12].max() < 50 and whole[:, :12].max() < 50, "without it the short side fits"


def test_values_are_red_green_blue(tmp_path: Path) -> None:
    (clip,) = clips_of(write_video(tmp_path / "x.mp4", 1, 25))
    assert np.abs(clip[8].reshape(-1, 3).mean(0) - [220, 30, 30]).max() < 12


def test_wrong_settings_are_refused() -> None:
    for size_px in (0, 8, 33, 1026):
        with pytest.raises(ValueError, match="even sizes from 32"):
            Frames(16, size_px)
    with pytest.raises(ValueError, match="at least the frames' 64 px"):
        Frames(16, 64, 48)


MEMORY = """
import sys
from pathlib import Path
from tasks.features.decoding import Frames, read_clips
count = sum(1 for _ in read_clips(sys.argv[1], Frames(16, 64)))
print(count, Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def test_a_long_video_takes_no_more_memory(tmp_path: Path) -> None:
    peaks = []
    for seconds in (20, 400):
        path = write_video(tmp_path / f"{seconds}.mp4", seconds, 5)
        answer = subprocess.run([sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, check=True)
        count, peak_kb = map(int, answer.stdout.split())
        assert count == seconds
        peaks.append(peak_kb)
    assert peaks[1] < 1.2 * peaks[0]
