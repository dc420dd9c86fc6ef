"""The main table and the submission: whose numbers they are, beside whose, what is missing, and what a server gets."""

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pytest

from flows.cli.main import main
from storage import Store
from tasks.evaluation.benchmarks.htstep import HTSTEP
from tasks.evaluation.families import label_of
from tasks.evaluation.results import ResultRow, read_results
from tasks.evaluation.stage import evaluate
from tasks.evaluation.submission import export_predictions
from tasks.importers.sources import forget_source, import_source
from tasks.pipeline.job import Job
from tasks.pipeline.run_record import record_run
from tasks.training.curriculum import Curriculum
from tasks.training.processes import alone
from tasks.training.settings import TrainingSettings
from tasks.training.stage import burn_in
from tests.tasks.evaluation.conftest import Measured

pytestmark = pytest.mark.slow

FUSED = ("htstep-r1", "R@1", ResultRow("vina", "fused"))


@pytest.fixture(scope="session")
def recorded(measured: Measured, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """As if `vina run` had measured it."""
    folder = tmp_path_factory.mktemp("recorded") / "store"
    shutil.copytree(measured.job.store, folder)
    job = measured.job.changed(store=str(folder))
    with record_run(Store(job.store), job.run_id, ["evaluation"], job.model_dump(), measures=True):
        evaluate(job)
    return measured._replace(job=job)


@pytest.fixture
def copy(recorded: Measured, tmp_path: Path) -> Iterator[Measured]:
    shutil.copytree(recorded.job.store, tmp_path / "store")
    yield recorded._replace(job=recorded.job.changed(store=str(tmp_path / "store")))


def stored(store: Store, protocol: str, label: str, split: str) -> float:
    rows = store.table("metrics").snapshot().read().to_pylist()
    (value,) = [
        row["value"]
        for row in rows
        if (row["protocol"], row["split"], row["metric"]) == (protocol, split, "R@1")
        and label_of(row["method"], row["pathway"]) == label
    ]
    return float(value)


def test_ours_stand_beside_the_papers_and_later_ones(recorded: Measured) -> None:
    found = read_results(recorded.store)
    assert found.run_id == "run-1"
    assert found.ours[FUSED] == [stored(recorded.store, "htstep-r1", "vina with narrations", "test_seen")]
    assert found.paper[FUSED] == 37.4 and found.paper["htm-align", "AUC", ResultRow("vina")] == 76
    later = {(protocol, row.label): value for (protocol, _, row), value in found.later.items()}
    assert later == {
        ("htstep-r1", "MPTVA"): 43.3, ("htm-align", "MPTVA"): 69.3, ("crosstask", "MPTVA"): 47.9,
        ("htstep-r1", "NSVA"): 46.4, ("htm-align", "NSVA"): 71.6, ("crosstask", "NSVA"): 46.7,
    }  # fmt: skip
    labels = [row.label for row in found.rows]
    assert labels.index("uniform") < labels.index("tan-lc") < labels.index("vina")


def test_all_seeds_of_the_runs_settings_are_taken_together_and_no_others(copy: Measured) -> None:
    for seed, changes in ((7, {}), (8, {}), (7, {"layers": 1})):
        settings = copy.job.settings_of(TrainingSettings).changed(
            seed=seed, tan_epochs=1, epochs=1, burn_in_epochs=1, **changes
        )
        own = copy.job.changed(settings)
        burn_in(own)
        evaluate(own)
    newest = copy.job.changed(settings.changed(layers=2), run_id="run-9")
    with record_run(copy.store, newest.run_id, ["rounds", "evaluation"], newest.model_dump(), measures=True):
        pass
    found = read_results(copy.store)
    assert found.run_id == "run-9" and len(found.ours[FUSED]) == 2, "seeds 7 and 8"
    assert len(found.ours["htstep-r1", "R@1", ResultRow("uniform")]) == 1
    model_id = Curriculum(copy.job, alone("cpu")).student_id
    own = copy.store.table("metrics").snapshot().where(model_id=model_id, benchmark="htstep").read().to_pylist()
    (value,) = [
        row["value"]
        for row in own
        if (row["method"], row["pathway"], row["split"]) == ("vina", "fused", "test_seen") and row["metric"] == "R@1"
    ]
    assert read_results(copy.store, "run-1").ours[FUSED] == [value]


def test_validation_videos_stand_beside_the_papers_validation_videos(copy: Measured) -> None:
    """HT-Step's public annotations are of validation videos alone."""
    table = copy.store.table("metrics")
    for shard in table.snapshot().where(benchmark="htstep").shards:
        partition = {"model_id": str(shard.constants["model_id"]), "benchmark": "htstep"}
        rows = table.snapshot().where(**partition, _shard=shard.name).read(table.schema.files.names)
        public = rows.filter(pc.equal(rows["split"], "val_seen"))
        table.commit(public, partition, shard.name, fingerprint="val", run_id="run-1")
    found = read_results(copy.store)
    assert (found.paper[FUSED], found.paper["htstep-r1", "R@1", ResultRow("tan-lc")]) == (39.1, 30.7)
    assert not [key for key in found.later if key[0] == "htstep-r1"], "those are of test videos"
    assert found.paper["htm-align", "R@1", ResultRow("vina")] == 66.5


def test_another_split_is_shown_if_it_is_asked_for(copy: Measured, capsys: pytest.CaptureFixture[str]) -> None:
    """As if HT-Step's validation videos were of unseen activities."""
    table = copy.store.table("metrics")
    for shard in table.snapshot().where(benchmark="htstep").shards:
        partition = {"model_id": str(shard.constants["model_id"]), "benchmark": "htstep"}
        rows = table.snapshot().where(**partition, _shard=shard.name).read(table.schema.files.names)
        splits = pc.replace_substring(rows["split"], "val_seen", "test_unseen")
        unseen = rows.set_column(rows.column_names.index("split"), "split", splits)
        table.commit(unseen, partition, shard.name, fingerprint="unseen", run_id="run-1")
    seen, unseen = read_results(copy.store), read_results(copy.store, split="test_unseen")
    assert seen.ours[FUSED] == [stored(copy.store, "htstep-r1", "vina with narrations", "test_seen")]
    assert unseen.ours[FUSED] == [stored(copy.store, "htstep-r1", "vina with narrations", "test_unseen")]
    assert seen.paper[FUSED] == 37.4 and not unseen.paper and not unseen.later
    assert "htstep: measured on test_seen, 4 videos; also on test_unseen (--split NAME)" in seen.notes
    assert "htstep: measured on test_unseen, 4 videos; also on test_seen (--split NAME)" in unseen.notes
    assert main(["results", "--store", copy.job.store, "--split", "test_unseen"]) == 0
    assert "htstep: measured on test_unseen" in capsys.readouterr().out
    assert main(["results", "--store", copy.job.store, "--split", "typo"]) == 1
    assert "nothing is measured on split 'typo', only on all, test, test_seen, test_unseen" in capsys.readouterr().err


def test_a_run_that_failed_hides_nothing_and_an_unknown_one_is_refused(copy: Measured) -> None:
    failed = copy.job.changed(run_id="run-8")
    with pytest.raises(RuntimeError), record_run(copy.store, "run-8", ["any"], failed.model_dump(), measures=True):
        raise RuntimeError("at once")
    with record_run(copy.store, "run-10", ["import"], copy.job.model_dump()):
        pass  # a later run that measures nothing
    assert read_results(copy.store).run_id == "run-1"
    with pytest.raises(ValueError, match="there is no run 'typo'"):
        read_results(copy.store, "typo")


def test_what_is_missing_is_named_with_its_remedy(copy: Measured, tmp_path: Path) -> None:
    notes = "\n".join(read_results(copy.store).notes)
    assert "tan-pe-lc: not trained as in run run-1: `vina ablate main --seeds 0 --set selection=metadata`" in notes
    assert "s3d-milnce-joint zero-shot: there are no features in its joint space" in notes
    assert "clip-vit-b-32" in notes and "htstep: measured on test_seen, 4 videos" in notes
    forget_source(copy.store, "crosstask")
    assert "crosstask: no annotations are imported: `vina import crosstask PATH`" in read_results(copy.store).notes
    empty = read_results(Store(tmp_path / "empty"))
    assert empty.run_id is None and not empty.ours
    assert "no run has measured a model yet: `vina run`, or `vina ablate main`" in empty.notes


def test_the_command_prints_it(recorded: Measured, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "--store", recorded.job.store]) == 0
    said = capsys.readouterr().out
    value = stored(recorded.store, "htstep-r1", "vina with narrations", "test_seen")
    (line,) = [line for line in said.splitlines() if "│ vina with narrations  " in line and f"{value:.1f} [" in line]
    assert line
    assert "vina with narrations, in the paper" in said and "MPTVA, published later" in said
    assert main(["results", "--store", recorded.job.store, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (row,) = [
        row
        for row in answer["numbers"]
        if (row["protocol"], row["metric"], row["method"]) == ("htstep-r1", "R@1", "vina with narrations")
    ]
    assert row["pathway"] == "fused"
    assert (row["ours"], row["paper"], row["later"]) == ([value], 37.4, None)


def read(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_the_servers_file(
    recorded: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", "htstep", "run-1", "--store", recorded.job.store]) == 0
    said = capsys.readouterr().out
    assert "by vina with narrations of vina@" in said and "on 4 of the 4 videos of test_seen" in said
    assert (tmp_path / "htstep-test_seen.csv").read_text().splitlines()[0] == "video-id,t-start,t-end,label,score"
    rows = read(tmp_path / "htstep-test_seen.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["htstep-test_seen.csv"]
    snapshot = recorded.store.table("predictions").snapshot()
    kept = snapshot.where(protocol="htstep-map", method="vina", pathway="fused").read().to_pylist()
    videos = recorded.store.table("videos").snapshot().where(source="htstep").read().to_pylist()
    tested = {row["video_id"] for row in videos if row["split"] == "test_seen"}
    expected = [(row["video_id"], row["label"]) for row in kept if row["video_id"] in tested]
    assert [(row["video-id"], int(row["label"])) for row in rows] == expected
    assert all(0 <= float(row["t-start"]) < float(row["t-end"]) for row in rows)
    model_id = Curriculum(recorded.job, alone("cpu")).student_id
    named = export_predictions(recorded.store, HTSTEP, model_id, "val_seen", tmp_path / "val.csv", "vina", "direct")
    assert (named.model_id, named.method, named.pathway, named.num_videos) == (model_id, "vina", "direct", 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "there is no run 'nobody' that trained or measured a model"),
        (["vina@00000000"], "vina@00000000 has no predictions for HT-Step; models that have some: all-MiniLM"),
        (["run-1", "--split", "x"], "HT-Step has no split 'x' in the store; there are test_seen, train, val_seen"),
        (
            ["run-1", "--method", "y"],
            "run-1 has no method 'y': choose --method 'vina' --pathway 'direct' or --method 'vina' --pathway 'fused'",
        ),
        (["run-1", "--pathway", "indirect"], "run-1 has no pathway 'indirect': choose --method 'vina' --pathway"),
        (["run-1", "--split", "train"], "has no predictions for train: its videos need features"),
    ],
)
def test_what_cannot_be_exported_is_said(
    recorded: Measured, arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ["--store", recorded.job.store, "--output", str(tmp_path / "x.csv")]
    assert main(["export", "htstep", *arguments, *output]) == 1
    assert message in capsys.readouterr().err and not (tmp_path / "x.csv").exists()


def test_videos_that_only_the_server_has_annotated_are_predicted(copy: Measured, tmp_path: Path) -> None:
    """Their activity is known by HowTo100M's metadata."""
    shutil.copytree(copy.corpus / "htstep", tmp_path / "htstep")
    path = tmp_path / "htstep/annotations.json"
    public = {name: entry for name, entry in json.loads(path.read_text()).items() if entry["subset"] != "test_seen"}
    path.write_text(json.dumps(public))
    before = export_predictions(copy.store, HTSTEP, "run-1", "test_seen", tmp_path / "before.csv")
    forget_source(copy.store, "htstep")
    import_source(copy.store, "run-2", "htstep", tmp_path / "htstep")
    job = Job.of(copy.job.store, "run-2", copy.job.settings_of(TrainingSettings))
    evaluate(job)
    rows = copy.store.table("metrics").snapshot().where(model_id=before.model_id, benchmark="htstep").read()
    assert set(rows["split"].to_pylist()) == {"val_seen"}, "nothing can be measured where nothing is annotated"
    found = export_predictions(copy.store, HTSTEP, before.model_id, "test_seen", tmp_path / "after.csv")
    assert found == before and read(tmp_path / "after.csv") == read(tmp_path / "before.csv")
