"""A video file as one clip of frames for each of its seconds, whatever its frame rate, size and rotation.

PyAV's filter graph does all of it in one pass: `fps` (the frame that is shown last within each 1/16 s, so no frame of
one second is ever seen in another), rotation, `scale` of the short side, centre `crop`, `format`. The last second, if
it is not whole, repeats its last frame: T = ceil(duration). Times count from the first frame. A video takes the memory
of two seconds, however long it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import av
import numpy as np
import numpy.typing as npt

Clip = npt.NDArray[np.uint8]
"""frames x height x width x RGB"""


@dataclass(frozen=True)
class Frames:
    """How frames are taken from a video."""

    fps: int = 16
    """Frames a second; a clip is one second."""
    size_px: int = 224
    """Side of the square that is cut from the middle after the short side was scaled to it."""

    def __post_init__(self) -> None:
        if self.fps < 1 or not 32 <= self.size_px <= 1024:
            raise ValueError(f"{self}: fps must be at least 1, and size_px from 32 to 1,024")


class BadVideo(ValueError):
    """A file that cannot be decoded; `reason` can be counted."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def read_clips(address: str, frames: Frames) -> Iterator[Clip]:
    """The clips of a file or URL, one a second, in order. BadVideo if it cannot be decoded to its end."""
    held: list[npt.NDArray[np.uint8]] = []
    seconds = 0
    try:
        for frame in _frames(address, frames):
            held.append(frame)
            if len(held) == frames.fps:
                yield np.stack(held)
                held, seconds = [], seconds + 1
    except (av.error.FFmpegError, OSError, ValueError) as error:
        if isinstance(error, BadVideo):
            raise
        where = f"after {seconds} s" if seconds or held else "at its start"
        raise BadVideo("cannot be decoded", f"{address} cannot be decoded {where}: {error}") from error
    if held:
        yield np.stack(held + [held[-1]] * (frames.fps - len(held)))
    elif not seconds:
        raise BadVideo("no frames", f"{address} has a video stream without frames")


def _frames(address: str, frames: Frames) -> Iterator[npt.NDArray[np.uint8]]:
    with av.open(address) as container:
        if not container.streams.video:
            raise BadVideo("no video in the file", f"{address} has no video stream")
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        graph: av.filter.Graph | None = None
        for frame in container.decode(stream):
            graph = graph or _graph(stream, frame.rotation, frames)
            graph.vpush(frame)
            yield from _pulled(graph)
        if graph:
            graph.vpush(None)
            yield from _pulled(graph)


def _pulled(graph: av.filter.Graph) -> Iterator[npt.NDArray[np.uint8]]:
    while True:
        try:
            yield np.asarray(graph.vpull().to_ndarray(), np.uint8)
        except (av.error.BlockingIOError, av.error.EOFError):
            return


def _graph(stream: av.video.stream.VideoStream, rotation: int, frames: Frames) -> av.filter.Graph:
    graph, side = av.filter.Graph(), frames.size_px
    turns = {90: ["transpose=cclock"], 270: ["transpose=clock"], 180: ["hflip", "vflip"]}
    steps = [
        "setpts=PTS-STARTPTS",
        f"fps=fps={frames.fps}:round=down:start_time=0:eof_action=pass",
        *turns.get(rotation % 360, []),
        f"scale={side}:{side}:force_original_aspect_ratio=increase:flags=bilinear",
        f"crop={side}:{side}",
        "format=rgb24",
    ]
    nodes = [graph.add_buffer(template=stream)]
    for step in steps:
        name, _, arguments = step.partition("=")
        nodes.append(graph.add(name, arguments or None))
    graph.link_nodes(*nodes, graph.add("buffersink")).configure()
    return graph
