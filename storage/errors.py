"""The errors of the store. Each message names the table, the file and the remedy. Some are transient."""

import re

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as S3ConnectionError

_TRANSIENT = re.compile(
    r"timed? ?out|timeout|connection (reset|refused|closed|aborted)|error sending request|network_connection"
    r"|broken pipe|slow ?down|throttl|too many requests|service unavailable|internal ?error|\b(429|500|502|503|504)\b",
    re.IGNORECASE,
)
"""Matches the messages of delta-rs and pyarrow, whose errors have no types, for transient network and server faults."""


class StoreError(ValueError):
    """The store, or what was given to it, is wrong. Other errors of the store are subclasses."""


class SchemaError(StoreError):
    """Rows, or a stored table, do not fit the declared schema."""


class MissingFileError(StoreError):
    """The log of a table names a data file that is gone or cannot be read."""


class QueryError(StoreError):
    """A SQL statement is wrong, or was refused because it would change something."""


def is_transient(error: BaseException | None) -> bool:
    """Return whether a retry may succeed, because the network or a server failed."""
    while error is not None:
        if isinstance(error, ClientError):
            return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) in (429, 500, 502, 503, 504)
        if isinstance(error, ConnectionError | TimeoutError | HTTPClientError | S3ConnectionError):
            return True
        if isinstance(error, MissingFileError) and error.__cause__ is None:
            return False
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is None and isinstance(error, OSError | StoreError) and _TRANSIENT.search(str(error)):
            return True
        error = cause
    return False
