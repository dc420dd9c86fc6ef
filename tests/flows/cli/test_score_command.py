"""`vina score`: what a researcher types, reads, pipes into scripts, and gets wrong."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from flows.cli.main import main
from tasks.evaluation.benchmarks.registry import find_protocol
from tests.flows.cli.command import vina, vina_process
from tests.tasks.evaluation.small_benchmarks import (
    HEADERS,
    HTSTEP_STEPS,
    HTSTEP_VIDEOS,
    ROWS,
    VALUES,
    Cell,
    csv_text,
    htstep_files,
    write_data,
    write_files,
)

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.filterwarnings("error")


def written(folder: Path, benchmark: str, rows: Sequence[Sequence[Cell]] | None = None) -> list[str]:
    """The arguments that score predictions made by hand, or others, against a data set made by hand."""
    path = folder / "mine.csv"
    path.write_text(csv_text(benchmark, rows))
    return ["score", benchmark, "--data", str(write_data(folder, benchmark)), "--predictions", str(path)]


def answered(capsys: Capture, arguments: Sequence[str]) -> dict[str, Any]:
    """What scripts get: nothing but strict JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    code = main([*arguments, "--json"])
    answer = capsys.readouterr()
    assert (code, answer.err) == (0, "")
    return dict(json.loads(answer.out, parse_constant=refuse))


def refused(capsys: Capture, arguments: Sequence[str]) -> str:
    """The message of a command that fails."""
    code = main(arguments)
    answer = capsys.readouterr()
    assert (code, answer.out) == (1, "") and answer.err.startswith("vina: ")
    return answer.err


@pytest.mark.parametrize("benchmark", list(ROWS))
def test_every_benchmark_for_scripts(tmp_path: Path, capsys: Capture, benchmark: str) -> None:
    found = answered(capsys, written(tmp_path, benchmark))
    assert {name: part["value"] for name, part in found["metrics"].items()} == pytest.approx(VALUES[benchmark])
    assert all(0 <= part["low"] <= part["high"] <= 100 for part in found["metrics"].values())
    split = "val_seen" if benchmark.startswith("htstep") else "test"
    assert (found["protocol"], found["version"], found["split"]) == (benchmark, 1, split)
    assert found["num_predictions"] == len(ROWS[benchmark])


@pytest.mark.parametrize("benchmark", list(ROWS))
def test_every_benchmark_for_people(tmp_path: Path, capsys: Capture, benchmark: str) -> None:
    assert main(written(tmp_path, benchmark)) == 0
    answer = capsys.readouterr()
    first, *lines = answer.out.splitlines()
    assert first.startswith(f"{benchmark}, version 1: {len(ROWS[benchmark])} predictions on ") and not answer.err
    for line, (name, value) in zip(lines, VALUES[benchmark].items(), strict=False):
        assert line.split()[: len(name.split())] == name.split() and f" {value:.2f} %   (95 % interval " in line


def test_parquet_gives_the_same(tmp_path: Path, capsys: Capture) -> None:
    *arguments, path = written(tmp_path, "htstep-map")
    rows = pacsv.read_csv(path, convert_options=pacsv.ConvertOptions(column_types={"video-id": pa.string()}))
    pq.write_table(rows, tmp_path / "mine.parquet")
    assert answered(capsys, [*arguments, path]) == answered(capsys, [*arguments, str(tmp_path / "mine.parquet")])


def test_the_command_as_a_process(tmp_path: Path) -> None:
    answer = vina_process(*written(tmp_path, "htstep-r1"))
    assert answer.returncode == 0 and "R@1   50.00 %" in answer.stdout and not answer.stderr
    assert not (tmp_path / "vina-store").exists() and not Path("vina-store").exists()
    wrong = vina_process(*written(tmp_path, "htstep-r1", [("-dash", 10, "x")]))
    assert wrong.returncode == 1 and "row 1: t is 'x', not a number" in wrong.stderr
    assert "Traceback" not in wrong.stderr and not wrong.stdout


def test_help_has_an_example_and_the_columns() -> None:
    answer = vina("score", "--help")
    assert answer.returncode == 0 and "example:\n  vina score htstep-map" in answer.stdout
    for benchmark, columns in HEADERS.items():
        (line,) = [line for line in answer.stdout.splitlines() if line.startswith(f"  {benchmark}: ")]
        assert sorted(line.split(": ")[1].split(",")) == sorted(columns.split(","))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score"], "BENCHMARK"),
        (["score", "coin", "--data", ".", "--predictions", "x"], "invalid choice: 'coin'"),
        (["score", "crosstask-ordered", "--data", ".", "--predictions", "x"], "invalid choice"),
        (["score", "htstep-map", "--predictions", "x"], "--data"),
        (["score", "htstep-map", "--data", "."], "--predictions"),
        (["score", "crosstask", "--data", ".", "--predictions", "x", "--draws", "-1"], "not a whole number"),
        (["score", "crosstask", "--data", ".", "--predictions", "x", "--seed", "1.5"], "not a whole number"),
        (["score", "crosstask", "--data", ".", "--predictions", "x", "--fast"], "unrecognized arguments: --fast"),
    ],
)
def test_wrong_commands_are_code_2(capsys: Capture, arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    answer = capsys.readouterr()
    assert stop.value.code == 2 and message in answer.err and not answer.out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--draws", "0"], "--draws is 0: draw 1 to 1,000 test sets"),
        (["--draws", "1000000"], "--draws is 1000000: draw 1 to 1,000 test sets"),
        (["--split", "validation"], "there is no split validation: choose --split test or all"),
        (["--predictions", "{folder}"], "there is no file of predictions at {folder}"),
        (["--predictions", "{folder}/nothing.csv"], "there is no file of predictions at {folder}/nothing.csv"),
        (["--data", "{folder}/nowhere"], "there is nothing at {folder}/nowhere: name a file or a folder"),
        (["--data", "{folder}/empty"], "nothing to import at {folder}/empty: crosstask knows tasks_primary.txt"),
        (["--data", "{folder}/data/annotations"], "has no annotations that crosstask is measured on; 4 rejected: unk"),
        (["--data", "{folder}/data/videos.csv"], "has no annotations that crosstask is measured on"),
    ],
)
def test_what_cannot_be_scored_is_code_1(tmp_path: Path, capsys: Capture, more: list[str], message: str) -> None:
    (tmp_path / "empty").mkdir()
    arguments = written(tmp_path, "crosstask") + [part.format(folder=tmp_path) for part in more]
    said = refused(capsys, arguments)
    assert message.format(folder=tmp_path) in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("benchmark", "other"),
    [
        (benchmark, other)
        for benchmark in ROWS
        for other in ROWS
        if find_protocol(benchmark)[0].source != find_protocol(other)[0].source and other != "htstep-r1"
    ],
)
def test_the_data_of_another_benchmark(tmp_path: Path, capsys: Capture, benchmark: str, other: str) -> None:
    (tmp_path / "other").mkdir()
    arguments = [*written(tmp_path, benchmark), "--data", str(write_data(tmp_path / "other", other))]
    said = refused(capsys, arguments)
    assert "nothing to import at" in said or f"has no annotations that {benchmark} is measured on" in said


def test_annotations_without_their_taxonomy(tmp_path: Path, capsys: Capture) -> None:
    arguments = written(tmp_path, "htstep-map")
    (tmp_path / "data/taxonomy.csv").unlink()
    assert "has no annotations that htstep-map is measured on; 5 rejected: unknown step" in refused(capsys, arguments)


def test_damaged_annotations(tmp_path: Path, capsys: Capture) -> None:
    arguments = written(tmp_path, "htstep-map")
    path = tmp_path / "data/annotations.json"
    path.write_text(path.read_text()[:-40])
    said = refused(capsys, arguments)
    assert f"{tmp_path}/data cannot be read: " in said and "annotations.json, line 1" in said


def test_a_pickle_that_was_converted_may_stay_where_it_is(tmp_path: Path, capsys: Capture) -> None:
    arguments = written(tmp_path, "crosstask-articles")
    (tmp_path / "data/crosstask_test.pkl").write_bytes(b"any")
    found = answered(capsys, arguments)
    assert found["metrics"]["R@50 IoU 0.1"]["value"] == pytest.approx(50)


def test_rejected_annotations_are_said(tmp_path: Path, capsys: Capture) -> None:
    arguments = written(tmp_path, "crosstask")
    (tmp_path / "data/annotations/1_-v.csv").write_text("3,1,2\n9,1,2\n3,5,4\n")
    found = answered(capsys, arguments)
    assert found["metrics"]["recall"]["value"] == pytest.approx(VALUES["crosstask"]["recall"])
    assert f"in {tmp_path}/data, 1 rejected: unknown step" in found["notes"]
    assert f"in {tmp_path}/data, 1 rejected: end before start" in found["notes"]


def test_test_sets_without_a_validation_list_are_said(tmp_path: Path, capsys: Capture) -> None:
    arguments = written(tmp_path, "crosstask")
    (tmp_path / "data/videos_val.csv").unlink()
    found = answered(capsys, arguments)
    assert found["num_videos"] == 4 and found["metrics"]["recall"]["value"] == pytest.approx(87.5)
    assert any("no videos_val.csv was found" in note for note in found["notes"])


def test_splits_of_htstep_must_be_named_where_there_are_several(tmp_path: Path, capsys: Capture) -> None:
    arguments = written(tmp_path, "htstep-r1")
    files = htstep_files(HTSTEP_VIDEOS, HTSTEP_STEPS, {"007": "test_seen", "1234567": "train"})
    write_files(tmp_path / "data", files)
    assert "no split was given: choose --split test_seen or val_seen" in refused(capsys, arguments)
    for split in ("val_unseen", "train"):
        said = refused(capsys, [*arguments, "--split", split])
        assert ": choose --split test_seen or val_seen" in said
    for split, recall in (("val_seen", 50), ("test_seen", 100)):
        found = answered(capsys, [*arguments, "--split", split])
        assert (found["split"], found["num_videos"], found["metrics"]["R@1"]["value"]) == (split, 1, recall)


@pytest.mark.parametrize("benchmark", list(ROWS))
def test_predictions_for_other_videos_only(tmp_path: Path, capsys: Capture, benchmark: str) -> None:
    rows = [["nobody" if isinstance(cell, str) else cell for cell in row] for row in ROWS[benchmark][:1]]
    said = refused(capsys, written(tmp_path, benchmark, rows))
    assert "no prediction in" in said and "nobody" in said and "mine.csv" in said
    assert f"the annotations in {tmp_path}/data have " in said


def test_some_unknown_videos_and_some_missing_ones(tmp_path: Path, capsys: Capture) -> None:
    assert main(written(tmp_path, "htstep-r1", [("-dash", 10, 10), ("nobody", 1, 1)])) == 0
    told = capsys.readouterr().out
    assert "R@1   25.00 %" in told and "note: 2 of 3 videos have no prediction, e.g. 007, 1234567: missed" in told
    assert "note: 3 of 4 annotated labels have no prediction in their video, e.g. label 11 of -dash: missed" in told
    assert "note: 1 predictions are for videos that are not annotated in this split, e.g. nobody: not counted" in told


def test_what_cannot_be_measured_is_null(tmp_path: Path, capsys: Capture) -> None:
    arguments = written(tmp_path, "htm-align")
    (tmp_path / "data/htm_align.json").write_text('{"first": [[1, 1.5, 2, "x"]]}')
    found = answered(capsys, arguments)["metrics"]
    assert found["AUC"] == {"value": None, "low": None, "high": None} and found["R@1"]["value"] == 100


def test_seeds_and_draws(tmp_path: Path, capsys: Capture) -> None:
    """45 videos of a task, each test set 15 of them; half of all are right."""
    names = [f"7_v{number}" for number in range(45)]
    files = {f"annotations/{name}.csv": "1,0,1\n" for name in names}
    files["tasks_primary.txt"] = "7\nStir\nurl\n1\nstir\n"
    files["videos.csv"] = "".join(f"{name.replace('_', ',')},url\n" for name in names)
    arguments = written(tmp_path, "crosstask", [(7, f"v{number}", 1, number % 2) for number in range(45)])
    shutil.rmtree(tmp_path / "data")
    write_files(tmp_path / "data", files)

    def recall(*more: str) -> float:
        found = answered(capsys, [*arguments, *more])
        assert found["num_videos"] == (45 if "all" in more else 15)
        return float(found["metrics"]["recall"]["value"])

    assert recall() == recall("--seed", "0") == recall("--split", "test", "--draws", "20")
    assert len({recall("--seed", str(seed)) for seed in range(3)}) == 3 and recall() != recall("--draws", "19")
    one = recall("--draws", "1") * 15 / 100
    assert one == pytest.approx(round(one))
    assert [recall("--split", "all", "--seed", str(seed)) for seed in range(3)] == pytest.approx([2300 / 45] * 3)


@pytest.mark.slow
@pytest.mark.parametrize(("form", "num_rows"), [("parquet", 2_000_000), ("csv", 1_000_000)])
def test_millions_of_rows(tmp_path: Path, capsys: Capture, form: str, num_rows: int) -> None:
    """200 activities of 10 videos. Each video has one right detection among wrong ones.

    In even activities it is the best, and the average precision 1. In odd ones a wrong one of each video is better:
    behind 10 wrong ones the tenth right one has a precision of 10 / 20, and so the average precision is 0.5.
    """
    videos = {f"v{number:04}": (f"Activity {number % 200}", "none", [(number % 200, 0, 10)]) for number in range(2000)}
    steps = {(f"Activity {number}", "none"): (number,) for number in range(200)}
    data = write_files(tmp_path / "data", htstep_files(videos, steps))
    numbers, places = np.divmod(np.arange(num_rows), num_rows // 2000)
    rng = np.random.default_rng(0)
    starts = np.where(places == 0, 0, 20 + 60 * rng.random(num_rows))
    scores = np.select([places == 0, (places == 1) & (numbers % 2 == 1)], [0.8, 0.9], 0.7 * rng.random(num_rows))
    names = pa.DictionaryArray.from_arrays(numbers.astype(np.int32), list(videos)).cast(pa.string())
    columns = {"video-id": names, "t-start": starts, "t-end": starts + 10, "label": numbers % 200, "score": scores}
    rows = pa.table(columns).take(rng.permutation(num_rows))
    write = pq.write_table if form == "parquet" else pacsv.write_csv
    write(rows, path := tmp_path / f"mine.{form}")
    found = answered(capsys, ["score", "htstep-map", "--data", str(data), "--predictions", str(path)])
    assert found["num_predictions"] == num_rows and found["notes"] == []
    assert [part["value"] for part in found["metrics"].values()] == pytest.approx([75] * 6)
