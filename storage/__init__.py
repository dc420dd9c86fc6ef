"""Tables and objects on disk or S3: schemas, commits, readers, SQL. Imports neither torch nor Prefect."""

from storage.errors import MissingFileError, QueryError, SchemaError, StoreError, is_transient
from storage.fingerprint import fingerprint_of
from storage.store import Store

__all__ = ["MissingFileError", "QueryError", "SchemaError", "Store", "StoreError", "fingerprint_of", "is_transient"]
