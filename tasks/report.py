"""The stage `report`: one HTML page about the store, of its own, without scripts: `objects/reports/RUN.html`."""

import base64
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from storage import MissingFileError, Store
from storage.catalogue import Catalogue, quoted
from storage.schemas import TABLES
from tasks.evaluation.results import COLUMNS, Results, read_results, trainings_of
from tasks.importers.demo_corpus import CONTACT_SHEET
from tasks.job import Job
from tasks.spread import Spread, here
from tasks.stage import Ingredients, Stage, versions

CODE_VERSION = "1"
Rows = Sequence[Mapping[str, Any]]
QUESTIONS = (
    "SELECT round, kept_percent, kept_right_percent FROM label_precision ORDER BY round",
    "SELECT video_id, peak_s, score, reason FROM pseudo_labels WHERE NOT kept ORDER BY score DESC LIMIT 5",
    "SELECT protocol, metric, method, ours, paper FROM metrics_beside_paper WHERE ours IS NOT NULL",
)
"""SQL to begin with."""
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: .6rem 0 1.6rem }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #ddd }
th { text-align: left; background: #f5f5f5 } td { vertical-align: top } td.number { text-align: right }
tr.theirs td { color: #888; font-style: italic } img { max-width: 100% }
pre { background: #f5f5f5; padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere }
h2 { margin-top: 2.2rem; border-bottom: 2px solid #ddd }"""


def write_report(job: Job, spread: Spread = here) -> str:
    """The page; returns its address."""
    page = "\n".join(_page(Store(job.store), job))
    return Store(job.store).objects.put(f"reports/{job.run_id}.html", page.encode())


def _page(store: Store, job: Job) -> Iterator[str]:
    found = read_results(store, job.run_id)
    own = [name for name in trainings_of(store, job.training) if name.startswith("vina@")]
    with Catalogue(store) as catalogue:

        def ask(sql: str) -> list[dict[str, Any]]:
            return catalogue.query(sql).to_pylist()

        trained = ", ".join(quoted(name) for name in own) or "''"
        yield f"<!doctype html><html lang=en><meta charset=utf-8><title>VINA, run {escape(job.run_id)}</title>"
        yield f"<style>{STYLE}</style><h1>VINA, run {escape(job.run_id)}</h1>"
        yield f"<p>Store: {escape(job.store)}</p>"
        yield "<h2>Results, %</h2>" + "".join(_results(found))
        yield "<p>The paper's numbers are of its own videos and models: compare the order, and the distances.</p>"
        yield "<h2>Labels of each round</h2>" + _grid(
            ask(f"FROM label_precision WHERE training IN ({trained}) ORDER BY training, round")
            or ask(f"""SELECT training, round, sum(labels) AS labels, round(100.0 * sum(kept) / sum(labels), 1)
                    AS kept_percent FROM label_keep_rate WHERE training IN ({trained}) GROUP BY ALL ORDER BY ALL""")
        )
        losses = ask(f"""SELECT l.training, l.stage, l.step, l.loss FROM training_log l
            WHERE l.training IN ({", ".join(quoted(name) for name in trainings_of(store, job.training)) or "''"})
            ORDER BY l.training, l.step""")
        yield _losses(losses) if losses else ""
        yield "<h2>Corpus</h2>" + _grid(ask("FROM corpus"))
        yield _contact_sheet(store)
        yield "<h2>Rejects</h2>" + _grid(ask("FROM rejects_by_reason"))
        yield "<h2>Stages</h2>" + _grid(
            ask("""SELECT stage, _written_by AS run, strftime(finished_at, '%Y-%m-%d %H:%M') AS finished,
                round(took_s, 1) AS took_s, report FROM completions ORDER BY finished_at""")
        )
    yield "<h2>Settings</h2>" + _grid(
        [{"setting": name, "value": value} for name, value in asdict(job.training).items()]
    )
    yield "<h2>Ask it yourself</h2><pre>" + escape("\n".join(commands(job.store))) + "</pre></html>"


def address_of_report(store: Store) -> str:
    """The newest page; nothing if there is none."""
    found = store.table("completions").snapshot().where(stage=REPORT.name)
    rows = found.read(["report"]).to_pylist() if found.shards else []
    return rows[0]["report"] if rows else ""


def commands(store: str) -> list[str]:
    """Three questions to begin with."""
    return [f'vina sql "{sql}" --store {store}' for sql in QUESTIONS]


def _results(found: Results) -> Iterator[str]:
    """The main table: ours, and theirs in italics below."""
    yield "<table><tr><th>" + "".join(f"<th>{escape(title)}" for title in COLUMNS.values()) + "</tr>"
    for method in found.methods:
        keys = [(protocol, metric, method) for protocol, metric in COLUMNS]
        ours = [_mean(found.ours.get(key, [])) for key in keys]
        if any(ours):
            yield _row("", method, ours)
        for title, numbers in (("in the paper", found.paper), ("published later", found.later)):
            theirs = [f"{numbers[key]:.1f}" if key in numbers else "" for key in keys]
            if any(theirs):
                yield _row("theirs", f"{method}, {title}", theirs)
    yield "</table>" + "".join(f"<p>{escape(note)}</p>" for note in found.notes)


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.1f}" if values else ""


def _row(kind: str, title: str, cells: Sequence[str]) -> str:
    return f"<tr class='{kind}'><td>{escape(title)}" + "".join(f"<td class=number>{cell}" for cell in cells) + "</tr>"


def _grid(rows: Rows) -> str:
    if not rows:
        return "<p>none</p>"
    head = "".join(f"<th>{escape(str(name))}" for name in rows[0])
    lines = ["".join(_cell(value) for value in row.values()) for row in rows]
    return f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _cell(value: Any) -> str:
    if isinstance(value, bool | str) or value is None:
        return "<td>" + escape("" if value is None else str(value)).replace("\n", "<br>")
    return f"<td class=number>{value:,}" if isinstance(value, int) else f"<td class=number>{value:g}"


def _losses(rows: Rows) -> str:
    """How the objective went down, as a drawing within the page."""
    figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
    for training in dict.fromkeys(row["training"] for row in rows):
        own = [row for row in rows if row["training"] == training]
        axes.plot([row["step"] for row in own], [row["loss"] for row in own], label=training)
    axes.set(xlabel="optimiser steps", ylabel="objective")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    sink = io.StringIO()
    figure.savefig(sink, format="svg")
    plt.close(figure)
    return re.sub(r"^.*?(?=<svg)", "", sink.getvalue(), flags=re.DOTALL)


def _contact_sheet(store: Store) -> str:
    try:
        picture = base64.b64encode(store.objects.get(CONTACT_SHEET)).decode()
    except MissingFileError:
        return ""
    return f"<p>Three films of the demo world:</p><img alt='contact sheet' src='data:image/png;base64,{picture}'>"


def ingredients(job: Job) -> Ingredients:
    """What the page shows."""
    shown = [name for name in TABLES if name not in ("runs", "completions")]
    return Ingredients(asdict(job.training), versions(job.opened, *shown))


def undo(job: Job) -> None:
    """A page of another run stays."""


REPORT = Stage("report", write_report, ingredients, undo, CODE_VERSION)
