import pyarrow as pa
import pytest

from storage.schemas import PROVENANCE, TABLES, TableSchema

EXPECTED = {
    "videos", "narrations", "articles", "steps", "annotations", "features", "sentence_embeddings", "votes", "pairs",
    "pseudo_labels", "alignments", "predictions", "metrics", "training_log", "runs", "rejects",
}  # fmt: skip


def test_every_table_is_declared() -> None:
    assert set(TABLES) == EXPECTED


@pytest.mark.parametrize("schema", TABLES.values(), ids=lambda schema: schema.name)
def test_a_table_is_explicit(schema: TableSchema) -> None:
    names = [column.name for column in schema.columns]
    assert len(set(names)) == len(names)
    assert set(schema.partition_by) <= set(names)
    assert schema.key is None or schema.key in names
    assert all(column.comment for column in schema.columns) and schema.comment
    assert schema.version >= 1
    assert schema.arrow.names[-3:] == [column.name for column in PROVENANCE]
    assert not any(schema.arrow.field(name).nullable for name in schema.log_columns)


@pytest.mark.parametrize("schema", TABLES.values(), ids=lambda schema: schema.name)
def test_times_have_their_unit_in_the_name(schema: TableSchema) -> None:
    seconds = [column for column in schema.columns if column.unit == "s"]
    assert all(column.name.endswith("_s") or column.name == "second" for column in seconds)
    assert all(
        column.unit == "s" for column in schema.columns if column.name.endswith("_s") and "per" not in column.name
    )


def test_cast_fills_constants_and_widens() -> None:
    schema = TABLES["pairs"]
    rows = pa.table({"video_id": ["v"], "article_id": ["a"], "rank": pa.array([1], pa.int8()), "confidence": [0.5]})
    constants = {"selection": "top1", "_shard": "0", "_fingerprint": "f", "_written_by": "r"}
    row = schema.cast(rows, constants)
    assert row.schema.equals(schema.arrow)
    assert row.to_pylist()[0] == {**constants, "video_id": "v", "article_id": "a", "rank": 1, "confidence": 0.5}
