"""One training loop for TAN* and VINA: it can start at any position, in one process or many.

The order of an epoch is a pure function of seed and epoch; random draws of a step are one of seed, process and step.
So a training that was killed ends with the same weights as one that was not.
"""

import json
import logging
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from storage import Store, fingerprint_of
from tasks.pipeline.device import autocast
from tasks.pipeline.job import Interrupted
from tasks.training import checkpoints
from tasks.training.batches import BatchShare, Example, count_batches, plan_batches, read_ahead, share_batch
from tasks.training.processes import Processes
from tasks.training.progress import LossSums, Meter, Position
from tasks.training.settings import TrainingSettings
from vina_model.objective import Losses, Objective

LOG = logging.getLogger("vina.training")


@dataclass(frozen=True)
class Learner:
    """A model to train, and its objective."""

    model_id: str
    stage: str
    """Its stage in `training_log`: tan or vina."""
    model: nn.Module
    objective: Objective
    num_epochs: int
    """Epochs of the whole training, over which the learning rate falls."""
    configuration: Mapping[str, Any]
    """The settings behind the model's id; a checkpoint carries them."""


@dataclass(frozen=True)
class TrainingVideos:
    """The videos of every epoch."""

    video_ids: Sequence[str]
    num_seconds: Sequence[int]
    """Length of each as it is trained on, so that videos of similar length share a batch."""
    noise: float
    """Standard deviation of the noise that is added to features."""


@dataclass(frozen=True)
class TrainingOutput:
    """Where checkpoints and the log are written, and by which run."""

    store: Store
    run_id: str


class ReadExample(Protocol):
    """Reads the example of some videos in an epoch."""

    def __call__(self, video_ids: Sequence[str], epoch: int) -> Example: ...  # noqa: D102


class Trainer:
    """A learner, its optimiser, and its position; `run` trains on to an epoch."""

    def __init__(
        self,
        learner: Learner,
        videos: TrainingVideos,
        output: TrainingOutput,
        settings: TrainingSettings,
        processes: Processes,
        state: Mapping[str, Any] | None,
    ) -> None:
        """Start a training, or continue it from the checkpoint `state`."""
        self.learner, self.videos, self.output = learner, videos, output
        self.settings, self.processes = settings, processes
        model = learner.model.to(processes.device)
        self.total_steps = learner.num_epochs * count_batches(len(videos.video_ids), settings.batch_size)
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        device_type = processes.device.split(":")[0]
        self._autocast = autocast(processes.device)
        self._scaler = torch.amp.GradScaler(device_type, enabled=self._autocast.fast_dtype == torch.float16)
        self.position = Position()
        self._unwritten_rows: list[dict[str, Any]] = []
        self._wrapped: nn.Module = DistributedDataParallel(model) if processes.count > 1 else model
        if state is not None:
            self._restore(state)

    def run(self, until_epoch: int, read: ReadExample, label_round: int) -> None:
        """Train until this number of epochs is done, on examples with the labels of a round."""
        position = self.position
        if position.step and position.epoch < until_epoch:
            LOG.info("%s goes on in epoch %d, step %d", self.learner.model_id, position.epoch, position.step)
        while position.epoch < until_epoch:
            self._epoch(read, label_round)
        self.processes.wait()  # until every process can read the checkpoint

    def _epoch(self, read: ReadExample, label_round: int) -> None:
        position, epoch = self.position, self.position.epoch
        batches = self._batches(epoch)
        meter = Meter(self.learner.model_id, position, len(batches), self.total_steps)
        self._wrapped.train()
        remaining = batches[position.batch :]
        saved_at = ready_at = time.monotonic()
        examples_of_batches = read_ahead(lambda batch: [read(part, epoch) for part in batch.parts], remaining)
        for examples, batch in zip(examples_of_batches, remaining, strict=True):
            waited_s = time.monotonic() - ready_at
            weight = batch.weight / batch.num_videos
            sums, is_end = self._exchange(self._step(examples, weight), weight)
            position.batch, position.step = position.batch + 1, position.step + 1
            if row := meter.add(batch.num_videos, sums, waited_s):
                rate = self.learning_rate(position.step - 1)
                self._unwritten_rows.append(row | {"round": label_round, "learning_rate": rate})
            if is_end:  # all processes agree on the step
                self._end(position.step)
            if time.monotonic() - saved_at > 60 * self.settings.checkpoint_minutes:
                self.save("last")
                saved_at = time.monotonic()
            ready_at = time.monotonic()
        self._write_log(position.epoch)
        position.epoch, position.batch = position.epoch + 1, 0
        self.save("last")

    def _batches(self, epoch: int) -> list[BatchShare]:
        """Return this process's share of each batch of an epoch."""
        settings, video_ids = self.settings, self.videos.video_ids
        plan = plan_batches(self.videos.num_seconds, settings.batch_size, settings.seed, epoch)
        rank, count = self.processes.rank, self.processes.count
        return [
            share_batch([video_ids[number] for number in batch], rank, count, settings.accumulate) for batch in plan
        ]

    def _end(self, num_steps: int) -> None:
        self.save("last")
        self.processes.wait()
        raise Interrupted(f"{self.learner.model_id} is saved after {num_steps} steps: run it again to go on")

    def _exchange(self, parts: Sequence[Losses], weight: float) -> tuple[LossSums, bool]:
        """Return the losses of a batch over all processes, and whether one of them is asked to end."""
        nv = [part.nv_B.sum() for part in parts if part.nv_B is not None]
        sv = [part.sv_B.sum() for part in parts if part.sv_B is not None]
        zero, asked_to_end = parts[0].total_B.new_zeros(()), self.processes.asked_to_end.is_set()
        sums = [sum(term, zero) * weight for term in ([part.total_B.sum() for part in parts], nv, sv)]
        total, nv_sum, sv_sum, is_end = self.processes.total(torch.stack([*sums, zero + asked_to_end])).tolist()
        return LossSums(total, nv_sum if nv else None, sv_sum if sv else None), bool(is_end)

    def _step(self, examples: Sequence[Example], weight: float) -> list[Losses]:
        """Take one step of the optimiser, with a weight of each video; return the losses of each part of the batch."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(self.position.step)
        self.optimizer.zero_grad(set_to_none=True)
        # Random draws are a function of the step: a checkpoint needs no generator state, and any process can continue.
        torch.manual_seed(_seed_of(self.settings.seed, self.processes.rank, self.position.step))
        losses = [self._gradient(example, weight, example is examples[-1]) for example in examples]
        self._scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.learner.model.parameters(), self.settings.clip)
        if not self._scaler.is_enabled() and not norm.isfinite():  # a scaler skips such a step by itself
            self._refuse("the gradient", [video_id for example in examples for video_id in example.video_ids])
        self._scaler.step(self.optimizer)
        self._scaler.update()
        return losses

    def _gradient(self, example: Example, weight: float, is_last: bool) -> Losses:
        """Add the gradient of a part of a batch, which is shared with the last part; return its losses."""
        example = self._augmented(example.to(self.processes.device))
        wrapped = self._wrapped
        with wrapped.no_sync() if isinstance(wrapped, DistributedDataParallel) and not is_last else nullcontext():
            with self._autocast:
                losses = self._losses(example)
            self._check(losses, example)
            # DistributedDataParallel takes the mean over the processes.
            self._scaler.scale(losses.total_B.sum() * weight * self.processes.count).backward()  # type: ignore[no-untyped-call]
        nv_B, sv_B = (None if term_B is None else term_B.detach() for term_B in (losses.nv_B, losses.sv_B))
        return Losses(losses.total_B.detach(), nv_B, sv_B)

    def _losses(self, example: Example) -> Losses:
        alignment = self._wrapped(example.batch)
        return self.learner.objective(alignment, example.narration_positives, example.step_positives)

    def _augmented(self, example: Example) -> Example:
        """Add noise to the features."""
        if not self.videos.noise:
            return example
        video_BTV = example.batch.video_BTV
        noisy_BTV = video_BTV + self.videos.noise * torch.randn_like(video_BTV)
        return replace(example, batch=replace(example.batch, video_BTV=noisy_BTV))

    def _check(self, losses: Losses, example: Example) -> None:
        bad_B = ~losses.total_B.isfinite()
        if bad_B.any():
            flags = zip(example.video_ids, bad_B.tolist(), strict=True)
            self._refuse("the loss", [video_id for video_id, is_bad in flags if is_bad])

    def _refuse(self, quantity: str, video_ids: list[str]) -> None:
        raise ValueError(
            f"{self.learner.model_id}: {quantity} is not finite in epoch {self.position.epoch}, "
            f"step {self.position.step}, for the videos {', '.join(video_ids)}: look at their features and labels, or "
            "lower the learning rate"
        )

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step: a warm-up, then half a cosine down to 0 over all epochs."""
        warmup = min(1.0, (step + 1) / (self.settings.warmup_steps + 1))
        return self.settings.learning_rate * warmup * 0.5 * (1 + math.cos(math.pi * step / self.total_steps))

    def save(self, name: str) -> None:
        """Write a checkpoint; only the first process does."""
        if not self.processes.is_first:
            return
        state = {
            "config": asdict(self.learner.model.config),  # type: ignore[call-overload]
            "state": self.learner.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self._scaler.state_dict(),
            "position": asdict(self.position),
            "pending": json.dumps(self._unwritten_rows),
            "configuration": json.dumps(self.learner.configuration),
        }
        checkpoints.save(self.output.store, self.learner.model_id, name, state)

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Restore the weights, the optimiser and the position from a checkpoint."""
        self.learner.model.load_state_dict(state["state"])
        self.optimizer.load_state_dict(state["optimizer"])
        if state["scaler"] and self._scaler.is_enabled():
            self._scaler.load_state_dict(state["scaler"])
        self.position = Position(**state["position"])
        self._unwritten_rows = json.loads(state["pending"])

    def _write_log(self, epoch: int) -> None:
        if not self.processes.is_first or not self._unwritten_rows:
            return
        table = self.output.store.table("training_log")
        partition = {"model_id": self.learner.model_id, "stage": self.learner.stage}
        rows = [{**row, "logged_at": datetime.fromisoformat(row["logged_at"])} for row in self._unwritten_rows]
        table.commit(
            pa.Table.from_pylist(rows, schema=table.schema.files), partition, f"epoch-{epoch:03d}",
            fingerprint=fingerprint_of({"rows": self._unwritten_rows}, {}, "1"), run_id=self.output.run_id, force=True,
        )  # fmt: skip
        self._unwritten_rows = []


def _seed_of(*numbers: int) -> int:
    """Hash several numbers into one seed."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))
