"""The plots of a report."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tasks.pages.drawing import INK, plot

Rows = Sequence[Mapping[str, Any]]
LABELS = {
    "kept_percent": "labels that are kept",
    "kept_right_percent": "of these, at the right time",
    "kept_shown_percent": "of these, of steps that are shown",
}


def losses(rows: Rows) -> Markup:
    """Plot the objective over optimiser steps, one line per training."""

    def draw(axes: Axes) -> None:
        for model_id in dict.fromkeys(row["model_id"] for row in rows):
            model_rows = [row for row in rows if row["model_id"] == model_id]
            axes.plot([row["step"] for row in model_rows], [row["loss"] for row in model_rows], label=model_id)
        axes.set(xlabel="optimiser steps", ylabel="objective")
        axes.grid(alpha=0.25)
        axes.legend()

    return plot(draw, "training curves: the objective over optimiser steps")


def labels_by_round(rows: Rows) -> Markup:
    """Plot the share of labels kept, and their precision on annotated videos."""

    def draw(axes: Axes) -> None:
        for name, title in LABELS.items():
            measured = [row for row in rows if row.get(name) is not None]
            if measured:
                axes.plot([row["round"] for row in measured], [row[name] for row in measured], marker="o", label=title)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel="round (0: by TAN*)", ylabel="%", ylim=(0, 100))
        axes.grid(alpha=0.25)
        axes.legend()

    return plot(draw, "pseudo-labels by round: share kept, and share of these that are right")


def pairing_accuracy(rows: Rows) -> Markup:
    """Plot the share of right articles when the least confident videos are left out."""

    def draw(axes: Axes) -> None:
        for name, title in (("by_similarity_margin", "by similarity margin"), ("by_vote_margin", "by vote margin")):
            axes.plot([row["left_out_percent"] for row in rows], [row[name] for row in rows], marker="o", label=title)
        axes.set(xlabel="least confident videos left out, %", ylabel="right article, %", ylim=(0, 103))
        axes.grid(alpha=0.25)
        axes.legend()

    return plot(draw, "pairing: share of right articles when the least confident videos are left out")


def reliability(rows: Rows) -> Markup:
    """Plot the share of steps that are shown over their score."""

    def draw(axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], color=INK, linestyle=":", linewidth=1, label="perfect calibration")
        for judge, title in (("presence", "presence"), ("peak", "peak score")):
            judge_rows = [row for row in rows if row["judge"] == judge]
            axes.plot(
                [row["mean_score"] for row in judge_rows], [row["shown"] for row in judge_rows], marker="o", label=title
            )
        axes.set(xlabel="score of a step", ylabel="share of such steps that are shown", xlim=(0, 1), ylim=(0, 1))
        axes.grid(alpha=0.25)
        axes.legend()

    return plot(draw, "reliability: score of a step and the share of such steps that are shown", 5, 4)
