"""Progress of the stage `features`."""

import logging
import time

from tasks.pipeline.progress import say

LOG = logging.getLogger("vina.features")


class Progress:
    """Counts videos and seconds, and reports them every few seconds."""

    def __init__(self, num_videos: int, expected_s: float, every_s: float = 5.0) -> None:
        """`expected_s` is the length of all videos, as far as their files state it."""
        self._num_videos, self._expected_s, self._every_s = num_videos, expected_s, every_s
        self._videos = self._rejected = self._seconds = 0
        self._begin = self._reported = time.monotonic()

    def add_seconds(self, seconds: int) -> None:
        """Count seconds of video that went through the network."""
        self._seconds += seconds
        if time.monotonic() - self._reported >= self._every_s:
            self._reported = time.monotonic()
            say(LOG, self._seconds / max(self._expected_s, 1.0), self.line())

    def add_video(self, is_rejected: bool) -> None:
        """Count a finished video."""
        self._videos += 1
        self._rejected += is_rejected

    def line(self) -> str:
        """Return e.g. `12 of 40 videos (1 rejected), 812 s of video at 34.1 s per second, 1 min 20 s left`."""
        rate = self._seconds / max(time.monotonic() - self._begin, 1e-9)
        text = f"{self._videos:,} of {self._num_videos:,} videos ({self._rejected:,} rejected)"
        text += f", {self._seconds:,} s of video at {rate:.1f} s per second"
        if self._videos < self._num_videos and self._seconds:
            left = max(self._expected_s - self._seconds, 0) / rate
            text += f", {int(left // 60)} min {int(left % 60)} s left"
        return text
