"""SQL over a store and the declared benchmarks: the tables `benchmarks` and `paper`, and the views that need them."""

import pyarrow as pa

from storage import Store
from storage.catalogue import Catalogue
from storage.views import View
from tasks.evaluation.benchmarks.registry import BENCHMARKS

_BENCHMARKS = pa.schema(
    [(name, pa.string()) for name in ("name", "title", "reported_split", "validation_split", "recall_protocol")]
)
_PAPER = pa.schema(
    [(name, pa.string()) for name in ("benchmark", "protocol", "metric", "split", "method", "pathway")]
    + [("value", pa.float64())]
)
BENCHMARK_VIEWS = (
    View("reported_splits", "the split that results are of, by benchmark: its reported one, if that is measured", """
        SELECT m.benchmark, min_by(m.split, (CASE m.split WHEN b.reported_split THEN 0 WHEN b.validation_split THEN 1
                                             ELSE 2 END, m.split)) AS split
        FROM metrics m LEFT JOIN benchmarks b ON b.name = m.benchmark GROUP BY m.benchmark"""),
    View("metrics_beside_paper", "our numbers next to the paper's", """
        SELECT m.model_id, coalesce(m.benchmark, p.benchmark) AS benchmark,
               coalesce(m.protocol, p.protocol) AS protocol, m.protocol_version, coalesce(m.split, p.split) AS split,
               coalesce(m.method, p.method) AS method, coalesce(m.pathway, p.pathway) AS pathway,
               coalesce(m.metric, p.metric) AS metric,
               m.value AS ours, m.low, m.high, p.value AS paper, round(m.value - p.value, 2) AS difference
        FROM metrics m
        FULL JOIN paper p ON (m.benchmark, m.protocol, m.metric, m.method, m.pathway, m.split) =
                             (p.benchmark, p.protocol, p.metric, p.method, p.pathway, p.split)
        ORDER BY benchmark, protocol, metric, split, method, pathway, model_id"""),
    View("label_precision", "precision of labels where whole articles are annotated: kept, shown and right, in %", """
        WITH truth AS (SELECT video_id, text, floor(start_s) AS start_s, ceil(end_s) AS end_s
                       FROM annotations JOIN benchmarks b ON b.name = benchmark
                       WHERE b.recall_protocol IS NOT NULL AND alignable),
             judged AS (SELECT p.model_id, p.round, any_value(p.kept) AS kept, count(t.video_id) > 0 AS is_shown,
                               count(*) FILTER (p.peak_s BETWEEN t.start_s AND t.end_s) > 0 AS is_right
                        FROM pseudo_labels p JOIN steps s ON s.article_id = p.article_id AND s.row = p.step_row
                        LEFT JOIN truth t ON t.video_id = p.video_id AND t.text = s.headline
                        WHERE p.video_id IN (SELECT video_id FROM truth)
                        GROUP BY p.model_id, p.round, p.video_id, p.article_id, p.step_row)
        SELECT model_id, round, count(*) AS labels, round(100.0 * avg(kept::INT), 1) AS kept_percent,
               round(100.0 * avg(is_right::INT) FILTER (kept), 1) AS kept_right_percent,
               round(100.0 * avg(is_shown::INT) FILTER (kept), 1) AS kept_shown_percent,
               round(100.0 * avg(is_right::INT) FILTER (is_shown), 1) AS shown_right_percent
        FROM judged GROUP BY ALL ORDER BY ALL"""),
    View("video_recall", "share of each video's steps that a model finds, where whole articles are annotated", """
        WITH judged AS (SELECT p.model_id, p.method, p.pathway, p.video_id, p.article_id, a.split, p.label,
                               bool_or(p.peak_s BETWEEN floor(a.start_s) AND ceil(a.end_s)) AS is_right
                        FROM predictions p JOIN annotations a ON a.video_id = p.video_id AND a.article_id = p.article_id
                             AND try_cast(a.step_id AS BIGINT) = p.label
                        JOIN benchmarks b ON b.name = a.benchmark AND b.recall_protocol = p.protocol
                        WHERE a.alignable GROUP BY ALL)
        SELECT model_id, method, pathway, split, video_id, article_id, count(*) AS steps,
               count(*) FILTER (is_right) AS found, round(100.0 * avg(is_right::INT), 1) AS recall_percent
        FROM judged GROUP BY ALL ORDER BY ALL"""),
)  # fmt: skip
"""Views over the tables of the store and over `benchmarks` and `paper`."""


def open_catalogue(store: Store, memory_limit: str | None = None) -> Catalogue:
    """Return a catalogue of the store that knows the benchmarks, too."""
    benchmarks = [
        {
            "name": each.name, "title": each.title, "reported_split": each.reported_split,
            "validation_split": each.validation_split,
            "recall_protocol": each.whole_articles.recall if each.whole_articles else None,
        }
        for each in BENCHMARKS
    ]  # fmt: skip
    paper = [{"benchmark": each.name, **vars(number)} for each in BENCHMARKS for number in each.paper]
    tables = {
        "benchmarks": pa.Table.from_pylist(benchmarks, schema=_BENCHMARKS),
        "paper": pa.Table.from_pylist(paper, schema=_PAPER),
    }
    return Catalogue(store, memory_limit, tables, BENCHMARK_VIEWS)
