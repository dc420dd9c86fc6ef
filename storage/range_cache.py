"""A local cache, limited in size, for byte ranges of remote files that never change. Processes may share its folder.

It holds ranges, not files: training reads videos in random order, and fetching a whole shard for one video would read a
hundred times too much. The oldest ranges are deleted first; each process may exceed the limit by a sixteenth.
"""

import hashlib
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

from storage.errors import StoreError
from storage.objects import atomic_file

_CACHE_FILE = re.compile(r"[0-9a-f]{64}|\.[0-9a-f]{32}\.partial")


class RangeCache:
    """A cache folder of at most `limit_bytes`, created if it is missing."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        if limit_bytes <= 0:
            raise StoreError(f"a cache of {limit_bytes} bytes can hold nothing: give a positive limit")
        self.folder, self.limit_bytes = folder, limit_bytes
        self.hits = self.misses = 0
        self._lock = threading.Lock()
        self._since_scan = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._trim()

    @classmethod
    def from_environment(cls) -> "RangeCache":
        """Return the cache in VINA_CACHE (default: ~/.cache/vina), of VINA_CACHE_GB gigabytes (default 20)."""
        folder = os.environ.get("VINA_CACHE") or Path("~/.cache/vina").expanduser()
        gigabytes = os.environ.get("VINA_CACHE_GB", "20")
        try:
            return cls(Path(folder), int(float(gigabytes) * 1e9))
        except (ValueError, OverflowError) as error:
            raise StoreError(f"VINA_CACHE_GB={gigabytes!r} is not a positive number of gigabytes") from error

    def read(self, name: str, offset: int, length: int, fetch: Callable[[str, int, int], bytes]) -> bytes:
        """Return the bytes of a range, from the cache or else from `fetch(name, length, offset)`."""
        path = self.folder / hashlib.sha256(f"{name}:{offset}:{length}".encode()).hexdigest()
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:
            data = b""
        if len(data) == length:
            self.hits += 1
            return data
        self.misses += 1
        data = fetch(name, length, offset)
        if len(data) != length:
            raise OSError(f"{name} ends before byte {offset + length}")
        self._keep(path, data)
        return data

    def _keep(self, path: Path, data: bytes) -> None:
        try:
            with atomic_file(path, is_durable=False) as partial:
                partial.write_bytes(data)
        except StoreError:  # a full disk makes the run slower, but does not fail it
            return
        with self._lock:
            self._since_scan += len(data)
            if self._since_scan >= self.limit_bytes // 16:
                self._trim()

    def _trim(self) -> None:
        """Delete the oldest ranges until the rest takes at most 15/16 of the limit."""
        self._since_scan = 0
        entries = []
        for entry in os.scandir(self.folder):
            if not _CACHE_FILE.fullmatch(entry.name):
                continue
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue  # another process deleted it
            entries.append((status.st_mtime, status.st_size, Path(entry.path)))
        target_bytes = self.limit_bytes - self.limit_bytes // 16
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= target_bytes:
                return
            path.unlink(missing_ok=True)
            total -= size
