"""A picture of what a vote's margin is worth."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.ticker import PercentFormatter


def draw_accuracy(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Rows of the view `pairing_by_confidence`: a line a model."""
    if not rows:
        raise ValueError("no video's metadata names a task that an article is known for: there is nothing to draw")
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    total = {row["model"]: row["videos"] for row in rows if row["left_out_percent"] == 0}
    for model in sorted(total):
        own = [row for row in rows if row["model"] == model]
        kept = [100 * row["videos"] / total[model] for row in own]
        axes.plot(kept, [row["top1_percent"] for row in own], marker="o", label=f"{model} ({total[model]:,} videos)")
    axes.set(xlabel="videos kept, most confident first", ylabel="vote agrees with the data set's task")
    axes.set(xlim=(102, 0), ylim=(0, 102), title="What a vote's margin is worth")
    axes.xaxis.set_major_formatter(PercentFormatter())
    axes.yaxis.set_major_formatter(PercentFormatter())
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    partial = path.with_name(f".{path.name}.partial{path.suffix}")
    try:
        figure.savefig(partial, dpi=150)
        partial.replace(path)
    finally:
        plt.close(figure)
        partial.unlink(missing_ok=True)
