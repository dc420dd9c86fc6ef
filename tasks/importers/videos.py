"""A folder of video files with captions beside them: `NAME.mp4` with `NAME.srt`, `NAME.vtt` or `NAME.en.vtt`.

The video's id is NAME. Captions without a file, and files without captions, are welcome. With `upload` the files are
copied into the store, where workers on other machines find them; otherwise `videos.uri` is the file's place here.
"""

from collections.abc import Callable
from pathlib import Path

import av

from tasks.importers.captions import read_cues, sentences_of
from tasks.importers.files import Files
from tasks.importers.intake import Intake
from tasks.importers.narrations import Narrations
from tasks.importers.text_files import BadFile

SOURCE = "videos"
PARTITION = {"source": SOURCE}
MEDIA = (".mp4", ".webm", ".mkv", ".mov", ".avi", ".m4v")
CAPTIONS = (".srt", ".vtt")
EXPECTED = f"files ending in {', '.join(MEDIA + CAPTIONS)}"


def import_videos(files: Files, intake: Intake, upload: Callable[[str, Path], str] | None = None) -> None:
    """Every video file and every caption file. `upload(key, path)` copies a file and gives its address."""
    for path in files.ending(*MEDIA):
        with intake.file(path, one_item=True):
            _keep_video(path, intake, upload)
    for path in files.ending(*CAPTIONS):
        with intake.file(path, one_item=True):
            narrations = Narrations(intake, SOURCE, path)
            sentences = sentences_of(read_cues(path, intake))
            texts, starts, ends = (list(column) for column in zip(*sentences, strict=True))
            narrations.add(_caption_id(path), texts, starts, ends)
            narrations.close()


def _keep_video(path: Path, intake: Intake, upload: Callable[[str, Path], str] | None) -> None:
    duration_s = probe_duration_s(path)
    if intake.new("videos", PARTITION, (path.stem, ""), path):
        uri = upload(f"videos/{path.name}", path) if upload else str(path.resolve())
        intake.keep("videos", PARTITION, [{"video_id": path.stem, "duration_s": duration_s, "uri": uri}])


def probe_duration_s(path: Path) -> float | None:
    """The length that the container or its video stream states; a BadFile if there is no video in it."""
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise BadFile("no video in the file", f"{path} has no video stream")
            stream = container.streams.video[0]
            if stream.duration and stream.time_base:
                return float(stream.duration * stream.time_base)
            return container.duration / 1_000_000 if container.duration else None
    except (av.error.FFmpegError, ValueError) as error:
        if isinstance(error, BadFile):
            raise
        raise BadFile("not a video", f"{path} cannot be opened as a video: {error}") from error


def _caption_id(path: Path) -> str:
    """NAME of NAME.srt, and of NAME.en.vtt if there is a language in the name."""
    stem = Path(path.stem)
    is_language = 2 <= len(stem.suffix.lstrip(".").split("-")[0]) <= 3 and stem.suffix[1:].replace("-", "").isalpha()
    return stem.stem if is_language else path.stem
