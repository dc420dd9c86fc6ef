"""The curriculum: TAN*, its labels, and a student that becomes its own teacher; each resumes from its checkpoint."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from storage import Store
from tasks.pipeline.job import Job
from tasks.training import checkpoints
from tasks.training.batches import ExampleReader
from tasks.training.corpus import Corpus, corpus_of
from tasks.training.labels import Labels
from tasks.training.matrices import retire_matrices
from tasks.training.method_names import VINA, tan_method
from tasks.training.model_ids import model_ids
from tasks.training.models import (
    make_tan,
    make_vina,
    published_name,
    published_teacher,
    unimodal_narrations,
    version_of,
)
from tasks.training.processes import Processes
from tasks.training.settings import TrainingSettings
from tasks.training.teachers import LabelRound, Teacher
from tasks.training.trainer import Learner, Trainer, TrainingOutput, TrainingVideos
from tasks.training.words import make_text_encoder
from vina_model.objective import Objective, tan_objective, vina_objective
from vina_model.tan import TanAligner
from vina_model.text import BagOfWords
from vina_model.tokenizer import Tokenizer
from vina_model.vina import Vina, steps_as_narrations


class NothingToTrain(ValueError):
    """The store has no video to train on."""


class Phase(NamedTuple):
    """Epochs of the student that are trained on the labels of one round."""

    label_round: int
    last_epoch: int
    """Epochs completed at its end, counted from the start of the training."""


class TrainedModel(NamedTuple):
    """A fully trained model."""

    model_id: str
    method: str
    """Its name in the tables of results: see `method_names`."""
    teacher: Teacher


class Curriculum:
    """The models of one job's settings and corpus."""

    def __init__(self, job: Job, processes: Processes, corpus: Corpus | None = None) -> None:
        """`corpus` is that of the job's settings, if the caller has read it already."""
        self.settings, self.processes, self.run_id = job.settings_of(TrainingSettings), processes, job.run_id
        self.store = Store(job.store)
        self.corpus = corpus or corpus_of(self.store, self.settings.backbone, self.settings.selection)
        self._refuse_unknown_backbone()
        if not self.corpus.paired:
            raise NothingToTrain(
                f"no video with {self.settings.backbone} features is paired with an article (selection "
                f"{self.settings.selection}): run the stages `features` and `pairing` first"
            )
        self.model_ids = model_ids(self.settings, self.corpus)
        self.tan_id, self.student_id = self.model_ids.tan, self.model_ids.student

    def _refuse_unknown_backbone(self) -> None:
        backbones = {str(shard.constants["backbone"]) for shard in self.store.table("features").snapshot().shards}
        if backbones and self.settings.backbone not in backbones:
            raise ValueError(
                f"there are no features of backbone {self.settings.backbone!r}, only of "
                f"{', '.join(sorted(backbones))}: choose one (--set training.backbone=NAME)"
            )

    def phases(self) -> list[Phase]:
        """Return the phases of the student's training: burn-in, then one for each further round of labels."""
        settings = self.settings
        if settings.refresh_epochs:
            ends = [*range(settings.burn_in_epochs, settings.epochs, settings.refresh_epochs), settings.epochs]
            return [Phase(label_round, end) for label_round, end in enumerate(ends)]
        return [Phase(0, end) for end in sorted({settings.burn_in_epochs, settings.epochs})]

    def train_tan(self) -> TanAligner:
        """Train TAN* fully, on narrations alone."""
        settings = self.settings
        if not self.corpus.narrated:
            raise ValueError("no video to train on has narrations: TAN* needs some, or name a published one (tan=FILE)")
        state = self._checkpoint(self.tan_id)
        model = self._tan(state)
        learner = self._learner(self.tan_id, "tan", model, tan_objective, settings.tan_epochs)
        trainer = self._trainer(learner, self.corpus.narrated, state)
        reader = ExampleReader(self.corpus, _tokenizer(model), settings.max_seconds, settings.seed)
        trainer.run(settings.tan_epochs, reader, label_round=0)
        return model.eval()

    def train_student(self, phase_number: int) -> Vina:
        """Train the student to the end of a phase, whose labels must exist; save it as the next round's teacher."""
        settings, phase = self.settings, self.phases()[phase_number]
        state = self._checkpoint(self.student_id)
        model = self._student(state)
        learner = self._learner(self.student_id, "vina", model, vina_objective, settings.epochs)
        trainer = self._trainer(learner, self.corpus.paired, state)
        if trainer.position.epoch < phase.last_epoch:
            labels = Labels(self.store, self.student_id, phase.label_round)
            reader = ExampleReader(self.corpus, _tokenizer(model), settings.max_seconds, settings.seed, labels)
            trainer.run(phase.last_epoch, reader, phase.label_round)
        is_at_end = trainer.position.epoch == phase.last_epoch and not trainer.position.batch
        if is_at_end and phase.last_epoch < settings.epochs and settings.refresh_epochs:
            trainer.save(_teacher_checkpoint(phase.label_round + 1))
        self.processes.wait()
        return model.eval()

    def trained(self) -> Iterator[TrainedModel]:
        """Yield the fully trained models: TAN*, then the student."""
        state = self._checkpoint(self.tan_id)
        if state is not None and state["position"]["epoch"] == self.settings.tan_epochs:
            yield TrainedModel(self.tan_id, tan_method(self.settings), self.teacher_of(self.tan_id, self._tan(state)))
        state = self._checkpoint(self.student_id)
        if state is not None and state["position"]["epoch"] == self.settings.epochs:
            yield TrainedModel(self.student_id, VINA, self.teacher_of(self.student_id, self._student(state)))

    def labels_of(self, label_round: int) -> LabelRound:
        """Return the labels of a round, written or not."""
        return LabelRound(
            self.store, self.student_id, label_round, self._teacher_name(label_round), self.corpus, self.settings
        )

    def teacher(self, label_round: int) -> Teacher:
        """Return the teacher of a round: TAN* or a published TAN first, then the student at the start of the round."""
        if not label_round and self.settings.tan != "train":
            return published_teacher(Path(self.settings.tan), self.processes.device)
        name = self._teacher_name(label_round)
        if not label_round:
            return self.teacher_of(name, self._tan(self._trained_tan()))
        state = self._checkpoint(self.student_id, _teacher_checkpoint(label_round))
        if state is None:
            raise ValueError(f"the teacher of round {label_round} of {self.student_id} is gone: train it again")
        with torch.random.fork_rng(devices=[]):  # the student that continues must draw the same numbers
            return self.teacher_of(name, self._student(state))

    def _teacher_name(self, label_round: int) -> str:
        if label_round:
            return f"{self.student_id}/{_teacher_checkpoint(label_round)}"
        return self.tan_id if self.settings.tan == "train" else published_name(Path(self.settings.tan))

    def teacher_of(self, name: str, model: nn.Module) -> Teacher:
        """Return a model of this curriculum as a teacher with this name."""
        version = version_of(model)
        model.to(self.processes.device).eval()
        if not isinstance(model, Vina):
            return Teacher(name, model, _tokenizer(model), self.settings.max_seconds, version=version)
        align = model if self.settings.steps else steps_as_narrations(model)
        unimodal = unimodal_narrations(model) if self.settings.narrations else None
        return Teacher(name, align, _tokenizer(model), self.settings.max_seconds, unimodal, version)

    def retire(self, phase: int) -> None:
        """Retire everything that was trained from a phase on; the first phase begins with TAN*."""
        phases = self.phases()
        if phase >= len(phases):
            return
        if phase == 0 and self.settings.tan == "train":
            checkpoints.retire(self.store, self.tan_id, "last", self.run_id)
        start = checkpoints.load(self.store, self.student_id, _teacher_checkpoint(phase)) if phase else None
        kept_rounds = {kept.label_round for kept in phases[:phase]}
        for label_round in sorted({retired.label_round for retired in phases[phase:]} - kept_rounds):
            checkpoints.retire(self.store, self.student_id, _teacher_checkpoint(label_round), self.run_id)
            partition: dict[str, str | int] = {"model_id": self.student_id, "round": label_round}
            self.store.table("pseudo_labels").retire(partition)
            retire_matrices(self.store, partition, ())
        checkpoints.retire(self.store, self.student_id, "last", self.run_id)
        if start is not None:  # the student as it was when that phase began
            for name in ("last", _teacher_checkpoint(phase)):
                checkpoints.save(self.store, self.student_id, name, start)

    def _checkpoint(self, model_id: str, name: str = "last") -> dict[str, Any] | None:
        """Read a checkpoint; None if there is none. One of another configuration is refused."""
        state = checkpoints.load(self.store, model_id, name)
        if state is not None:
            expected = self.model_ids.settings_of(model_id)
            checkpoints.check_configuration(state, expected, checkpoints.key(model_id, name))
        return state

    def _trained_tan(self) -> dict[str, Any]:
        state = self._checkpoint(self.tan_id)
        if state is None or state["position"]["epoch"] < self.settings.tan_epochs:
            raise ValueError(f"{self.tan_id} is not trained to its end: run the stage `burn-in`")
        return state

    def _tan(self, state: dict[str, Any] | None) -> TanAligner:
        """Make a new TAN*, or that of a checkpoint."""
        text = self._text(state)  # it seeds torch, so it comes first
        model = make_tan(self.settings, self.corpus.video_width, text)
        if state is not None:
            model.load_state_dict(state["state"])
        return model

    def _student(self, state: dict[str, Any] | None) -> Vina:
        """Make a new student, or that of a checkpoint."""
        text = self._text(state)  # it seeds torch, so it comes first
        model = make_vina(self.settings, self.corpus.video_width, text)
        if state is not None:
            model.load_state_dict(state["state"])
        return model

    def _text(self, state: dict[str, Any] | None) -> BagOfWords:
        torch.manual_seed(self.settings.seed)
        if state is not None:
            return BagOfWords.from_state(state["state"], "text.", self.settings.word_dropout)
        return make_text_encoder(self.corpus, self.settings)

    def _learner(self, model_id: str, stage: str, model: nn.Module, objective: Objective, num_epochs: int) -> Learner:
        return Learner(model_id, stage, model, objective, num_epochs, self.model_ids.settings_of(model_id))

    def _trainer(self, learner: Learner, video_ids: list[str], state: dict[str, Any] | None) -> Trainer:
        settings, corpus = self.settings, self.corpus
        num_seconds = [min(corpus.num_seconds[video_id], settings.max_seconds) for video_id in video_ids]
        noise = settings.feature_noise * corpus.feature_scale if settings.feature_noise else 0.0
        videos = TrainingVideos(video_ids, num_seconds, noise)
        return Trainer(learner, videos, TrainingOutput(self.store, self.run_id), settings, self.processes, state)


def _teacher_checkpoint(label_round: int) -> str:
    """Return the name of the checkpoint of a round's teacher."""
    return f"teacher-{label_round}"


def _tokenizer(model: nn.Module) -> Tokenizer:
    text = model.text
    assert isinstance(text, BagOfWords)
    return text.tokenizer
