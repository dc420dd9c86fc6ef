"""A student that is given the truth for labels learns some videos by heart."""

from math import ceil, floor

import pyarrow as pa
import pytest

from storage.catalogue import Catalogue
from tasks.training.corpus import Corpus, Span
from tasks.training.curriculum import Curriculum
from tasks.training.processes import alone
from tasks.training.teachers import ask, read_pairs
from tests.samples import label_rows
from tests.tasks.conftest import MakeJob

pytestmark = pytest.mark.slow


def test_a_student_learns_eight_videos_by_heart(job: MakeJob) -> None:
    asked = job(epochs=120, burn_in_epochs=120, refresh_epochs=0, dropout=0.0, word_dropout=0.0, feature_noise=0.0)
    work = Curriculum(asked, alone("cpu"))
    names = work.corpus.paired[:8]
    work.corpus.__dict__["paired"] = names
    pairs = [(name, work.corpus.articles[name][0]) for name in names]
    truth = _truth(work.corpus, pairs)
    work.store.table("pseudo_labels").commit(
        _labels(work.corpus, truth), {"model_id": work.student_id, "round": 0}, "truth", fingerprint="f", run_id="r"
    )
    model = work.teacher_of("student", work.train_student(0))
    hits = []
    for pair, steps in truth.items():
        scores_BST = ask(model, read_pairs([pair], work.corpus, model.tokenizer)).sv_BST
        assert scores_BST is not None
        hits += [floor(span[0]) <= int(scores_BST[0, step].argmax()) <= ceil(span[1]) for step, span in steps.items()]
    assert len(hits) >= 8 and all(hits)


def _truth(corpus: Corpus, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], dict[int, Span]]:
    """When each step is first seen."""
    with Catalogue(corpus.store) as catalogue:
        rows = catalogue.query("SELECT video_id, text, start_s, end_s FROM annotations WHERE benchmark = 'htstep'")
    found: dict[tuple[str, str], dict[int, Span]] = {pair: {} for pair in pairs}
    for row in rows.to_pylist():
        for video, article in pairs:
            if video == row["video_id"]:
                step = corpus.steps[article].index(row["text"])
                found[video, article].setdefault(step, (row["start_s"], row["end_s"]))
    return found


def _labels(corpus: Corpus, truth: dict[tuple[str, str], dict[int, Span]]) -> pa.Table:
    """Every step has a row; those that are not seen are dropped."""
    spans = [
        (video, article, step, truth[video, article].get(step))
        for video, article in truth
        for step in range(len(corpus.steps[article]))
    ]
    rows = label_rows([(video, article, step, 0, 1.0, span is not None) for video, article, step, span in spans])
    for place, name in enumerate(("start_s", "end_s")):
        values = pa.array([span[place] if span else 0.0 for *_, span in spans])
        rows = rows.set_column(rows.column_names.index(name), name, values)
    return rows
