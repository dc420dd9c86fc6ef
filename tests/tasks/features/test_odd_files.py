"""Files that are odd but fine are decoded; those that are broken, cut short or no video are refused with a reason."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tasks.features.video_file import BadVideo
from tests.tasks.features.videos import (
    COLOURS,
    FRAGMENTS,
    clips_of,
    colours_of,
    put_cover_first,
    write_sound,
    write_still,
    write_video,
    write_with_cover,
)

WHOLE = {
    "plain.mp4": ("libx264", {}),
    "header in front.mp4": ("libx264", {"movflags": "faststart"}),
    "in fragments.mp4": ("libx264", FRAGMENTS),
    "x.mov": ("libx264", {}),
    "x.mkv": ("libx264", {}),
    "x.webm": ("libvpx-vp9", {}),
    "x.avi": ("mpeg4", {}),
}


def reason_of(path: Path) -> str:
    """Why the file is refused."""
    with pytest.raises(BadVideo) as error:
        clips_of(path)
    assert path.name in str(error.value)
    return error.value.reason


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt", "size"),
    [
        ("x.mp4", "libx264", "yuv444p", (51, 37)),
        ("x.webm", "libvpx-vp9", "yuv420p", (51, 37)),
        ("x.mp4", "libx264", "yuv444p", (2, 2)),
        ("x.mp4", "libx264", "yuv420p", (8, 8)),
        ("x.webm", "libvpx-vp9", "yuv444p", (1, 1)),
        ("x.mp4", "libx264", "yuv420p", (16, 2_000)),
        ("x.mp4", "libx264", "yuv420p", (2_000, 2)),
        ("x.mp4", "libx264", "yuv420p10le", (64, 48)),
        ("x.webm", "libvpx-vp9", "yuva420p", (64, 48)),
        ("x.mov", "qtrle", "argb", (64, 48)),
        ("x.gif", "gif", "rgb8", (64, 48)),
    ],
)
def test_odd_sizes_depths_and_transparency(
    tmp_path: Path, name: str, codec: str, pix_fmt: str, size: tuple[int, int]
) -> None:
    clips = clips_of(write_video(tmp_path / name, 2, 5, size, codec, pix_fmt=pix_fmt))
    assert [clip.shape for clip in clips] == [(16, 32, 32, 3)] * 2 and colours_of(clips) == [[0] * 16, [1] * 16]


def test_what_is_transparent_does_not_matter(tmp_path: Path) -> None:
    picture = np.concatenate([np.tile(COLOURS[2], (48, 64, 1)), np.zeros((48, 64, 1), np.uint8)], axis=2)
    path = write_video(tmp_path / "x.mov", 1, 5, codec="qtrle", pix_fmt="argb", pictures=[picture] * 5)
    assert colours_of(clips_of(path)) == [[2] * 16]


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_file_is_accepted(tmp_path: Path, name: str) -> None:
    codec, options = WHOLE[name]
    assert len(clips_of(write_video(tmp_path / name, 5, 10, codec=codec, options=options))) == 5


@pytest.mark.parametrize("name", [name for name in WHOLE if name != "x.avi"])
def test_a_whole_file_of_a_picture_every_two_seconds_is_accepted(tmp_path: Path, name: str) -> None:
    codec, options = WHOLE[name]
    clips = clips_of(write_video(tmp_path / name, 8, Fraction(1, 2), codec=codec, options=options))
    assert colours_of(clips) == [[colour] * 16 for colour in (0, 0, 2, 2, 4, 4, 0, 0)]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("share", [0.3, 0.55, 0.97])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, name: str, share: float) -> None:
    codec, options = WHOLE[name]
    chance = np.random.default_rng(0)
    noise = [chance.integers(0, 255, (48, 64, 3), np.uint8) for _ in range(50)]
    whole = write_video(tmp_path / name, 5, 10, codec=codec, options=options, pictures=noise).read_bytes()
    (tmp_path / name).write_bytes(whole[: int(len(whole) * share)])
    assert reason_of(tmp_path / name) in ("cut short", "cannot be decoded")


def test_a_fragment_that_is_announced_only_is_a_file_cut_short(tmp_path: Path) -> None:
    path = write_video(tmp_path / "x.mp4", 5, 10, options=FRAGMENTS | {"frag_duration": "1000000"})
    whole = path.read_bytes()
    announced = whole.rindex(b"moof") - 4
    path.write_bytes(whole[: announced + int.from_bytes(whole[announced : announced + 4])])
    assert reason_of(path) == "cut short"


def claim_seconds(path: Path, seconds: float) -> None:
    """Make a Matroska file claim another duration, in its header and in its stream's tag."""
    data = bytearray(path.read_bytes())
    tag = data.index(b"DURATION\x44\x87") + 8 + 2
    tag = data.index(b"00:00:", tag)
    data[tag : tag + 12] = f"00:00:{seconds:06.3f}".encode()
    path.write_bytes(data)


def test_a_header_may_claim_a_second_more_and_not_two(tmp_path: Path) -> None:
    path = write_video(tmp_path / "x.mkv", 5, 10)
    claim_seconds(path, 5.9)
    assert len(clips_of(path)) == 5
    claim_seconds(path, 7.2)
    assert reason_of(path) == "cut short"


def test_times_that_no_video_has_are_a_broken_clock(tmp_path: Path) -> None:
    for name in ("x.mp4", "x.mkv", "x.ts"):
        path = write_video(tmp_path / name, 0, times=[Fraction(0), Fraction(1, 2), Fraction(3_600)])
        assert reason_of(path) == "broken clock", name
    assert reason_of(write_still(tmp_path / "still.mp4", 3_600)) == "broken clock"


@pytest.mark.parametrize("cover_first", [False, True])
def test_a_cover_picture_is_not_the_video(tmp_path: Path, cover_first: bool) -> None:
    path = write_with_cover(tmp_path / "x.mp4")
    if cover_first:
        put_cover_first(path)
    with av.open(str(path)) as container:
        assert [stream.codec_context.name for stream in container.streams][cover_first] == "h264"
    assert colours_of(clips_of(path)) == [[0] * 16, [0] * 16]


def test_sound_alone_or_with_a_cover_is_no_video(tmp_path: Path) -> None:
    assert reason_of(write_sound(tmp_path / "sound.mp4")) == "no video in the file"
    assert reason_of(write_with_cover(tmp_path / "cover.mp4", video_file=False)) == "no video in the file"


@pytest.mark.parametrize(
    "text",
    [
        "ffconcat version 1.0\nfile 'video.ts'\n",
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nfilm.ts\n#EXT-X-ENDLIST\n",
    ],
    ids=["ffconcat", "m3u8"],
)
@pytest.mark.parametrize("name", ["x.mp4", "x.m3u8"])
def test_a_text_that_points_to_a_video_is_not_followed(tmp_path: Path, text: str, name: str) -> None:
    write_video(tmp_path / "video.ts", 2, 10)
    (tmp_path / name).write_text(text)
    assert reason_of(tmp_path / name) == "cannot be decoded"


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "cannot be decoded"), (b"hello, I am a text\n" * 100, "cannot be decoded"), (None, "file is missing")],
    ids=["empty", "text", "missing"],
)
def test_what_is_no_video_is_named(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "x.mp4"
    if content is not None:
        path.write_bytes(content)
    assert reason_of(path) == reason
