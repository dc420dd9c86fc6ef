import os
from pathlib import Path

import pytest

from storage import MissingFileError, Store, StoreError
from storage.objects import fetch


def test_an_object_is_read_back(store: Store, tmp_path: Path) -> None:
    uri = store.objects.put("checkpoints/run-1/last.pt", b"weights")
    assert uri == f"{store.uri}/objects/checkpoints/run-1/last.pt"
    assert store.objects.get("checkpoints/run-1/last.pt") == b"weights"
    store.objects.put("checkpoints/run-1/last.pt", b"newer")
    assert store.objects.download("checkpoints/run-1/last.pt", tmp_path / "copy.pt").read_bytes() == b"newer"


def test_a_key_stands_for_an_object_wherever_the_store_is(store: Store) -> None:
    uri = store.objects.put("videos/a.mp4", b"video")
    assert store.objects.resolve("videos/a.mp4") == uri and store.objects.relative(uri) == "videos/a.mp4"
    for address in ("/elsewhere/a.mp4", "s3://other/objects/videos/a.mp4", "https://host/a.mp4"):
        assert store.objects.resolve(address) == store.objects.relative(address) == address


def test_an_object_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, flushed, fsync = tmp_path / "store/objects/reports/a.html", [], os.fsync

    def note(descriptor: int) -> None:
        flushed.append((os.fstat(descriptor).st_ino, os.fstat(descriptor).st_size, path.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    Store(tmp_path / "store").objects.put("reports/a.html", b"report")
    file, folder = flushed
    assert file == (path.stat().st_ino, len(b"report"), False)
    assert folder[0] == path.parent.stat().st_ino and folder[2], "the name is on the disk, too"


def test_files_go_in_and_are_listed_and_deleted(store: Store, tmp_path: Path) -> None:
    (tmp_path / "video.mp4").write_bytes(b"\0" * 1_000_000)
    for key in ("videos/é ü%20.mp4", "videos/-x_.mp4", "reports/a.html"):
        store.objects.upload(key, tmp_path / "video.mp4")
    assert sorted(store.objects.keys("videos/")) == ["videos/-x_.mp4", "videos/é ü%20.mp4"]
    assert len(store.objects.get("videos/é ü%20.mp4")) == 1_000_000
    store.objects.delete("videos/-x_.mp4")
    store.objects.delete("videos/-x_.mp4")
    assert sorted(store.objects.keys()) == ["reports/a.html", "videos/é ü%20.mp4"]


def test_a_missing_object_is_named(store: Store, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="objects/no/such"):
        store.objects.get("no/such")
    with pytest.raises(MissingFileError, match="objects/no/such"):
        store.objects.download("no/such", tmp_path / "x")
    with pytest.raises(StoreError, match="is not a file: nothing to store as"):
        store.objects.upload("x", tmp_path / "nothing")
    assert list(tmp_path.glob("*.partial")) == [] and not (tmp_path / "x").exists()


@pytest.mark.parametrize("key", ["", "/etc/passwd", "../up", "a/../b", "a//b", "a/.", "a\\b", "a\nb", "a\0b"])
def test_keys_that_are_no_plain_relative_paths_are_refused(store: Store, key: str) -> None:
    with pytest.raises(StoreError, match="not a plain relative path"):
        store.objects.put(key, b"")


def test_what_a_dead_writer_left_is_collected(tmp_path: Path) -> None:
    objects = Store(tmp_path / "store").objects
    objects.put("videos/my.partial", b"kept")
    left = tmp_path / "store/objects/videos" / f".{'0' * 32}.partial"
    left.write_bytes(b"half")
    assert list(objects.keys()) == ["videos/my.partial"]
    assert objects.gc(1) == [] and objects.gc(0, dry_run=True) == [f"videos/{left.name}"] and left.exists()
    assert objects.gc(0) == [f"videos/{left.name}"] and not left.exists()
    assert objects.get("videos/my.partial") == b"kept"


def test_a_folder_is_not_deleted_as_an_object(tmp_path: Path) -> None:
    objects = Store(tmp_path / "store").objects
    objects.put("videos/a", b"")
    with pytest.raises(StoreError, match="objects/videos was not deleted"):
        objects.delete("videos")


def test_an_object_of_any_bucket_is_fetched(s3_uri: str, tmp_path: Path) -> None:
    uri = Store(s3_uri).objects.put("videos/a b.mp4", b"video")
    assert fetch(uri, tmp_path / "copy.mp4").read_bytes() == b"video"
    with pytest.raises(MissingFileError, match="no-such"):
        fetch(f"{uri}-no-such", tmp_path / "other.mp4")
    assert [path.name for path in tmp_path.iterdir()] == ["copy.mp4"]


def test_what_is_put_aside_stays_until_gc(store: Store) -> None:
    store.objects.put("checkpoints/a/last.pt", b"weights")
    store.objects.retire("checkpoints/a/last.pt", "run-2")
    store.objects.retire("checkpoints/b/none.pt", "run-2")
    assert list(store.objects.keys()) == ["retired/run-2/checkpoints/a/last.pt"]
    assert store.objects.get("retired/run-2/checkpoints/a/last.pt") == b"weights"
    store.objects.put("checkpoints/a/last.pt", b"others")
    assert store.objects.gc(1) == []
    assert store.objects.gc(0, dry_run=True) == ["retired/run-2/checkpoints/a/last.pt"]
    assert store.objects.gc(0) == ["retired/run-2/checkpoints/a/last.pt"]
    assert list(store.objects.keys()) == ["checkpoints/a/last.pt"]
