"""The stages `burn-in` (TAN*, its labels, and the first epochs of the student) and `rounds` (the other epochs).

Training is one piece of work, labelling is many: each is given to whoever does such work, and goes on where it was.
"""

from dataclasses import asdict, replace

from storage.fingerprint import file_hash
from tasks.pipeline.job import Job
from tasks.pipeline.parts import Part, RunParts, cut, run_here
from tasks.pipeline.stage import Dependencies, Stage, versions
from tasks.training.curriculum import CODE_VERSION, NOT_FINGERPRINTED, Curriculum, NothingToTrain, settings_hash
from tasks.training.model_files import write_model
from tasks.training.processes import alone, is_first, joined

INPUTS = ("narrations", "steps", "annotations", "videos")
MOST_PARTS = 200


def burn_in(job: Job, run_parts: RunParts = run_here) -> str:
    """Train TAN*, label the corpus with it, train the student's first epochs."""
    try:
        work = _plan(job)
    except NothingToTrain as nothing:
        return str(nothing)
    if job.training.tan == "train":
        run_parts(job, train, [{"model": "tan"}])
    _train_student(job, work, 0, run_parts)
    return f"{work.labels_of(0).teacher_name} labelled {len(work.corpus.paired):,} videos; {work.name} is burnt in"


def rounds(job: Job, run_parts: RunParts = run_here) -> str:
    """Train the student to its end; every few epochs it labels the corpus anew, as its own teacher."""
    try:
        work = _plan(job)
    except NothingToTrain as nothing:
        return str(nothing)
    for phase in range(1, len(work.phases())):
        _train_student(job, work, phase, run_parts)
    if is_first():
        write_model(work.store, job.run_id, work.name, work.tan_name, job.training)
    return f"{work.name} is trained for {job.training.epochs} epochs"


def _plan(job: Job) -> Curriculum:
    """What there is to train; nothing is computed with it, so any machine will do."""
    return Curriculum(job, alone("cpu"))


def _train_student(job: Job, work: Curriculum, phase: int, run_parts: RunParts) -> None:
    round_, _ = work.phases()[phase]
    labels = work.labels_of(round_)
    parts = cut(labels.missing(), MOST_PARTS)
    run_parts(job, label_shards, [{"round": round_, "shards": part} for part in parts])
    labels.settle()
    run_parts(job, train, [{"model": "student", "period": phase}])


def train(job: Job, part: Part) -> None:
    """TAN*, or the student to the end of a period; several processes do it together."""
    with joined(job.training.device) as processes:
        work = Curriculum(job, processes)
        if part["model"] == "tan":
            work.train_tan()
        else:
            work.train_student(part["period"])


def label_shards(job: Job, part: Part) -> None:
    """The labels of some shards of a round."""
    with joined(job.training.device) as processes:
        work = Curriculum(job, processes)
        labels = work.labels_of(part["round"])
        missing = sorted(set(part["shards"]) & set(labels.missing()))
        processes.wait()  # all know which shards are missing before one is made
        labels.make(missing, work.teacher(part["round"]), job.run_id, processes)


def dependencies(job: Job) -> Dependencies:
    """What a training is made of."""
    store, model_id = job.open_store(), job.training
    settings = {name: value for name, value in asdict(model_id).items() if name not in NOT_FINGERPRINTED}
    seen = store.table("features").snapshot().where(backbone=model_id.backbone).content_version
    chosen = store.table("pairs").snapshot().content_version
    inputs = versions(store, *INPUTS) | {f"features of {model_id.backbone}": seen, "pairs": chosen}
    inputs |= {name: file_hash(getattr(model_id, name)) for name in ("words", "tan")}
    return Dependencies(settings, inputs, scope=scope_of(job))


def scope_of(job: Job) -> str:
    """Trainings of other settings do not replace each other."""
    return f"settings {settings_hash(job.training)}"


def rounds_dependencies(job: Job) -> Dependencies:
    """Rounds go on with what was burnt in."""
    burn_in = dependencies(job)
    burnt_in = job.open_store().table("completions").snapshot().find({"stage": "burn-in"}, burn_in.scope)
    return replace(burn_in, inputs=burn_in.inputs | {"burn-in": burnt_in.path if burnt_in else ""})


def reset_burn_in(job: Job) -> None:
    """Put aside TAN*, its labels, and the student."""
    _reset(job, 0)


def reset_rounds(job: Job) -> None:
    """Put aside what came after burn-in."""
    _reset(job, 1)


def _reset(job: Job, phase: int) -> None:
    try:
        _plan(job).retire(phase)
    except NothingToTrain:
        return


BURN_IN = Stage("burn-in", burn_in, dependencies, reset_burn_in, CODE_VERSION, is_shared=True)
ROUNDS = Stage("rounds", rounds, rounds_dependencies, reset_rounds, f"{CODE_VERSION}, with a model", is_shared=True)
