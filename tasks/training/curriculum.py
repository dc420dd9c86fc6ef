"""A training's curriculum: TAN*, its labels, and a student that becomes its own teacher, each going on where it was."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from storage import Store, fingerprint_of
from storage.fingerprint import file_hash
from tasks.pipeline.job import Job
from tasks.training import checkpoints
from tasks.training.batches import Example, Reader
from tasks.training.corpus import Corpus, corpus_of
from tasks.training.labels import Labels
from tasks.training.matrices import retire_matrices
from tasks.training.models import (
    name_published,
    published_teacher,
    tan_config,
    tan_objective,
    unimodal_narrations,
    version_of,
    vina_config,
    vina_objective,
)
from tasks.training.processes import Processes
from tasks.training.settings import TrainingSettings
from tasks.training.teachers import Round, Teacher
from tasks.training.trainer import Losses, Trainer
from tasks.training.words import make_text_encoder
from vina_model.tan import Tan, TanAligner
from vina_model.text import BagOfWords
from vina_model.tokenizer import Tokenizer
from vina_model.vina import Vina, steps_as_narrations

CODE_VERSION = "3"
NOT_FINGERPRINTED = ("device", "checkpoint_minutes", "accumulate")
"""Settings that change nothing in what is learnt."""
OF_STUDENTS = (
    "selection", "narrations", "steps", "step_positions", "separate_text_mlps", "epochs", "burn_in_epochs",
    "refresh_epochs", "gamma", "keep_share", "confidence", "zeta", "label_matrix", "alignment_share", "tan",
)  # fmt: skip
"""Settings that TAN* does not know."""


def settings_hash(settings: TrainingSettings) -> str:
    """A hash of the settings that say what is learnt, whatever it is learnt from."""
    known = {name: value for name, value in asdict(settings).items() if name not in NOT_FINGERPRINTED}
    return fingerprint_of(known, {}, "")[:8]


class NothingToTrain(ValueError):
    """The store has no video to learn from."""


def name_trainings(settings: TrainingSettings, corpus: Corpus) -> dict[str, dict[str, Any]]:
    """The names of TAN* and of the student, and the settings that each stands for."""
    known = {name: value for name, value in asdict(settings).items() if name not in NOT_FINGERPRINTED}
    tan = {name: value for name, value in known.items() if name not in OF_STUDENTS}
    words = corpus.words_version if settings.words == "corpus" else file_hash(settings.words)
    heard = {"narrated": corpus.narrated_version, "words": words}
    read = {"corpus": corpus.version, "words": words, "tan": file_hash(settings.tan)}
    return {
        f"tan@{fingerprint_of(tan, heard, CODE_VERSION)[:8]}": tan,
        f"vina@{fingerprint_of(known, read, CODE_VERSION)[:8]}": known,
    }


class Curriculum:
    """The trainings of one job, by name: equal settings on equal data are the same training."""

    def __init__(self, job: Job, processes: Processes, corpus: Corpus | None = None) -> None:
        """`corpus` is that of the job's settings, if it is at hand."""
        self.settings, self.processes, self.run_id = job.training, processes, job.run_id
        self.store = Store(job.store)
        self.corpus = corpus or corpus_of(self.store, self.settings.backbone, self.settings.selection)
        self._refuse_unknown_backbone()
        if not self.corpus.paired:
            raise NothingToTrain(
                f"no video with {self.settings.backbone} features is paired with an article (selection "
                f"{self.settings.selection}): run the stages `features` and `pairing` first"
            )
        self._configurations = name_trainings(self.settings, self.corpus)
        self.tan_name, self.name = self._configurations

    def _refuse_unknown_backbone(self) -> None:
        known = {str(shard.constants["backbone"]) for shard in self.store.table("features").snapshot().shards}
        if known and self.settings.backbone not in known:
            raise ValueError(
                f"there are no features of backbone {self.settings.backbone!r}, only of {', '.join(sorted(known))}: "
                "choose one (--set backbone=NAME)"
            )

    def train_tan(self) -> TanAligner:
        """TAN*, on narrations alone."""
        settings = self.settings
        if not self.corpus.narrated:
            raise ValueError("no video to train on has narrations: TAN* needs some, or name a published one (tan=FILE)")
        state = self._checkpoint(self.tan_name)
        model = self._tan(state)
        trainer = self._trainer(self.tan_name, "tan", model, tan_objective, settings.tan_epochs, state)
        reader = Reader(self.corpus, _tokenizer(model), settings.max_seconds, settings.seed)
        trainer.run(settings.tan_epochs, reader, round_=0)
        return model.eval()

    def train_student(self, phase: int) -> Vina:
        """The student, trained to the end of a period, whose labels there are; then it is the next round's teacher."""
        settings, (round_, end) = self.settings, self.phases()[phase]
        state = self._checkpoint(self.name)
        model = self._student(state)
        trainer = self._trainer(self.name, "vina", model, vina_objective, settings.epochs, state)
        if trainer.position.epoch < end:
            labels = Labels(self.store, self.name, round_)
            reader = Reader(self.corpus, _tokenizer(model), settings.max_seconds, settings.seed, labels)
            trainer.run(end, reader, round_)
        if trainer.position.epoch == end < settings.epochs and not trainer.position.batch and settings.refresh_epochs:
            trainer.save(_teacher(round_ + 1))
        self.processes.wait()
        return model.eval()

    def trained(self) -> Iterator[tuple[str, str, Teacher]]:
        """The models that are trained to their end: the training, the method, the model."""
        state = self._checkpoint(self.tan_name)
        if state is not None and state["position"]["epoch"] == self.settings.tan_epochs:
            method = "tan-pe-lc" if self.settings.tan_text_positions else "tan-lc"
            yield self.tan_name, method, self.teacher_of(self.tan_name, self._tan(state))
        state = self._checkpoint(self.name)
        if state is not None and state["position"]["epoch"] == self.settings.epochs:
            yield self.name, "vina", self.teacher_of(self.name, self._student(state))

    def teacher(self, round_: int) -> Teacher:
        """Whose labels are those of a round: TAN*, or a published TAN; then the student as it was when it began."""
        if not round_ and self.settings.tan != "train":
            return published_teacher(Path(self.settings.tan), self.processes.device)
        if not round_:
            return self.teacher_of(self.tan_name, self._tan(self._trained_tan()))
        name = _teacher(round_)
        state = self._checkpoint(self.name, name)
        if state is None:
            raise ValueError(f"the teacher of round {round_} of {self.name} is gone: train it anew")
        with torch.random.fork_rng(devices=[]):  # a student that goes on must not draw other numbers for it
            return self.teacher_of(f"{self.name}/{name}", self._student(state))

    def teacher_of(self, name: str, model: nn.Module) -> Teacher:
        """A model of this training, to be asked."""
        version = version_of(model)
        model.to(self.processes.device).eval()
        if not isinstance(model, Vina):
            return Teacher(name, model, _tokenizer(model), self.settings.max_seconds, version=version)
        align = model if self.settings.steps else steps_as_narrations(model)
        alone = unimodal_narrations(model) if self.settings.narrations else None
        return Teacher(name, align, _tokenizer(model), self.settings.max_seconds, alone, version)

    def _checkpoint(self, model_id: str, name: str = "last") -> dict[str, Any] | None:
        """None if there is none; one of another configuration is refused."""
        state = checkpoints.load(self.store, model_id, name)
        if state is not None:
            checkpoints.check_configuration(state, self._configurations[model_id], checkpoints.key(model_id, name))
        return state

    def _tan(self, state: dict[str, Any] | None) -> TanAligner:
        """New, or as in a checkpoint."""
        text = self._text(state)  # which seeds torch, so it comes first
        config = tan_config(self.settings, self.corpus.video_width, text.fc2.out_features)
        model = TanAligner(Tan(config), text)
        if state is not None:
            model.load_state_dict(state["state"])
        return model

    def _student(self, state: dict[str, Any] | None) -> Vina:
        """New, or as in a checkpoint."""
        model = Vina(vina_config(self.settings, self.corpus.video_width), self._text(state))
        if state is not None:
            model.load_state_dict(state["state"])
        return model

    def _text(self, state: dict[str, Any] | None) -> BagOfWords:
        torch.manual_seed(self.settings.seed)
        if state is not None:
            return BagOfWords.from_state(state["state"], "text.", self.settings.word_dropout)
        return make_text_encoder(self.corpus, self.settings)

    def _trained_tan(self) -> dict[str, Any]:
        state = self._checkpoint(self.tan_name)
        if state is None or state["position"]["epoch"] < self.settings.tan_epochs:
            raise ValueError(f"{self.tan_name} is not trained to its end: run the stage `burn-in`")
        return state

    def phases(self) -> list[tuple[int, int]]:
        """The student's training: burn-in, then what follows; each has a round of labels, and ends with an epoch."""
        settings = self.settings
        if settings.refresh_epochs:
            ends = [*range(settings.burn_in_epochs, settings.epochs, settings.refresh_epochs), settings.epochs]
            return list(enumerate(ends))
        return [(0, end) for end in sorted({settings.burn_in_epochs, settings.epochs})]

    def labels_of(self, round_: int) -> Round:
        """The labels of a round, to be made."""
        first = self.tan_name if self.settings.tan == "train" else name_published(Path(self.settings.tan))
        name = f"{self.name}/{_teacher(round_)}" if round_ else first
        return Round(self.store, self.name, round_, name, self.corpus, self.settings)

    def retire(self, phase: int) -> None:
        """Put aside what was trained from a period on, to train it anew: the first one begins with TAN*."""
        if phase >= len(self.phases()):
            return
        if phase == 0 and self.settings.tan == "train":
            checkpoints.retire(self.store, self.tan_name, "last", self.run_id)
        begun = checkpoints.load(self.store, self.name, _teacher(phase)) if phase else None
        before, after = ({round_ for round_, _ in part} for part in (self.phases()[:phase], self.phases()[phase:]))
        for round_ in sorted(after - before):
            checkpoints.retire(self.store, self.name, _teacher(round_), self.run_id)
            place: dict[str, str | int] = {"model_id": self.name, "round": round_}
            self.store.table("pseudo_labels").retire(place)
            retire_matrices(self.store, place, ())
        checkpoints.retire(self.store, self.name, "last", self.run_id)
        if begun is not None:  # as it was when that period began
            for name in ("last", _teacher(phase)):
                checkpoints.save(self.store, self.name, name, begun)

    def _trainer(
        self,
        model_id: str,
        stage: str,
        model: nn.Module,
        objective: Callable[[nn.Module, Example], Losses],
        num_epochs: int,
        state: dict[str, Any] | None,
    ) -> Trainer:
        video_ids = self.corpus.narrated if stage == "tan" else self.corpus.paired
        lengths = [min(self.corpus.num_seconds[name], self.settings.max_seconds) for name in video_ids]
        noise = self.settings.feature_noise * self.corpus.feature_scale if self.settings.feature_noise else 0.0
        return Trainer(
            self.store, self.run_id, model_id, stage, model, objective, video_ids, lengths, num_epochs, noise,
            self.settings, self._configurations[model_id], self.processes, state,
        )  # fmt: skip


def _teacher(round_: int) -> str:
    """The checkpoint of a round's teacher."""
    return f"teacher-{round_}"


def _tokenizer(model: nn.Module) -> Tokenizer:
    text = model.text
    assert isinstance(text, BagOfWords)
    return text.tokenizer
