"""One training loop for TAN* and VINA: any epoch, any position, one process or many.

What an epoch sees, and in which order, is a pure function of seed and epoch; what a step draws at random, of seed,
process and step. So a training that was killed ends with the weights of one that was not.
"""

import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from storage import Store, fingerprint_of
from tasks.pipeline.device import autocast
from tasks.pipeline.job import Interrupted
from tasks.training import checkpoints
from tasks.training.batches import Example, count_batches, plan_batches, read_ahead
from tasks.training.processes import Processes
from tasks.training.progress import Meter, Position
from tasks.training.settings import TrainingSettings

LOG = logging.getLogger("vina.training")


class Losses(NamedTuple):
    """The objective of each video of a batch, B, and its two parts (None: not trained)."""

    total_B: Tensor
    nv_B: Tensor | None
    sv_B: Tensor | None


class ReadExample(Protocol):
    """Makes the example of some videos in an epoch."""

    def __call__(self, video_ids: Sequence[str], epoch: int) -> Example: ...  # noqa: D102


class Trainer:
    """A model, its optimiser, and where it is; `run` goes on to an epoch."""

    def __init__(
        self,
        store: Store,
        run_id: str,
        model_id: str,
        stage: str,
        model: nn.Module,
        objective: Callable[[nn.Module, Example], Losses],
        video_ids: Sequence[str],
        lengths: Sequence[int],
        num_epochs: int,
        noise: float,
        settings: TrainingSettings,
        configuration: Mapping[str, Any],
        processes: Processes,
        state: Mapping[str, Any] | None,
    ) -> None:
        """`configuration` is what the training's name stands for; `state` is the checkpoint to go on from."""
        self.store, self.run_id, self.model_id, self.stage = store, run_id, model_id, stage
        self.model, self.objective, self.settings, self.processes = (
            model.to(processes.device),
            objective,
            settings,
            processes,
        )
        self.video_ids, self.lengths, self.noise = video_ids, lengths, noise
        self.configuration = configuration
        self.total_steps = num_epochs * count_batches(len(video_ids), settings.batch_size)
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        kind = processes.device.split(":")[0]
        self._mixed = autocast(processes.device)
        self._scaler = torch.amp.GradScaler(kind, enabled=self._mixed.fast_dtype == torch.float16)
        self.position = Position()
        self._pending: list[dict[str, Any]] = []
        self._wrapped: nn.Module = DistributedDataParallel(model) if processes.count > 1 else model
        if state is not None:
            self._restore(state)

    def run(self, until_epoch: int, read: ReadExample, round_: int) -> None:
        """Train until so many epochs are done."""
        if self.position.step and self.position.epoch < until_epoch:
            LOG.info("%s goes on in epoch %d, step %d", self.model_id, self.position.epoch, self.position.step)
        while self.position.epoch < until_epoch:
            self._epoch(read, round_)
        self.processes.wait()  # until the checkpoint is there for all

    def _epoch(self, read: ReadExample, round_: int) -> None:
        settings, position = self.settings, self.position
        plan = plan_batches(self.lengths, settings.batch_size, settings.seed, position.epoch)
        mine = [
            _share([self.video_ids[number] for number in batch], self.processes, settings.accumulate) for batch in plan
        ]
        meter = Meter(self.model_id, position, len(plan), self.total_steps)
        self._wrapped.train()
        left, epoch = list(zip(mine, plan, strict=True))[position.batch :], position.epoch
        saved = ready = time.monotonic()
        parts = read_ahead(lambda item: [read(part, epoch) for part in item[0].parts], left)
        for examples, (share, everyone) in zip(parts, left, strict=True):
            waited_s = time.monotonic() - ready
            losses = self._step(examples, share.weight / len(everyone))
            asked = losses.new_tensor([self.processes.asked_to_end.is_set()])
            *sums, ends = self.processes.total(torch.cat([losses, asked])).tolist()
            position.batch, position.step = position.batch + 1, position.step + 1
            if row := meter.add(len(everyone), sums, waited_s):
                rate = self.learning_rate(position.step - 1)
                unknown = {"loss_sv": None} if self.stage == "tan" else {}
                self._pending.append(row | unknown | {"round": round_, "learning_rate": rate})
            if ends:  # all processes agree on the step
                self.save("last")
                self.processes.wait()
                raise Interrupted(f"{self.model_id} is saved after {position.step} steps: run it again to go on")
            if time.monotonic() - saved > 60 * settings.checkpoint_minutes:
                self.save("last")
                saved = time.monotonic()
            ready = time.monotonic()
        self._write_log(position.epoch)
        position.epoch, position.batch = position.epoch + 1, 0
        self.save("last")

    def _step(self, examples: Sequence[Example], weight: float) -> Tensor:
        """One step of the optimiser, in which each video has a weight; returns the losses: total, NV and SV."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(self.position.step)
        self.optimizer.zero_grad(set_to_none=True)
        # What is drawn at random is a function of the step: nothing of it needs to be kept, and any process can go on.
        torch.manual_seed(_seed_of(self.settings.seed, self.processes.rank, self.position.step))
        losses = [self._gradient(example, weight, example is examples[-1]) for example in examples]
        self._scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        if not self._scaler.is_enabled() and not norm.isfinite():  # a scaler leaves such a step out by itself
            self._refuse("the gradient", [name for example in examples for name in example.video_ids])
        self._scaler.step(self.optimizer)
        self._scaler.update()
        return torch.stack(losses).sum(0) * weight

    def _gradient(self, example: Example, weight: float, is_last: bool) -> Tensor:
        """Add a part's gradient, which the processes share with the last one; returns the sums of its losses."""
        example = self._augmented(example.to(self.processes.device))
        wrapped = self._wrapped
        with wrapped.no_sync() if isinstance(wrapped, DistributedDataParallel) and not is_last else nullcontext():
            with self._mixed:
                losses = self.objective(wrapped, example)
            self._check(losses, example)
            # DistributedDataParallel takes the mean over the processes.
            self._scaler.scale(losses.total_B.sum() * weight * self.processes.count).backward()  # type: ignore[no-untyped-call]
        nothing = torch.zeros_like(losses.total_B)
        return torch.stack([nothing if part is None else part.detach() for part in losses]).sum(1)

    def _augmented(self, example: Example) -> Example:
        if not self.noise:
            return example
        batch = example.batch
        noisy = batch.video_BTV + self.noise * torch.randn_like(batch.video_BTV)
        changed = type(batch)(noisy, batch.seconds_B, batch.narrations, batch.steps)
        return Example(example.video_ids, changed, example.narration_positives, example.step_positives)

    def _check(self, losses: Losses, example: Example) -> None:
        bad_B = ~losses.total_B.isfinite()
        if bad_B.any():
            bad = zip(example.video_ids, bad_B.tolist(), strict=True)
            self._refuse("the loss", [name for name, is_bad in bad if is_bad])

    def _refuse(self, what: str, names: list[str]) -> None:
        raise ValueError(
            f"{self.model_id}: {what} is not finite in epoch {self.position.epoch}, step {self.position.step}, "
            f"for the videos {', '.join(names)}: look at their features and labels, or lower the learning rate"
        )

    def learning_rate(self, step: int) -> float:
        """Warm-up, then half a cosine down to nothing over all epochs."""
        warm = min(1.0, (step + 1) / (self.settings.warmup_steps + 1))
        return self.settings.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * step / self.total_steps))

    def save(self, name: str) -> None:
        """A checkpoint, by the first process."""
        if not self.processes.is_first:
            return
        state = {
            "config": asdict(self.model.config),  # type: ignore[call-overload]
            "state": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self._scaler.state_dict(),
            "position": asdict(self.position),
            "pending": json.dumps(self._pending),
            "configuration": json.dumps(self.configuration),
        }
        checkpoints.save(self.store, self.model_id, name, state)

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Go on where a checkpoint was made."""
        self.model.load_state_dict(state["state"])
        self.optimizer.load_state_dict(state["optimizer"])
        if state["scaler"] and self._scaler.is_enabled():
            self._scaler.load_state_dict(state["scaler"])
        self.position = Position(**state["position"])
        self._pending = json.loads(state["pending"])

    def _write_log(self, epoch: int) -> None:
        if not self.processes.is_first or not self._pending:
            return
        table, partition = self.store.table("training_log"), {"model_id": self.model_id, "stage": self.stage}
        rows = [{**row, "logged_at": datetime.fromisoformat(row["logged_at"])} for row in self._pending]
        found = pa.Table.from_pylist(rows, schema=table.schema.files)
        table.commit(
            found, partition, f"epoch-{epoch:03d}",
            fingerprint=fingerprint_of({"rows": self._pending}, {}, "1"), run_id=self.run_id, force=True,
        )  # fmt: skip
        self._pending = []


def _seed_of(*numbers: int) -> int:
    """One number of several, unlike that of any others."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))


class _Share(NamedTuple):
    """A process's videos of a batch, in parts; their weight is 0 if it only keeps the others company."""

    parts: list[list[str]]
    weight: int


def _share(video_ids: list[str], processes: Processes, num_parts: int) -> _Share:
    own = video_ids[processes.rank :: processes.count]
    parts = [own[place::num_parts] for place in range(min(num_parts, len(own)))]
    return _Share(parts, 1) if own else _Share([video_ids[:1]], 0)
