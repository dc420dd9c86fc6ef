"""Feature extraction end to end against its network alone, decoding against the library's plain loop, and memory."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the command does, before torch is loaded

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tasks.features.decoding import Clip, Frames, read_clips
from tasks.features.extraction import extract
from tasks.features.s3d_milnce import load_s3d
from tests.benchmarks.measure import ratio_of_times, report

SIDE = 224


@pytest.fixture(scope="module")
def video_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 s of moving texture at 30 frames a second, 640 x 360."""
    path = tmp_path_factory.mktemp("video") / "video.mp4"
    texture = np.random.default_rng(0).integers(0, 255, (45, 80, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
        for number in range(24 * 30):
            picture = np.roll(texture, (number, 3 * number), (0, 1))
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


def plain_loop(path: Path, side: int) -> list[np.ndarray]:
    """What one would write first: every frame decoded and converted, those of a 16th of a second kept, then cut."""
    clips: list[np.ndarray] = []
    held: list[np.ndarray] = []
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for frame in container.decode(stream):
            picture = frame.reformat(width=side * 16 // 9, height=side, format="rgb24").to_ndarray()
            left = (picture.shape[1] - side) // 2
            while Fraction(len(clips) * 16 + len(held), 16) <= (frame.time or 0):
                held.append(picture[:, left : left + side])
                if len(held) == 16:
                    clips.append(np.stack(held))
                    held = []
    return clips


def test_decoding(video_file: Path) -> None:
    def ours() -> list[Clip]:
        return list(read_clips(str(video_file), Frames(16, 224)))

    assert len(ours()) == 24
    slow, fast, ratio = ratio_of_times(lambda: plain_loop(video_file, 224), ours, repeats=5)
    report(
        "decoding, plain PyAV loop / ours",
        ratio,
        ">= 1",
        f"{1000 * slow:.0f} / {1000 * fast:.0f} ms for 24 s of 640 x 360",
    )


def test_end_to_end(video_file: Path) -> None:
    network, frames = load_s3d(None, 0, "cpu"), Frames(16, SIDE)
    clips = np.stack(list(read_clips(str(video_file), frames)))

    def alone() -> None:
        for begin in range(0, len(clips), 16):
            network(clips[begin : begin + 16])

    def whole() -> None:
        (done,) = extract([("video", str(video_file))], network, 16, frames, lambda count: None)
        assert done.outputs is not None and len(done.outputs.main) == len(clips)

    network_s, whole_s, ratio = ratio_of_times(alone, whole, repeats=3)
    report(
        "end to end, as a share of the network's speed alone",
        ratio,
        ">= 0.9",
        f"{len(clips) / whole_s:.1f} / {len(clips) / network_s:.1f} clips a second at {SIDE} px",
    )


MEMORY = """
import sys
from pathlib import Path
import numpy as np
from tasks.features.network import Outputs
from tasks.features.s3d_milnce import load_s3d
from tasks.features.decoding import Frames
from tasks.features.extraction import extract

network = lambda clips: Outputs(np.zeros((len(clips), 1024), np.float16), None)
(done,) = extract([("video", sys.argv[1])], network, 16, Frames(16, 224), lambda count: None)
print(len(done.outputs.main), Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def test_memory(tmp_path: Path) -> None:
    peaks = []
    for minutes in (1, 30):
        path = tmp_path / f"{minutes}.mp4"
        with av.open(str(path), "w") as container:
            stream = container.add_stream("libx264", rate=5, options={"preset": "ultrafast"})
            stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
            for number in range(minutes * 60 * 5):
                picture = np.full((240, 320, 3), number % 256, np.uint8)
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
        answer = subprocess.run([sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, check=True)
        seconds, peak_kb = map(int, answer.stdout.split())
        assert seconds == 60 * minutes
        peaks.append(peak_kb / 1000)
    report("peak memory, 30 minutes / 1 minute", peaks[1] / peaks[0], "<= 1.1", f"{peaks[1]:.0f} / {peaks[0]:.0f} MB")
    assert peaks[1] <= 1.1 * peaks[0]
