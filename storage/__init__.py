"""The tables: schemas, commits, local disk and S3, the DuckDB catalogue, readers. Knows neither torch nor Prefect."""

from storage.errors import MissingFileError, QueryError, SchemaError, StoreError, is_transient
from storage.fingerprint import fingerprint_of
from storage.store import Store

__all__ = ["MissingFileError", "QueryError", "SchemaError", "Store", "StoreError", "fingerprint_of", "is_transient"]
