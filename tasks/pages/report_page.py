"""The report of a run: stages, corpus, results and example videos, in one HTML file."""

import platform
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import pyarrow.compute as pc

from storage import MissingFileError, Store
from storage.catalogue import Catalogue, quoted
from storage.summary import summarise
from tasks.evaluation.benchmarks.registry import benchmark_of_whole_articles, result_columns
from tasks.evaluation.benchmarks.sql import open_catalogue
from tasks.evaluation.families import MAIN_PATHWAYS, VINA, Pathway, label_of
from tasks.evaluation.results import Results, methods_by_model, own_student, read_results
from tasks.grounding.articles import article_in
from tasks.grounding.grounding import GroundingRequest, ground
from tasks.importers.generated_corpora import CONTACT_SHEET
from tasks.pages import plots
from tasks.pages.drawing import as_data
from tasks.pages.rendering import grid_of, render
from tasks.pages.video_view import VideoView, view_of, with_video_file
from tasks.pipeline.job import Job
from tasks.training.model_files import models_in
from tasks.training.settings import TrainingSettings

LIBRARIES = ("torch", "numpy", "pyarrow", "duckdb", "deltalake", "prefect", "sentence-transformers", "gensim", "av")
SMALL_MB = 16
"""Largest video, in MB, that is embedded in the report, which shows three."""
PLACES = {"best": 0.0, "median": 0.5, "worst": 1.0}
QUESTIONS = (
    "SELECT round, kept_percent, kept_right_percent FROM label_precision ORDER BY round",
    "SELECT video_id, peak_s, score, reason FROM pseudo_labels WHERE NOT kept ORDER BY score DESC LIMIT 5",
    "SELECT protocol, metric, method, pathway, ours, paper FROM metrics_beside_paper WHERE ours IS NOT NULL",
)
"""Examples of SQL."""
Rows = list[dict[str, Any]]
ShowVideo = Callable[[VideoView, str | None], VideoView]


def newest_run(store: Store) -> str:
    """Return the newest complete run of the pipeline. Raise ValueError if there is none."""
    with Catalogue(store) as catalogue:
        rows = catalogue.query("SELECT run_id FROM measured_runs LIMIT 1").to_pylist()
    if not rows:
        raise ValueError(f"the store at {store.uri} has no complete run to report on: start one with `vina run`")
    return str(rows[0]["run_id"])


def commands(store: Store) -> list[str]:
    """Return commands to try next: SQL, one video, the explorer."""
    listed, address = store.table("videos").snapshot(), shlex.quote(store.uri)
    rows = listed.read(["video_id"], where=pc.field("uri").is_valid()).to_pylist() if listed.shards else []
    queries = [f'vina sql "{sql}" --store {address}' for sql in QUESTIONS]
    video_files = [
        f"vina ground {shlex.quote(row['video_id'])} --output video.html --store {address}" for row in rows[:1]
    ]
    return [*queries, *video_files, f"vina explore --store {address}"]


def _small_video(view: VideoView, uri: str | None) -> VideoView:
    return with_video_file(view, uri, SMALL_MB)


def report_page(store: Store, job: Job, show_video: ShowVideo = _small_video, **context: Any) -> str:
    """Return the page as HTML; `show_video` adds the files of its example videos."""
    settings = job.settings_of(TrainingSettings)
    model_methods = methods_by_model(store, settings, job.run_id)
    student = own_student(store, settings, job.run_id)
    with open_catalogue(store) as catalogue:
        answers = _Answers(catalogue, list(model_methods), student)
        examples, made = answers.examples(), {row["model_id"] for row in models_in(store)}
        return render(
            "report.html",
            run=answers.run(job.run_id),
            run_id=job.run_id,
            store=job.store,
            stages=grid_of(answers.stages()),
            tables=grid_of(_sizes(store)),
            corpus=grid_of(answers.rows("FROM corpus")),
            missing=grid_of(answers.rows("SELECT what, count(*) AS items FROM missing GROUP BY ALL ORDER BY ALL")),
            contact_sheet=_contact_sheet(store),
            rejects=grid_of(answers.rows("FROM rejects_by_reason")),
            **_plotted("pairing", answers.pairing(), plots.pairing_accuracy),
            agreement=grid_of(answers.rows("FROM pairing_agreement")),
            **_plotted("losses", answers.losses(), plots.losses),
            speed=grid_of(answers.speed()),
            **_plotted("labels", answers.labels(), plots.labels_by_round),
            **_plotted("reliability", answers.reliability(), plots.reliability),
            presence=grid_of(answers.presence()),
            results=_results(read_results(store, job.run_id if answers.is_known(job.run_id) else None)),
            ablations=[(name, grid_of(rows)) for name, rows in answers.ablations().items()],
            videos=[_example(store, row, show_video) for row in examples if row["model_id"] in made],
            settings=grid_of([{"setting": name, "value": str(value)} for name, value in _settings(job).items()]),
            versions=grid_of(_versions()),
            commands=commands(store),
            **context,
        )


@dataclass(frozen=True)
class _Answers:
    """The queries of a report."""

    catalogue: Catalogue
    model_ids: Sequence[str]
    student: str

    def rows(self, sql: str) -> Rows:
        return self.catalogue.query(sql).to_pylist()

    def is_known(self, run_id: str) -> bool:
        return bool(self.rows(f"SELECT 1 FROM runs WHERE run_id = {quoted(run_id)}"))

    def run(self, run_id: str) -> Mapping[str, Any] | None:
        rows = self.rows(f"""
            SELECT state, array_to_string(stages, ', ') AS stages, code_version, host, error,
                   strftime(started_at, '%Y-%m-%d %H:%M:%S') AS started,
                   strftime(finished_at, '%Y-%m-%d %H:%M:%S') AS finished,
                   round(epoch(finished_at) - epoch(started_at), 1) AS took_s
            FROM runs WHERE run_id = {quoted(run_id)}""")
        return rows[0] if rows else None

    def stages(self) -> Rows:
        return self.rows("""
            SELECT stage, _written_by AS run, strftime(finished_at, '%Y-%m-%d %H:%M') AS finished,
                   round(took_s, 1) AS took_s, round(100 * took_s / sum(took_s) OVER (), 1) AS percent_of_all,
                   report AS did FROM completions ORDER BY finished_at""")

    def pairing(self) -> Rows:
        return self.rows("FROM pairing_by_confidence")

    def losses(self) -> Rows:
        return self.rows(f"""
            SELECT model_id, step, loss FROM training_log WHERE model_id IN ({_listed(self.model_ids)})
            ORDER BY model_id, step""")

    def speed(self) -> Rows:
        return self.rows(f"""
            SELECT model_id, round, max(epoch) + 1 AS epochs, round(avg(loss), 3) AS mean_loss,
                   round(median(videos_per_s), 1) AS videos_per_s, round(median(waiting_percent), 1) AS waiting_percent
            FROM training_log WHERE model_id IN ({_listed(self.model_ids)}) GROUP BY ALL ORDER BY ALL""")

    def labels(self) -> Rows:
        chosen = f"model_id = {quoted(self.student)}"
        return self.rows(f"FROM label_precision WHERE {chosen} ORDER BY model_id, round") or self.rows(f"""
            SELECT model_id, round, sum(labels) AS labels, round(100.0 * sum(kept) / sum(labels), 1) AS kept_percent
            FROM label_keep_rate WHERE {chosen} GROUP BY ALL ORDER BY ALL""")

    def reliability(self) -> Rows:
        return self.rows(f"""
            SELECT judge, low, mean_score, shown, steps FROM presence_reliability
            WHERE model_id = {quoted(self.student)} AND method = {quoted(VINA)}
              AND pathway = {quoted(Pathway.DIRECT)} AND split = ({_reported_split()})
            ORDER BY judge, low""")

    def presence(self) -> Rows:
        columns = benchmark_of_whole_articles()[1].presence
        rows = self.rows(f"""
            SELECT method, split, round(max(value) FILTER (metric = 'AUC'), 1) AS auc_percent,
                   round(max(value) FILTER (metric = 'ECE'), 1) AS calibration_error_percent, max(num_videos) AS videos,
                   protocol, pathway
            FROM metrics WHERE protocol IN ({_listed(list(columns))}) AND model_id = {quoted(self.student)}
            GROUP BY ALL""")
        for row in rows:
            is_peak = columns[row.pop("protocol")] == "peak"
            row["method"] = label_of(row["method"], row.pop("pathway")) + (", peak score" if is_peak else "")
        return sorted(rows, key=lambda row: (row["split"], row["method"]))

    def ablations(self) -> dict[str, Rows]:
        rows = self.rows("""
            SELECT ablation, settings, row, variant, measure, seeds, mean, spread, paper FROM ablation_means
            ORDER BY ablation, settings, measure, row""")
        tables: dict[str, Rows] = {}
        for row in rows:
            tables.setdefault(f"{row.pop('ablation')} ({row.pop('settings')})", []).append(row)
        return tables

    def examples(self) -> Rows:
        """Return the best, median and worst video, by the share of its annotated steps that the student finds."""
        rows = self.rows(f"""
            SELECT model_id, video_id, article_id, steps, found, recall_percent FROM video_recall
            WHERE model_id = {quoted(self.student)} AND method = {quoted(VINA)}
              AND pathway IN ({_listed(MAIN_PATHWAYS)})
              AND split = ({_reported_split()})
            QUALIFY pathway = max(pathway) OVER () ORDER BY recall_percent DESC, steps DESC, video_id""")
        if len(rows) < len(PLACES):
            return []
        return [rows[round(share * (len(rows) - 1))] | {"place": place} for place, share in PLACES.items()]


def _reported_split() -> str:
    name = benchmark_of_whole_articles()[0].name
    return f"SELECT split FROM reported_splits WHERE benchmark = {quoted(name)}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names) or "''"


def _plotted(name: str, rows: Rows, draw: Any) -> dict[str, Any]:
    """Return a table, and its plot if it has rows."""
    return {name: grid_of(rows), f"{name}_plot": draw(rows) if rows else ""}


def _results(results: Results) -> dict[str, Any]:
    """Return the main table: our numbers, and published ones below."""
    titles = {column: title for group in result_columns().values() for column, title in group.items()}
    rows = [(line.kind, line.label, [_mean(values) for _, values in line.cells]) for line in results.lines(titles)]
    return {"names": list(titles.values()), "rows": rows, "notes": results.notes}


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.1f}" if values else ""


def _example(store: Store, row: Mapping[str, Any], show_video: ShowVideo) -> tuple[str, VideoView]:
    article = article_in(store, row["article_id"])
    grounded = ground(GroundingRequest(row["video_id"], article, checkpoint=row["model_id"], device="cpu"), store)
    view = show_video(view_of(grounded, store), grounded.video_input.video_file)
    caption = f"the {row['place']} video: {row['found']} of its {row['steps']} annotated steps are found"
    return caption, view


def _sizes(store: Store) -> Rows:
    names = ("table", "rows", "shards", "bytes", "last_run")
    return [{name: row.get(name) for name in names} for row in summarise(store) if row["rows"] or row["problem"]]


def _settings(job: Job) -> dict[str, Any]:
    return {f"{group}.{name}": value for group, values in job.settings.items() for name, value in values.items()}


def _versions() -> Rows:
    libraries = [{"of": name, "version": version(name)} for name in LIBRARIES]
    return [{"of": "Python", "version": platform.python_version()}, *libraries]


def _contact_sheet(store: Store) -> str:
    try:
        return as_data(store.objects.get(CONTACT_SHEET), "image/png")
    except MissingFileError:
        return ""
