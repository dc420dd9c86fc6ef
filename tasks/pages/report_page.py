"""The report about a run: what ran, on what, how well, and what it looks like. One page, one file."""

import platform
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import pyarrow.compute as pc

from storage import MissingFileError, Store
from storage.catalogue import Catalogue, quoted
from storage.summary import summarise
from tasks.evaluation.results import COLUMNS, Results, own_student, read_results, trainings_of
from tasks.grounding.grounding import Question, ground
from tasks.importers.demo_corpus import CONTACT_SHEET
from tasks.pages import plots
from tasks.pages.drawing import as_data
from tasks.pages.rendering import grid_of, render
from tasks.pages.video_view import VideoView, view_of, with_video_file
from tasks.pipeline.job import Job
from tasks.training.model_files import models_in

LIBRARIES = ("torch", "numpy", "pyarrow", "duckdb", "deltalake", "prefect", "sentence-transformers", "gensim", "av")
SMALL_MB = 16
"""Videos up to this size are part of the report: there may be three."""
PLACES = {"best": 0.0, "median": 0.5, "worst": 1.0}
QUESTIONS = (
    "SELECT round, kept_percent, kept_right_percent FROM label_precision ORDER BY round",
    "SELECT video_id, peak_s, score, reason FROM pseudo_labels WHERE NOT kept ORDER BY score DESC LIMIT 5",
    "SELECT protocol, metric, method, ours, paper FROM metrics_beside_paper WHERE ours IS NOT NULL",
)
"""SQL to begin with."""
Rows = list[dict[str, Any]]
ShowVideo = Callable[[VideoView, str | None], VideoView]


def newest_run(store: Store) -> str:
    """The newest run of the pipeline that is complete; a ValueError if there is none."""
    with Catalogue(store) as catalogue:
        rows = catalogue.query("""
            SELECT run_id FROM runs WHERE state = 'completed' AND list_has_any(stages, ['evaluation', 'report'])
            ORDER BY started_at DESC LIMIT 1""").to_pylist()
    if not rows:
        raise ValueError(f"the store at {store.uri} has no complete run to report on: `vina run` makes one")
    return str(rows[0]["run_id"])


def commands(store: Store) -> list[str]:
    """What to ask next: three questions in SQL; a video, if there is one; everything."""
    listed, own = store.table("videos").snapshot(), shlex.quote(store.uri)
    rows = listed.read(["video_id"], where=pc.field("uri").is_valid()).to_pylist() if listed.shards else []
    asked = [f'vina sql "{sql}" --store {own}' for sql in QUESTIONS]
    video_files = [f"vina ground {shlex.quote(row['video_id'])} --output video.html --store {own}" for row in rows[:1]]
    return [*asked, *video_files, f"vina explore --store {own}"]


def _small_video(view: VideoView, uri: str | None) -> VideoView:
    return with_video_file(view, uri, SMALL_MB)


def report_page(store: Store, job: Job, show_video: ShowVideo = _small_video, **context: Any) -> str:
    """The whole page; `show_video` puts the files of its example videos into it."""
    trainings = trainings_of(store, job.training, job.run_id)
    student = own_student(store, job.training, job.run_id)
    with Catalogue(store) as catalogue:
        found = _Answers(catalogue, list(trainings), student)
        examples, made = found.examples(), {row["model_id"] for row in models_in(store)}
        return render(
            "report.html",
            run=found.run(job.run_id),
            run_id=job.run_id,
            store=job.store,
            stages=grid_of(found.stages()),
            tables=grid_of(_sizes(store)),
            corpus=grid_of(found.rows("FROM corpus")),
            missing=grid_of(found.rows("SELECT what, count(*) AS items FROM missing GROUP BY ALL ORDER BY ALL")),
            contact_sheet=_contact_sheet(store),
            rejects=grid_of(found.rows("FROM rejects_by_reason")),
            **_plotted("pairing", found.pairing(), plots.pairing_accuracy),
            agreement=grid_of(found.rows("FROM pairing_agreement")),
            **_plotted("losses", found.losses(), plots.losses),
            speed=grid_of(found.speed()),
            **_plotted("labels", found.labels(), plots.labels_by_round),
            **_plotted("reliability", found.reliability(), plots.reliability),
            presence=grid_of(found.presence()),
            results=_results(read_results(store, job.run_id if found.is_known(job.run_id) else None)),
            ablations=[(name, grid_of(rows)) for name, rows in found.ablations().items()],
            videos=[_example(store, row, show_video) for row in examples if row["model_id"] in made],
            settings=grid_of([{"setting": name, "value": str(value)} for name, value in _settings(job).items()]),
            versions=grid_of(_versions()),
            commands=commands(store),
            **context,
        )


@dataclass(frozen=True)
class _Answers:
    """The store's answers to what a report asks."""

    catalogue: Catalogue
    trainings: Sequence[str]
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
            SELECT model_id, step, loss FROM training_log WHERE model_id IN ({_listed(self.trainings)})
            ORDER BY model_id, step""")

    def speed(self) -> Rows:
        return self.rows(f"""
            SELECT model_id, round, max(epoch) + 1 AS epochs, round(avg(loss), 3) AS mean_loss,
                   round(median(videos_per_s), 1) AS videos_per_s, round(median(waiting_percent), 1) AS waiting_percent
            FROM training_log WHERE model_id IN ({_listed(self.trainings)}) GROUP BY ALL ORDER BY ALL""")

    def labels(self) -> Rows:
        chosen = f"model_id = {quoted(self.student)}"
        return self.rows(f"FROM label_precision WHERE {chosen} ORDER BY model_id, round") or self.rows(f"""
            SELECT model_id, round, sum(labels) AS labels, round(100.0 * sum(kept) / sum(labels), 1) AS kept_percent
            FROM label_keep_rate WHERE {chosen} GROUP BY ALL ORDER BY ALL""")

    def reliability(self) -> Rows:
        return self.rows(f"""
            SELECT judge, low, predicted, shown, steps FROM presence_reliability
            WHERE model_id = {quoted(self.student)} AND method = 'vina' AND split = ({_SPLIT.format("presences")})
            ORDER BY judge, low""")

    def presence(self) -> Rows:
        return self.rows(f"""
            SELECT method, split, round(max(value) FILTER (metric = 'AUC'), 1) AS auc_percent,
                   round(max(value) FILTER (metric = 'ECE'), 1) AS calibration_error_percent, max(num_videos) AS videos
            FROM metrics WHERE protocol = 'htstep-presence' AND model_id = {quoted(self.student)}
            GROUP BY ALL ORDER BY split, method""")

    def ablations(self) -> dict[str, Rows]:
        rows = self.rows("""
            SELECT ablation, settings, row, variant, measure, seeds, mean, spread, paper FROM ablation_means
            ORDER BY ablation, settings, measure, row""")
        found: dict[str, Rows] = {}
        for row in rows:
            found.setdefault(f"{row.pop('ablation')} ({row.pop('settings')})", []).append(row)
        return found

    def examples(self) -> Rows:
        """The best, the median and the worst video, by how many of its annotated steps the student finds."""
        rows = self.rows(f"""
            SELECT model_id, video_id, article_id, steps, found, recall_percent FROM video_recall
            WHERE model_id = {quoted(self.student)} AND method IN ('vina', 'vina with narrations')
              AND split = ({_SPLIT.format("annotations WHERE benchmark = 'htstep'")})
            QUALIFY method = max(method) OVER () ORDER BY recall_percent DESC, steps DESC, video_id""")
        if len(rows) < len(PLACES):
            return []
        return [rows[round(share * (len(rows) - 1))] | {"place": place} for place, share in PLACES.items()]


_SPLIT = "SELECT coalesce(min(split) FILTER (split LIKE 'test%'), min(split) FILTER (split <> 'train')) FROM {}"
"""The split that is shown: test videos, if they are annotated."""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names) or "''"


def _plotted(name: str, rows: Rows, draw: Any) -> dict[str, Any]:
    """A table, and its plot if there is anything to draw."""
    return {name: grid_of(rows), f"{name}_plot": draw(rows) if rows else ""}


def _results(found: Results) -> dict[str, Any]:
    """The main table: ours, and theirs below."""
    rows = []
    for method in found.methods:
        keys = [(protocol, metric, method) for protocol, metric in COLUMNS]
        ours = [_mean(found.ours.get(key, [])) for key in keys]
        paper, later = ([_mean([own[key]] if key in own else []) for key in keys] for own in (found.paper, found.later))
        rows += [
            (kind, title, cells)
            for kind, title, cells in (
                ("ours", method, ours),
                ("theirs", f"{method}, in the paper", paper),
                ("theirs", f"{method}, published later", later),
            )
            if any(cells)
        ]
    return {"names": list(COLUMNS.values()), "rows": rows, "notes": found.notes}


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.1f}" if values else ""


def _example(store: Store, row: Mapping[str, Any], show_video: ShowVideo) -> tuple[str, VideoView]:
    question = Question(row["video_id"], task=row["article_id"], checkpoint=row["model_id"], device="cpu")
    grounded = ground(question, store)
    view = show_video(view_of(grounded, store), grounded.video_input.video_file)
    place = f"the {row['place']} video: {row['found']} of its {row['steps']} annotated steps are found"
    return place, view


def _sizes(store: Store) -> Rows:
    names = ("table", "rows", "shards", "bytes", "last_run")
    return [{name: row.get(name) for name in names} for row in summarise(store) if row["rows"] or row["problem"]]


def _settings(job: Job) -> dict[str, Any]:
    groups = {name: own for name, own in asdict(job).items() if isinstance(own, dict)}
    return {"corpus": job.corpus} | {f"{group}.{name}": own[name] for group, own in groups.items() for name in own}


def _versions() -> Rows:
    found = [{"of": name, "version": version(name)} for name in LIBRARIES]
    return [{"of": "Python", "version": platform.python_version()}, *found]


def _contact_sheet(store: Store) -> str:
    try:
        return as_data(store.objects.get(CONTACT_SHEET), "image/png")
    except MissingFileError:
        return ""
