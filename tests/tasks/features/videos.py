"""Real video files for tests: a colour for each second or a number for each picture, in any codec, rate and size."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.container import OutputContainer

from tasks.features.decoding import Frames, read_clips

COLOURS = np.array(
    [[220, 30, 30], [30, 200, 40], [40, 60, 220], [230, 220, 40], [200, 40, 200], [40, 210, 220]], np.uint8
)
SOUND_HZ = 8_000
FRAGMENTS = {"movflags": "frag_keyframe+delay_moov"}
"""The options of an MP4 that is written in fragments, as by cameras; other containers do not know them."""
SMALL = Frames(16, 32)


def clips_of(path: Path, frames: Frames = SMALL) -> list[np.ndarray]:
    """What the decoder makes of a file."""
    return list(read_clips(str(path), frames))


def write_video(
    path: Path,
    seconds: float,
    fps: Fraction | int = 25,
    size: tuple[int, int] = (96, 64),
    codec: str = "libx264",
    times: Iterable[Fraction] | None = None,
    *,
    pictures: Sequence[np.ndarray] | None = None,
    pix_fmt: str = "yuv420p",
    sound_s: float = 0,
    pixel_aspect: Fraction | None = None,
    options: Mapping[str, str] | None = None,
) -> Path:
    """A video whose colour changes each second, or of `pictures`, height x width x RGB or RGBA.

    `times` makes its frame rate vary; `sound_s` seconds of silence go with it; `options` are the container's.
    """
    chosen = list(times) if times is not None else [number / Fraction(fps) for number in range(round(seconds * fps))]
    if pictures is None:
        pictures = [np.tile(COLOURS[int(time) % len(COLOURS)], (size[1], size[0], 1)) for time in chosen]
    with av.open(str(path), "w", options=dict(options or {})) as container:
        stream = container.add_stream(codec, rate=Fraction(fps))
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = pix_fmt
        base = Fraction(1, 90_000) if times is not None else 1 / Fraction(fps)
        stream.codec_context.time_base = base
        if pixel_aspect:
            stream.codec_context.sample_aspect_ratio = pixel_aspect
        if sound_s:
            _add_silence(container, sound_s)
        for time, picture in zip(chosen, pictures, strict=True):
            frame = av.VideoFrame.from_ndarray(picture, format="rgba" if picture.shape[2] == 4 else "rgb24")
            frame.pts, frame.time_base = round(time / base), base
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def _add_silence(container: OutputContainer, seconds: float) -> None:
    stream = container.add_stream("aac", rate=SOUND_HZ)
    for begin in range(0, round(seconds * SOUND_HZ), 1024):
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = SOUND_HZ, begin, Fraction(1, SOUND_HZ)
        container.mux(stream.encode(frame))
    container.mux(stream.encode())


def write_still(path: Path, seconds: int) -> Path:
    """A video of one picture."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=1)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        stream.codec_context.time_base = Fraction(1)
        frame = av.VideoFrame.from_ndarray(numbered(1)[0], format="rgb24")
        frame.pts, frame.time_base = 0, Fraction(1)
        for packet in [*stream.encode(frame), *stream.encode()]:
            packet.duration = seconds
            container.mux(packet)
    return path


def write_sound(path: Path, seconds: float = 1) -> Path:
    """A file without a picture."""
    with av.open(str(path), "w") as container:
        _add_silence(container, seconds)
    return path


def colours_of(clips: list[np.ndarray]) -> list[list[int]]:
    """Which colour each frame of each clip has."""
    return [
        [int(np.abs(COLOURS.astype(int) - frame.reshape(-1, 3).mean(0)).sum(1).argmin()) for frame in clip]
        for clip in clips
    ]


def numbered(count: int) -> list[np.ndarray]:
    """Pictures that say which they are, up to 256: a digit of 16 greys on the left, another on the right."""
    pictures = [np.empty((64, 64, 3), np.uint8) for _ in range(count)]
    for number, picture in enumerate(pictures):
        picture[:, :32], picture[:, 32:] = 8 + 16 * (number // 16), 8 + 16 * (number % 16)
    return pictures


def number_of(picture: np.ndarray) -> int:
    """Which of the numbered pictures this is."""
    width = picture.shape[1]
    left, right = picture[:, : width // 4].mean(), picture[:, -width // 4 :].mean()
    return round((left - 8) / 16) * 16 + round((right - 8) / 16)


def four_corners(width: int = 64, height: int = 64) -> np.ndarray:
    """A picture whose corners have colours of their own: red and green above, blue and yellow below."""
    picture = np.empty((height, width, 3), np.uint8)
    for number, (y, x) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
        picture[y * height // 2 : (y + 1) * height // 2, x * width // 2 : (x + 1) * width // 2] = COLOURS[number]
    return picture


def show_as(path: Path, a: int, b: int, c: int, d: int) -> None:
    """Ask players to show the picture at x' = a x + c y, y' = b x + d y: in the MP4's track header."""
    data = bytearray(path.read_bytes())
    matrix = data.index(b"tkhd") + 4 + 40
    rows = (a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30)
    data[matrix : matrix + 36] = b"".join(value.to_bytes(4, "big", signed=True) for value in rows)
    path.write_bytes(data)


def write_with_cover(path: Path, video_file: bool = True) -> Path:
    """An MP4 with a large white cover picture, and a small red video of two seconds or sound only."""
    with av.open(str(path), "w") as container:
        if video_file:
            stream = container.add_stream("libx264", rate=5)
            stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        cover = container.add_stream("mjpeg", rate=1)
        cover.width, cover.height, cover.pix_fmt = 320, 320, "yuvj420p"
        cover.disposition = av.stream.Disposition.attached_pic
        if not video_file:
            _add_silence(container, 1)
        container.mux(cover.encode(av.VideoFrame.from_ndarray(np.full((320, 320, 3), 255, np.uint8), format="rgb24")))
        container.mux(cover.encode())
        if video_file:
            for _ in range(10):
                red = av.VideoFrame.from_ndarray(np.tile(COLOURS[0], (64, 64, 1)), format="rgb24")
                container.mux(stream.encode(red))
            container.mux(stream.encode())
    return path


def put_cover_first(path: Path) -> None:
    """Put the tags, the cover among them, before the tracks in the MP4's header: as other writers do."""
    data = path.read_bytes()
    begin = data.index(b"moov") - 4
    end = begin + int.from_bytes(data[begin : begin + 4])
    parts, place = [], begin + 8
    while place < end:
        size = int.from_bytes(data[place : place + 4])
        parts.append(data[place : place + size])
        place += size
    parts.sort(key=lambda part: part[4:8] == b"trak")
    path.write_bytes(data[: begin + 8] + b"".join(parts) + data[end:])
