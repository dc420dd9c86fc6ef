"""`vina stats`: the tables, for people and for scripts, and what is said where there are none."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from flows.cli.main import main
from storage import Store
from tasks.evaluation.benchmarks.htstep import HTSTEP
from tasks.evaluation.statistics import read_statistics
from tests.flows.cli.command import vina
from tests.tasks.evaluation.test_statistics import import_by_hand


@pytest.fixture
def annotated(tmp_path: Path) -> str:
    return import_by_hand(Store(tmp_path / "a store"), "htstep", tmp_path).uri


def lines(text: str) -> dict[str, list[str]]:
    """The cells of each row of the printed tables, by the first."""
    rows = [[cell.strip() for cell in line.strip("│┃").split("│")] for line in text.splitlines() if "│" in line]
    return {name: cells for name, *cells in rows}


def test_the_tables_are_told_beside_the_papers_numbers(annotated: str) -> None:
    answer = vina("stats", "htstep", "--store", annotated)
    assert answer.returncode == 0, answer.stderr
    rows = lines(answer.stdout)
    assert rows["val_seen"] == ["3", "2", "11", "5", "6"] and rows["all"] == ["4", "2", "11", "8", "9"]
    assert rows["in the paper"] == ["600", "120", "1,204", "", "3,441"]
    assert rows["Boil an Egg"] == ["2", "2.0", "0.75", "0.25"]
    assert rows["average of the activities"] == ["", "2.0", "0.57", "0.50"]
    assert rows["in the paper, val and test"] == ["", "4.0", "0.42", "0.24"]
    assert "left out of video coverage, because their length is unknown: 1 videos" in answer.stdout


def test_one_split(annotated: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", "htstep", "--split", "val_seen", "--store", annotated]) == 0
    rows = lines(capsys.readouterr().out)
    assert "test_seen" not in rows and "all" not in rows
    assert rows["Fry Rice"] == ["1", "1.0", "0.20", "unknown"]


@pytest.mark.parametrize(
    ("activities", "arguments", "told"),
    [
        (3, (), "0 1 2"),
        (20, (), " ".join(map(str, range(20)))),
        (23, (), "0 1 2 3 4 5 6 7 8 9 | 3 more (--all) | 13 14 15 16 17 18 19 20 21 22"),
        (23, ("--all",), " ".join(map(str, range(23)))),
    ],
)
def test_the_best_and_the_worst_are_shown_or_all(
    annotated: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    activities: int,
    arguments: tuple[str, ...],
    told: str,
) -> None:
    found = read_statistics(Store(annotated), HTSTEP)
    rows = [found.activities[0] | {"activity": str(number)} for number in range(activities)]
    monkeypatch.setattr("flows.cli.commands.statistics.read_statistics", lambda *asked: replace(found, activities=rows))
    assert main(["stats", "htstep", "--store", annotated, *arguments]) == 0
    shown = list(lines(capsys.readouterr().out.split("averages over")[1]))[:-2]
    assert " ".join(f"| {name} |" if "more" in name else name for name in shown) == told


def test_scripts_get_everything(annotated: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", "htstep", "--json", "--split", "val_seen", "--store", annotated]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"] == [
        {"split": "val_seen", "videos": 3, "activities": 2, "steps": 11, "annotated_steps": 5, "segments": 6}
        | {"paper": {"videos": "600", "activities": "120", "steps": "1,204", "segments": "3,441"}}
    ]
    assert [row["activity"] for row in found["activities"]] == ["Boil an Egg", "Fry Rice"]
    assert found["activities"][1]["video_coverage"] is None
    assert found["averages"]["steps"] == 1.5 and found["averages"]["paper"]["step_coverage"] == "0.42"


def test_narrations_have_counts_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = import_by_hand(Store(tmp_path / "store"), "htm-align", tmp_path).uri
    assert main(["stats", "htm-align", "--store", store]) == 0
    told = capsys.readouterr().out
    assert lines(told) == {"test": ["2", "3", "2"], "in the paper": ["80", "", ""]} and "average" not in told
    assert main(["stats", "htm-align", "--json", "--store", store]) == 0
    assert json.loads(capsys.readouterr().out)["activities"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("crosstask",), "no annotations of crosstask: import them with `vina import crosstask PATH`"),
        (("crosstask-articles",), "with `vina import youwikihow PATH`"),
        (
            ("htstep", "--split", "it's"),
            'no split "it\'s" in the store, only test_seen, val_seen: import more with `vina import htstep',
        ),
    ],
)
def test_what_is_not_there_is_said_in_one_line(
    annotated: str, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert main(["stats", *arguments, "--store", annotated]) == 1
    answer = capsys.readouterr()
    assert message in answer.err and answer.err.count("\n") == 1 and not answer.out


def test_no_store_and_no_such_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", "htstep", "--store", str(tmp_path / "nothing")]) == 1
    assert "there is no store at" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(["stats", "coin"])
    assert stop.value.code == 2 and "htm-align" in capsys.readouterr().err


def test_help_has_an_example() -> None:
    answer = vina("stats", "--help")
    assert answer.returncode == 0 and "example:\n  vina stats htstep" in answer.stdout
