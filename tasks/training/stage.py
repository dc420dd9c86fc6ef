"""The stages `burn-in` (TAN*, its labels, and the first epochs of the student) and `rounds` (the other epochs)."""

from collections.abc import Callable, Iterator
from dataclasses import asdict

import torch
from torch import nn

from storage import Store, fingerprint
from tasks.job import Job
from tasks.training import checkpoints
from tasks.training.batches import Example, Reader
from tasks.training.corpus import Corpus
from tasks.training.labels import Labels
from tasks.training.processes import Processes, joined
from tasks.training.settings import TrainingSettings
from tasks.training.teachers import label_corpus
from tasks.training.trainer import Losses, Trainer
from tasks.training.words import make_text_encoder
from vina_model.objective import alignment_loss
from vina_model.tan import Tan, TanAligner, TanConfig
from vina_model.text import BagOfWords
from vina_model.tokenizer import Tokenizer
from vina_model.vina import Vina, VinaConfig, restored

CODE_VERSION = "1"
ELSEWHERE = ("device", "checkpoint_minutes", "accumulate")
"""Settings that change nothing in what is learnt."""
OF_STUDENTS = (
    "selection", "narrations", "steps", "step_positions", "separate_text_mlps", "epochs", "burn_in_epochs",
    "refresh_epochs", "gamma", "keep_share", "zeta", "label_matrix",
)  # fmt: skip
"""Settings that TAN* does not know."""


def burn_in(job: Job) -> str:
    """Train TAN*, label the corpus with it, train the student's first epochs."""
    try:
        with joined(job.training.device) as processes:
            work = Curriculum(job, processes)
            tan = work.train_tan()
            work.label_burn_in(tan)
            work.train_student(job.training.burn_in_epochs)
            return f"{work.tan_name} labelled {len(work.corpus.paired):,} videos; {work.name} is burnt in"
    except NothingToTrain as nothing:
        return str(nothing)


def rounds(job: Job) -> str:
    """Train the student to its end; every few epochs it labels the corpus anew, as its own teacher."""
    try:
        with joined(job.training.device) as processes:
            work = Curriculum(job, processes)
            work.train_student(job.training.epochs)
            return f"{work.name} is trained for {job.training.epochs} epochs"
    except NothingToTrain as nothing:
        return str(nothing)


class NothingToTrain(ValueError):
    """The store has no video to learn from."""


class Curriculum:
    """The trainings of one job, by name: equal settings on equal data are the same training."""

    def __init__(self, job: Job, processes: Processes) -> None:
        self.settings, self.processes, self.run_id = job.training, processes, job.run_id
        self.store = Store(job.store)
        self.corpus = Corpus(self.store, self.settings.backbone, self.settings.selection)
        if not self.corpus.paired:
            raise NothingToTrain(
                f"no video with {self.settings.backbone} features is paired with an article (selection "
                f"{self.settings.selection}): run the stages `features` and `pairing` first"
            )
        known = {name: value for name, value in asdict(self.settings).items() if name not in ELSEWHERE}
        tan = {name: value for name, value in known.items() if name not in OF_STUDENTS}
        inputs = {"corpus": self.corpus.version}
        self.tan_name = f"tan@{fingerprint(tan, inputs, CODE_VERSION)[:8]}"
        self.name = f"vina@{fingerprint(known, inputs, CODE_VERSION)[:8]}"
        self._configurations = {self.tan_name: tan, self.name: known}

    def train_tan(self) -> TanAligner:
        """TAN*, on narrations alone."""
        settings = self.settings
        model = self._new_tan()
        trainer = self._trainer(self.tan_name, "tan", model, tan_objective, self.corpus.narrated, settings.tan_epochs)
        reader = Reader(self.corpus, _tokenizer(model), settings.max_seconds, settings.seed)
        trainer.run(settings.tan_epochs, reader, round_=0)
        return model.eval()

    def label_burn_in(self, tan: TanAligner) -> None:
        """TAN*'s labels are round 0."""
        self._label(0, tan, self.tan_name)

    def train_student(self, until_epoch: int) -> Vina:
        """Go on to an epoch; each refresh makes the labels of the next round."""
        settings = self.settings
        model = self._new_student()
        trainer = self._trainer(self.name, "vina", model, vina_objective, self.corpus.paired, settings.epochs)
        for round_, end in self._rounds():
            end = min(end, until_epoch)
            if trainer.position.epoch >= end:
                continue
            if round_:
                if trainer.position.batch == 0 and trainer.position.epoch == self._begin(round_):
                    trainer.save(f"teacher-{round_}")
                self.processes.wait()
                self._label(round_, self._teacher(round_), f"{self.name}/teacher-{round_}")
            labels = Labels(self.store, self.name, round_)
            reader = Reader(self.corpus, _tokenizer(model), settings.max_seconds, settings.seed, labels)
            trainer.run(end, reader, round_)
        return model.eval()

    def trained(self) -> Iterator[tuple[str, str, nn.Module, bool]]:
        """The models that are trained to their end: the training, the method, the model, with narrations or not."""
        if tan := self._restored(self.tan_name, self.settings.tan_epochs, self._new_tan):
            yield self.tan_name, "tan-lc", tan, False
        if vina := self._restored(self.name, self.settings.epochs, self._new_student):
            yield self.name, "vina", vina, False
            yield self.name, "vina with narrations", vina, True

    def _restored(self, training: str, epochs: int, make: Callable[[], nn.Module]) -> nn.Module | None:
        state = checkpoints.load(self.store, training, "last")
        if state is None or state["position"]["epoch"] < epochs:
            return None
        checkpoints.check_configuration(state, self._configurations[training], checkpoints.key(training, "last"))
        model = make()
        model.load_state_dict(state["state"])
        return model.to(self.processes.device).eval()

    def _new_tan(self) -> TanAligner:
        text = make_text_encoder(self.corpus, self.settings)  # which seeds torch, so it comes first
        return TanAligner(Tan(tan_config(self.settings, self.corpus.video_width)), text)

    def _new_student(self) -> Vina:
        text = make_text_encoder(self.corpus, self.settings)
        return Vina(vina_config(self.settings, self.corpus.video_width), text)

    def _rounds(self) -> list[tuple[int, int]]:
        """Each round of labels, and the epoch it ends with."""
        settings = self.settings
        if not settings.refresh_epochs:
            return [(0, settings.epochs)]
        ends = [*range(settings.burn_in_epochs, settings.epochs, settings.refresh_epochs), settings.epochs]
        return list(enumerate(ends))

    def _begin(self, round_: int) -> int:
        return self._rounds()[round_ - 1][1]

    def _teacher(self, round_: int) -> Vina:
        """The student as it was when the round began."""
        state = checkpoints.load(self.store, self.name, f"teacher-{round_}")
        if state is None:
            raise ValueError(f"the teacher of round {round_} of {self.name} is gone: train it anew")
        with torch.random.fork_rng(devices=[]):  # a student that goes on must not draw other numbers for it
            teacher = restored(state, vina_config(self.settings, self.corpus.video_width))
        return teacher.to(self.processes.device)

    def _label(self, round_: int, teacher: nn.Module, name: str) -> None:
        label_corpus(
            self.store, self.run_id, self.name, round_, teacher, name, _tokenizer(teacher), self.corpus, self.settings,
            self.processes,
        )  # fmt: skip

    def _trainer(
        self,
        training: str,
        stage: str,
        model: nn.Module,
        objective: Callable[[nn.Module, Example], Losses],
        video_ids: list[str],
        num_epochs: int,
    ) -> Trainer:
        lengths = [min(self.corpus.num_seconds[name], self.settings.max_seconds) for name in video_ids]
        noise = self.settings.feature_noise * self.corpus.feature_scale if self.settings.feature_noise else 0.0
        return Trainer(
            self.store, self.run_id, training, stage, model, objective, video_ids, lengths, num_epochs, noise,
            self.settings, self._configurations[training], self.processes,
        )  # fmt: skip


def tan_config(settings: TrainingSettings, video_width: int) -> TanConfig:
    """TAN* of the size asked for."""
    return TanConfig(
        video_width=video_width,
        text_width=settings.text_width,
        width=settings.width,
        layers=settings.layers,
        heads=settings.heads,
        max_tokens=max(settings.max_seconds, 512),
        text_positions=settings.tan_text_positions,
        dropout=settings.dropout,
    )


def vina_config(settings: TrainingSettings, video_width: int) -> VinaConfig:
    """VINA of the size and with the parts asked for."""
    return VinaConfig(
        video_width=video_width,
        width=settings.width,
        layers=settings.layers,
        heads=settings.heads,
        max_seconds=settings.max_seconds,
        narrations=settings.narrations,
        steps=settings.steps,
        step_positions=settings.step_positions,
        separate_text_mlps=settings.separate_text_mlps,
        dropout=settings.dropout,
    )


def tan_objective(model: nn.Module, example: Example) -> Losses:
    """The narrations' times, asked of every layer."""
    found = model(example.batch)
    seconds = example.batch.mask_BT
    layers = [*found.earlier_nv, found.nv_BNT]
    nv_B = torch.stack([alignment_loss(layer, example.narration_positives, seconds) for layer in layers]).mean(0)
    return Losses(nv_B, nv_B, None)


def vina_objective(model: nn.Module, example: Example) -> Losses:
    """The narrations' times and the steps' pseudo-labels, as far as the model has both."""
    found, seconds = model(example.batch), example.batch.mask_BT
    nv_B = sv_B = None
    if found.nv_BNT is not None:
        nv_B = alignment_loss(found.nv_BNT, example.narration_positives, seconds)
    if found.sv_BST is not None and example.step_positives is not None:
        sv_B = alignment_loss(found.sv_BST, example.step_positives, seconds)
    return Losses(sum(part for part in (nv_B, sv_B) if part is not None), nv_B, sv_B)  # type: ignore[arg-type]


def _tokenizer(model: nn.Module) -> Tokenizer:
    text = model.text
    assert isinstance(text, BagOfWords)
    return text.tokenizer
