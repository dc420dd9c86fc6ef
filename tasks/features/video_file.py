"""Opening a video file: which of its streams is the video, on which clock, and how long it claims to be.

Times count from the container's own start, as players and captions do: where the picture begins after the sound, it
begins late.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

import av
from av.container import InputContainer
from av.stream import Disposition
from av.video.stream import VideoStream

CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,ogg,asf,gif"
"""Those that hold a video. Play lists do not: they would make a text file read other files."""
_DURATION_TAG = re.compile(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)")


class BadVideo(ValueError):
    """A file that is no video, or cannot be decoded; `reason` can be counted."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True)
class OpenVideo:
    """An open file and the video in it."""

    container: InputContainer
    stream: VideoStream

    @property
    def time_base(self) -> Fraction:
        """Seconds of one tick of the stream's clock."""
        return self.stream.time_base or Fraction(1, av.time_base)

    @property
    def first_tick(self) -> int:
        """The container's start on the stream's clock."""
        return round(Fraction(self.container.start_time or 0, av.time_base) / self.time_base)

    def second(self, frame: av.VideoFrame) -> float:
        """When a frame is first shown."""
        return float(((frame.pts or 0) - self.first_tick) * self.time_base)

    @property
    def claimed_s(self) -> float | None:
        """When the video ends, by its own stream's header; None if that says nothing."""
        begin_s = ((self.stream.start_time or 0) - self.first_tick) * self.time_base
        if self.stream.duration:
            return float(begin_s + self.stream.duration * self.time_base)
        if found := _DURATION_TAG.match(self.stream.metadata.get("DURATION", "")):
            hours, minutes, seconds = found.groups()
            return int(hours) * 3600 + int(minutes) * 60 + float(seconds)  # Matroska's: the end, not the length
        return self.container_s if len(self.container.streams) == 1 else None

    @property
    def container_s(self) -> float | None:
        """How long the longest of all streams is, by the container's header."""
        return self.container.duration / av.time_base if self.container.duration else None


@contextmanager
def open_video(address: str) -> Iterator[OpenVideo]:
    """A file or URL; a BadVideo if there is no video in it. Cover pictures are none."""
    with av.open(address, options={"format_whitelist": CONTAINERS}) as container:
        video_files = [
            stream for stream in container.streams.video if not stream.disposition & Disposition.attached_pic
        ]
        if not video_files:
            raise BadVideo("no video in the file", f"{address} has no video stream")
        best = container.streams.best("video")
        yield OpenVideo(container, best if isinstance(best, VideoStream) and best in video_files else video_files[0])
