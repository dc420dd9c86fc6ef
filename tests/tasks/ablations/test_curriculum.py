"""The ablation's table: a number for every model and round of every seed, and nothing trained twice."""

from collections import Counter

import pytest

from flows.cli import main
from storage import Store
from tasks.ablations.curriculum import ablate_curriculum
from tests.tasks.conftest import TINY, MakeJob

SETTINGS = ["tan_epochs=1", "epochs=2", "burn_in_epochs=1"]


def test_every_seed_and_part_has_its_numbers(job: MakeJob) -> None:
    asked = job(tan_epochs=1, epochs=2, burn_in_epochs=1)
    results = list(ablate_curriculum(asked, [3, 4]))
    for seed in (3, 4):
        counts = Counter(result.subject for result in results if result.seed == seed)
        ways, measures = 4, 3
        assert counts == {
            "TAN*": 1, "burn-in": ways, "fixed labels": ways, "iterative labels": ways,
            "round 0": measures, "round 1": measures,
        }  # fmt: skip
    assert all(0 <= result.value <= 100 for result in results)
    store = Store(asked.store)
    written = store.table("metrics").snapshot().read().to_pylist()
    assert Counter(row["method"] for row in written if row["method"] in ("vina", "tan-lc")) == {"vina": 4, "tan-lc": 2}
    versions = {table.name: table.snapshot().version for table in store.tables()}
    assert list(ablate_curriculum(asked, [3, 4])) == results
    assert versions == {table.name: table.snapshot().version for table in store.tables()}, "nothing was to do"


def test_the_command_prints_means_and_spreads(job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    asked = job()
    names = (
        "selection",
        "width",
        "layers",
        "heads",
        "word_width",
        "hidden_width",
        "text_width",
        "batch_size",
        "device",
    )
    changes = [f"--set={change}" for change in (*SETTINGS, *(f"{name}={getattr(TINY, name)}" for name in names))]
    assert main(["ablate", "curriculum", "--store", asked.store, "--seeds", "0,1", *changes]) == 0
    said = capsys.readouterr().out
    assert "step R@1 on held-out videos, %: mean and standard deviation of 2 seeds" in said
    (line,) = [line for line in said.splitlines() if "iterative labels" in line]
    assert line.count("±") == 4
    (run,) = Store(asked.store).table("runs").snapshot().read().to_pylist()
    assert (run["stages"], run["state"]) == (["ablate curriculum"], "completed")


def test_rounds_that_keep_no_label_are_shown_and_no_rounds_are_refused(job: MakeJob) -> None:
    asked = job(tan_epochs=1, epochs=2, burn_in_epochs=1, keep_share=0.0, gamma=1.0)
    found = {(result.subject, result.measure): result.value for result in ablate_curriculum(asked, [0])}
    assert found["round 1", "kept_percent"] == 0 and ("round 1", "kept_right_percent") not in found
    with pytest.raises(ValueError, match="no round comes after the burn-in: set refresh_epochs"):
        list(ablate_curriculum(job(refresh_epochs=0), [0]))


def test_seeds_are_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ablate", "curriculum", "--seeds", "1,x"])
    assert "'1,x' is not a list of whole numbers, e.g. 0,1,2" in capsys.readouterr().err
