"""The ablation tables: each row is a training with some settings changed, each cell a number beside the paper's.

Rows with equal settings, in any table, share one training. `curriculum` (what each phase of the training adds) and
`main` (the models that `vina results` compares) are not in the paper.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.evaluation.benchmarks.htm_align import HTM_ALIGN, HTM_ALIGN_R1
from tasks.evaluation.benchmarks.htstep import HTSTEP, HTSTEP_R1
from tasks.evaluation.families import BURNT_IN, SENTENCES, TAN_LC, TAN_PE_LC, VINA, Pathway
from tasks.training.settings import TrainingSettings


@dataclass(frozen=True)
class Cell:
    """One number of `metrics`, by method, pathway, protocol and metric."""

    method: str
    pathway: Pathway = Pathway.DIRECT
    protocol: str = HTSTEP_R1.name
    metric: str = "R@1"


@dataclass(frozen=True)
class Row:
    """One line of a table. `cells` and `paper` are by the names of the columns."""

    name: str
    changes: Mapping[str, Any]
    cells: Mapping[str, Cell]
    paper: Mapping[str, float] = field(default_factory=dict)
    labels: str = ""
    """Numbers about the labels: `discarded` is the largest share that a round drops; `rounds` adds a row for the
    precision of each round's labels."""


MEASURED_ON = (HTSTEP, HTM_ALIGN)
"""Benchmarks of the paper's tables; the first is needed for every one of them."""
FIXED: Mapping[str, Any] = {"refresh_epochs": 0}
WITHOUT_NARRATIONS, WITH_NARRATIONS, ALIGN = "HT-Step w/o nar.", "HT-Step w/ nar.", "HTM-Align"
DISCARDED = "max % discarded"


def _row(name: str, changes: Mapping[str, Any], *paper: float | None, method: str = VINA) -> Row:
    """Return a row with the three columns that most tables have."""
    cells = {
        WITHOUT_NARRATIONS: Cell(method),
        WITH_NARRATIONS: Cell(method, Pathway.FUSED),
        ALIGN: Cell(method, protocol=HTM_ALIGN_R1.name),
    }
    published = {column: value for column, value in zip(cells, paper, strict=False) if value is not None}
    return Row(name, changes, cells, published)


def _components(settings: TrainingSettings) -> list[Row]:
    return [
        _row("(1) TAN*", {}, 30.7, None, 47.1, method=TAN_LC),
        _row("(2) N", {**FIXED, "steps": False}, None, None, 63.2),
        _row("(3) S", {**FIXED, "narrations": False}, 34.0),
        _row("(4) S, iterative", {"narrations": False}, 35.8),
        _row("(5) N+S", FIXED, 34.3, 36.1, 64.8),
        _row("(6) N+S, iterative", {}, 36.9, 39.1, 67.0),
    ]


def _pathways(settings: TrainingSettings) -> list[Row]:
    pathways = (
        ("S -> V", Cell(VINA), 34.3),
        ("S -> N -> V, learned", Cell(VINA, Pathway.INDIRECT), 30.5),
        ("S -> N learned, N -> V by ASR times", Cell(VINA, Pathway.INDIRECT_BY_ASR), 27.9),
        ("S -> N by sentence model, N -> V by ASR times", Cell(SENTENCES, Pathway.INDIRECT_BY_ASR), 19.0),
        ("fused", Cell(VINA, Pathway.FUSED), 36.1),
    )
    return [Row(name, FIXED, {"HT-Step": cell}, {"HT-Step": paper}) for name, cell, paper in pathways]


def _labels(settings: TrainingSettings) -> list[Row]:
    def row(matrix: str, gamma: float, discarded: float, *paper: float) -> Row:
        changes = {"label_matrix": matrix, "gamma": gamma, "confidence": "peak", "keep_share": 0.0}
        base = _row(f"{'S -> V' if matrix == 'SV' else 'fused'}, gamma {gamma}", changes, *paper)
        cells = {column: cell for column, cell in base.cells.items() if column != ALIGN}
        return Row(base.name, changes, cells, {**base.paper, DISCARDED: discarded}, "discarded")

    rows = [row("SV", 0.40, 24, 34.3, 36.5), row("SV", 0.65, 91, 36.9, 39.1)]
    rows += [row("F", 0.40, 60, 34.1, 35.9), row("F", 0.55, 88, 36.2, 35.5)]
    if settings.keep_share or settings.confidence != "peak":
        name = f"as in the preset: {settings.confidence} confidence, {settings.keep_share:.0%} kept"
        cells = {WITHOUT_NARRATIONS: Cell(VINA), WITH_NARRATIONS: Cell(VINA, Pathway.FUSED)}
        rows.append(Row(name, {}, cells, labels="discarded"))
    return rows


def _selection(settings: TrainingSettings) -> list[Row]:
    rows = (("metadata", "metadata", 34.3), ("top-1", "top1", 34.7), ("random of top-5", "random_top5", 34.3))
    return [_row(name, {**FIXED, "selection": selection}, paper) for name, selection, paper in rows]


def _architecture(settings: TrainingSettings) -> list[Row]:
    def row(positions: bool, separate: bool, *paper: float) -> Row:
        name = f"{'with' if positions else 'no'} step positions, {'separate' if separate else 'shared'} MLP"
        return _row(name, {**FIXED, "step_positions": positions, "separate_text_mlps": separate}, *paper)

    return [
        row(False, True, 33.5, 34.0, 65.8),
        row(False, False, 34.0, 34.9, 65.9),
        row(True, False, 33.8, 34.4, 67.0),
        row(True, True, 34.3, 36.1, 64.8),
    ]


def _curriculum(settings: TrainingSettings) -> list[Row]:
    def row(name: str, changes: Mapping[str, Any], method: str, labels: str = "") -> Row:
        pathways = {
            "no narrations": Pathway.DIRECT,
            "direct": Pathway.DIRECT_WITH_NARRATIONS,
            "indirect": Pathway.INDIRECT,
            "fused": Pathway.FUSED,
        }
        cells = {column: Cell(method, pathway) for column, pathway in pathways.items()}
        return Row(name, changes, cells, labels=labels)

    return [
        row("TAN*", {}, TAN_LC),
        row("burn-in", {}, BURNT_IN),
        row("fixed labels", FIXED, VINA),
        row("iterative labels", {}, VINA, "rounds"),
    ]


def _main(settings: TrainingSettings) -> list[Row]:
    """Return rows without the paper's numbers, which are for test videos and are in the table of `vina results`."""
    return [
        _row("TAN* (LC)", {}, method=TAN_LC),
        _row("TAN* (PE+LC)", {"tan_text_positions": True}, method=TAN_PE_LC),
        _row("VINA", {}),
    ]


@dataclass(frozen=True)
class AblationTable:
    """A table: what it varies, and its rows for a training whose settings they change."""

    about: str
    rows: Callable[[TrainingSettings], list[Row]]


TABLES = {
    "components": AblationTable(
        "narrations and steps, fixed and iterative labels, with and without narrations", _components
    ),
    "pathways": AblationTable("pathway from steps to seconds at inference", _pathways),
    "labels": AblationTable("matrix that labels are read from, and their threshold", _labels),
    "selection": AblationTable("how videos are paired with articles", _selection),
    "architecture": AblationTable("positions and projections of steps", _architecture),
    "curriculum": AblationTable("what each phase of the training adds", _curriculum),
    "main": AblationTable("both TAN* and VINA on all benchmarks (`vina results` shows them)", _main),
}


def rows_of(table: str, settings: TrainingSettings) -> list[Row]:
    """Return the rows of a table that starts from these settings."""
    if not settings.refresh_epochs or settings.burn_in_epochs == settings.epochs:
        raise ValueError(
            "the settings have no round after the burn-in: raise epochs or refresh_epochs, or lower burn_in_epochs"
        )
    return TABLES[table].rows(settings)


def on_all_benchmarks(table: str) -> bool:
    """Return whether the models of a table are measured on all benchmarks, as `vina results` shows them."""
    return table == "main"
