"""Every method on every benchmark: what is stored, beside the models' own matrices and what anyone's file scores."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pytest
import torch

from flows.cli.main import main
from storage import Store
from storage.catalogue import Catalogue
from tasks.demo_world.corpus import world_of
from tasks.demo_world.files import write_world
from tasks.evaluation.benchmarks.htm_align import HTM_ALIGN
from tasks.evaluation.benchmarks.htstep import HTSTEP
from tasks.evaluation.benchmarks.registry import BENCHMARKS, find_protocol
from tasks.evaluation.families import label_of
from tasks.evaluation.methods import rules, trained
from tasks.evaluation.predicting import as_in_files
from tasks.evaluation.queries import read_queries
from tasks.evaluation.stage import Evaluation, evaluate
from tasks.evaluation.text_methods import sentences_by_asr_times
from tasks.importers.settings import ImportSettings
from tasks.importers.sources import Options, forget_source, import_source
from tasks.importers.stage import import_corpus
from tasks.pairing.settings import PairingSettings
from tasks.pipeline.job import Job
from tasks.training.corpus import Corpus
from tasks.training.curriculum import Curriculum
from tasks.training.processes import alone
from tasks.training.settings import TrainingSettings
from tasks.training.stage import burn_in, rounds
from tasks.training.teachers import ask, read_pairs
from tests.tasks.conftest import TINY, MakeJob
from tests.tasks.evaluation.conftest import Measured
from vina_model.tan import PublishedTan
from vina_model.tokenizer import VOCABULARY_SIZE

pytestmark = pytest.mark.slow

RULES = {"random", "centre", "uniform", "truth"}
WITH = "vina with narrations"
PATHWAYS = {WITH, f"{WITH}, direct", f"{WITH}, indirect", f"{WITH}, indirect by ASR times"}
SENTENCES = "sentences by ASR times"
Segments = list[tuple[float, float]]


def rows_of(store: Store, protocol: str, split: str) -> dict[tuple[str, str], float]:
    """Values by the label of method and pathway, and by metric."""
    rows = store.table("metrics").snapshot().read().to_pylist()
    chosen = [row for row in rows if (row["protocol"], row["split"]) == (protocol, split)]
    assert all(row["low"] <= row["value"] <= row["high"] and row["num_missing"] == 0 for row in chosen)
    return {(label_of(row["method"], row["pathway"]), row["metric"]): row["value"] for row in chosen}


def truth(store: Store, split: str) -> list[tuple[str, str, Segments]]:
    """Video, headline and segments of what HT-Step annotates."""
    with Catalogue(store) as catalogue:
        rows = catalogue.query(f"""SELECT video_id, text, list((start_s, end_s)) AS segments FROM annotations
            WHERE benchmark = 'htstep' AND split = '{split}' GROUP BY ALL ORDER BY ALL""").to_pylist()
    return [(row["video_id"], row["text"], [tuple(part.values()) for part in row["segments"]]) for row in rows]


def is_right(second: float, segments: Segments) -> bool:
    return any(math.floor(start) <= second <= math.ceil(end) for start, end in segments)


def test_every_method_is_measured_on_every_benchmark(measured: Measured) -> None:
    store = measured.store
    assert "htstep, htm-align, crosstask, crosstask-articles" in measured.report
    models = {"tan-lc", "vina", WITH}
    for split in ("val_seen", "test_seen"):
        assert {name for name, _ in rows_of(store, "htstep-r1", split)} == RULES | {SENTENCES} | models | PATHWAYS
        assert {name for name, _ in rows_of(store, "htstep-map", split)} == RULES | {SENTENCES} | models
    assert {name for name, _ in rows_of(store, "htm-align", "test")} == RULES | {"tan-lc", "vina"}
    for protocol in ("crosstask", "crosstask-ordered"):
        assert {name for name, _ in rows_of(store, protocol, "test")} == RULES | {SENTENCES} | models
    assert len(rows_of(store, "crosstask-articles", "test")) == 6 * len(RULES | {SENTENCES} | models)
    rows = store.table("metrics").snapshot().read().to_pylist()
    assert all(row["protocol_version"] == find_protocol(row["protocol"])[1].version for row in rows)
    assert {row["seed"] for row in rows if row["method"] in ("tan-lc", "vina")} == {
        measured.job.settings_of(TrainingSettings).seed
    }


@pytest.mark.parametrize("split", ["val_seen", "test_seen"])
def test_step_recall_is_that_of_the_models_own_matrices(measured: Measured, split: str) -> None:
    work = Curriculum(measured.job, alone("cpu"))
    found, known = rows_of(measured.store, "htstep-r1", split), truth(measured.store, split)
    queries = read_queries(work.store, HTSTEP, work.corpus)
    articles, corpus = dict(queries.pairs), queries.corpus
    assert len(known) > 5
    for _, method, model in work.trained():
        hits: list[bool] = []
        for video, text, own in known:
            article = articles[video]
            scores = ask(model, read_pairs([(video, article)], corpus, model.tokenizer))
            best = (scores.fused_BST if method == "vina" else scores.sv_BST)[0, corpus.steps[article].index(text)]  # type: ignore[index]
            hits.append(is_right(int(best.argmax()), own))
        name = WITH if method == "vina" else method
        assert found[name, "R@1"] == pytest.approx(100 * np.mean(hits))
    evenly = []
    for video, text, own in known:
        steps, length = corpus.steps[articles[video]], corpus.num_seconds[video]
        middle = (steps.index(text) + 0.5) / len(steps) * length
        best = min(range(length), key=lambda second: abs(second + 0.5 - middle))
        evenly.append(is_right(best, own))
    assert found["uniform", "R@1"] == pytest.approx(100 * np.mean(evenly))


@pytest.mark.parametrize(
    ("protocol", "folder", "split"),
    [
        ("htstep-r1", "htstep", "test_seen"),
        ("htstep-map", "htstep", "val_seen"),
        ("crosstask", "crosstask", "test"),
        ("crosstask", "crosstask", "all"),
        ("crosstask-articles", "youwikihow", "test"),
        ("htm-align", "htm-align", "test"),
    ],
)
def test_stored_predictions_have_the_same_score_as_anyones_file(
    measured: Measured, protocol: str, folder: str, split: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pathway = "direct" if protocol == "htm-align" else "fused"
    known = rows_of(measured.store, protocol, split)
    rows = (
        measured.store.table("predictions").snapshot().where(protocol=protocol, method="vina", pathway=pathway).read()
    )
    pacsv.write_csv(as_in_files(rows, find_protocol(protocol)[1]), tmp_path / "mine.csv")
    data = str(measured.corpus / folder)
    asked = ["score", protocol, "--data", data, "--predictions", str(tmp_path / "mine.csv"), "--split", split]
    assert main([*asked, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    stored = {metric: value for (name, metric), value in known.items() if name == label_of("vina", pathway)}
    assert {metric: found["value"] for metric, found in answer["metrics"].items()} == pytest.approx(stored, abs=1e-4)


def test_what_was_measured_is_not_measured_again_until_something_changes(measured: Measured, tmp_path: Path) -> None:
    shutil.copytree(measured.job.store, tmp_path / "store")
    job = measured.job.changed(store=str(tmp_path / "store"))
    store = Store(job.store)
    versions = {table.name: table.snapshot().version for table in store.tables()}
    assert evaluate(job) == "nothing has changed since the last measurement"
    assert versions == {table.name: table.snapshot().version for table in store.tables()}
    forget_source(store, "htm-align")
    import_source(store, "run-2", "htm-align", measured.corpus / "htm-align")
    assert evaluate(job) == "nothing has changed since the last measurement", "the same annotations, imported anew"
    forget_source(store, "htm-align")
    annotated = json.loads((measured.corpus / "htm-align/htm_align.json").read_text())
    (tmp_path / "less").mkdir()
    (tmp_path / "less/htm_align.json").write_text(json.dumps(dict(list(annotated.items())[:4])))
    import_source(store, "run-3", "htm-align", tmp_path / "less")
    assert evaluate(job).startswith("6 measurements"), (
        "three rules, the truth, TAN* and VINA on the one benchmark that changed"
    )


def test_without_a_model_the_rules_are_measured(job: MakeJob) -> None:
    asked = job()
    evaluate(asked)
    assert {name for name, _ in rows_of(Store(asked.store), "htstep-r1", "test_seen")} == RULES | {SENTENCES}


def test_without_annotations_there_is_nothing_to_evaluate(tmp_path: Path) -> None:
    assert "no benchmark's annotations" in evaluate(Job.of(str(tmp_path / "store"), "run-1"))


def test_videos_without_features_are_counted_and_not_measured(job: MakeJob, small_world: Path, tmp_path: Path) -> None:
    asked = job()
    store = Store(asked.store)
    seen = {video for video, _, _ in truth(store, "test_seen")}
    left = sorted(seen)[1:]
    forget_source(store, "features", asked.settings_of(TrainingSettings).backbone)
    (tmp_path / "demo-concepts").mkdir()
    for video in left:
        name = f"{video}.mp4.npy"
        shutil.copy(small_world.parent / "corpus/features/demo-concepts" / name, tmp_path / "demo-concepts" / name)
    import_source(store, "run-2", "features", tmp_path / "demo-concepts")
    evaluate(asked)
    rows = store.table("metrics").snapshot().read().to_pylist()
    sizes = {(row["num_videos"], row["num_missing"]) for row in rows if row["split"] == "test_seen"}
    assert sizes == {(len(left), 1)}
    assert not [row for row in rows if row["split"] == "val_seen"], "none of its videos has features"


@pytest.mark.parametrize("switch", ["steps", "narrations"])
def test_a_student_without_some_input_is_trained_and_measured(job: MakeJob, switch: str) -> None:
    asked = job(**{switch: False}, tan_epochs=1, epochs=2, burn_in_epochs=1)
    burn_in(asked)
    rounds(asked)
    evaluate(asked)
    store = Store(asked.store)
    models = {"tan-lc", "vina"}
    assert {name for name, _ in rows_of(store, "htstep-r1", "test_seen")} == RULES | {SENTENCES} | models
    heard = {name for name, _ in rows_of(store, "htm-align", "test")}
    assert heard == (RULES | models if switch == "steps" else RULES | {"tan-lc"}), "one of steps alone hears nothing"


def test_where_nobody_speaks_nothing_is_said_of_narrations(measured: Measured, tmp_path: Path) -> None:
    shutil.copytree(measured.job.store, tmp_path / "store")
    job = measured.job.changed(store=str(tmp_path / "store"))
    store, (model_id, _, model) = Store(job.store), list(Curriculum(measured.job, alone("cpu")).trained())[1]
    forget_source(store, "howto100m")
    corpus = Corpus(store, job.settings_of(TrainingSettings).backbone, "metadata")
    Evaluation(store, "run-2").measure(trained(model_id, "vina", model, corpus, job.settings_of(TrainingSettings)))
    rows = store.table("metrics").snapshot().where(model_id=model_id, benchmark="crosstask").read().to_pylist()
    assert {(row["method"], row["pathway"]) for row in rows} == {("vina", "direct")}, (
        "with narrations it would be the same number under another name"
    )
    assert sentences_by_asr_times(store, "run-2", corpus, job.settings_of(PairingSettings)) is None


def test_padding_does_not_make_a_narration_alignable(measured: Measured) -> None:
    corpus = Corpus(measured.store, measured.job.settings_of(TrainingSettings).backbone, "metadata")
    queries = read_queries(measured.store, HTM_ALIGN, corpus)
    centre = next(method for method in rules(corpus) if method.family == "centre")
    for answer in centre.answer(queries):
        assert answer.alignable_BS is not None
        for row, (video, _) in enumerate(answer.pairs):
            nearest = 0.5 if corpus.num_seconds[video] % 2 == 0 else 0.0
            assert answer.alignable_BS[row, : len(queries.labels[video])].tolist() == [-nearest] * len(
                queries.labels[video]
            )


def test_held_out_videos_that_come_later_leave_the_models_their_names(measured: Measured, tmp_path: Path) -> None:
    """Who has trained may bring a benchmark's features and narrations, and measure what was trained."""
    shutil.copytree(measured.job.store, tmp_path / "store")
    job = measured.job.changed(store=str(tmp_path / "store"))
    store, before = Store(job.store), Curriculum(measured.job, alone("cpu"))
    (tmp_path / "crosstask/annotations").mkdir(parents=True)
    for name in ("tasks_primary.txt", "tasks_related.txt"):
        if (measured.corpus / "crosstask" / name).exists():
            shutil.copy(measured.corpus / "crosstask" / name, tmp_path / "crosstask" / name)
    task = (tmp_path / "crosstask/tasks_primary.txt").read_text().split()[0]
    (tmp_path / "crosstask/annotations" / f"{task}_later.csv").write_text("1,2,5\n")
    import_source(store, "run-2", "crosstask", tmp_path / "crosstask")
    (tmp_path / "features").mkdir()
    np.save(tmp_path / "features/later.npy", np.ones((20, before.corpus.video_width), np.float32))
    import_source(
        store, "run-2", "features", tmp_path / "features", Options(backbone=job.settings_of(TrainingSettings).backbone)
    )
    (tmp_path / "said").mkdir()
    (tmp_path / "said/said.json").write_text(json.dumps({"later": {"text": ["hello"], "start": [1], "end": [2]}}))
    import_source(store, "run-2", "howto100m", tmp_path / "said")
    after = Curriculum(job, alone("cpu"))
    assert (after.tan_id, after.student_id) == (
        before.tan_id,
        before.student_id,
    ) and "later" in after.corpus.num_seconds
    np.save(tmp_path / "features/another.npy", np.ones((20, before.corpus.video_width), np.float32))
    import_source(
        store, "run-3", "features", tmp_path / "features", Options(backbone=job.settings_of(TrainingSettings).backbone)
    )
    assert Curriculum(job, alone("cpu")).tan_id != before.tan_id, "this one may be trained on"


def test_both_variants_of_tan_are_measured(job: MakeJob) -> None:
    for positions in (False, True):
        Curriculum(job(tan_text_positions=positions, tan_epochs=1), alone("cpu")).train_tan()
    asked = job(tan_epochs=1)
    evaluate(asked)
    found = {name for name, _ in rows_of(Store(asked.store), "htstep-r1", "test_seen")}
    assert found == RULES | {SENTENCES, "tan-lc", "tan-pe-lc"}


def test_a_published_tan_is_measured_too(tmp_path: Path) -> None:
    world = world_of("demo:short,num_videos=10,num_articles=2,num_rendered=0,shown_share=0.8,feature_width=1024")
    write_world(world, tmp_path / "corpus")
    store = Store(tmp_path / "store")
    import_corpus(Job.of(store.uri, "import", ImportSettings(corpus=str(tmp_path / "corpus"))))
    torch.manual_seed(0)
    torch.save({"state_dict": PublishedTan().state_dict()}, tmp_path / "t.pth.tar")
    words = [f"word{number}" for number in range(VOCABULARY_SIZE - 2)] + ["stir", "the"]
    np.save(tmp_path / "s3d_dict.npy", np.array(words))
    settings = TINY.changed(tan=str(tmp_path / "t.pth.tar"))
    evaluate(Job.of(store.uri, "run-1", settings))
    rows = [row for row in store.table("metrics").snapshot().read().to_pylist() if row["method"] == "tan"]
    assert {row["protocol"] for row in rows} == {
        each.name for benchmark in BENCHMARKS for each in benchmark.protocols
    } and {row["seed"] for row in rows} == {None}
    assert all(row["model_id"].startswith("t.pth.tar@") for row in rows)
