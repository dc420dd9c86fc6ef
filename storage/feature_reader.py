"""Fast reading of features: one video, all videos in file order, or an epoch in a seeded order.

A video is one row group (several if it is long), so a read touches its bytes and no others. Open files and their
footers are kept, a bounded number in each thread. Over S3 every range goes through a local cache.
"""

import io
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.errors import StoreError
from storage.range_cache import RangeCache
from storage.snapshot import Shard, Snapshot
from storage.store import Store
from storage.vectors import Floats, decode

OPEN_FILES_PER_THREAD = 64


@dataclass(frozen=True)
class _OpenFile:
    parquet: pq.ParquetFile
    groups: dict[str, list[int]]  # video id -> its row groups, in order

    def read(self, video_id: str) -> Floats:
        """The vectors of one video, T x D."""
        groups = self.groups[video_id]
        if len(groups) == 1:
            rows = self.parquet.read_row_group(groups[0], columns=["vector"], use_threads=False)
        else:
            rows = self.parquet.read_row_groups(groups, columns=["vector"], use_threads=False)
        return decode(rows.column(0), "float16")


class FeatureReader:
    """The features of one backbone, as they were when the reader was made. Threads may share it."""

    def __init__(self, store: Store, backbone: str, cache: RangeCache | None = None) -> None:
        self._snapshot = store.table("features").snapshot().where(backbone=backbone)
        self.backbone = backbone
        self._local = threading.local()
        self._shard_of: dict[str, Shard] = {}  # of every video in the files opened so far
        self._cache = cache
        if store.location.is_s3 and cache is None:
            self._cache = RangeCache.from_environment()

    def read(self, video_id: str) -> Floats:
        """The vectors of one video, T x D float16."""
        with self._snapshot.errors():
            return self._find(video_id).read(video_id)

    def scan(self) -> Iterator[tuple[str, Floats]]:
        """Every video once, in the order of the files, one in memory at a time."""
        with self._snapshot.errors():
            for shard in self._snapshot.shards:
                opened = self._open(shard)
                for video_id in opened.groups:
                    yield video_id, opened.read(video_id)

    @cached_property
    def num_seconds(self) -> dict[str, int]:
        """The length of every video, in the order of the ids. Reads every footer, once."""
        lengths: dict[str, int] = {}
        with self._snapshot.errors(), ThreadPoolExecutor(16) as pool:
            for shard, counts in zip(self._snapshot.shards, pool.map(self._count, self._snapshot.shards), strict=True):
                if twice := lengths.keys() & counts.keys():
                    raise StoreError(
                        f"table features: video {min(twice)!r} is in shard {shard.name!r} of {self.backbone}"
                        " and in another one too: retire one of them"
                    )
                lengths.update(counts)
        return dict(sorted(lengths.items()))

    def _count(self, shard: Shard) -> dict[str, int]:
        opened = self._open(shard)
        footer = opened.parquet.metadata
        return {v: sum(footer.row_group(g).num_rows for g in groups) for v, groups in opened.groups.items()}

    def _find(self, video_id: str) -> _OpenFile:
        if video_id in self._shard_of:
            return self._open(self._shard_of[video_id])
        for shard in self._snapshot.shards:
            if shard.key_range is not None and shard.key_range[0] <= video_id <= shard.key_range[1]:
                opened = self._open(shard)
                if video_id in opened.groups:
                    return opened
        raise StoreError(f"table features has no {self.backbone} features of video {video_id!r}")

    def _open(self, shard: Shard) -> _OpenFile:
        files: OrderedDict[str, _OpenFile] = self._local.__dict__.setdefault("files", OrderedDict())
        if shard.path in files:
            files.move_to_end(shard.path)
            return files[shard.path]
        path = self._snapshot.path(shard)
        source = (
            path if self._cache is None else pa.PythonFile(_CachedFile(self._snapshot, shard, self._cache), mode="r")
        )
        parquet = pq.ParquetFile(source, pre_buffer=False)
        files[shard.path] = opened = _OpenFile(parquet, _groups_by_video(self._snapshot, parquet.metadata))
        self._shard_of.update(dict.fromkeys(opened.groups, shard))
        if len(files) > OPEN_FILES_PER_THREAD:
            files.popitem(last=False)[1].parquet.close(force=True)
        return opened


def _groups_by_video(snapshot: Snapshot, footer: pq.FileMetaData) -> dict[str, list[int]]:
    place = snapshot.schema.arrow.get_field_index("video_id")
    groups: dict[str, list[int]] = {}
    for number in range(footer.num_row_groups):
        if footer.row_group(number).num_rows:
            known = footer.row_group(number).column(place).statistics
            if known is None or known.min != known.max:
                raise StoreError("table features: a row group holds several videos; write one video at a time")
            groups.setdefault(known.min, []).append(number)
    return groups


class _CachedFile(io.RawIOBase):
    """A remote file for pyarrow, read through the cache."""

    def __init__(self, snapshot: Snapshot, shard: Shard, cache: RangeCache) -> None:
        super().__init__()
        self._path, self._size, self._cache = snapshot.path(shard), shard.num_bytes, cache
        self._filesystem = snapshot.location.filesystem
        self._position = 0

    @cached_property
    def _remote(self) -> pa.NativeFile:
        return self._filesystem.open_input_file(self._path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        length = min(size if size >= 0 else self._size, self._size - self._position)
        data = self._cache.read(
            self._path, self._position, length, lambda count, offset: bytes(self._remote.read_at(count, offset))
        )
        self._position += len(data)
        return data


@dataclass(frozen=True)
class Epoch:
    """One pass over videos, in an order that is a pure function of `seed` and `epoch`.

    `start` videos have been seen already, by all ranks together: (seed, epoch, start) is all it takes to resume, with
    the same number of ranks or another. At most `prefetch` videos are in memory ahead of the one in use.
    """

    reader: FeatureReader
    video_ids: Sequence[str]
    seed: int
    epoch: int
    start: int = 0
    rank: int = 0
    world_size: int = 1
    prefetch: int = 16
    num_threads: int = 2

    def order(self) -> list[str]:
        """The videos of this rank that are still to be seen."""
        if not 0 <= self.rank < self.world_size:
            raise ValueError(f"rank {self.rank} of {self.world_size}: ranks count from 0")
        if not 0 <= self.start <= len(self.video_ids):
            raise ValueError(f"cannot start at {self.start} in an epoch of {len(self.video_ids)} videos")
        permutation = np.random.default_rng([self.seed, self.epoch]).permutation(len(self.video_ids))
        return [self.video_ids[i] for i in permutation[self.start :][self.rank :: self.world_size]]

    def __iter__(self) -> Iterator[tuple[str, Floats]]:
        with ThreadPoolExecutor(self.num_threads) as pool:
            ahead: deque[tuple[str, Future[Floats]]] = deque()
            try:
                for video_id in self.order():
                    ahead.append((video_id, pool.submit(self.reader.read, video_id)))
                    if len(ahead) > self.prefetch:
                        ready, vectors = ahead.popleft()
                        yield ready, vectors.result()
                while ahead:
                    ready, vectors = ahead.popleft()
                    yield ready, vectors.result()
            finally:
                for _, vectors in ahead:
                    vectors.cancel()
