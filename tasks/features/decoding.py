"""Decode a video file into one clip of frames per second, for any frame rate, size and rotation.

PyAV's filter graph does all of it in one pass: `fps` (the frame that is shown last within each 1/16 s, so no frame of
one second is ever part of another), rotating and mirroring, `scale` of the short side, centre `crop`, `format`. The
last second, if it is incomplete, repeats its last frame: T = ceil(duration). A video of any length takes the memory of
two seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt

from tasks.features.video_file import BadVideo, OpenVideo, open_video
from tasks.features.whole_file import is_cut

LONGEST_GAP_S = 600
"""Longest gap between two frames; a longer one means wrong timestamps, and would make millions of clips."""
TURNS = {  # the signs of a display matrix's a, b, c, d, with x' = a x + c y and y' = b x + d y
    (0, 1, -1, 0): ["transpose=clock"],
    (-1, 0, 0, -1): ["hflip", "vflip"],
    (0, -1, 1, 0): ["transpose=cclock"],
    (-1, 0, 0, 1): ["hflip"],
    (1, 0, 0, -1): ["vflip"],
    (0, 1, 1, 0): ["transpose=cclock_flip"],
    (0, -1, -1, 0): ["transpose=clock_flip"],
}

Clip = npt.NDArray[np.uint8]
"""frames x height x width x RGB"""


@dataclass(frozen=True)
class Frames:
    """How frames are taken from a video."""

    fps: int = 16
    """Frames per second; a clip is one second."""
    size_px: int = 224
    """Side of the square that is cut from the middle; even, because S3D halves it."""
    short_side_px: int = 0
    """Length of the short side after scaling, before the square is cut (0: that of the square)."""

    def __post_init__(self) -> None:
        if self.fps < 1 or not 32 <= self.size_px <= 1024 or self.size_px % 2:
            raise ValueError(
                f"frames of {self.size_px} px at {self.fps} per second: use even sizes from 32 to 1,024 px"
            )
        if self.short_side_px == 0:
            object.__setattr__(self, "short_side_px", self.size_px)
        if not self.size_px <= self.short_side_px <= 4 * self.size_px:
            raise ValueError(
                f"a short side of {self.short_side_px} px: it must be at least the frames' {self.size_px} px, "
                "and at most four times as much"
            )


def read_clips(address: str, frames: Frames) -> Iterator[Clip]:
    """Yield the clips of a file or URL, one per second, in order. Raise BadVideo if it cannot be decoded to its end."""
    held: list[npt.NDArray[np.uint8]] = []
    seconds = 0
    try:
        for frame in _frames(address, frames):
            held.append(frame)
            if len(held) == frames.fps:
                yield np.stack(held)
                held, seconds = [], seconds + 1
    except BadVideo:
        raise
    except FileNotFoundError as error:
        raise BadVideo("file is missing", f"there is no file {address}") from error
    except (av.error.FFmpegError, OSError, ValueError) as error:
        where = f"after {seconds} s" if seconds or held else "at its start"
        raise BadVideo("cannot be decoded", f"{address} cannot be decoded {where}: {error}") from error
    if held:
        yield np.stack(held + [held[-1]] * (frames.fps - len(held)))
    elif not seconds:
        raise BadVideo("no frames", f"{address} has a video stream without frames")


def _frames(address: str, frames: Frames) -> Iterator[npt.NDArray[np.uint8]]:
    with open_video(address) as video:
        if Path(address).is_file() and is_cut(Path(address)):
            raise BadVideo("cut short", f"{address} ends before its last part does")
        video.stream.thread_type = "AUTO"
        graph: av.filter.Graph | None = None
        end_s = longest_gap_s = 0.0
        for frame, is_last in _with_end(video.container.decode(video.stream)):
            graph = graph or _graph(video, frame, frames)
            times_s = [video.second(frame)]
            if is_last:
                frame.duration = _last_ticks(video, frame)
                times_s.append(times_s[0] + float(frame.duration * video.time_base))
            for time_s in times_s:
                longest_gap_s = max(longest_gap_s, time_s - end_s)
                if longest_gap_s > LONGEST_GAP_S:
                    raise BadVideo("broken clock", f"{address} has no frame from {end_s:.0f} s to {time_s:.0f} s")
                end_s = max(end_s, time_s)
            graph.vpush(frame)
            yield from _pulled(graph)
        if graph:
            graph.vpush(None)
            yield from _pulled(graph)
        if video.claimed_s and end_s + longest_gap_s + 1 < video.claimed_s:
            raise BadVideo(
                "cut short", f"{address} claims {video.claimed_s:.1f} s, and its last frame ends at {end_s:.1f} s"
            )


def _with_end(decoded: Iterator[av.VideoFrame]) -> Iterator[tuple[av.VideoFrame, bool]]:
    """Yield each frame, and whether it is the last."""
    held = next(decoded, None)
    for frame in decoded:
        if held is not None:
            yield held, False
        held = frame
    if held is not None:
        yield held, True


def _last_ticks(video: OpenVideo, last: av.VideoFrame) -> int:
    """Return the duration of the last frame: the stated one, up to the end of the video, or else the mean.

    Files are in decoding order, so a stated duration may belong to another frame.
    """
    mean = round(1 / ((video.stream.average_rate or 1) * video.time_base))
    left = round(((video.claimed_s or 0) - video.second(last)) / video.time_base)
    return min(last.duration or mean, left if left > 0 else mean)


def _pulled(graph: av.filter.Graph) -> Iterator[npt.NDArray[np.uint8]]:
    while True:
        try:
            yield np.asarray(graph.vpull().to_ndarray(), np.uint8)
        except (av.error.BlockingIOError, av.error.EOFError):
            return


def _graph(video: OpenVideo, first: av.VideoFrame, frames: Frames) -> av.filter.Graph:
    graph, side, cut = av.filter.Graph(), frames.short_side_px, frames.size_px
    aspect = video.stream.sample_aspect_ratio or 1  # PyAV does not pass it to the graph
    steps = [
        f"setpts=PTS-{video.first_tick}",
        f"fps=fps={frames.fps}:round=down:start_time=0:eof_action=pass",
        *([f"scale={max(round(first.width * aspect), 1)}:ih"] if aspect != 1 else []),
        *_turns(first),
        f"scale={side}:{side}:force_original_aspect_ratio=increase:flags=bilinear",
        f"crop={cut}:{cut}",
        "format=rgb24",
    ]
    nodes = [graph.add_buffer(template=video.stream)]
    for step in steps:
        name, _, arguments = step.partition("=")
        nodes.append(graph.add(name, arguments or None))
    graph.link_nodes(*nodes, graph.add("buffersink")).configure()
    return graph


def _turns(frame: av.VideoFrame) -> list[str]:
    """Return the filters that rotate and mirror a frame as its file states."""
    data: Any = frame.side_data.get("DISPLAYMATRIX")
    if data is None:
        return []
    a, b, _, c, d = (int(np.sign(round(value / 65536))) for value in np.frombuffer(data, np.int32)[:5])
    return TURNS.get((a, b, c, d), [])
