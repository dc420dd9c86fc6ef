"""The store: one address, its tables and its objects. Tables are opened when they are used."""

import threading
from pathlib import Path

from storage.location import Location
from storage.objects import Objects
from storage.schemas import TABLES, schema_of
from storage.table import Table


class Store:
    """A store, opened by its address: `Store("folder")` or `Store("s3://bucket/prefix")`."""

    def __init__(self, uri: str | Path) -> None:
        self.location = Location.parse(uri)
        self.objects = Objects(self.location)
        self._tables: dict[str, Table] = {}
        self._lock = threading.Lock()

    @property
    def uri(self) -> str:
        """The store's address."""
        return self.location.uri

    def table(self, name: str) -> Table:
        """Return a table by its name in `storage.schemas`."""
        schema = schema_of(name)
        with self._lock:
            if name not in self._tables:
                self._tables[name] = Table(self.location, schema)
            return self._tables[name]

    def tables(self) -> list[Table]:
        """Return all tables, including empty ones."""
        return [self.table(name) for name in TABLES]
