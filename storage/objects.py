"""Objects beside the tables: videos, checkpoints, models, reports. An object appears whole or not at all.

On disk an object is written under a unique name and renamed; on S3 an upload is atomic by itself.
"""

import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import BotoCoreError, ClientError

from storage.errors import MissingFileError, StoreError
from storage.location import Location, flush

RETIRED = "retired/"
_PARTIAL = re.compile(r"(^|/)\.[0-9a-f]{32}\.partial$")


class Objects:
    """The objects of a store, below its folder `objects`."""

    def __init__(self, location: Location) -> None:
        self._location = location

    def uri(self, key: str) -> str:
        """Return the full address of an object."""
        return f"{self._location.uri}/objects/{_checked(key)}"

    def resolve(self, uri: str) -> str:
        """Return the address behind a `uri` of a table: a key names an object of this store, wherever it is."""
        return uri if "://" in uri or Path(uri).is_absolute() else self.uri(uri)

    def relative(self, address: str) -> str:
        """Return the key of an object of this store by its address; another address is returned as it is."""
        root = self._location.uri if self._location.is_s3 else str(Path(self._location.root).resolve())
        return address.removeprefix(f"{root}/objects/")

    def put(self, key: str, data: bytes) -> str:
        """Write an object, or replace it; return its address."""
        uri = self.uri(key)
        if self._location.is_s3:
            with _s3_errors(uri):
                self._location.client.put_object(Bucket=self._location.bucket, Key=self._key(key), Body=data)
        else:
            with atomic_file(Path(uri)) as partial:
                partial.write_bytes(data)
        return uri

    def upload(self, key: str, path: Path) -> str:
        """Copy a local file of any size into the store, in constant memory; return the object's address."""
        uri = self.uri(key)
        if not path.is_file():
            raise StoreError(f"{path} is not a file: nothing to store as {uri}")
        if self._location.is_s3:
            with _s3_errors(uri):
                self._location.client.upload_file(str(path), self._location.bucket, self._key(key))
        else:
            with atomic_file(Path(uri)) as partial:
                shutil.copyfile(path, partial)
        return uri

    def get(self, key: str) -> bytes:
        """Return the content of an object."""
        uri = self.uri(key)
        if not self._location.is_s3:
            try:
                return Path(uri).read_bytes()
            except OSError as error:
                raise MissingFileError(f"object {uri} cannot be read: {error.strerror}") from error
        with _s3_errors(uri):
            answer = self._location.client.get_object(Bucket=self._location.bucket, Key=self._key(key))
            return bytes(answer["Body"].read())

    def download(self, key: str, path: Path) -> Path:
        """Copy an object to a local file, which appears whole or not at all."""
        uri = self.uri(key)
        if self._location.is_s3:
            return fetch(uri, path, self._location.client)
        if not Path(uri).is_file():
            raise MissingFileError(f"object {uri} does not exist")
        with atomic_file(path) as partial:
            shutil.copyfile(uri, partial)
        return path

    def keys(self, prefix: str = "") -> Iterator[str]:
        """List the keys that begin with a prefix, sorted."""
        if not self._location.is_s3:
            root = Path(self._location.root) / "objects"
            keys = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
            yield from sorted(key for key in keys if key.startswith(prefix) and not _PARTIAL.search(key))
            return
        base = f"{self._location.prefix}objects/"
        with _s3_errors(f"{self._location.uri}/objects/{prefix}"):
            pages = self._location.client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._location.bucket, Prefix=base + prefix):
                yield from (entry["Key"][len(base) :] for entry in page.get("Contents", []))

    def delete(self, key: str) -> None:
        """Delete an object, if it exists."""
        uri = self.uri(key)
        if self._location.is_s3:
            with _s3_errors(uri):
                self._location.client.delete_object(Bucket=self._location.bucket, Key=self._key(key))
        else:
            try:
                Path(uri).unlink(missing_ok=True)
            except OSError as error:
                raise StoreError(f"object {uri} was not deleted: {error}") from error

    def retire(self, key: str, run_id: str) -> None:
        """Move an object, if it exists, to `retired/RUN/`, where it stays until `gc`."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                copy = self.download(key, Path(folder) / "object")
            except MissingFileError:
                return
            self.upload(f"{RETIRED}{run_id}/{_checked(key)}", copy)
        self.delete(key)

    def gc(self, older_than_hours: int, dry_run: bool = False) -> list[str]:
        """Delete retired objects, and partial files of writers that died; return their keys."""
        limit = time.time() - 3600 * older_than_hours
        old_keys = sorted(self._retired_before(limit) + ([] if self._location.is_s3 else self._partial_before(limit)))
        for key in [] if dry_run else old_keys:
            self.delete(key)
        return old_keys

    def _retired_before(self, limit: float) -> list[str]:
        if not self._location.is_s3:
            root = Path(self._location.root) / "objects"
            return [key for key in self.keys(RETIRED) if (root / key).stat().st_mtime <= limit]
        base = f"{self._location.prefix}objects/"
        with _s3_errors(f"{self._location.uri}/objects/{RETIRED}"):
            pages = self._location.client.get_paginator("list_objects_v2")
            answers = pages.paginate(Bucket=self._location.bucket, Prefix=base + RETIRED)
            entries = [entry for answer in answers for entry in answer.get("Contents", [])]
        return [entry["Key"][len(base) :] for entry in entries if entry["LastModified"].timestamp() <= limit]

    def _partial_before(self, limit: float) -> list[str]:
        """List partial files, on disk only: S3 shows no partial objects."""
        root = Path(self._location.root) / "objects"
        paths = (path for path in root.rglob(".*.partial") if _PARTIAL.search(path.name))
        return [path.relative_to(root).as_posix() for path in paths if path.stat().st_mtime <= limit]

    def _key(self, key: str) -> str:
        return f"{self._location.prefix}objects/{key}"


def fetch(uri: str, path: Path, client: Any = None) -> Path:
    """Copy any S3 object, in a store or not, to a local file, which appears whole or not at all."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    client = client or Location.parse(f"s3://{bucket}").client
    with atomic_file(path) as partial, _s3_errors(uri):
        client.download_file(bucket, key, str(partial))
    return path


@contextmanager
def atomic_file(target: Path, is_durable: bool = True) -> Iterator[Path]:
    """Yield a unique path to write to, which is renamed to the target at the end if nothing failed.

    A durable file is on the disk before it has its name: after a power cut it is whole, or not there.
    """
    partial = target.with_name(f".{uuid.uuid4().hex}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        if is_durable:
            flush(partial)
        partial.replace(target)
        if is_durable:
            flush(target.parent)
    except OSError as error:
        raise StoreError(f"{target} was not written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _s3_errors(uri: str) -> Iterator[None]:
    """Turn errors of boto3 into a StoreError that names the object."""
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "?")
        if code in ("404", "NoSuchKey"):
            raise MissingFileError(f"object {uri} does not exist") from error
        raise StoreError(f"object {uri}: S3 answered {code}: {error}") from error
    except (BotoCoreError, S3UploadFailedError) as error:
        raise StoreError(f"object {uri}: {error}") from error


def _checked(key: str) -> str:
    plain = key and "\\" not in key and not any(ord(character) < 32 for character in key)
    if not plain or any(part in ("", ".", "..") for part in key.split("/")):
        raise StoreError(f"object key {key!r} is not a plain relative path such as checkpoints/run-1/last.pt")
    return key
