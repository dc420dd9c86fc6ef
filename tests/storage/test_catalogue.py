import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.fs import FileSelector

from storage import QueryError, Store, StoreError
from storage.catalogue import Catalogue
from storage.schemas import TABLES
from storage.views import VIEWS, View
from tests.samples import ENCODER, commit_features, commit_votes, label_rows, random_videos, votes


def commit_labels(store: Store, round_: int, rows: list[tuple[str, str, int, int, float, bool]]) -> None:
    partition: dict[str, str | int] = {"model_id": "run-1", "round": round_}
    store.table("pseudo_labels").commit(label_rows(rows), partition, "0", fingerprint="f", run_id="run-1")


@pytest.fixture
def labelled(store: Store) -> Store:
    """Two rounds of labels for two videos, the steps they speak of, and two rejects."""
    commit_labels(
        store, 0, [("v1", "7", 0, 3, 0.8, True), ("v1", "7", 1, 9, 0.2, False), ("v2", "8", 0, 1, 0.3, False)]
    )
    commit_labels(store, 1, [("v1", "7", 0, 4, 0.9, True), ("v1", "7", 1, 9, 0.7, True), ("v2", "8", 0, 1, 0.4, False)])
    steps = {
        "article_id": ["7", "7", "8"],
        "row": [0, 1, 0],
        "step_id": ["a", "b", "c"],
        "headline": ["Peel", "Cut", "Fry"],
    }
    rows = pa.table(steps | {"paragraph": pa.nulls(3, pa.string())})
    store.table("steps").commit(rows, {"source": "demo"}, "0", fingerprint="f", run_id="run-1")
    rejects = {
        "item": ["v8", "v9"],
        "reason": ["no video stream"] * 2,
        "detail": ["x", None],
        "file": ["f", "g"],
        "line": [1, 2],
    }
    store.table("rejects").commit(pa.table(rejects), {"stage": "features"}, "0", fingerprint="f", run_id="run-1")
    return store


def ask(store: Store, statement: str) -> list[dict[str, object]]:
    with Catalogue(store) as catalogue:
        return catalogue.query(statement).to_pylist()


def everything(store: Store) -> dict[str, bytes]:
    """Every file of a store and what is in it."""
    files = store.location.filesystem
    entries = files.get_file_info(FileSelector(store.location.root, recursive=True))
    return {entry.path: files.open_input_file(entry.path).read() for entry in entries if entry.is_file}


def test_an_empty_store_has_every_table_and_view(store: Store) -> None:
    with Catalogue(store) as catalogue:
        names = {row["name"] for row in catalogue.query("SHOW TABLES").to_pylist()}
        assert names == {*TABLES, *(view.name for view in VIEWS), "shards"}
        for name in sorted(names):
            assert catalogue.query(f"SELECT * FROM {name}").num_rows == 0, name
        for name, schema in TABLES.items():
            assert catalogue.query(f"SELECT * FROM {name}").column_names == schema.arrow.names


def test_a_catalogue_has_the_tables_and_views_it_is_given(store: Store) -> None:
    numbers = {"numbers": pa.table({"n": [1, 2]})}
    views = [View("doubled", "", "SELECT 2 * n AS n FROM numbers"), View("last", "", "SELECT max(n) AS n FROM doubled")]
    with Catalogue(store, None, numbers, views) as catalogue:
        assert catalogue.query("FROM last").to_pylist() == [{"n": 4}]
    with Catalogue(store) as catalogue, pytest.raises(QueryError, match="doubled does not exist"):
        catalogue.query("FROM doubled")


def test_vectors_are_float_lists_in_sql(store: Store) -> None:
    videos = random_videos(["v1", "v2"], width=64)
    commit_features(store, "0", videos)
    a_D, b_D = (videos[name][0].astype(np.float64) for name in ("v1", "v2"))
    expected = float(a_D @ b_D / math.sqrt((a_D @ a_D) * (b_D @ b_D)))
    answer = ask(
        store,
        """SELECT list_cosine_similarity(a.vector, b.vector) AS cosine, typeof(a.vector) AS type, len(a.vector) AS width
           FROM features a, features b
           WHERE a.video_id = 'v1' AND a.second = 0 AND b.video_id = 'v2' AND b.second = 0""",
    )
    assert answer == [{"cosine": pytest.approx(expected, abs=1e-6), "type": "FLOAT[]", "width": 64}]
    values = ask(store, "SELECT vector FROM features WHERE video_id = 'v1' ORDER BY second")
    assert np.array_equal(np.array([row["vector"] for row in values], np.float16), videos["v1"])


def test_an_older_version_has_a_name(store: Store) -> None:
    commit_votes(store, "0", "old")
    commit_votes(store, "0", "new", fingerprint="b")
    with Catalogue(store) as catalogue:
        assert catalogue.query("SELECT video_id FROM votes").to_pylist() == [{"video_id": "new"}]
        for _ in range(2):
            both = catalogue.query("SELECT a.video_id AS a, b.video_id AS b FROM votes_v1 a, votes_v2 b").to_pylist()
            assert both == [{"a": "old", "b": "new"}]
        assert catalogue.query("FROM votes_v0").num_rows == 0
        with pytest.raises(StoreError, match="votes has no version 7; its versions are 0 to 2"):
            catalogue.query("FROM votes_v7")
        with pytest.raises(QueryError, match="nothing_v1 does not exist"):
            catalogue.query("FROM nothing_v1")


def test_odd_names_reach_sql_unharmed(store: Store) -> None:
    odd = "it's/..%20\"é"
    store.table("votes").commit(votes(odd), {"encoder": odd}, odd, fingerprint="a", run_id="r")
    assert ask(store, "SELECT video_id, encoder, _shard FROM votes") == [
        {"video_id": odd, "encoder": odd, "_shard": odd}
    ]
    assert ask(store, "SELECT partition, shard FROM shards") == [{"partition": f"encoder={odd}", "shard": odd}]


@pytest.mark.parametrize("name", ['it\'s a "store"', "50%", "[a]*?", "магазин", "a,b;c"])
def test_a_store_may_be_anywhere(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / name)
    commit_votes(store, "0", "v1")
    commit_votes(store, "1", "v2")
    assert ask(store, "SELECT video_id, _shard FROM votes ORDER BY 1") == [
        {"video_id": "v1", "_shard": "0"},
        {"video_id": "v2", "_shard": "1"},
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO '{folder}/x.csv'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/x.csv'",
        "explain (analyze, format json) copy (select 1) to '{folder}/x.csv'",
        "/* a */ EXPLAIN /* b */ ANALYZE COPY (SELECT 1) TO '{folder}/x.csv'",
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO votes VALUES (1)",
        "DELETE FROM votes",
        "UPDATE votes SET rank = 1",
        "DROP VIEW votes",
        "ATTACH '{folder}/x.db'",
        "ATTACH ':memory:' AS x",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "EXPORT DATABASE '{folder}'",
        "PREPARE x AS COPY (SELECT 1) TO '{folder}/x'",
        "CALL pragma_version()",
        "PRAGMA version",
        "BEGIN",
        "VACUUM",
        "SELECT 1; COPY (SELECT 1) TO '{folder}/x'",
        "",
        "WITH t AS (COPY (SELECT 1) TO '{folder}/x.csv') SELECT 1",
        "EXPLAIN ANALYZE WITH t AS (COPY (SELECT 1) TO '{folder}/x.csv') SELECT 1",
        "SELECT * FROM (WITH t AS (COPY (SELECT 1) TO '{folder}/x.csv') SELECT 1)",
        "WITH t AS (COPY (SELECT 'forged' AS video_id) TO '{folder}/votes/{shard}' (FORMAT parquet)) SELECT 1",
        "WITH t AS (DELETE FROM votes) SELECT 1",
        "WITH t AS (INSERT INTO votes VALUES (1)) SELECT 1",
        "WITH t AS (UPDATE votes SET rank = 1) SELECT 1",
        "EXPLAIN (ANALYZE /* ) SELECT 1 -- */ ) COPY (SELECT 1) TO '{folder}/x.csv'",
        "EXPLAIN (ANALYZE /* ) SELECT 1 -- */ ) DROP VIEW votes",
        "EXPLAIN (ANALYZE /* ) SELECT 1 -- */ ) SET VARIABLE \"votes files\" = ['x']",
        "EXPLAIN ANALYZE EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/x.csv'",
    ],
)
def test_whatever_is_not_a_question_is_refused(store: Store, statement: str) -> None:
    commit_votes(store, "0", "v1")
    shard = store.table("votes").snapshot().shards[0].path
    before = everything(store)
    with Catalogue(store) as catalogue:
        with pytest.raises(QueryError):
            catalogue.query(statement.format(folder=store.uri, shard=shard))
        assert catalogue.query("SELECT video_id FROM votes").to_pylist() == [{"video_id": "v1"}]
    assert everything(store) == before


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('{folder}/x.txt')",
        "FROM '{folder}/x.txt'",
        "FROM '{folder}/x.csv'",
        "SELECT * FROM glob('{folder}/*')",
        "FROM read_parquet('{folder}/votes/{shard}')",
        "FROM '{folder}/votes/{shard}'",
        "SELECT * FROM query('SELECT 1')",
        "FROM query_table('votes')",
        "FROM arrow_scan(1, 2, 3)",
        "FROM duckdb_secrets()",
        "SELECT write_log('x')",
        "SELECT current_setting('home_directory')",
        "FROM enable_profiling(save_location = '{folder}/x.json')",
        "FROM enable_logging('QueryLog', storage = 'file', storage_path = '{folder}')",
        "SELECT * FROM test_all_types()",
    ],
)
def test_functions_and_files_that_are_not_listed_are_refused(store: Store, statement: str) -> None:
    commit_votes(store, "0", "v1")
    shard = store.table("votes").snapshot().shards[0].path
    with pytest.raises(QueryError, match=r"is refused|is not a table of the store"):
        ask(store, statement.format(folder=store.uri, shard=shard))


HIDDEN = [
    "WITH t AS (COPY (SELECT ''forged'' AS video_id) TO ''{target}'') SELECT 1",
    "FROM read_parquet(''{shard}'')",
    "SELECT 1",
]


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize(
    "question", ["FROM {call}", "EXPLAIN ANALYZE FROM {call}", "SELECT (SELECT count(*) FROM {call})"]
)
def test_a_statement_hidden_in_a_string_does_not_run(store: Store, hidden: str, question: str) -> None:
    commit_votes(store, "0", "v1")
    before = everything(store)
    target = f"{store.uri}/votes/_delta_log/00000000000000000009.json"
    statement = hidden.format(
        target=target, shard=f"{store.uri}/votes/{store.table('votes').snapshot().shards[0].path}"
    )
    for call in (
        f"json_execute_serialized_sql(json_serialize_sql('{statement}'))",
        f"query('{statement}')",
        f"JSON_EXECUTE_SERIALIZED_SQL(json_serialize_sql('{statement}'))",
        f"system.main.json_execute_serialized_sql(json_serialize_sql('{statement}'))",
    ):
        with pytest.raises(QueryError, match="is refused"):
            ask(store, question.format(call=call))
    assert everything(store) == before


@pytest.mark.parametrize("hidden", HIDDEN[:2])
def test_a_statement_that_passes_the_guard_finds_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    store = Store(tmp_path / "store")
    commit_votes(store, "0", "v1")
    monkeypatch.setattr("storage.catalogue.refuse_writes", lambda connection, statement: None)
    before = everything(store)
    shard = f"{store.uri}/votes/{store.table('votes').snapshot().shards[0].path}"
    for target in (f"{store.uri}/x.csv", shard, f"{tmp_path}/x.csv"):
        statement = hidden.format(target=target, shard=shard)
        with pytest.raises(QueryError, match="Permission Error"):
            ask(store, f"FROM json_execute_serialized_sql(json_serialize_sql('{statement}'))")
        with pytest.raises(QueryError, match="Permission Error"):
            ask(store, statement.replace("''", "'"))
    assert everything(store) == before and not (tmp_path / "x.csv").exists()


def test_python_variables_stay_closed(store: Store) -> None:
    secret = pa.table({"a": [1]})
    assert secret.num_rows
    with pytest.raises(QueryError, match="secret does not exist"):
        ask(store, "SELECT * FROM secret")


@pytest.mark.parametrize(
    ("statement", "column", "value"),
    [
        ("EXPLAIN SELECT 1", "explain_key", "physical_plan"),
        ("EXPLAIN ANALYZE SELECT 1", "explain_key", "analyzed_plan"),
        ("DESCRIBE votes", "column_name", "encoder"),
        ("SUMMARIZE SELECT rank FROM votes", "column_name", "rank"),
        ("FROM votes", "video_id", "v1"),
        ("VALUES (1)", "col0", 1),
        ("WITH a AS (SELECT 1 AS x) FROM a", "x", 1),
        (
            "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 3) SELECT max(n) AS n FROM a",
            "n",
            3,
        ),
        ("SELECT 1 AS x UNION ALL SELECT 2;", "x", 1),
        ("SELECT 'votes_v99' AS votes_v99", "votes_v99", "votes_v99"),
        ("SELECT VIDEO_ID FROM VOTES_V1", "video_id", "v1"),
    ],
)
def test_questions_of_all_kinds_are_answered(store: Store, statement: str, column: str, value: object) -> None:
    commit_votes(store, "0", "v1")
    assert ask(store, statement)[0][column] == value


def test_keep_rate_by_round_and_task(labelled: Store) -> None:
    rows = ask(labelled, "SELECT round, article_id, labels, kept, kept_percent FROM label_keep_rate")
    assert [tuple(row.values()) for row in rows] == [
        (0, "7", 2, 1, 50.0), (0, "8", 1, 0, 0.0), (1, "7", 2, 2, 100.0), (1, "8", 1, 0, 0.0),
    ]  # fmt: skip


def test_why_labels_were_dropped(labelled: Store) -> None:
    rows = ask(labelled, "SELECT round, reason, labels FROM label_reasons WHERE round = 0")
    assert [tuple(row.values()) for row in rows] == [
        (0, "confidence below gamma", 2),
        (0, "confidence reaches gamma", 1),
    ]


def test_best_and_worst_steps(labelled: Store) -> None:
    best = ask(labelled, "SELECT headline, mean_score FROM step_quality WHERE round = 1 AND best_rank = 1")
    worst = ask(labelled, "SELECT headline, mean_score FROM step_quality WHERE round = 1 AND worst_rank = 1")
    assert best == [{"headline": "Peel", "mean_score": pytest.approx(0.9)}]
    assert worst == [{"headline": "Fry", "mean_score": pytest.approx(0.4)}]


def test_disagreements_between_rounds(labelled: Store) -> None:
    rows = ask(
        labelled,
        """SELECT video_id, step_row, peak_s, next_peak_s, moved_s, overlap, kept, next_kept
           FROM round_disagreements ORDER BY step_row""",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("v1", 0, 3, 4, 1, pytest.approx(1 / 3), True, True),
        ("v1", 1, 9, 9, 0, pytest.approx(1.0), False, True),
    ]


def test_rejects_by_reason(labelled: Store) -> None:
    rows = ask(labelled, "FROM rejects_by_reason")
    assert rows == [{"stage": "features", "reason": "no video stream", "items": 2, "example": "v8"}]


def test_who_wrote_what(labelled: Store) -> None:
    rows = ask(labelled, 'SELECT "table", partition, run_id, num_rows FROM run_shards ORDER BY ALL')
    assert [tuple(row.values()) for row in rows] == [
        ("pseudo_labels", "model_id=run-1, round=0", "run-1", 3),
        ("pseudo_labels", "model_id=run-1, round=1", "run-1", 3),
        ("rejects", "stage=features", "run-1", 2),
        ("steps", "source=demo", "run-1", 3),
    ]


def test_filters_are_pushed_down(store: Store) -> None:
    commit_votes(store, "0", "v1", "v2")
    plan = str(ask(store, "EXPLAIN SELECT rank FROM votes WHERE video_id = 'v1'"))
    scan = plan[plan.index("Filters") :]
    assert "video_id" in scan and "v1" in scan


def test_a_stream_comes_in_batches(store: Store) -> None:
    store.table("votes").commit(votes(*map(str, range(5000))), ENCODER, "0", fingerprint="a", run_id="r")
    with Catalogue(store) as catalogue:
        sizes = [len(batch) for batch in catalogue.stream("SELECT video_id FROM votes", 1000)]
    assert sum(sizes) == 5000 and max(sizes) <= 2048


def test_the_first_rows_come_and_a_query_that_takes_too_long_is_stopped(store: Store) -> None:
    with Catalogue(store) as catalogue:
        assert catalogue.first_rows("SELECT range AS n FROM range(5000)", 10, 30)["n"].to_pylist() == list(range(10))
        assert catalogue.first_rows("SELECT 1 AS n WHERE false", 10, 30).num_rows == 0
        with pytest.raises(QueryError, match=r"took longer than 0\.2 s and was stopped"):
            catalogue.first_rows("SELECT sum(a.range * b.range) FROM range(10000000) a, range(100000) b", 10, 0.2)
        with pytest.raises(QueryError, match="interrupted"):
            catalogue.first_rows("SELECT interrupted FROM runs", 10, 30)
