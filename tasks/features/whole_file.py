"""Detect whether the end of a video file is missing, by the part sizes that MP4, Matroska and AVI files state.

The duration in the header is not enough: fragmented MP4 has none, that of AVI is estimated from the existing data, and
small differences are normal. Transport streams, GIF and Ogg state no sizes: a cut one is just a shorter video.
"""

import struct
from pathlib import Path
from typing import BinaryIO

MP4_PARTS = {b"ftyp", b"styp", b"pdin", b"moov", b"moof", b"mdat", b"mfra", b"sidx", b"ssix", b"prft", b"emsg"}
MP4_FILLERS = {b"free", b"skip", b"wide", b"uuid", b"meta", b"udta"}
EBML, SEGMENT = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67"
RIFF_SLACK = 8
"""Some writers count the eight bytes of the header twice."""


def is_cut(path: Path) -> bool:
    """Return whether a part of the file reaches beyond its end; False if the file states no sizes."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4)
        try:
            if head == EBML:
                return _matroska_is_cut(file, size)
            return _avi_is_cut(file, size) if head == b"RIFF" else _mp4_is_cut(file, size)
        except (struct.error, IndexError):  # the file ends within a header
            return True


def _mp4_is_cut(file: BinaryIO, size: int) -> bool:
    position, kind = 0, b""
    while position + 8 <= size:
        file.seek(position)
        length, kind = struct.unpack(">I4s", file.read(8))
        if kind not in MP4_PARTS | MP4_FILLERS or length == 0:  # not MP4, or its last part extends to the end
            return False
        if length == 1:
            (length,) = struct.unpack(">Q", file.read(8))
        if length < 8 or position + length > size:
            return kind in MP4_PARTS
        position += length
    return kind == b"moof"  # the frames that it announces are missing


def _avi_is_cut(file: BinaryIO, size: int) -> bool:
    position = 0
    while position + 8 <= size:
        file.seek(position)
        kind, length = struct.unpack("<4sI", file.read(8))
        if kind != b"RIFF":
            return False
        position += 8 + length + length % 2
    return position > size + RIFF_SLACK


def _matroska_is_cut(file: BinaryIO, size: int) -> bool:
    header = _ebml_size(file)
    file.seek(header or 0, 1)
    if file.read(4) != SEGMENT:
        return False
    length = _ebml_size(file)
    return length is not None and file.tell() + length > size


def _ebml_size(file: BinaryIO) -> int | None:
    """Read an EBML size: leading zeros of the first byte count the further bytes. None for all ones: unknown."""
    first = file.read(1)[0]
    more = 8 - first.bit_length()
    value = int.from_bytes(bytes([first]) + file.read(more)) - (1 << 7 * (more + 1))
    return None if value == (1 << 7 * (more + 1)) - 1 else value
