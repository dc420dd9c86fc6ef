"""The pages of `vina explore`: runs, videos, one video, and SQL. Each request makes its page from the store."""

import threading
import time
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from storage import Store, StoreError
from storage.catalogue import Catalogue, quoted
from storage.feature_reader import FeatureReader
from storage.summary import summarise
from tasks.evaluation.benchmarks.registry import benchmark_of_whole_articles
from tasks.evaluation.benchmarks.sql import open_catalogue
from tasks.evaluation.families import MAIN_PATHWAYS, VINA
from tasks.grounding.articles import article_in
from tasks.grounding.grounding import Grounded
from tasks.grounding.video_input import VideoInput, narrations_in, stored_video
from tasks.pages.rendering import grid_of, render
from tasks.pages.report_page import QUESTIONS, report_page
from tasks.pages.video_view import MATRICES, maps_of, served_video, view_of
from tasks.pipeline.run_record import job_of_run
from tasks.training.model_files import find_model, read_model
from vina_model.grounder import Grounder

VIDEOS_PER_PAGE = 50
ROWS_SHOWN = 1_000
LONGEST_CELL = 300
QUERY_S = 30.0
QUERY_MEMORY = "2GB"
_query_lock = threading.Lock()
"""The SQL page runs one query at a time."""
TEACHERS = {"SV": "direct", "SNV": "indirect", "F": "fused", "NV": "narrations"}


def home(store: Store) -> str:
    """Return the page of runs and tables."""
    with Catalogue(store) as catalogue:
        runs = catalogue.query("""
            SELECT run_id, state, array_to_string(stages, ', ') AS stages, error,
                   strftime(started_at, '%Y-%m-%d %H:%M') AS begun,
                   round(epoch(finished_at) - epoch(started_at), 1) AS took_s,
                   configuration ->> '$.settings' IS NOT NULL AS has_report
            FROM runs ORDER BY started_at DESC LIMIT 200""").to_pylist()
    tables = [{name: row[name] for name in ("table", "rows", "shards", "bytes", "comment")} for row in summarise(store)]
    return render("explore_home.html", store=store.uri, runs=runs, tables=grid_of(tables), site=True)


def run(store: Store, run_id: str) -> str:
    """Return the report of a run."""
    return report_page(store, job_of_run(store, run_id), served_video, site=True)


def videos(store: Store, run_id: str | None, search: str, page: int) -> str:
    """Return a page of videos with features: those with a file first, then by recall."""
    try:
        model_id = find_model(store, run_id or None)["model_id"]
    except ValueError:  # without a model the videos can still be listed
        if run_id:
            raise
        model_id = ""
    with open_catalogue(store) as catalogue:
        rows = catalogue.query(f"""
            WITH seen AS (SELECT video_id, max(second) + 1 AS seconds FROM features GROUP BY ALL),
                 files AS (SELECT video_id, count(uri) > 0 AS has_file, any_value(split) AS split
                           FROM videos GROUP BY ALL),
                 named AS (SELECT p.video_id, min(a.title) AS title FROM pairs p JOIN articles a USING (article_id)
                           WHERE p.selection IN ('metadata', 'top1') GROUP BY ALL),
                 graded AS (SELECT video_id, recall_percent AS recall FROM video_recall
                            WHERE model_id = {quoted(model_id)} AND method = {quoted(VINA)}
                              AND pathway IN ({", ".join(map(quoted, MAIN_PATHWAYS))})
                            QUALIFY pathway = max(pathway) OVER ())
            SELECT s.video_id, n.title, s.seconds, f.has_file, f.split, g.recall, count(*) OVER () AS total
            FROM seen s LEFT JOIN files f USING (video_id) LEFT JOIN named n USING (video_id)
            LEFT JOIN graded g USING (video_id)
            WHERE contains(lower(s.video_id || ' ' || coalesce(n.title, '')), lower({quoted(search)}))
            ORDER BY f.has_file DESC NULLS LAST, g.recall IS NULL, g.recall DESC, s.video_id
            LIMIT {VIDEOS_PER_PAGE} OFFSET {VIDEOS_PER_PAGE * (max(page, 1) - 1)}""").to_pylist()
        runs = _runs(catalogue)
    total = rows[0]["total"] if rows else 0
    return render(
        "explore_videos.html", videos=rows, runs=runs, run_id=run_id or "", search=search, page=max(page, 1),
        pages=-(-total // VIDEOS_PER_PAGE), total=total, site=True,
    )  # fmt: skip


def video(store: Store, video_id: str, run_id: str | None, article_name: str, matrix: str, by: str) -> str:
    """Return the page of one video: the result of the run's model, or the matrices of one of its teachers."""
    row = find_model(store, run_id or None)
    model = _model(store.uri, row["model_id"], row["made_at"])
    reader = FeatureReader(store, model.backbone)
    if video_id not in reader.num_seconds:
        raise ValueError(f"video {video_id!r} has no {model.backbone} features: `vina ground FILE` extracts them")
    with Catalogue(store) as catalogue:
        articles = _articles(catalogue, video_id, model.name)
        runs, rounds = _runs(catalogue), _sampled_rounds(catalogue, video_id, model.name)
    if not (article_name or articles):
        raise ValueError(f"video {video_id!r} has no article: add &article=ID to the address")
    article = article_in(store, article_name or articles[0]["article_id"])
    uri, sentences = video_uri_of(store, video_id), narrations_in(store, video_id)
    video_input = VideoInput(video_id, video_id, uri, reader.read(video_id), sentences)
    result = model.ground(video_input.features_TV, article.steps, [sentence.text for sentence in sentences])
    view = view_of(Grounded(model, video_input, article, result), store)
    if not by:
        view = replace(view, maps=maps_of(result.matrices, matrix or None))
    elif by in map(str, rounds):
        matrices = _teachers_matrices(store, video_id, article.article_id or "", model.name, int(by))
        view = replace(view, maps=maps_of(matrices, matrix or None), note=f"matrices of round {by}")
    else:
        raise ValueError(f"no matrices of round {by!r} are stored for video {video_id!r}")
    if article.article_id not in [row["article_id"] for row in articles]:
        articles.append({"article_id": article.article_id, "title": article.title})
    return render(
        "explore_video.html", view=served_video(view, uri), articles=articles, runs=runs, rounds=rounds,
        run_id=run_id or "", article_id=article.article_id, matrix=matrix, by=by, matrices=list(MATRICES), site=True,
    )  # fmt: skip


def sql(store: Store, query: str) -> str:
    """Return the page of SQL: a query and its result."""
    error, answer, took_s = "", grid_of([]), 0.0
    if query.strip():
        begin = time.monotonic()
        try:
            with _query_lock, open_catalogue(store, QUERY_MEMORY) as catalogue:
                rows = catalogue.first_rows(query, ROWS_SHOWN, QUERY_S)
            names, columns = _names(rows.column_names), [_cells(column) for column in rows.columns]
            answer = grid_of([dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)])
        except StoreError as problem:
            error = str(problem)
        took_s = time.monotonic() - begin
    return render(
        "explore_sql.html", query=query, error=error, answer=answer, took_s=took_s, limit=ROWS_SHOWN,
        examples=QUESTIONS, site=True,
    )  # fmt: skip


def video_uri_of(store: Store, video_id: str) -> str | None:
    """Return the uri of a video's file, if it has one."""
    return stored_video(store, video_id)["uri"]


def _names(names: list[str]) -> list[str]:
    """Make column names unique: a query may give two columns the same name."""
    return [name if names.count(name) == 1 else f"{name} ({column + 1})" for column, name in enumerate(names)]


def _cells(column: Any) -> list[Any]:
    values = column.to_pylist()
    return [value if value is None or isinstance(value, int | float) else str(value)[:LONGEST_CELL] for value in values]


@lru_cache(4)
def _model(store_uri: str, model_id: str, made_at: datetime) -> Grounder:
    return read_model(Store(store_uri), model_id, "cpu")


def _runs(catalogue: Catalogue) -> list[str]:
    return list(catalogue.query("SELECT run_id FROM measured_runs")["run_id"].to_pylist())


def _articles(catalogue: Catalogue, video_id: str, model_id: str) -> list[dict[str, Any]]:
    """Return articles that a video may be about: trained with, annotated, named by its data set, or voted for."""
    rows = catalogue.query(f"""
        WITH candidates AS (SELECT article_id, 0 AS priority FROM annotations
                      WHERE video_id = {quoted(video_id)} AND step_id IS NOT NULL
                        AND benchmark = {quoted(benchmark_of_whole_articles()[0].name)}
                      UNION ALL SELECT article_id, -1 FROM pseudo_labels
                      WHERE video_id = {quoted(video_id)} AND model_id = {quoted(model_id)}
                      UNION ALL SELECT article_id, 1 + coalesce(rank, 0) FROM pairs WHERE video_id = {quoted(video_id)})
        SELECT article_id, any_value(a.title) AS title FROM candidates JOIN articles a USING (article_id)
        SEMI JOIN steps USING (article_id) GROUP BY article_id ORDER BY min(priority), article_id LIMIT 8""")
    return list(rows.to_pylist())


def _sampled_rounds(catalogue: Catalogue, video_id: str, model_id: str) -> list[int]:
    """Return the rounds with stored matrices of this video."""
    rows = catalogue.query(f"""
        SELECT DISTINCT round FROM alignments WHERE model_id = {quoted(model_id)} AND video_id = {quoted(video_id)}
        ORDER BY round""")
    return list(rows["round"].to_pylist())


def _teachers_matrices(
    store: Store, video_id: str, article_id: str, model_id: str, round_: int
) -> dict[str, npt.NDArray[np.floating]]:
    with Catalogue(store) as catalogue:
        rows = catalogue.query(f"""
            SELECT matrix, scores FROM alignments WHERE model_id = {quoted(model_id)} AND round = {round_}
            AND video_id = {quoted(video_id)} AND article_id = {quoted(article_id)} AND matrix <> 'SN'
            ORDER BY matrix, text_row""").to_pylist()
    if not rows:
        raise ValueError(f"no matrices of round {round_} are stored for video {video_id!r} and {article_id}")
    matrices: dict[str, list[list[float]]] = {}
    for row in rows:
        matrices.setdefault(TEACHERS[row["matrix"]], []).append(row["scores"])
    return {name: np.array(scores, np.float32) for name, scores in matrices.items()}
