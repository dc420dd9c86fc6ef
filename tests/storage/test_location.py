import os
from pathlib import Path

import pytest

from storage import Store, StoreError
from storage.location import Location
from tests.samples import commit_votes, video_ids


@pytest.mark.parametrize(
    ("uri", "root", "is_s3"),
    [
        ("s3://bucket", "bucket", True),
        ("s3://bucket/a/b/", "bucket/a/b", True),
        ("/data/store", "/data/store", False),
        ("file:///data/my%20store", "/data/my store", False),
    ],
)
def test_addresses(uri: str, root: str, is_s3: bool) -> None:
    location = Location.parse(uri)
    assert (location.root, location.is_s3) == (root, is_s3)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("", "empty"),
        ("s3://", "names no bucket"),
        ("gs://bucket/x", "only folders and s3"),
        ("s3:///x", "names no bucket"),
        ("s3://bucket/a%20b", "mean different keys"),
        ("s3://bucket/a#b", "mean different keys"),
        ("s3://bucket/a?b", "mean different keys"),
        ("/data/a%20b", "mean different folders"),
        (__file__, "is a file"),
    ],
)
def test_wrong_addresses(uri: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        Store(uri)


def test_s3_settings_may_come_from_the_usual_files(
    s3_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = f"region = us-east-1\nendpoint_url = {os.environ['AWS_ENDPOINT_URL']}\n"
    (tmp_path / "config").write_text(f"[profile lab]\n{settings}")
    (tmp_path / "credentials").write_text("[lab]\naws_access_key_id = a\naws_secret_access_key = b\n")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_PROFILE", "lab")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    store = Store(s3_uri)
    assert commit_votes(store, "0", "v1") and video_ids(store) == ["v1"]
    assert store.objects.get(store.objects.put("a", b"b").rsplit("/", 1)[1]) == b"b"


def test_amazons_own_endpoint_is_left_to_each_client(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/none")
    location = Location.parse("s3://bucket/x")
    assert (location.endpoint, location.region) == (None, "us-east-1")
    assert "aws_endpoint_url" not in location.delta_options and location.delta_options["allow_http"] == "false"
    assert location.filesystem.region == "us-east-1"


@pytest.mark.parametrize("variable", ["VINA_S3_TIMEOUT_S", "AWS_MAX_ATTEMPTS"])
@pytest.mark.parametrize("value", ["soon", "0", "-1"])
def test_settings_that_are_no_numbers_are_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(StoreError, match=f"{variable}='{value}' is not a positive whole number"):
        _ = Location.parse("s3://bucket/x").client


def test_a_missing_bucket_is_named(s3_endpoint: str) -> None:
    with pytest.raises(StoreError, match="s3://no-such-bucket/x: the bucket does not exist"):
        Store("s3://no-such-bucket/x").location.check()
