"""Step R@1 on held-out videos: what needs no training, by hand; what is trained, from its own matrices."""

import math

import numpy as np
import pytest

from storage import Store
from storage.catalogue import Catalogue
from tasks.evaluation.htstep import HeldOut
from tasks.evaluation.stage import evaluate
from tasks.job import Job
from tasks.training.curriculum import Curriculum
from tasks.training.processes import alone
from tasks.training.stage import burn_in, rounds
from tasks.training.teachers import ask, read_pairs
from tests.tasks.conftest import MakeJob


def metrics(store: Store) -> dict[str, float]:
    rows = store.table("metrics").snapshot().read().to_pylist()
    assert all((row["benchmark"], row["metric"], row["num_videos"]) == ("htstep", "R@1", 4) for row in rows)
    return {row["method"]: row["value"] for row in rows}


def truth(store: Store) -> list[tuple[str, str, list[tuple[float, float]]]]:
    """Video, headline and segments of what is annotated in the test videos."""
    with Catalogue(store) as catalogue:
        rows = catalogue.query("""SELECT video_id, text, list((start_s, end_s)) AS segments FROM annotations
            WHERE benchmark = 'htstep' AND split LIKE 'test%' GROUP BY ALL ORDER BY ALL""").to_pylist()
    return [(row["video_id"], row["text"], [tuple(part.values()) for part in row["segments"]]) for row in rows]


def is_right(second: int, segments: list[tuple[float, float]]) -> bool:
    return any(math.floor(start) <= second <= math.ceil(end) for start, end in segments)


def test_every_method_is_measured_on_every_annotated_step(job: MakeJob) -> None:
    asked = job()
    burn_in(asked)
    rounds(asked)
    report = evaluate(asked)
    work = Curriculum(asked, alone("cpu"))
    found, known = metrics(work.store), truth(work.store)
    ways = ["", " with narrations", " with narrations, direct", " with narrations, indirect"]
    assert set(found) == {"chance", "evenly spread", "tan-lc", *(f"vina{way}" for way in ways)}
    assert all(f"{value:5.1f} %" in report for value in found.values())
    lengths = work.corpus.num_seconds
    shares = [np.mean([is_right(second, own) for second in range(lengths[video])]) for video, _, own in known]
    assert found["chance"] == pytest.approx(100 * np.mean(shares))
    corpus = HeldOut.of(work.store, work.corpus).corpus
    for _, method, model in work.trained():
        hits = []
        for video, text, own in known:
            (article,) = [name for name, steps in corpus.steps.items() if text in steps and name in _tasks(work, video)]
            scores = ask(model, read_pairs([(video, article)], corpus, model.tokenizer))
            best = (scores.fused_BST if method == "vina" else scores.sv_BST)[0, corpus.steps[article].index(text)]  # type: ignore[index]
            hits.append(is_right(int(best.argmax()), own))
        asked_for = "vina with narrations" if method == "vina" else method
        assert found[asked_for] == pytest.approx(100 * np.mean(hits))


def _tasks(work: Curriculum, video: str) -> set[str]:
    with Catalogue(work.store) as catalogue:
        rows = catalogue.query("SELECT video_id, task_id FROM annotations WHERE benchmark = 'htstep'").to_pylist()
    return {row["task_id"] for row in rows if row["video_id"] == video}


def test_without_a_model_the_rules_are_measured(job: MakeJob) -> None:
    asked = job()
    evaluate(asked)
    assert set(metrics(Store(asked.store))) == {"chance", "evenly spread"}


def test_without_videos_there_is_nothing_to_evaluate(tmp_path: object) -> None:
    assert "is paired with an article" in evaluate(Job(f"{tmp_path}/store", "run-1"))


@pytest.mark.parametrize("switch", ["steps", "narrations"])
def test_a_student_without_some_input_is_trained_and_measured(job: MakeJob, switch: str) -> None:
    asked = job(**{switch: False}, tan_epochs=1, epochs=2, burn_in_epochs=1)
    burn_in(asked)
    rounds(asked)
    evaluate(asked)
    assert set(metrics(Store(asked.store))) == {"chance", "evenly spread", "tan-lc", "vina"}
