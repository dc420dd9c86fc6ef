import dataclasses

import pytest

from storage import Store
from storage.schemas import TABLES
from storage.summary import summarise
from tests.samples import commit_votes


def test_tables_are_counted(store: Store) -> None:
    commit_votes(store, "0", "v1", "v2")
    commit_votes(store, "1", "v3")
    counts = {row["table"]: (row["rows"], row["shards"]) for row in summarise(store)}
    assert counts.pop("votes") == (3, 2) and set(counts.values()) == {(0, 0)}


def test_a_table_that_cannot_be_read_is_shown_as_a_problem(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_votes(store, "0", "v1", run="run-7")
    rows = {row["table"]: row for row in summarise(store)}
    assert (rows["votes"]["rows"], rows["votes"]["version"], rows["votes"]["last_run"]) == (1, 1, "run-7")
    assert (rows["runs"]["rows"], rows["runs"]["version"], rows["runs"]["last_run"]) == (0, None, None)
    monkeypatch.setitem(TABLES, "votes", dataclasses.replace(TABLES["votes"], version=3))
    problems = {row["table"]: row["problem"] for row in summarise(Store(store.uri)) if row["problem"]}
    assert list(problems) == ["votes"] and "schema version 2" in problems["votes"]
