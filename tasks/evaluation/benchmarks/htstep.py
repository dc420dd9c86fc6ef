"""HT-Step: which step of a wikiHow article is shown when, in videos of HowTo100M.

The paper's counts of 1,204 and 1,242 steps cannot be reproduced from the published files: the articles of the
validation videos have 1,395 steps, of which 983 are annotated; with one article per activity it would be 1,183 to
1,243, depending on the choice. The taxonomy has fewer steps now: Make Pap's 2.0 steps were 0.12 of an article, now
0.22.
"""

import numpy as np

from storage.views import TITLE_KEY
from tasks.evaluation.benchmarks.benchmark import (
    ANNOTATED,
    ARTICLE_GROUNDING,
    STEP_LOCALIZATION,
    Benchmark,
    Decoding,
    EvaluationServer,
    Metric,
    Protocol,
    PublishedNumber,
    ResultColumns,
    Role,
    WholeArticles,
)
from tasks.evaluation.families import MILNCE, TAN_LC, TAN_PE_LC, VINA, Pathway
from tasks.evaluation.scoring import Comparison
from vina_model.metrics.htstep_map import ArticleMap, without_repetitions
from vina_model.metrics.htstep_r1 import StepRecall

R1, MAP = "htstep-r1", "htstep-map"
VAL_SEEN, TEST_SEEN = "val_seen", "test_seen"
"""The paper's validation and test videos; the splits of unseen activities are not in the paper."""


def _recall(comparison: Comparison) -> Metric:
    truth = comparison.truth
    return StepRecall(truth.segments, comparison.points(), truth.num_videos)


def _mean_precision(comparison: Comparison) -> Metric:
    """Return the metric of the predictions whose label occurs in the split's annotations."""
    truth = comparison.truth
    occurring = np.unique(truth.segments.take(without_repetitions(truth.segments)).labels)
    is_counted = comparison.proper & np.isin(comparison.predictions.labels, occurring)
    if num_rare := int((comparison.proper & ~is_counted).sum()):
        comparison.notes.append(
            f"{num_rare:,} predictions have a label that is not annotated in this split: not counted"
        )
    return ArticleMap(truth.segments, comparison.predictions.segments(is_counted), truth.activities_V)


# Videos whose annotations only the server has are paired with all variations of the activity in the metadata.
_PAIRS = f"""{ANNOTATED}
    UNION
    SELECT v.video_id, a.article_id FROM videos v
    JOIN videos m ON m.video_id = v.video_id
    JOIN (SELECT article_id, {TITLE_KEY} AS title FROM articles) t ON t.article_id = m.article_id
    JOIN (SELECT article_id, {TITLE_KEY} AS title FROM articles WHERE source = {{benchmark}}) a ON a.title = t.title
    WHERE v.source = {{benchmark}} AND v.split NOT IN ({{held_back}})
      AND v.video_id NOT IN (SELECT video_id FROM annotations WHERE benchmark = {{benchmark}})
    ORDER BY ALL"""

HTSTEP_R1 = Protocol(
    name=R1,
    version=1,
    columns={"video-id": Role.VIDEO, "label": Role.LABEL, "t": Role.PEAK},
    decoding=Decoding.ARGMAX,
    measure=_recall,
    measures_all_pathways=True,
)
HTSTEP_MAP = Protocol(
    name=MAP,
    version=1,
    columns={
        "video-id": Role.VIDEO, "t-start": Role.START, "t-end": Role.END, "label": Role.LABEL, "score": Role.SCORE,
    },
    decoding=Decoding.DETECTIONS,
    measure=_mean_precision,
    needs_own_label=False,
)  # fmt: skip
HTSTEP = Benchmark(
    name="htstep",
    title="HT-Step",
    source="htstep",
    protocols=(HTSTEP_R1, HTSTEP_MAP),
    pairs_sql=_PAIRS,
    reported_split=TEST_SEEN,
    validation_split=VAL_SEEN,
    whole_articles=WholeArticles(
        recall=R1,
        presence={"htstep-presence": "presence", "htstep-presence-by-peak": "peak"},
        presence_version=1,
    ),
    split_help="e.g. val_seen",
    results=(
        ResultColumns(STEP_LOCALIZATION, {(R1, "R@1"): "HT-Step R@1"}),
        ResultColumns(ARTICLE_GROUNDING, {(MAP, "mAP"): "HT-Step mAP"}, legend="HT-Step's mAP"),
    ),
    paper=(
        PublishedNumber(R1, "R@1", VINA, 35.6, split=TEST_SEEN),
        PublishedNumber(R1, "R@1", VINA, 37.4, Pathway.FUSED, split=TEST_SEEN),
        PublishedNumber(R1, "R@1", TAN_LC, 31.2, split=TEST_SEEN),
        PublishedNumber(R1, "R@1", TAN_PE_LC, 7.9, split=TEST_SEEN),
        PublishedNumber(R1, "R@1", MILNCE, 30.7, split=TEST_SEEN),
        PublishedNumber(R1, "R@1", VINA, 36.9, split=VAL_SEEN),
        PublishedNumber(R1, "R@1", VINA, 39.1, Pathway.FUSED, split=VAL_SEEN),
        PublishedNumber(R1, "R@1", TAN_LC, 30.7, split=VAL_SEEN),
    ),
    later=(
        PublishedNumber(R1, "R@1", "MPTVA", 43.3, split=TEST_SEEN),
        PublishedNumber(R1, "R@1", "NSVA", 46.4, split=TEST_SEEN),
    ),
    paper_counts={
        VAL_SEEN: {"videos": "600", "activities": "120", "steps": "1,204", "segments": "3,441"},
        TEST_SEEN: {"videos": "600", "activities": "120", "steps": "1,242", "segments": "3,631"},
    },
    paper_averages={"steps": "4.0", "step_coverage": "0.42", "video_coverage": "0.24"},
    paper_averages_of="val and test",  # together 177 activities
    server=EvaluationServer(protocol=MAP, split=TEST_SEEN),
)
