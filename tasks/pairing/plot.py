"""Plot of the accuracy of votes over their confidence."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.ticker import PercentFormatter

from storage.objects import atomic_file

KINDS = (".png", ".svg", ".pdf")


def draw_accuracy(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw rows of the view `pairing_by_confidence`, one line per encoder."""
    if not rows:
        raise ValueError("no video's metadata names a task with an article: there is nothing to draw")
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"{path}: a picture's name ends in {', '.join(KINDS)}")
    if not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written: No such file or directory: {path.parent}")
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    total = {row["encoder"]: row["videos_kept"] for row in rows if row["left_out_percent"] == 0}
    for encoder in sorted(total):
        encoder_rows = [row for row in rows if row["encoder"] == encoder]
        kept = [100 - row["left_out_percent"] for row in encoder_rows]
        for column, style in (("by_similarity_margin", "o-"), ("by_vote_margin", "s--")):
            label = f"{encoder}, {column.replace('_', ' ')} ({total[encoder]:,} videos)"
            axes.plot(kept, [row[column] for row in encoder_rows], style, label=label)
    axes.set(xlabel="videos kept, most confident first", ylabel="vote agrees with the data set's task")
    axes.set(xlim=(102, 0), ylim=(0, 102), title="Accuracy of the vote over its margin")
    axes.xaxis.set_major_formatter(PercentFormatter())
    axes.yaxis.set_major_formatter(PercentFormatter())
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize="small")
    try:
        with atomic_file(path) as partial:
            figure.savefig(partial, dpi=150, format=path.suffix[1:].lower())
    finally:
        plt.close(figure)
