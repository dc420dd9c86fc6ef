"""What each stage of the curriculum is worth: TAN*, burn-in, fixed labels and iterative labels, over some seeds.

Every training is one that `vina run` would make of the same settings: what is there is used, what broke off goes on,
and two processes with other seeds may work on one store.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from storage.catalogue import Catalogue, quoted
from tasks.evaluation.htstep import HeldOut
from tasks.evaluation.stage import evaluate
from tasks.job import Job
from tasks.training.curriculum import Curriculum
from tasks.training.processes import alone
from tasks.training.teachers import Teacher

LOG = logging.getLogger("vina.ablations")
FIXED, ITERATIVE = "fixed labels", "iterative labels"


@dataclass(frozen=True)
class Result:
    """A number of one seed: step R@1 of a model asked in some way, or a property of a round's labels; in percent."""

    seed: int
    subject: str
    measure: str
    value: float


def ablate_curriculum(job: Job, seeds: Sequence[int]) -> Iterator[Result]:
    """All trainings of all seeds, and what they are worth, as they come."""
    settings = job.training
    if not settings.refresh_epochs or settings.burn_in_epochs == settings.epochs:
        raise ValueError("no round comes after the burn-in: set refresh_epochs, burn_in_epochs and epochs so")
    for seed in seeds:
        iterative = replace(settings, seed=seed)
        yield from _train(replace(job, training=iterative), ITERATIVE)
        yield from _train(replace(job, training=replace(iterative, refresh_epochs=0)), FIXED)


def _train(job: Job, name: str) -> Iterator[Result]:
    settings = job.training
    work = Curriculum(job, alone(settings.device))
    held_out = HeldOut.of(work.store, work.corpus)
    if not held_out.truth:
        raise ValueError("no annotated video is held out and has features: import a benchmark, or a demo world")

    def measured(subject: str, model: Teacher) -> Iterator[Result]:
        for way, value in held_out.recall(model, work.processes.device).items():
            LOG.info("seed %d: %s%s: step R@1 %.1f %%", settings.seed, subject, way, value)
            yield Result(settings.seed, subject, way, value)

    first = work.first_teacher()
    work.label(0, first)
    student = work.teacher_of(work.name, work.train_student(settings.epochs))
    if name == ITERATIVE:
        yield from measured("TAN*", first)
        yield from measured("burn-in", work.teacher(1))
        yield from _labels(work)
    yield from measured(name, student)
    evaluate(job)  # into `metrics`, as for any training


def _labels(work: Curriculum) -> Iterator[Result]:
    with Catalogue(work.store) as catalogue:
        rounds = catalogue.query(f"FROM label_precision WHERE training = {quoted(work.name)} ORDER BY round")
    for row in rounds.to_pylist():
        for measure in ("kept_percent", "kept_right_percent", "shown_right_percent"):
            if row[measure] is not None:  # of no labels, none are right or wrong
                yield Result(work.settings.seed, f"round {row['round']}", measure, row[measure])
