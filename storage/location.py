"""The address of a store, a local folder or `s3://bucket/prefix`, and the three clients that reach it.

pyarrow reads and writes data files, deltalake the tables' logs, boto3 the objects. All three use the endpoint,
region, credentials, time-outs and retries that boto3 finds in the usual AWS variables and files. Credentials that
expire (roles) are found by each client itself, so that each can renew them.
"""

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import boto3
import pyarrow.fs as pafs
from botocore.config import Config
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError

from storage.errors import StoreError

CONNECT_TIMEOUT_S = 10
_AMBIGUOUS = re.compile("%[0-9A-Fa-f]{2}")


def _request_timeout_s() -> int:
    return _positive("VINA_S3_TIMEOUT_S", 60)


def _max_attempts() -> int:
    return _positive("AWS_MAX_ATTEMPTS", 5)


def _positive(variable: str, default: int) -> int:
    text = os.environ.get(variable) or str(default)
    if not text.isdigit() or int(text) == 0:
        raise StoreError(f"{variable}={text!r} is not a positive whole number")
    return int(text)


@dataclass(frozen=True)
class Location:
    """A parsed store address. `root` is the folder, or `bucket/prefix`, without a trailing slash."""

    uri: str
    root: str
    is_s3: bool

    @classmethod
    def parse(cls, uri: str | Path) -> "Location":
        """Parse a path, a file:// address or an s3:// address."""
        text = str(uri).strip()
        if not text:
            raise StoreError("the store's address is empty: give a folder or s3://bucket/prefix")
        if text.startswith("s3://"):
            root = text.removeprefix("s3://").strip("/")
            if not root or text.startswith("s3:///"):
                raise StoreError(f"store {text!r} names no bucket: write s3://bucket/prefix")
            if _AMBIGUOUS.search(root) or {"#", "?"} & set(root):
                raise StoreError(
                    f"store {text!r}: '#', '?' and escapes such as %20 mean different keys to different programs"
                )
            return cls(f"s3://{root}", root, True)
        if text.startswith("file://"):
            text = unquote(urlparse(text).path)
        elif "://" in text:
            raise StoreError(f"store {text!r}: only folders and s3://bucket/prefix are supported")
        path = Path(text).expanduser().absolute()
        if _AMBIGUOUS.search(str(path)):
            raise StoreError(
                f"store {path}: escapes such as %20 mean different folders to different programs; rename it"
            )
        if path.exists() and not path.is_dir():
            raise StoreError(f"store {path} is a file: give a folder or s3://bucket/prefix")
        return cls(str(path), str(path), False)

    @property
    def bucket(self) -> str:
        """The S3 bucket."""
        return self.root.partition("/")[0]

    @property
    def prefix(self) -> str:
        """The part of the root after the bucket, with a slash at its end unless it is empty."""
        prefix = self.root.partition("/")[2]
        return f"{prefix}/" if prefix else ""

    @cached_property
    def client(self) -> Any:
        """The boto3 S3 client."""
        config = Config(
            retries={"max_attempts": _max_attempts(), "mode": "standard"},
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=_request_timeout_s(),
        )
        try:
            return boto3.session.Session().client("s3", config=config)
        except (BotoCoreError, ValueError) as error:
            raise StoreError(f"store {self.uri}: cannot set up S3: {error}") from error

    @property
    def endpoint(self) -> str | None:
        """The address of the S3 server; None for Amazon's, which each client finds by itself."""
        url = str(self.client.meta.endpoint_url)
        return None if str(urlparse(url).hostname).endswith((".amazonaws.com", ".amazonaws.com.cn")) else url

    @property
    def region(self) -> str:
        """The region; us-east-1 if none is set."""
        name = self.client.meta.region_name
        return "us-east-1" if name in (None, "aws-global") else str(name)

    @cached_property
    def filesystem(self) -> pafs.FileSystem:
        """The pyarrow file system that holds the data files."""
        if not self.is_s3:
            return pafs.LocalFileSystem()
        endpoint = urlparse(self.endpoint or "https://")
        keys = self._static_keys()
        return pafs.S3FileSystem(
            access_key=keys.get("access_key"),
            secret_key=keys.get("secret_key"),
            session_token=keys.get("token"),
            region=self.region,
            scheme=endpoint.scheme,
            endpoint_override=endpoint.netloc or None,
            connect_timeout=CONNECT_TIMEOUT_S,
            request_timeout=_request_timeout_s(),
            retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=_max_attempts()),
        )

    @cached_property
    def delta_options(self) -> dict[str, str]:
        """The storage options of deltalake. Commits are conditional writes: one of two concurrent writers fails."""
        if not self.is_s3:
            return {}
        keys, timeout_s = self._static_keys(), _request_timeout_s()
        options = {
            "aws_endpoint_url": self.endpoint,
            "aws_region": self.region,
            "aws_access_key_id": keys.get("access_key"),
            "aws_secret_access_key": keys.get("secret_key"),
            "aws_session_token": keys.get("token"),
            "allow_http": str((self.endpoint or "").startswith("http://")).lower(),
            "conditional_put": "etag",
            "connect_timeout": f"{CONNECT_TIMEOUT_S}s",
            "timeout": f"{timeout_s}s",
            "max_retries": str(_max_attempts() - 1),
            "retry_timeout": f"{timeout_s * _max_attempts()}s",
        }
        return {name: value for name, value in options.items() if value is not None}

    def make_durable(self, path: str) -> None:
        """Flush a file to the disk, so that it survives a power cut; on S3 a written file is durable."""
        if not self.is_s3:
            flush(Path(path))

    def delete(self, path: str) -> None:
        """Delete one file, by its path in the file system. (pyarrow would leave a folder marker behind on S3.)"""
        if self.is_s3:
            bucket, _, key = path.partition("/")
            self.client.delete_object(Bucket=bucket, Key=key)
        else:
            self.filesystem.delete_file(path)

    def check(self) -> None:
        """Raise StoreError if the bucket cannot be reached."""
        if not self.is_s3:
            return
        try:
            self.client.head_bucket(Bucket=self.bucket)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "?")
            reason = {"404": "the bucket does not exist", "403": "access is denied: check the credentials"}.get(
                code, code
            )
            raise StoreError(f"store {self.uri}: {reason}") from error
        except BotoCoreError as error:
            raise StoreError(f"store {self.uri} cannot be reached: {error}") from error

    def _static_keys(self) -> dict[str, str]:
        """Return the credentials that boto3 finds, if they do not expire; otherwise an empty dict."""
        credentials = boto3.session.Session().get_credentials()
        if credentials is None or isinstance(credentials, RefreshableCredentials):
            return {}
        frozen = credentials.get_frozen_credentials()
        return {name: value for name, value in frozen._asdict().items() if value and name != "account_id"}


def flush(path: Path) -> None:
    """Flush a file, or a folder's list of names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
