"""Fast reading of features: one video, all videos in file order, or an epoch in a seeded order.

A video is one row group (several if it is very long) whose vectors are one plain page, so a read is one seek and one
copy into the array, like `np.load`. pyarrow would allocate and copy twice, and its allocator's peak grows with the
data. Footers are read once; after that only the place of each video is remembered. Over S3, ranges of bytes go
through a local cache.
"""

import threading
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
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
class _Place:
    """Where a video's vectors are."""

    path: str
    num_rows: int
    pages: tuple[_Page, ...]


class FeatureReader:
    """The features of one backbone, as they were when the reader was made. Threads may share it."""

    def __init__(self, store: Store, backbone: str, cache: RangeCache | None = None) -> None:
        self._snapshot = store.table("features").snapshot().where(backbone=backbone)
        self.backbone = backbone
        self._files = store.location.filesystem
        self._cache = cache or (RangeCache.from_environment() if store.location.is_s3 else None)
        self._places: dict[str, _Place] = {}
        self._indexed: set[str] = set()
        self._lock = threading.Lock()

    def read(self, video_id: str) -> Floats:
        """The vectors of one video, T x D float16, in an array of the caller's own."""
        with self._snapshot.errors():
            place = self._places.get(video_id) or self._find(video_id)
            return self._read(place)

    def scan(self) -> Iterator[tuple[str, Floats]]:
        """Every video once, in the order of the files, one in memory at a time."""
        with self._snapshot.errors():
            for shard in self._snapshot.shards:
                places = self._index(shard)
                self._remember(shard, places)
                for video_id, place in places.items():
                    yield video_id, self._read(place)

    @cached_property
    def num_seconds(self) -> dict[str, int]:
        """The length of every video, in the order of the ids. Reads every footer, once."""
        lengths: dict[str, int] = {}
        with self._snapshot.errors(), ThreadPoolExecutor(16) as pool:
            for shard, places in zip(self._snapshot.shards, pool.map(self._index, self._snapshot.shards), strict=True):
                self._remember(shard, places)
                lengths.update({video_id: place.num_rows for video_id, place in places.items()})
        return dict(sorted(lengths.items()))

    def fingerprints(self, video_ids: Collection[str]) -> list[str]:
        """Of the shards that hold one of these videos: what changes when their features do."""
        assert self.num_seconds.keys() >= set(video_ids)  # which knows all places
        held = {self._places[name].path for name in video_ids}
        return sorted(shard.fingerprint for shard in self._snapshot.shards if self._snapshot.path(shard) in held)

    def _find(self, video_id: str) -> _Place:
        for shard in self._snapshot.shards:
            low, high = shard.key_range or (video_id, video_id)
            if shard.path not in self._indexed and low <= video_id <= high:
                self._remember(shard, self._index(shard))
        if video_id in self._places:
            return self._places[video_id]
        raise StoreError(f"table features has no {self.backbone} features of video {video_id!r}")

    def _remember(self, shard: Shard, places: dict[str, _Place]) -> None:
        with self._lock:
            for video_id in self._places.keys() & places.keys():
                if self._places[video_id].path != places[video_id].path:
                    raise StoreError(
                        f"table features: video {video_id!r} is in shard {shard.name!r} of {self.backbone}"
                        " and in another one too: retire one of them"
                    )
            self._places.update(places)
            self._indexed.add(shard.path)

    def _index(self, shard: Shard) -> dict[str, _Place]:
        """The places of a file's videos, from its footer."""
        path = self._snapshot.path(shard)
        footer = read_footer(self._files, path)
        column = self._snapshot.schema.files.get_field_index("video_id")
        places: dict[str, _Place] = {}
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            video_id = group.column(column).statistics.min
            before = places.get(video_id, _Place(path, 0, ()))
            page = _Page(*vector_page(self._snapshot.schema, footer, number, path))
            places[video_id] = _Place(path, before.num_rows + group.num_rows, (*before.pages, page))
        return places

    def _read(self, place: _Place) -> Floats:
        width = sum(page.num_bytes for page in place.pages) // DTYPE.itemsize // place.num_rows
        vectors_TD = np.empty((place.num_rows, width), DTYPE)
        target = memoryview(vectors_TD.data).cast("B")
        if self._cache is not None:
            for page in place.pages:
                target[: page.num_bytes] = self._cache.read(place.path, page.offset, page.num_bytes, self._fetch)
                target = target[page.num_bytes :]
            return vectors_TD
        with open(place.path, "rb", buffering=0) as file:  # noqa: PTH123 - a plain string
            for page in place.pages:
                file.seek(page.offset)
                if file.readinto(target[: page.num_bytes]) != page.num_bytes:
                    raise OSError(f"{place.path} ends before the page at byte {page.offset}")
                target = target[page.num_bytes :]
        return vectors_TD

    def _fetch(self, path: str, length: int, offset: int) -> bytes:
        with self._files.open_input_file(path) as remote:
            return bytes(remote.read_at(length, offset))


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
