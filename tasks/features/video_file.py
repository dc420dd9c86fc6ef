"""Open a video file: its video stream, its clock, and the length that it states.

Times count from the start of the container, as in players and captions: a picture that starts after the sound starts
late.
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
"""Allowed containers. Play lists are not allowed, because they could make a text file read other files."""
_DURATION_TAG = re.compile(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)")


class BadVideo(ValueError):
    """A file that is not a video, or cannot be decoded; `reason` is one of a few fixed texts."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True)
class OpenVideo:
    """An open file and its video stream."""

    container: InputContainer
    stream: VideoStream

    @property
    def time_base(self) -> Fraction:
        """Duration of one tick of the stream's clock, in seconds."""
        return self.stream.time_base or Fraction(1, av.time_base)

    @property
    def first_tick(self) -> int:
        """The container's start on the stream's clock."""
        return round(Fraction(self.container.start_time or 0, av.time_base) / self.time_base)

    def second(self, frame: av.VideoFrame) -> float:
        """Return the time at which a frame is first shown."""
        return float(((frame.pts or 0) - self.first_tick) * self.time_base)

    @property
    def claimed_s(self) -> float | None:
        """End of the video according to the header of its stream; None if it states no duration."""
        begin_s = ((self.stream.start_time or 0) - self.first_tick) * self.time_base
        if self.stream.duration:
            return float(begin_s + self.stream.duration * self.time_base)
        if tag := _DURATION_TAG.match(self.stream.metadata.get("DURATION", "")):
            hours, minutes, seconds = tag.groups()
            return int(hours) * 3600 + int(minutes) * 60 + float(seconds)  # Matroska states the end, not the length
        return self.container_s if len(self.container.streams) == 1 else None

    @property
    def container_s(self) -> float | None:
        """Length of the longest of all streams, by the header of the container."""
        return self.container.duration / av.time_base if self.container.duration else None


@contextmanager
def open_video(address: str) -> Iterator[OpenVideo]:
    """Open a file or URL. Raise BadVideo if it has no video stream; a cover picture does not count."""
    with av.open(address, options={"format_whitelist": CONTAINERS}) as container:
        video_streams = [
            stream for stream in container.streams.video if not stream.disposition & Disposition.attached_pic
        ]
        if not video_streams:
            raise BadVideo("no video in the file", f"{address} has no video stream")
        best = container.streams.best("video")
        yield OpenVideo(
            container, best if isinstance(best, VideoStream) and best in video_streams else video_streams[0]
        )
