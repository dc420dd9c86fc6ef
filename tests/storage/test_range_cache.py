from pathlib import Path

import pytest

from storage import StoreError
from storage.range_cache import RangeCache


def test_the_cache_keeps_its_limit_and_still_gives_the_right_bytes(tmp_path: Path) -> None:
    cache = RangeCache(tmp_path, 100_000)

    def fetch(name: str, length: int, offset: int) -> bytes:
        return bytes((offset + i) % 251 for i in range(length))

    for round_ in range(3):
        for offset in range(0, 400_000, 5_000):
            assert cache.read("f", offset, 5_000, fetch) == fetch("f", 5_000, offset), round_
            assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 110_000
    assert cache.misses > 80


def test_a_damaged_cache_entry_is_fetched_again(tmp_path: Path) -> None:
    cache = RangeCache(tmp_path, 1000)
    cache.read("f", 0, 4, lambda name, length, offset: b"good")
    next(tmp_path.iterdir()).write_bytes(b"go")
    assert cache.read("f", 0, 4, lambda name, length, offset: b"good") == b"good"


def test_a_cache_without_room_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VINA_CACHE", str(tmp_path))
    for wrong in ("0", "-1", "much", "inf"):
        monkeypatch.setenv("VINA_CACHE_GB", wrong)
        with pytest.raises(StoreError, match="VINA_CACHE_GB"):
            RangeCache.from_environment()


def test_files_of_others_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_bytes(b"x" * 2000)
    (tmp_path / "folder").mkdir()
    cache = RangeCache(tmp_path, 1000)
    for offset in range(50):
        cache.read("f", offset, 100, lambda name, length, offset: bytes(length))
    assert (tmp_path / "thesis.tex").stat().st_size == 2000 and (tmp_path / "folder").is_dir()


def test_a_source_that_ends_early_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="some/file ends before byte 14"):
        RangeCache(tmp_path, 1000).read("some/file", 10, 4, lambda name, length, offset: b"sho")
    assert list(tmp_path.iterdir()) == []
