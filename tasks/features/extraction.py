"""Run videos through the network: decoding ahead, clips batched across videos, one vector per second.

A decoder thread fills a bounded queue while the network works, so the slower of the two sets the pace. Batches
span videos, so short videos cost no more than long ones.
"""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tasks.features.decoding import Clip, Frames, read_clips
from tasks.features.network import Outputs, Run
from tasks.features.video_file import BadVideo

CLIPS_AHEAD = 24


class Extracted(NamedTuple):
    """The vectors of one video, or the reason why there are none."""

    video_id: str
    outputs: Outputs | None
    problem: BadVideo | None


@dataclass
class _Video:
    video_id: str
    parts: list[Outputs] = field(default_factory=list)
    missing: int = 0
    """Clips that were decoded and have no vectors yet."""
    is_read: bool = False
    problem: BadVideo | None = None

    def finished(self) -> Extracted | None:
        if not self.is_read or self.missing:
            return None
        if self.problem or not self.parts:
            return Extracted(self.video_id, None, self.problem)
        joints = [part.joint for part in self.parts if part.joint is not None]
        main = np.concatenate([part.main for part in self.parts])
        return Extracted(self.video_id, Outputs(main, np.concatenate(joints) if joints else None), None)


def extract(
    videos: Iterable[tuple[str, str]],
    run: Run,
    batch_size: int,
    frames: Frames,
    on_clips: Callable[[int], None],
) -> Iterator[Extracted]:
    """Yield the videos (id, address) in order, each when its last clip has gone through the network."""
    waiting: list[tuple[_Video, Clip]] = []
    order: list[_Video] = []
    with _Decoder(videos, frames) as decoder:
        for video, clip in decoder:
            if not order or order[-1] is not video:
                order.append(video)
            if clip is None:
                video.is_read = True  # set here, because the decoder's thread runs ahead of the queue
            else:
                video.missing += 1
                waiting.append((video, clip))
            if len(waiting) >= batch_size:
                _pass_on(waiting, run)
                on_clips(len(waiting))
                waiting.clear()
            while order and (extracted := order[0].finished()):
                order.pop(0)
                yield extracted
        if waiting:
            _pass_on(waiting, run)
            on_clips(len(waiting))
        yield from (extracted for video in order if (extracted := video.finished()))


def _pass_on(waiting: list[tuple[_Video, Clip]], run: Run) -> None:
    """Run the network on the clips, and add the vectors to their videos."""
    main, joint = run(np.stack([clip for _, clip in waiting]))
    if not all(np.isfinite(vectors).all() for vectors in (main, joint) if vectors is not None):
        videos = ", ".join(sorted({video.video_id for video, _ in waiting}))
        raise ValueError(f"the network's output has values that are not finite, for {videos}: check its weights")
    for row, (video, _) in enumerate(waiting):
        video.parts.append(Outputs(main[row : row + 1], None if joint is None else joint[row : row + 1]))
        video.missing -= 1


class _Decoder:
    """A thread that reads clips ahead of the loop over it; `None` in place of a clip ends a video."""

    def __init__(self, videos: Iterable[tuple[str, str]], frames: Frames) -> None:
        self._videos, self._frames = videos, frames
        self._queue: queue.Queue[tuple[_Video, Clip | None] | BaseException | None] = queue.Queue(CLIPS_AHEAD)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="decoder", daemon=True)

    def __enter__(self) -> "_Decoder":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        while self._thread.is_alive():
            try:
                self._queue.get(timeout=0.05)  # makes room for a blocked `put`
            except queue.Empty:
                self._thread.join(timeout=0.05)

    def __iter__(self) -> Iterator[tuple[_Video, Clip | None]]:
        while (item := self._queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def _run(self) -> None:
        try:
            for video_id, address in self._videos:
                video = _Video(video_id)
                try:
                    for clip in read_clips(address, self._frames):
                        self._queue.put((video, clip))
                        if self._stop.is_set():
                            return
                except BadVideo as problem:
                    video.problem = problem
                self._queue.put((video, None))
            self._queue.put(None)
        except BaseException as error:  # passed on to the thread that iterates
            self._queue.put(error)
