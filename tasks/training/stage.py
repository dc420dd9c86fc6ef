"""The stages `burn-in` (TAN*, its labels, and the first epochs of the student) and `rounds` (the other epochs)."""

from tasks.job import Job
from tasks.training.curriculum import Curriculum, NothingToTrain
from tasks.training.processes import joined


def burn_in(job: Job) -> str:
    """Train TAN*, label the corpus with it, train the student's first epochs."""
    try:
        with joined(job.training.device) as processes:
            work = Curriculum(job, processes)
            teacher = work.first_teacher()
            work.label(0, teacher)
            work.train_student(job.training.burn_in_epochs)
            return f"{teacher.name} labelled {len(work.corpus.paired):,} videos; {work.name} is burnt in"
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
