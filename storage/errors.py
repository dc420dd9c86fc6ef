"""The errors of the store. Each names the table and the file, and says what to do."""


class StoreError(ValueError):
    """Something in the store, or in what was given to it, is wrong."""


class SchemaError(StoreError):
    """Rows or a stored table do not fit the declared schema."""


class MissingFileError(StoreError):
    """The log of a table names a data file that is gone or cannot be read."""


class QueryError(StoreError):
    """A SQL statement is wrong, or was refused because it would change something."""
