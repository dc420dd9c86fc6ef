"""The progress of a training: its position, rows for `training_log`, and a log line every few seconds."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tasks.pipeline.progress import say

LOG = logging.getLogger("vina.training")
ROWS_PER_EPOCH = 20
SECONDS_PER_LINE = 5.0


@dataclass
class Position:
    """The position of a training: `batch` batches of `epoch` are done, `step` steps in all."""

    epoch: int = 0
    batch: int = 0
    step: int = 0


class LossSums(NamedTuple):
    """Losses of a batch, over all processes: the objective and its two terms (None: not trained)."""

    total: float
    nv: float | None
    sv: float | None


class Meter:
    """Averages losses between two rows, and writes a log line every few seconds."""

    def __init__(self, model_id: str, position: Position, num_batches: int, total_steps: int) -> None:
        self._model_id, self._position, self._total_steps = model_id, position, total_steps
        self._num_batches, self._every = num_batches, max(num_batches // ROWS_PER_EPOCH, 1)
        self._begun_at = self._line_at = self._row_at = time.monotonic()
        self._first_step, self._all_videos = position.step, 0
        self._clear()

    def _clear(self) -> None:
        self._losses: list[LossSums] = []
        self._videos, self._waited_s = 0, 0.0

    def add(self, num_videos: int, losses: LossSums, waited_s: float) -> dict[str, Any] | None:
        """Count a batch with its losses and the time spent waiting; return a row if one is due."""
        self._losses.append(losses)
        self._videos, self._waited_s = self._videos + num_videos, self._waited_s + waited_s
        self._all_videos += num_videos
        now, position = time.monotonic(), self._position
        loss = _mean([batch.total for batch in self._losses])
        if now - self._line_at >= SECONDS_PER_LINE:
            self._line_at = now
            self._say(loss or 0.0, now - self._begun_at)
        if position.batch % self._every and position.batch < self._num_batches:
            return None
        seconds = max(now - self._row_at, 1e-9)
        row = {
            "epoch": position.epoch,
            "step": position.step,
            "loss": loss,
            "loss_nv": _mean([batch.nv for batch in self._losses]),
            "loss_sv": _mean([batch.sv for batch in self._losses]),
            "videos_per_s": self._videos / seconds,
            "waiting_percent": 100 * self._waited_s / seconds,
            "logged_at": datetime.now(UTC).isoformat(),
        }
        self._row_at = now
        self._clear()
        return row

    def _say(self, loss: float, seconds: float) -> None:
        rate = (self._position.step - self._first_step) / seconds
        left = int((self._total_steps - self._position.step) / rate)
        position, speed = self._position, self._all_videos / seconds
        line = f"{self._model_id}: epoch {position.epoch}, loss {loss:.3f}, {speed:.0f} videos per second"
        say(LOG, position.step / self._total_steps, f"{line}, {left // 60} min {left % 60} s left")


def _mean(terms: Sequence[float | None]) -> float | None:
    """Return the mean over batches, where one without the term counts as 0; None if no batch has it."""
    known = [term for term in terms if term is not None]
    return sum(known) / len(terms) if known else None
