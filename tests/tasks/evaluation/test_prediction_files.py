"""Files of predictions: every way to write the same rows, and every way to get them wrong."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.evaluation.benchmarks.benchmark import Protocol
from tasks.evaluation.benchmarks.crosstask import CROSSTASK_FREE
from tasks.evaluation.benchmarks.crosstask_articles import CROSSTASK_ARTICLES_RECALL
from tasks.evaluation.benchmarks.htm_align import HTM_ALIGN_R1
from tasks.evaluation.benchmarks.htstep import HTSTEP_MAP, HTSTEP_R1
from tasks.evaluation.prediction_files import BadPredictions, read_predictions

ROWS = [("a", 1, 2.5), ("-b", 3, 0.0)]
HEADER = "video-id,label,t\n"
CSV = HEADER + "a,1,2.5\n-b,3,0\n"
MAP_HEADER = "video-id,t-start,t-end,label,score\n"
pytestmark = pytest.mark.filterwarnings("error")


def read(folder: Path, content: str | bytes | pa.Table, protocol: Protocol = HTSTEP_R1, name: str = "") -> list[Any]:
    """The rows of a file that has this content."""
    path = folder / (name or ("mine.parquet" if isinstance(content, pa.Table) else "mine.csv"))
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [tuple(row.values()) for row in read_predictions(path, protocol).to_pylist()]


def refusal(folder: Path, content: str | bytes | pa.Table, protocol: Protocol = HTSTEP_R1, name: str = "") -> str:
    with pytest.raises(BadPredictions) as caught:
        read(folder, content, protocol, name)
    assert str(folder) in str(caught.value)
    return str(caught.value)


def table(ids: Any = None, labels: Any = None, times: Any = None, **more: Any) -> pa.Table:
    columns = {
        "video-id": ["a", "-b"] if ids is None else ids,
        "label": [1, 3] if labels is None else labels,
        "t": [2.5, 0.0] if times is None else times,
    }
    return pa.table(columns | more)


@pytest.mark.parametrize(
    "content",
    [
        CSV,
        "\ufeff" + CSV,
        CSV.replace("\n", "\r\n"),
        CSV.replace("\n", "\r"),
        CSV.rstrip("\n"),
        CSV + "\n\n",
        "\n" + CSV.replace("\n", "\n\n"),
        '"video-id","label","t"\n"a","1","2.5"\n"-b","3","0"\n',
        "t,label,video-id\n2.5,1,a\n0,3,-b\n",
        ",video-id,label,t\n0,a,1,2.5\n1,-b,3,0\n",
        "Unnamed: 0,video-id,label,t,\n0,a,1,2.5,\n1,-b,3,0,x\n",
        'video-id,note,label,t\na,"one, ""two""\nthree",1,2.5\n-b,5" pan,3,0\n',
        HEADER + "a,1.0,+2.5\n-b,3e0,-0\n",
        HEADER + "a, 1,2.5 \n-b,3,0\n",
    ],
    ids=[
        "plain", "byte-order mark", "Windows", "old Macintosh", "no last line end", "blank lines behind",
        "blank lines between", "quoted", "other order", "unnamed index", "named index", "quotes and lines in a cell",
        "other numbers", "blanks",
    ],
)  # fmt: skip
def test_the_same_rows_in_csv(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, content) == ROWS


@pytest.mark.parametrize(
    "content",
    [
        table(),
        table(pa.array(["a", "-b"], pa.large_string()), pa.array(["1", "3"], pa.large_string()), ["2.5", "0"]),
        table(pa.array(["a", "-b"]).dictionary_encode(), pa.array(["1", "3"]).dictionary_encode()),
        table(pa.array(["a", "-b"], pa.string_view()), pa.array([1.0, 3.0], pa.float32())),
        table(pa.array([b"a", b"-b"]), pa.array([1, 3], pa.uint8()), pa.array([2.5, 0], pa.float16())),
        table(**{"__index_level_0__": [0, 1], "text": [["x"], None]}),
    ],
    ids=["plain", "large strings", "dictionaries", "views", "bytes", "more columns"],
)
def test_the_same_rows_in_parquet(tmp_path: Path, content: pa.Table) -> None:
    assert read(tmp_path, content) == ROWS


def test_parquet_is_known_by_its_content_too(tmp_path: Path) -> None:
    assert read(tmp_path, table(), name="mine.PARQUET") == ROWS
    assert read(tmp_path, table(), name="mine") == ROWS


def test_many_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    pq.write_table(pa.concat_tables([table([str(n)], [n], [n / 2]) for n in range(7)]), path, row_group_size=2)
    assert [row["video-id"] for row in read_predictions(path, HTSTEP_R1).to_pylist()] == list("0123456")


def test_ids_stay_text(tmp_path: Path) -> None:
    ids = ["007", "1234567", "1e5", "-abc", "--1", "NA", "null", "nan", "true", "äöü", "=1+1", " x"]
    assert [row[0] for row in read(tmp_path, HEADER + "".join(f"{name},1,2\n" for name in ids))] == ids
    rows = read(tmp_path, 'video-id,label,t\n"a,b",1,2\n"c""d",1,2\n')
    assert [row[0] for row in rows] == ["a,b", 'c"d']


def test_numbers_as_ids_in_parquet(tmp_path: Path) -> None:
    assert [row[0] for row in read(tmp_path, table(pa.array([7, 1234567])))] == ["7", "1234567"]
    assert [row[0] for row in read(tmp_path, table(pa.array([7.0, 1234567.0])))] == [
        "7",
        "1234567",
    ]  # as pandas may write
    rows = read(
        tmp_path, pa.table({"task": [23521, 1], "video": ["x", "y"], "step": [1, 2], "t": [0, 1]}), CROSSTASK_FREE
    )
    assert rows == [("23521", "x", 1, 0.0), ("1", "y", 2, 1.0)]


@pytest.mark.parametrize(
    ("protocol", "header"),
    [
        (HTSTEP_R1, "video-id,label,t"),
        (HTSTEP_MAP, "video-id,t-start,t-end,label,score"),
        (CROSSTASK_FREE, "task,video,step,t"),
        (CROSSTASK_ARTICLES_RECALL, "task,video-id,headline,t-start,t-end,score"),
        (HTM_ALIGN_R1, "video-id,index,t,score"),
    ],
)
def test_each_protocol_names_its_columns(tmp_path: Path, protocol: Protocol, header: str) -> None:
    assert set(protocol.columns) == set(header.split(","))
    rows = read(tmp_path, f"{header}\n{','.join('1' * len(protocol.columns))}\n", protocol)
    assert len(rows) == 1
    for missing in protocol.columns:
        kept = [name for name in protocol.columns if name != missing]
        said = refusal(tmp_path, ",".join(kept) + "\n" + ",".join("1" * len(kept)) + "\n", protocol)
        assert f"has no column {missing};" in said and f"{protocol.name} takes {','.join(protocol.columns)}" in said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty: a header with video-id,label,t is expected"),
        ("\n\r\n", "is empty: a header with video-id,label,t is expected"),
        ("\ufeff", "is empty: a header with video-id,label,t is expected"),
        (HEADER, "has no predictions: rows of video-id,label,t are expected"),
        (HEADER.strip(), "has no predictions: rows of video-id,label,t are expected"),
        (HEADER + "\n\n", "has no predictions: rows of video-id,label,t are expected"),
        (table().slice(0, 0), "has no predictions: rows of video-id,label,t are expected"),
        ("a,1,2\n", "no column video-id, label, t; its columns are 'a', '1', '2'; htstep-r1 takes video-id,label,t"),
        ("video-id, label, t\na,1,2\n", "has no column label, t; its columns are 'video-id', ' label', ' t'"),
        ("video-id;label;t\na;1;2\n", "its columns are 'video-id;label;t'"),
        ("Video-ID,label,t\na,1,2\n", "has no column video-id;"),
        (pa.table({"x": [1]}), "has no column video-id, label, t; its columns are 'x'"),
        ("video-id,label,t,t\na,1,2,3\n", "has the column t more than once"),
        (pa.Table.from_arrays([pa.array([1])] * 4, ["video-id", "label", "t", "t"]), "has the column t more than once"),
        (bytes(range(256)), "cannot be read as CSV: 'utf-8' codec"),
        (CSV.encode("utf-16"), "cannot be read as CSV: 'utf-8' codec"),
        (HEADER.encode() + b"\xe9,1,2\n", "cannot be read as CSV: 'utf-8' codec"),
        (HEADER.encode() + 2**20 * b"a,1,2\n" + b"\xe9,1,2\n", "cannot be read as CSV: "),  # behind the first block
        (HEADER + '"a,1,2\nb,1,2\n', "row 1: 1 cells, 3 are expected: '\"a,1,2\\nb,1,2'"),
        (table([["a"], ["b"]]), "the column video-id holds list<element: string>, not text"),
        (table([{"x": 1}, None]), "the column video-id holds struct<x: int64>, not text"),
        (table([b"a", b"\xff"]), "the column video-id holds binary, not text"),
    ],
)  # fmt: skip
def test_files_that_are_none(tmp_path: Path, content: str | bytes | pa.Table, message: str) -> None:
    assert message in refusal(tmp_path, content)


def test_a_parquet_file_that_is_none(tmp_path: Path) -> None:
    assert "cannot be read as Parquet" in refusal(tmp_path, CSV, name="mine.parquet")
    assert "cannot be read as Parquet" in refusal(tmp_path, "", name="mine.parquet")
    pq.write_table(table(), tmp_path / "whole.parquet")
    cut = (tmp_path / "whole.parquet").read_bytes()[:-20]
    assert "cannot be read as Parquet" in refusal(tmp_path, cut, name="cut.csv")


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing.csv"):
        with pytest.raises(BadPredictions, match="there is no file of predictions at"):
            read_predictions(path, HTSTEP_R1)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (",1,2", "row 2: video-id is empty"),
        ("a,,2", "row 2: label is '', not a whole number"),
        ("a,1,", "row 2: t is '', not a number"),
        ("a,x,2", "row 2: label is 'x', not a whole number"),
        ("a,1.5,2", "row 2: label is '1.5', not a whole number"),
        ("a,-1,2", "row 2: label is '-1', not a whole number"),
        ("a,1e300,2", "row 2: label is '1e300', not a whole number from 0 to 999,999,999"),
        ("a,9000000000000000000,2", "not a whole number from 0 to 999,999,999"),
        ("a,nan,2", "row 2: label is 'nan', not a whole number"),
        ("a,1_0,2", "row 2: label is '1_0', not a whole number"),
        ("a,0x1,2", "row 2: label is '0x1', not a whole number"),
        ("a,1,two", "row 2: t is 'two', not a number"),
        ("a,1,nan", "row 2: t is 'nan', not a number"),
        ("a,1,inf", "row 2: t is 'inf', not a number"),
        ("a,1,-Infinity", "row 2: t is '-Infinity', not a number"),
        ("a,1,00:12", "row 2: t is '00:12', not a number"),
        ("a,1,2 s", "row 2: t is '2 s', not a number"),
        ('a,1,"2,5"', "row 2: t is '2,5', not a number"),
        ("a,1", "row 2: 2 cells, 3 are expected: 'a,1'"),
        ("a", "row 2: 1 cells, 3 are expected: 'a'"),
        ("a,1,2,3", "row 2: 4 cells, 3 are expected: 'a,1,2,3'"),
        ("v,4,1", "row 2: it repeats row 1: only one moment per label"),
        ("v,4.0,0", "row 2: it repeats row 1: only one moment per label"),
    ],
)
def test_malformed_rows_are_named(tmp_path: Path, cells: str, message: str) -> None:
    said = refusal(tmp_path, HEADER + "v,4,0\n" + cells + "\n")
    assert ": 1 rows are malformed, and nothing was scored" in said and message in said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (table(["a", None]), "row 2: video-id is empty"),
        (table(pa.nulls(2)), "2 rows are malformed"),
        (table(labels=[1, None]), "row 2: label is None, not a whole number"),
        (table(labels=[1.0, float("nan")]), "row 2: label is nan, not a whole number"),
        (table(labels=[1, 2**60 + 1]), "row 2: label is 1152921504606846977, not a whole number"),
        (table(labels=[[1], [2]]), "row 1: label is [1], not a whole number"),
        (table(times=[0, None]), "row 2: t is None, not a number"),
        (table(times=pa.array([0, 1], pa.duration("s"))), "row 2: t is datetime.timedelta(seconds=1), not a number"),
        (table(["a", "a"], ["1", "1.0"]), "row 2: it repeats row 1"),
    ],
)
def test_malformed_rows_of_parquet_are_named(tmp_path: Path, content: pa.Table, message: str) -> None:
    assert message in refusal(tmp_path, content)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("a,2,1,3,1", "row 2: it ends at 1.0 s, before it starts at 2.0 s"),
        ("a,1,2,3,nan", "row 2: score is 'nan', not a number"),
        ("a,1,2,3,-inf", "row 2: score is '-inf', not a number"),
        ("a,1,inf,3,1", "row 2: t-end is 'inf', not a number"),
        ("a,,2,3,1", "row 2: t-start is '', not a number"),
    ],
)
def test_malformed_segments_are_named(tmp_path: Path, cells: str, message: str) -> None:
    assert message in refusal(tmp_path, MAP_HEADER + "a,0,1,3,1\n" + cells + "\n", HTSTEP_MAP)


def test_odd_segments_that_make_sense(tmp_path: Path) -> None:
    """A moment, times before and far behind the video, scores of any sign, and the same row twice."""
    text = MAP_HEADER + "a,1,1,3,-5\na,-5,1e9,3,0\na,-5,1e9,3,0\na,-3,-2,3,1e300\n"
    assert [row[1:3] for row in read(tmp_path, text, HTSTEP_MAP)] == [(1, 1), (-5, 1e9), (-5, 1e9), (-3, -2)]


def test_the_same_step_of_another_task_or_video_is_no_repetition(tmp_path: Path) -> None:
    assert len(read(tmp_path, "task,video,step,t\n1,a,1,0\n2,a,1,0\n1,b,1,0\n1,a,2,0\n", CROSSTASK_FREE)) == 4
    said = refusal(tmp_path, "task,video,step,t\n1,a,1,0\n2,a,1,0\n1,a,1,5\n", CROSSTASK_FREE)
    assert "row 3: it repeats row 1: only one moment per step" in said
    assert "row 2: it repeats row 1" in refusal(tmp_path, "video-id,index,t,score\na,0,1,1\na,0,1,1\n", HTM_ALIGN_R1)


def test_a_row_is_counted_once_whatever_is_wrong_with_it(tmp_path: Path) -> None:
    said = refusal(tmp_path, HEADER + ",x,y\na,1,2\nb,x,y\n")
    assert ": 2 rows are malformed" in said and "row 1: video-id is empty" in said and "row 3: label is 'x'" in said


def test_rows_keep_their_numbers_whatever_else_is_wrong(tmp_path: Path) -> None:
    said = refusal(tmp_path, HEADER + "a,1\nb,x,2\n\nc,1,2,3\n")
    assert [line.split(" cells")[0] for line in said.splitlines()[1:]] == ["  row 1: 2", "  row 3: 4"]


def test_many_malformed_rows_are_counted_and_some_are_shown(tmp_path: Path) -> None:
    for wrong in ("a,1", "a,1,x", "v,1,2"):
        said = refusal(tmp_path, HEADER + "v,1,2\n" + 1500 * f"{wrong}\n").splitlines()
        assert "1,500 rows are malformed" in said[0] and len(said) == 12 and said[-1] == "  ... and 1,490 more"
        assert said[1].startswith("  row 2: ") and said[10].startswith("  row 11: ")


@pytest.mark.parametrize("longer", range(6))
def test_lines_in_cells_at_any_place_of_a_long_file(tmp_path: Path, longer: int) -> None:
    """Readers take a file in pieces: wherever one ends, a quoted line end is no end of a row."""
    cell = '"' + longer * "x" + 'one\ntwo, three\nfour"'
    rows = read(tmp_path, "video-id,label,t,note\n" + "".join(f"v{number},1,2,{cell}\n" for number in range(60_000)))
    assert len(rows) == 60_000 and rows[-1][0] == "v59999"
