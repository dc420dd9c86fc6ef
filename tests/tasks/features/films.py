"""Real video files for tests: a colour for each second, in any codec, rate and size."""

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

COLOURS = np.array(
    [[220, 30, 30], [30, 200, 40], [40, 60, 220], [230, 220, 40], [200, 40, 200], [40, 210, 220]], np.uint8
)


def write_film(
    path: Path,
    seconds: float,
    fps: Fraction | int = 25,
    size: tuple[int, int] = (96, 64),
    codec: str = "libx264",
    times: Iterable[Fraction] | None = None,
) -> Path:
    """A film whose colour changes each second. `times` makes its frame rate vary."""
    chosen = list(times) if times is not None else [number / Fraction(fps) for number in range(round(seconds * fps))]
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=Fraction(fps))
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        base = Fraction(1, 90_000) if times is not None else 1 / Fraction(fps)
        stream.codec_context.time_base = base
        for time in chosen:
            colour = COLOURS[int(time) % len(COLOURS)]
            frame = av.VideoFrame.from_ndarray(np.tile(colour, (size[1], size[0], 1)), format="rgb24")
            frame.pts, frame.time_base = round(time / base), base
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def colours_of(clips: list[np.ndarray]) -> list[list[int]]:
    """Which colour each frame of each clip has."""
    return [
        [int(np.abs(COLOURS.astype(int) - frame.reshape(-1, 3).mean(0)).sum(1).argmin()) for frame in clip]
        for clip in clips
    ]


def rotate(path: Path) -> None:
    """Set the flag that asks players to turn the picture by 90 degrees, in the MP4's track header."""
    data = bytearray(path.read_bytes())
    matrix = data.index(b"tkhd") + 4 + 40
    one = (1 << 16).to_bytes(4, "big")
    minus_one = (-(1 << 16)).to_bytes(4, "big", signed=True)
    zero, unit = bytes(4), (1 << 30).to_bytes(4, "big")
    data[matrix : matrix + 36] = zero + one + zero + minus_one + zero + zero + zero + zero + unit
    path.write_bytes(data)
