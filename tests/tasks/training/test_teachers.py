"""Teachers write labels by the confidence that is set, and the matrices they were read from."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch

from storage import Store
from tasks.demo_world.corpus import world_of
from tasks.demo_world.files import BACKBONE, write_world
from tasks.importers.settings import ImportSettings
from tasks.importers.stage import import_corpus
from tasks.pipeline.job import Interrupted, Job
from tasks.training import teachers
from tasks.training.corpus import Corpus
from tasks.training.curriculum import Curriculum
from tasks.training.matrices import in_sample
from tasks.training.models import published_teacher
from tasks.training.processes import Processes, alone
from tasks.training.settings import TrainingSettings
from tasks.training.stage import burn_in, rounds
from tasks.training.teachers import ask, read_pairs
from tests.tasks.conftest import MakeJob
from tests.vina_model.golden import vocabulary
from vina_model.alignment import Alignment
from vina_model.batch import Batch
from vina_model.pseudo_labels import CONFIDENCES
from vina_model.tan import PublishedTan

pytestmark = pytest.mark.slow


def labels(store: Store, model_id: str, round_: int) -> list[dict[str, object]]:
    rows = store.table("pseudo_labels").snapshot().where(model_id=model_id, round=round_).read().to_pylist()
    return sorted(rows, key=lambda row: (row["video_id"], row["article_id"], row["step_row"]))


def test_the_matrices_of_all_videos_are_those_that_labels_were_read_from(job: MakeJob) -> None:
    asked = job(alignment_share=1.0, label_matrix="F")
    burn_in(asked)
    rounds(asked)
    work = Curriculum(asked, alone("cpu"))
    kept = work.store.table("alignments").snapshot()
    assert {shard.constants["matrix"] for shard in kept.where(round=0).shards} == {"SV", "NV"}, "TAN* knows no more"
    assert {shard.constants["matrix"] for shard in kept.where(round=1).shards} == {"SV", "NV", "SN", "SNV", "F"}
    fused = {
        (row["video_id"], row["article_id"], row["text_row"]): row["scores"]
        for row in kept.where(round=1, matrix="F").read().to_pylist()
    }
    rows = labels(work.store, work.student_id, 1)
    assert len(fused) == len(rows)
    for row in rows:
        scores = fused[row["video_id"], row["article_id"], row["step_row"]]
        assert len(scores) == work.corpus.num_seconds[str(row["video_id"])]
        assert (int(np.argmax(scores)), max(scores)) == (row["peak_s"], row["score"])
    narrated = kept.where(round=1, matrix="NV").read(["video_id"])["video_id"].to_pylist()
    assert all(narrated.count(name) == len(work.corpus.narrations(name).texts) for name in set(narrated))


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_sample_is_kept_and_the_same_in_every_round(job: MakeJob, share: float) -> None:
    asked = job(alignment_share=share)
    burn_in(asked)
    rounds(asked)
    work = Curriculum(asked, alone("cpu"))
    chosen = {name for name in work.corpus.paired if in_sample(name, share)}
    assert (0 < len(chosen) < len(work.corpus.paired)) == bool(share)
    kept = work.store.table("alignments").snapshot()
    for round_ in (0, 1, 2) if share else ():
        assert set(kept.where(round=round_).read(["video_id"])["video_id"].to_pylist()) == chosen
    assert bool(kept.shards) == bool(share)


def test_mutual_confidence_decides_where_it_is_asked_for(job: MakeJob) -> None:
    for confidence in ("peak", "mutual"):
        asked = job(confidence, confidence=confidence, keep_share=0.0, gamma=0.3)
        burn_in(asked)
        work = Curriculum(asked, alone("cpu"))
        rows = labels(work.store, work.student_id, 0)
        assert all(row["kept"] == (row["confidence"] >= row["gamma"]) for row in rows)
        assert all(row["confidence"] == row["score"] for row in rows) == (confidence == "peak")
        assert 0 < sum(bool(row["kept"]) for row in rows) < len(rows)


def test_every_confidence_that_may_be_set_is_there() -> None:
    assert get_args(TrainingSettings.model_fields["confidence"].annotation) == tuple(CONFIDENCES)


def test_labelling_that_is_asked_to_end_goes_on_later(job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teachers, "PAIRS_PER_SHARD", 10)
    asked = job()
    processes = Processes(0, 1, "cpu")
    work = Curriculum(asked, processes)
    work.train_tan()
    round_, teacher, batches = work.labels_of(0), work.teacher(0), 0

    def ends(batch: Batch) -> Alignment:
        nonlocal batches
        batches += 1
        if batches == 2:
            processes.asked_to_end.set()
        return teacher.align(batch)

    with pytest.raises(Interrupted, match="round 0: the shards that are labelled are saved: run it again to go on"):
        round_.make(round_.missing(), teacher._replace(align=ends), "first", processes)
    table = work.store.table("pseudo_labels")
    (first, *others) = table.snapshot().shards
    assert not others or len(others) == 1
    again = Curriculum(asked, alone("cpu")).labels_of(0)
    again.make(again.missing(), teacher, "second", alone("cpu"))
    shards = table.snapshot().shards
    assert len(shards) == 4 and first in shards, "what was there is not made again"


def test_every_process_labels_its_shards(job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teachers, "PAIRS_PER_SHARD", 10)
    monkeypatch.setattr(Processes, "total", lambda self, value: value)
    monkeypatch.setattr(Processes, "wait", lambda self: None)
    asked = job(alignment_share=1.0)
    table, matrices = (Store(asked.store).table(name) for name in ("pseudo_labels", "alignments"))
    work = Curriculum(asked, alone("cpu"))
    work.train_tan()
    teacher, round_ = work.teacher(0), work.labels_of(0)
    counts, missing = [], round_.missing()
    for rank in (0, 1):
        round_.make(missing, teacher, "run", Processes(rank, 2, "cpu"))
        counts.append(len(table.snapshot().shards))
    assert counts == [2, 4]
    table.retire({"model_id": work.student_id, "round": 0}, keep=[round_.names[number] for number in (1, 3)])
    round_.make(round_.missing(), teacher, "run", Processes(1, 2, "cpu"))
    assert len(table.snapshot().shards) == 3, "the shards that are still missing are shared, whatever their numbers"
    monkeypatch.setattr(teachers, "PAIRS_PER_SHARD", 16)
    again = work.labels_of(0)
    again.make(again.missing(), teacher, "run", alone("cpu"))
    again.settle()
    assert len(table.snapshot().shards) == 2, "shards of another cut are retired"
    assert len(matrices.snapshot().shards) == 2 * len(("SV", "NV"))


def test_several_long_videos_are_labelled_in_windows(job: MakeJob) -> None:
    asked = job(max_seconds=32, alignment_share=1.0)
    burn_in(asked)
    work = Curriculum(asked, alone("cpu"))
    long = [name for name in work.corpus.paired if work.corpus.num_seconds[name] > 32]
    assert len(long) > 1
    rows = labels(work.store, work.student_id, 0)
    assert {row["video_id"] for row in rows} == set(work.corpus.paired)
    assert max(int(str(row["peak_s"])) for row in rows if row["video_id"] in long) >= 32


def test_a_published_tan_labels_the_burn_in(tmp_path: Path) -> None:
    """Its windows are slid over the video, and their scores averaged."""
    durations = "duration_s=112,duration_p10_s=108,duration_p90_s=116"
    world = world_of(f"demo:short,num_videos=3,num_articles=2,num_rendered=0,{durations},feature_width=1024")
    write_world(world, tmp_path / "corpus")
    store = Store(tmp_path / "store")
    import_corpus(Job.of(store.uri, "import", ImportSettings(corpus=str(tmp_path / "corpus"))))
    torch.manual_seed(0)
    torch.save(
        {"state_dict": {f"online.{k}": v for k, v in PublishedTan().state_dict().items()}}, tmp_path / "t.pth.tar"
    )
    with pytest.raises(ValueError, match=r"s3d_dict.npy cannot be read as an array of words"):
        published_teacher(tmp_path / "t.pth.tar", "cpu")
    np.save(tmp_path / "s3d_dict.npy", np.array(vocabulary()))
    teacher = published_teacher(tmp_path / "t.pth.tar", "cpu")
    assert teacher.name.startswith("t.pth.tar@") and teacher.window_s == 64
    corpus = Corpus(store, BACKBONE, "metadata")
    video = max(corpus.num_seconds, key=lambda name: corpus.num_seconds[name])
    length = corpus.num_seconds[video]
    assert length > 64
    article, *_ = [name for name in corpus.steps if name.startswith("wikihow/")]
    batch = read_pairs([(video, article)], corpus, teacher.tokenizer)
    found = ask(teacher, batch).sv_BST
    with torch.inference_mode():
        first, last = (teacher.align(batch.between(begin, begin + 64)).sv_BST for begin in (0, length - 64))
    assert found is not None and first is not None and last is not None
    assert torch.allclose(found[:, :, :40], first[:, :, :40])
    assert torch.allclose(found[:, :, -1], last[:, :, -1])
    with pytest.raises(ValueError, match="there is no TAN at nowhere: name a published checkpoint, or `train`"):
        published_teacher(Path("nowhere"), "cpu")
