"""Queries of tables that Prefect's UI shows after several stages, by the artifact's key."""

CORPUS = {"corpus": "FROM corpus"}
REJECTS = {"rejects": "FROM rejects_by_reason LIMIT 100"}
