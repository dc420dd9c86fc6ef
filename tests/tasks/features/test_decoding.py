"""Clips line up with seconds in every container, codec, rate, size and rotation; broken files are named."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tasks.features.decoding import Frames, read_clips
from tasks.video_file import BadVideo
from tests.tasks.features.films import colours_of, rotate, write_film

SMALL = Frames(16, 32)


def clips_of(path: Path, frames: Frames = SMALL) -> list[np.ndarray]:
    return list(read_clips(str(path), frames))


@pytest.mark.parametrize("fps", [24, 25, Fraction(30_000, 1_001), 30, 60, 10, 8, 5])
def test_each_second_is_its_own_at_every_frame_rate(tmp_path: Path, fps: Fraction | int) -> None:
    clips = clips_of(write_film(tmp_path / "x.mp4", 5, fps))
    assert colours_of(clips)[:5] == [[second] * 16 for second in range(5)]
    assert all(clip.shape == (16, 32, 32, 3) and clip.dtype == np.uint8 for clip in clips)


@pytest.mark.parametrize(
    ("name", "codec"), [("x.mp4", "libx264"), ("x.webm", "libvpx-vp9"), ("x.mkv", "libx264"), ("x.avi", "mpeg4")]
)
def test_containers_and_codecs(tmp_path: Path, name: str, codec: str) -> None:
    assert colours_of(clips_of(write_film(tmp_path / name, 3, 25, codec=codec))) == [[0] * 16, [1] * 16, [2] * 16]


def test_a_varying_frame_rate(tmp_path: Path) -> None:
    steps = [Fraction(1, 50), Fraction(1, 7), Fraction(1, 30)]
    times, clock = [], Fraction(0)
    while clock < 4:
        times.append(clock)
        clock += steps[int(clock * 3) % 3]
    times = sorted({*times, Fraction(1), Fraction(2), Fraction(3)})
    clips = clips_of(write_film(tmp_path / "x.mkv", 4, 30, times=times))
    assert colours_of(clips)[:4] == [[second] * 16 for second in range(4)]


@pytest.mark.parametrize(("seconds", "expected"), [(2.0, 2), (2.04, 3), (2.5, 3), (2.96, 3), (0.2, 1)])
def test_the_last_second_repeats_its_last_frame(tmp_path: Path, seconds: float, expected: int) -> None:
    clips = clips_of(write_film(tmp_path / "x.mp4", seconds, 25))
    assert len(clips) == expected and colours_of(clips)[-1] == [expected - 1] * 16


def test_one_frame_is_one_second(tmp_path: Path) -> None:
    assert colours_of(clips_of(write_film(tmp_path / "x.mp4", 0.04, 25))) == [[0] * 16]


@pytest.mark.parametrize("size", [(96, 64), (64, 96), (50, 38), (66, 34), (320, 64)])
def test_any_size_is_scaled_by_its_short_side_and_cut(tmp_path: Path, size: tuple[int, int]) -> None:
    (clip,) = clips_of(write_film(tmp_path / "x.mp4", 1, 25, size))
    assert clip.shape == (16, 32, 32, 3) and colours_of([clip]) == [[0] * 16]


def halves(path: Path, rotated: bool) -> np.ndarray:
    """The first frame of a film that is red on its left and blue on its right."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=5)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        picture = np.zeros((64, 64, 3), np.uint8)
        picture[:, :32, 0], picture[:, 32:, 2] = 255, 255
        for _ in range(5):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    if rotated:
        rotate(path)
    return clips_of(path)[0][0].astype(int)


def test_the_rotation_flag_is_followed(tmp_path: Path) -> None:
    plain, turned = (halves(tmp_path / f"{rotated}.mp4", rotated) for rotated in (False, True))
    assert plain[16, 4, 0] > 200 and plain[16, 28, 2] > 200
    # Turned clockwise by 90 degrees, what was on the left is on top.
    assert turned[4, 16, 0] > 200 and turned[28, 16, 2] > 200


def test_values_are_red_green_blue(tmp_path: Path) -> None:
    (clip,) = clips_of(write_film(tmp_path / "x.mp4", 1, 25))
    assert np.abs(clip[8].reshape(-1, 3).mean(0) - [220, 30, 30]).max() < 12


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "cannot be decoded"), (b"hello, I am a text\n" * 100, "cannot be decoded"), (None, "file is missing")],
    ids=["empty", "text", "missing"],
)
def test_what_is_no_video_is_named(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "x.mp4"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadVideo, match=r"x\.mp4") as error:
        clips_of(path)
    assert error.value.reason == reason


def test_truncated_files(tmp_path: Path) -> None:
    whole = write_film(tmp_path / "x.mp4", 5, 25).read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadVideo, match=r"cut\.mp4"):
        clips_of(tmp_path / "cut.mp4")


def test_a_file_with_sound_only(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=44_100)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 44_100
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with pytest.raises(BadVideo) as error:
        clips_of(tmp_path / "x.mp4")
    assert error.value.reason == "no video in the file"


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
        path = write_film(tmp_path / f"{seconds}.mp4", seconds, 5)
        answer = subprocess.run([sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, check=True)
        count, peak_kb = map(int, answer.stdout.split())
        assert count == seconds
        peaks.append(peak_kb)
    assert peaks[1] < 1.2 * peaks[0]
