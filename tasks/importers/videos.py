"""A folder of video files with captions beside them: `NAME.mp4` with `NAME.srt`, `NAME.vtt` or `NAME.en.vtt`.

The video's id is NAME. Captions without a file, and files without captions, are accepted. With `upload` the files are
copied into the store, where workers on other machines can read them, and `videos.uri` is the object's key, so that the
store can be moved; otherwise it is the path of the file.
"""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import av

from tasks.features.video_file import BadVideo, open_video
from tasks.importers.captions import read_cues, sentences_of
from tasks.importers.files import Files
from tasks.importers.import_session import ImportSession
from tasks.importers.narrations import NarrationWriter
from tasks.importers.text_files import BadFile

SOURCE = "videos"
PARTITION = {"source": SOURCE}
MEDIA = (".mp4", ".webm", ".mkv", ".mov", ".avi", ".m4v")
CAPTIONS = (".srt", ".vtt")
_LANGUAGE = re.compile(r"(.+)\.([a-z]{2}(?:-[A-Za-z0-9]{2,8})*)")
EXPECTED = f"files ending in {', '.join(MEDIA + CAPTIONS)}"


def import_videos(files: Files, session: ImportSession, upload: Callable[[str, Path], object] | None = None) -> None:
    """Import every video file and every caption file. `upload(key, path)` copies a file into the store."""
    for path in files.ending(*MEDIA):
        with session.file(path, one_item=True):
            _keep_video(path, session, upload)
    for path in sorted(files.ending(*CAPTIONS), key=_language_order):
        with session.file(path, one_item=True):
            narrations = NarrationWriter(session, SOURCE, path)
            sentences = sentences_of(read_cues(path, session.rows_of("narrations")))
            texts, starts, ends = (list(column) for column in zip(*sentences, strict=True))
            narrations.add(_split_language(path)[0], texts, starts, ends)
            narrations.close()


def _keep_video(path: Path, session: ImportSession, upload: Callable[[str, Path], object] | None) -> None:
    try:
        duration_s = probe_duration_s(path)
    except BadFile:
        session.summary.read["videos"] += 1
        raise
    if session.new("videos", PARTITION, path.stem, path):
        uri = f"videos/{quote(path.name)}" if upload else _address(path)
        if upload:
            upload(uri, path)
        session.keep("videos", PARTITION, [{"video_id": path.stem, "duration_s": duration_s, "uri": uri}])


def _address(path: Path) -> str:
    address = str(path.resolve())
    try:
        address.encode()
    except UnicodeEncodeError as error:
        raise BadFile("path is not UTF-8", f"{path.name} lies in a folder whose name is not UTF-8") from error
    return address


def probe_duration_s(path: Path) -> float | None:
    """Return the length that the video stream or its container states. Raise BadFile if the file has no video."""
    try:
        with open_video(str(path)) as video:
            return video.claimed_s or video.container_s
    except BadVideo as error:
        raise BadFile(error.reason, str(error)) from error
    except (av.error.FFmpegError, ValueError) as error:
        raise BadFile("not a video", f"{path} cannot be opened as a video: {error}") from error


def _split_language(path: Path) -> tuple[str, str]:
    """Return NAME and `en` for NAME.en.vtt, NAME and an empty text for NAME.srt."""
    match = _LANGUAGE.fullmatch(path.stem)
    return (match[1], match[2]) if match else (path.stem, "")


def _language_order(path: Path) -> tuple[str, bool, bool, Path]:
    """Sort captions without a language first, then English ones; later captions of the same video are duplicates."""
    name, language = _split_language(path)
    return name, bool(language), not language.startswith("en"), path
