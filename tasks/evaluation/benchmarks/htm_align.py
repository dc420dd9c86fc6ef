"""HTM-Align: which narrations of a HowTo100M video can be aligned with it, and when their content is shown.

TAN's number in the paper uses the narrations' times; ours do not.
"""

import numpy as np

from tasks.evaluation.benchmarks.benchmark import (
    STEP_LOCALIZATION,
    Benchmark,
    Decoding,
    Metric,
    Protocol,
    PublishedNumber,
    ResultColumns,
    Role,
)
from tasks.evaluation.families import CLIP, MILNCE, TAN, TAN_LC, TAN_PE_LC, VINA
from tasks.evaluation.scoring import Comparison, joint_keys
from vina_model.metrics.htm_align import NarrationAlignment

NAME = "htm-align"


def _alignment(comparison: Comparison) -> Metric:
    """Return the metric of all narrations; one without a prediction gets the lowest score."""
    truth, predictions, proper = comparison.truth, comparison.predictions, comparison.proper
    predicted = joint_keys(predictions.videos[proper], predictions.labels[proper])
    asked = joint_keys(truth.asked.videos, truth.asked.labels)
    scores = np.full(len(asked), -np.inf)
    order = np.argsort(predicted)
    if len(order):
        rows = order[np.searchsorted(predicted[order], asked).clip(max=len(order) - 1)]
        scores = np.where(predicted[rows] == asked, predictions.scores[proper][rows], -np.inf)
    return NarrationAlignment(
        truth.segments, comparison.points(), truth.asked.videos, truth.alignable, scores, truth.num_videos
    )  # fmt: skip


HTM_ALIGN_R1 = Protocol(
    name=NAME,
    version=1,
    columns={"video-id": Role.VIDEO, "index": Role.LABEL, "t": Role.PEAK, "score": Role.SCORE},
    decoding=Decoding.ARGMAX,
    measure=_alignment,
)
HTM_ALIGN = Benchmark(
    name=NAME,
    title="HTM-Align",
    source="htm-align",
    protocols=(HTM_ALIGN_R1,),
    texts="narrations",
    texts_sql="""
    SELECT video_id AS article_id, text, narration_row AS label FROM annotations WHERE benchmark = {benchmark}
    ORDER BY video_id, narration_row""",
    pairs_sql="""
    SELECT DISTINCT video_id, video_id AS article_id FROM annotations WHERE benchmark = {benchmark} ORDER BY ALL""",
    results=(ResultColumns(STEP_LOCALIZATION, {(NAME, "R@1"): "HTM-Align R@1", (NAME, "AUC"): "AUC"}),),
    paper=(
        PublishedNumber(NAME, "R@1", VINA, 66.5),
        PublishedNumber(NAME, "AUC", VINA, 76.0),
        PublishedNumber(NAME, "R@1", TAN, 49.4),
        PublishedNumber(NAME, "R@1", TAN_LC, 47.1),
        PublishedNumber(NAME, "R@1", TAN_PE_LC, 63.0),
        PublishedNumber(NAME, "R@1", MILNCE, 34.2),
        PublishedNumber(NAME, "R@1", CLIP, 23.4),
    ),
    later=(PublishedNumber(NAME, "R@1", "MPTVA", 69.3), PublishedNumber(NAME, "R@1", "NSVA", 71.6)),
    paper_counts={"test": {"videos": "80"}},
)
