import pyarrow as pa
import pytest

from storage import SchemaError
from storage.schemas import PROVENANCE, TABLES, TableSchema
from tests.samples import made_with

EXPECTED = {
    "videos", "narrations", "articles", "steps", "annotations", "features", "sentence_embeddings", "text_votes",
    "votes", "pairs", "pseudo_labels", "alignments", "predictions", "models", "presences", "metrics",
    "ablations", "training_log", "runs", "completions", "rejects",
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
    assert not any(schema.arrow.field(name).nullable for name in schema.partition_by)


@pytest.mark.parametrize("schema", TABLES.values(), ids=lambda schema: schema.name)
def test_times_have_their_unit_in_the_name(schema: TableSchema) -> None:
    seconds = [column for column in schema.columns if column.unit == "s"]
    assert all(column.name.endswith("_s") or column.name == "second" for column in seconds)
    assert all(
        column.unit == "s" for column in schema.columns if column.name.endswith("_s") and "per" not in column.name
    )


@pytest.mark.parametrize("schema", TABLES.values(), ids=lambda schema: schema.name)
def test_a_column_is_in_the_files_or_in_the_log(schema: TableSchema) -> None:
    assert sorted([*schema.files.names, *schema.log_columns]) == sorted(schema.arrow.names)
    assert schema.key is None or schema.key in schema.files.names


def test_rows_are_widened_to_the_declared_types() -> None:
    given = {"video_id": "v", "article_id": "a", "rank": 1, "encoder": None, "confidence": 0.5, "similarity_margin": 2}
    rows = pa.Table.from_pylist([given])
    rows = rows.set_column(2, "rank", rows["rank"].cast(pa.int8()))
    fixed = TABLES["pairs"].cast(rows)
    assert fixed.schema.equals(TABLES["pairs"].files)
    assert fixed.to_pylist() == [given]


def test_constants_are_checked_like_columns() -> None:
    schema = TABLES["features"]
    good = {"backbone": "b", "_shard": "0", "_fingerprint": "f", "_written_by": "r", **made_with(fps=16)}
    assert schema.cast_constants(good)["fps"] == 16.0
    for wrong, message in (
        ({"fps": "fast"}, "column fps: .*fast"),
        ({"layer": None}, "column layer: it may not be null"),
        ({"backbone": ""}, "column backbone: .* may not be empty"),
        ({"speed": 1}, "unknown columns speed"),
    ):
        with pytest.raises(SchemaError, match=message):
            schema.cast_constants(good | wrong)
    del good["layer"]
    with pytest.raises(SchemaError, match="table features: missing columns layer"):
        schema.cast_constants(good)
