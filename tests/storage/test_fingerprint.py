"""Hashes of files and names of shards: their values are in stores, and must not change."""

import hashlib
from pathlib import Path

from storage.fingerprint import file_hash, files_hash, shard_name


def test_a_file_has_its_sha256_and_a_missing_one_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert file_hash(tmp_path / "a") == file_hash(str(tmp_path / "a")) == hashlib.sha256(b"abc").hexdigest()
    assert file_hash(tmp_path / "none") == file_hash(tmp_path) == ""


def test_several_files_are_hashed_in_their_order_without_their_names(tmp_path: Path) -> None:
    for name, content in (("a", b"1"), ("b", b"2"), ("c", b"1")):
        (tmp_path / name).write_bytes(content)
    a, b, c = (tmp_path / name for name in "abc")
    digests = hashlib.sha256(b"1").digest() + hashlib.sha256(b"2").digest()
    assert files_hash([a, b]) == hashlib.sha256(digests).hexdigest() == files_hash([c, b]) != files_hash([b, a])


def test_the_name_of_a_shard() -> None:
    assert shard_name(["v1", "v2"]) == "34cf7b2873c01dce" != shard_name(["v2", "v1"])
