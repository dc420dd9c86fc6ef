"""Read the features of single videos, in any order.

A video is one row group (several if it is very long) whose vectors are one plain page, so a read is one seek and one
copy into the array, as with `np.load`. pyarrow would allocate and copy twice, and its allocator's peak grows with the
data. Footers are read once; after that only the byte range of each video is kept in memory. On S3, byte ranges are
cached locally.
"""

import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from storage.errors import StoreError
from storage.range_cache import RangeCache
from storage.shard_writer import read_footer, vector_page
from storage.snapshot import Shard
from storage.store import Store
from storage.vectors import Floats

DTYPE = np.dtype("<f2")


class _Page(NamedTuple):
    offset: int
    num_bytes: int


@dataclass(frozen=True)
class _VectorRange:
    """The file and the pages that hold a video's vectors."""

    path: str
    num_rows: int
    pages: tuple[_Page, ...]


class FeatureReader:
    """Reads the features of one backbone, from the table's newest version when it is created. Threads may share it."""

    def __init__(self, store: Store, backbone: str, cache: RangeCache | None = None) -> None:
        self._snapshot = store.table("features").snapshot().where(backbone=backbone)
        self.backbone = backbone
        self._files = store.location.filesystem
        self._cache = cache or (RangeCache.from_environment() if store.location.is_s3 else None)
        self._ranges: dict[str, _VectorRange] = {}
        self._indexed_paths: set[str] = set()
        self._lock = threading.Lock()

    def read(self, video_id: str) -> Floats:
        """Return the vectors of one video, T x D float16, in a new array."""
        with self._snapshot.errors():
            return self._read(self._ranges.get(video_id) or self._find(video_id))

    @cached_property
    def num_seconds(self) -> dict[str, int]:
        """Length of every video, ordered by id. Reads every footer, once."""
        lengths: dict[str, int] = {}
        with self._snapshot.errors(), ThreadPoolExecutor(16) as pool:
            for shard, ranges in zip(self._snapshot.shards, pool.map(self._index, self._snapshot.shards), strict=True):
                self._remember(shard, ranges)
                lengths.update({video_id: vectors.num_rows for video_id, vectors in ranges.items()})
        return dict(sorted(lengths.items()))

    def fingerprints(self, video_ids: Collection[str]) -> list[str]:
        """Return the fingerprints of the shards that hold these videos: they change when the features do."""
        assert self.num_seconds.keys() >= set(video_ids)  # num_seconds has also read all footers
        paths = {self._ranges[name].path for name in video_ids}
        return sorted(shard.fingerprint for shard in self._snapshot.shards if self._snapshot.path(shard) in paths)

    def _find(self, video_id: str) -> _VectorRange:
        for shard in self._snapshot.shards:
            low, high = shard.key_range or (video_id, video_id)
            if shard.path not in self._indexed_paths and low <= video_id <= high:
                self._remember(shard, self._index(shard))
        if video_id in self._ranges:
            return self._ranges[video_id]
        raise StoreError(f"table features has no {self.backbone} features of video {video_id!r}")

    def _remember(self, shard: Shard, ranges: dict[str, _VectorRange]) -> None:
        with self._lock:
            for video_id in self._ranges.keys() & ranges.keys():
                if self._ranges[video_id].path != ranges[video_id].path:
                    raise StoreError(
                        f"table features: video {video_id!r} is in shard {shard.name!r} of {self.backbone}"
                        " and in another one too: retire one of them"
                    )
            self._ranges.update(ranges)
            self._indexed_paths.add(shard.path)

    def _index(self, shard: Shard) -> dict[str, _VectorRange]:
        """Read the byte ranges of a file's videos from its footer."""
        path = self._snapshot.path(shard)
        footer = read_footer(self._files, path)
        column = self._snapshot.schema.files.get_field_index("video_id")
        ranges: dict[str, _VectorRange] = {}
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            video_id = group.column(column).statistics.min
            before = ranges.get(video_id, _VectorRange(path, 0, ()))
            page = _Page(*vector_page(self._snapshot.schema, footer, number, path))
            ranges[video_id] = _VectorRange(path, before.num_rows + group.num_rows, (*before.pages, page))
        return ranges

    def _read(self, vectors: _VectorRange) -> Floats:
        width = sum(page.num_bytes for page in vectors.pages) // DTYPE.itemsize // vectors.num_rows
        vectors_TD = np.empty((vectors.num_rows, width), DTYPE)
        target = memoryview(vectors_TD.data).cast("B")
        if self._cache is not None:
            for page in vectors.pages:
                target[: page.num_bytes] = self._cache.read(vectors.path, page.offset, page.num_bytes, self._fetch)
                target = target[page.num_bytes :]
            return vectors_TD
        with open(vectors.path, "rb", buffering=0) as file:  # noqa: PTH123 - a plain string
            for page in vectors.pages:
                file.seek(page.offset)
                if file.readinto(target[: page.num_bytes]) != page.num_bytes:
                    raise OSError(f"{vectors.path} ends before the page at byte {page.offset}")
                target = target[page.num_bytes :]
        return vectors_TD

    def _fetch(self, path: str, length: int, offset: int) -> bytes:
        with self._files.open_input_file(path) as remote:
            return bytes(remote.read_at(length, offset))
