"""CrossTask's article grounding: segments of the headlines of a wikiHow article, annotated through CrossTask's steps.

The paper does not say whether narrations were given; its numbers are shown beside VINA without narrations.
"""

from tasks.evaluation.benchmarks.benchmark import (
    ARTICLE_GROUNDING,
    Benchmark,
    Decoding,
    Metric,
    Protocol,
    PublishedNumber,
    ResultColumns,
    Role,
)
from tasks.evaluation.families import VINA
from tasks.evaluation.scoring import Comparison
from tasks.importers.youwikihow import BENCHMARK as NAME
from tasks.importers.youwikihow import SOURCE
from vina_model.metrics.crosstask_articles import BEST, THRESHOLDS, ArticleRecall

_PAPER = {
    VINA: ((87.1, 59.0, 30.0), (90.6, 61.1, 30.9)),
    "mil-nce-max": ((33.5, 12.0, 4.9), (39.7, 14.3, 5.9)),
    "mil-nce-avg": ((42.9, 24.3, 12.9), (56.8, 32.1, 17.0)),
    "wsag": ((40.1, 23.1, 10.1), (54.3, 31.3, 14.0)),
}
"""R@50 and R@100 of each method, by IoU."""
_IOUS = THRESHOLDS.tolist()


def _recall(comparison: Comparison) -> Metric:
    truth = comparison.truth
    return ArticleRecall(truth.segments, comparison.segments(), truth.num_videos)


CROSSTASK_ARTICLES_RECALL = Protocol(
    name=NAME,
    version=1,
    columns={
        "task": Role.ARTICLE, "video-id": Role.VIDEO, "headline": Role.LABEL, "t-start": Role.START,
        "t-end": Role.END, "score": Role.SCORE,
    },
    decoding=Decoding.DETECTIONS,
    measure=_recall,
)  # fmt: skip
CROSSTASK_ARTICLES = Benchmark(
    name=NAME,
    title="CrossTask articles",
    source=SOURCE,
    protocols=(CROSSTASK_ARTICLES_RECALL,),
    several_articles=True,
    results=(
        ResultColumns(
            ARTICLE_GROUNDING,
            {(NAME, f"R@{best} IoU {iou}"): f"R@{best} {iou}" for best in BEST for iou in _IOUS},
            legend="on CrossTask, recall of the best 50 and 100 detections by IoU",
            in_summary=False,
        ),
    ),
    paper=tuple(
        PublishedNumber(NAME, f"R@{best} IoU {iou}", method, value)
        for method, rows in _PAPER.items()
        for best, values in zip(BEST, rows, strict=True)
        for iou, value in zip(_IOUS, values, strict=True)
    ),
    paper_counts={"test": {"videos": "2407", "activities": "15"}},
)
