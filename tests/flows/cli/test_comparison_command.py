"""`vina stats --compare A B`: stores, folders of data sets and demo worlds, and what is said of wrong ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tasks.importers.sources import import_source
from tests.flows.cli.command import vina
from tests.flows.cli.test_statistics_command import lines
from tests.tasks.evaluation.test_statistics import import_by_hand

WORLD = "demo:short,num_videos=20,num_articles=4,num_rendered=0,feature_width=8"


@pytest.fixture
def htstep(tmp_path: Path) -> str:
    """A store; the files of the data set are in `htstep` beside it."""
    return import_by_hand(Store(tmp_path / "a store"), "htstep", tmp_path).uri


@pytest.fixture
def coin(tmp_path: Path) -> Path:
    """A folder with COIN's file: twice the video of 40 s that `htstep` has, in the split `testing`, and another."""
    shown = [("8", 10, 30), ("9", 15, 20), ("10", 30, 40), ("11", 39, 40)]
    video = {"class": "FryRice", "subset": "testing", "duration": 40}
    video |= {"annotation": [{"id": step, "segment": [start, end], "label": step} for step, start, end in shown]}
    path = tmp_path / "any name/COIN.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"database": {"a": video, "b": video, "c": video | {"subset": "training"}}}))
    return path.parent


def compared(*arguments: str) -> dict[str, Any]:
    answer = vina("stats", *arguments, "--json")
    assert answer.returncode == 0, answer.stderr
    values: dict[str, Any] = json.loads(answer.stdout)
    return values


def test_a_folder_beside_a_store_in_a_table(htstep: str, coin: Path) -> None:
    answer = vina("stats", "--compare", htstep, str(coin))
    assert answer.returncode == 0 and not answer.stderr
    first, second, *_, last = answer.stdout.splitlines()
    left_out = "left out: 1 without a known length, 1 with a segment after their end"
    assert first == f"A: {htstep}, htstep, split all: 2 videos; {left_out}"
    assert second == f"B: {coin}, coin, split all: 3 videos"
    rows = lines(answer.stdout)
    assert len(rows) == 19 and rows["video length, s, mean"] == ["70.0", "40.0", "+30.0", "no"]
    assert rows["share of its steps shown, mean"] == ["0.550", "1.000", "-0.450", "no"]
    assert rows["shown steps with several segments"] == ["0.200", "0.000", "+0.200", "no"]
    num_within = sum(cells[-1] == "yes" for cells in rows.values())
    assert last == f"{num_within} of 19 within tolerance" and 0 < num_within < 19


def test_a_split_restricts_the_side_that_has_it(htstep: str, coin: Path) -> None:
    found = compared("coin", "--compare", htstep, str(coin), "--split", "testing")
    assert (found["a"]["split"], found["b"]["split"], found["b"]["videos"]) == ("all", "testing", 2)
    found = compared("--compare", htstep, str(coin), "--split", "test_seen")
    assert (found["a"]["split"], found["a"]["videos"], found["b"]["split"]) == ("test_seen", 1, "all")
    (length, *_) = found["statistics"]
    assert length == {"statistic": "video length, s, median", "a": 40, "b": 40, "difference": 0,
                      "within_tolerance": True}  # fmt: skip
    assert found["compared"] == len(found["statistics"]) == 19
    assert found["within_tolerance"] == sum(row["within_tolerance"] for row in found["statistics"])


def test_files_are_the_same_as_a_store_with_them(htstep: str, tmp_path: Path) -> None:
    found = compared("--compare", htstep, str(tmp_path / "htstep"))
    assert found["within_tolerance"] == found["compared"] == 19
    assert found["a"] | {"address": ""} == found["b"] | {"address": ""}
    assert found["a"]["left_out"] == {"unknown_length": 1, "wrong_length": 1}
    assert not list(Path(htstep).glob("rejects*")), "the store is only read"


def test_a_demo_world(coin: Path) -> None:
    found = compared("htstep", "--compare", WORLD, WORLD)
    assert found["within_tolerance"] == found["compared"] == 21 and found["a"]["videos"] == 20
    assert found["statistics"][-2]["statistic"] == "narrations of a narrated video"
    found = compared("--compare", WORLD, str(coin))
    assert (found["a"]["benchmark"], found["b"]["benchmark"], found["compared"]) == ("htstep", "coin", 19)


def test_a_benchmark_is_named_where_there_are_several(htstep: str, coin: Path, tmp_path: Path) -> None:
    import_source(Store(htstep), "run-1", "coin", coin)
    answer = vina("stats", "--compare", str(coin), htstep)
    assert answer.returncode == 1
    assert "has annotations of coin, htstep: name one of them as BENCHMARK" in answer.stderr
    found = compared("htstep", "--compare", str(coin), htstep)
    assert (found["a"]["benchmark"], found["b"]["benchmark"]) == ("coin", "htstep")
    tea = import_by_hand(Store(tmp_path / "tea"), "crosstask", tmp_path)
    found = compared("--compare", htstep, tea.uri)
    assert (found["a"]["benchmark"], found["b"]["benchmark"]) == ("htstep", "crosstask")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--compare", "nowhere", "{coin}"), "there is nothing at nowhere: name a store"),
        (("--compare", "{coin}", "{empty}"), "is no store, and nothing in it is of a data set"),
        (("--compare", "{coin}", "{cut}"), "not read to its end: "),
        (("--compare", "{silent}", "{coin}"), "silent has no annotated steps"),
        (("htstep", "--compare", "{coin}", "{coin}"), "has no annotations of htstep, only of coin"),
        (("--compare", "{coin}", "{coin}", "--split", "x"), "there is no split 'x'; the splits are "),
        (("--compare", "{coin}", "demo:unheard"), "there is no preset 'unheard'"),
        (("--compare", "{timeless}", "{coin}"), "coin: none of the 1 annotated videos has a known length"),
    ],
)
def test_wrong_sides_are_told_in_one_line(coin: Path, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    folders = {name: tmp_path / name for name in ("empty", "cut", "silent", "timeless")}
    for folder in folders.values():
        folder.mkdir()
    (folders["empty"] / "readme.txt").write_text("nothing")
    (folders["cut"] / "COIN.json").write_text((coin / "COIN.json").read_text()[:200])
    import_by_hand(Store(folders["silent"]), "htm-align", tmp_path)
    database = {"a": {"class": "Tea", "annotation": [{"id": "1", "segment": [0, 1], "label": "boil"}]}}
    (folders["timeless"] / "COIN.json").write_text(json.dumps({"database": database}))
    answer = vina("stats", *(argument.format(coin=coin, **folders) for argument in arguments))
    assert answer.returncode == 1 and not answer.stdout
    assert message in answer.stderr and answer.stderr.count("\n") == 1


def test_rejects_are_told(coin: Path) -> None:
    path = coin / "COIN.json"
    database = json.loads(path.read_text())["database"] | {"odd": 1}
    path.write_text(json.dumps({"database": database}))
    answer = vina("stats", "--compare", str(path), str(path))
    assert answer.returncode == 0 and f"coin from {path}: rejected, wrong columns: 1" in answer.stderr


def test_a_benchmark_or_a_comparison_is_needed() -> None:
    for arguments in ((), ("coin",)):
        answer = vina("stats", *arguments)
        assert answer.returncode == 2 and "choose one of htstep, htm-align" in answer.stderr
    assert vina("stats", "--compare", "one").returncode == 2
