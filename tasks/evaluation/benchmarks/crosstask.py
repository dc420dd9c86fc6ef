"""CrossTask's step localization: one moment for each step of a video's task, on test sets drawn from all its videos.

A video may belong to two tasks, so each pair of video and task counts as a video. MIL-NCE's number in the paper is for
moments in the task's order, as in prior work: that is the protocol `crosstask-ordered`.
"""

import numpy as np

from tasks.evaluation.benchmarks.benchmark import (
    ALL,
    STEP_LOCALIZATION,
    Benchmark,
    Decoding,
    DrawnTestSets,
    Metric,
    Protocol,
    PublishedNumber,
    ResultColumns,
    Role,
)
from tasks.evaluation.families import MILNCE, VINA, Pathway
from tasks.evaluation.scoring import Comparison
from tasks.evaluation.truth import Truth
from vina_model.metrics.columns import Bools
from vina_model.metrics.crosstask import DRAWS, LEFT_OUT, StepLocalization, draw_test_sets

FREE, ORDERED = "crosstask", "crosstask-ordered"
_COLUMNS = {"task": Role.ARTICLE, "video": Role.VIDEO, "step": Role.LABEL, "t": Role.PEAK}


def _draw(truth: Truth, count: int, seed: int) -> Bools:
    return draw_test_sets(truth.tasks_V, ~truth.is_validation_V, count, seed)


def _localization(comparison: Comparison) -> Metric:
    truth = comparison.truth
    sizes = np.bincount(truth.tasks_V[~truth.is_validation_V])
    if num_small := int(((sizes > 0) & (sizes <= LEFT_OUT)).sum()) if truth.split != ALL else 0:
        comparison.notes.append(f"{num_small} tasks have at most {LEFT_OUT} videos: all of them are tested")
    return StepLocalization(truth.segments, comparison.points(), truth.tasks_V, comparison.test_sets)


CROSSTASK_FREE = Protocol(
    name=FREE, version=1, columns=_COLUMNS, decoding=Decoding.ARGMAX, measure=_localization
)  # fmt: skip
CROSSTASK_ORDERED = Protocol(
    name=ORDERED,
    version=1,
    columns=_COLUMNS,
    decoding=Decoding.ORDERED,
    measure=_localization,
    takes_files=False,
)
CROSSTASK = Benchmark(
    name="crosstask",
    title="CrossTask",
    source="crosstask",
    protocols=(CROSSTASK_FREE, CROSSTASK_ORDERED),
    several_articles=True,
    test_sets=DrawnTestSets(DRAWS, _draw),
    split_help="all or test (default)",
    results=(ResultColumns(STEP_LOCALIZATION, {(FREE, "recall"): "CrossTask", (ORDERED, "recall"): "in order"}),),
    paper=(
        PublishedNumber(FREE, "recall", VINA, 44.1),
        PublishedNumber(FREE, "recall", VINA, 44.8, Pathway.FUSED),
        PublishedNumber(ORDERED, "recall", MILNCE, 40.5),
    ),
    later=(PublishedNumber(FREE, "recall", "MPTVA", 47.9), PublishedNumber(FREE, "recall", "NSVA", 46.7)),
    paper_counts={ALL: {"videos": "2.8k", "activities": "18", "steps": "133", "segments": "20.9k"}},
)
