"""The stages `burn-in` (TAN*, its labels, the student's first epochs) and `rounds` (the student's other epochs).

Training is one part at a time, labelling is many. Either continues where it was interrupted.
"""

from collections.abc import Sequence
from dataclasses import replace

from storage.fingerprint import file_hash
from tasks.pipeline.job import Job
from tasks.pipeline.parts import Part, PartKind, RunParts, cut, run_here
from tasks.pipeline.stage import Dependencies, Stage, versions
from tasks.training.curriculum import Curriculum, NothingToTrain
from tasks.training.model_files import write_model
from tasks.training.model_ids import CODE_VERSION, fingerprinted_settings, settings_hash
from tasks.training.processes import alone, is_first, joined
from tasks.training.settings import TrainingSettings

INPUTS = ("narrations", "steps", "annotations", "videos")
MOST_PARTS = 200
LABEL_KEEP_RATES = {
    "labels": """SELECT model_id, round, sum(labels)::BIGINT AS labels,
        round(100.0 * sum(kept) / sum(labels), 1) AS kept_percent FROM label_keep_rate GROUP BY ALL ORDER BY ALL"""
}


def burn_in(job: Job, run_parts: RunParts = run_here) -> str:
    """Train TAN*, label the corpus with it, and train the student's first epochs."""
    try:
        curriculum = _plan(job)
    except NothingToTrain as nothing:
        return str(nothing)
    if curriculum.settings.tan == "train":
        run_parts(job, TRAINING, [{"model": "tan"}])
    _train_student(job, curriculum, 0, run_parts)
    teacher_name, num_videos = curriculum.labels_of(0).teacher_name, len(curriculum.corpus.paired)
    return f"{teacher_name} labelled {num_videos:,} videos; {curriculum.student_id} is burnt in"


def rounds(job: Job, run_parts: RunParts = run_here) -> str:
    """Train the remaining epochs of the student. Every few epochs it becomes the teacher and labels again."""
    try:
        curriculum = _plan(job)
    except NothingToTrain as nothing:
        return str(nothing)
    for phase in range(1, len(curriculum.phases())):
        _train_student(job, curriculum, phase, run_parts)
    settings = curriculum.settings
    if is_first():
        write_model(curriculum.store, job.run_id, curriculum.student_id, curriculum.tan_id, settings)
    return f"{curriculum.student_id} is trained for {settings.epochs} epochs"


def _plan(job: Job) -> Curriculum:
    """Return the curriculum for planning, on the CPU: it computes nothing."""
    return Curriculum(job, alone("cpu"))


def _train_student(job: Job, curriculum: Curriculum, phase: int, run_parts: RunParts) -> None:
    round_ = curriculum.phases()[phase].label_round
    labels = curriculum.labels_of(round_)
    shard_groups = cut(labels.missing(), MOST_PARTS)
    run_parts(job, LABELLING, [{"round": round_, "shards": shards} for shards in shard_groups])
    labels.settle()
    run_parts(job, TRAINING, [{"model": "student", "phase": phase}])


def train(job: Job, part: Part) -> None:
    """Train TAN*, or the student to the end of a phase."""
    with joined(job.settings_of(TrainingSettings).device) as processes:
        curriculum = Curriculum(job, processes)
        if part["model"] == "tan":
            curriculum.train_tan()
        else:
            curriculum.train_student(part["phase"])


def label_shards(job: Job, part: Part) -> None:
    """Label some shards of a round."""
    with joined(job.settings_of(TrainingSettings).device) as processes:
        curriculum = Curriculum(job, processes)
        labels = curriculum.labels_of(part["round"])
        missing = sorted(set(part["shards"]) & set(labels.missing()))
        processes.wait()  # all know which shards are missing before one is written
        labels.make(missing, curriculum.teacher(part["round"]), job.run_id, processes)


def merge_shards(parts: Sequence[Part], least: int | None) -> list[Part]:
    """Merge parts of one round: at least `least` shards in each part, or all in one if it is None."""
    if not parts:
        return []
    shards = [shard for part in parts for shard in part["shards"]]
    size = len(shards) if least is None else max(least, len(parts[0]["shards"]))
    return [{**parts[0], "shards": shards[begin : begin + size]} for begin in range(0, len(shards), size)]


def dependencies(job: Job) -> Dependencies:
    """Return what the models depend on."""
    store, settings = job.open_store(), job.settings_of(TrainingSettings)
    features = store.table("features").snapshot().where(backbone=settings.backbone).content_version
    inputs = versions(store, *INPUTS, "pairs") | {f"features of {settings.backbone}": features}
    inputs |= {name: file_hash(getattr(settings, name)) for name in ("words", "tan")}
    return Dependencies(fingerprinted_settings(settings), inputs, scope=f"settings {settings_hash(settings)}")


def rounds_dependencies(job: Job) -> Dependencies:
    """Return what the rounds depend on: the same, and the burn-in."""
    burn_in = dependencies(job)
    completion = job.open_store().table("completions").snapshot().find({"stage": BURN_IN.name}, burn_in.scope)
    return replace(burn_in, inputs=burn_in.inputs | {BURN_IN.name: completion.path if completion else ""})


def reset_burn_in(job: Job) -> None:
    """Retire TAN*, its labels and the student."""
    _reset(job, 0)


def reset_rounds(job: Job) -> None:
    """Retire what came after the burn-in."""
    _reset(job, 1)


def _reset(job: Job, phase: int) -> None:
    try:
        _plan(job).retire(phase)
    except NothingToTrain:
        return


TRAINING = PartKind("training", train, is_whole=True, shares_devices=True, needs_own_process=True)
LABELLING = PartKind("labelling", label_shards, shares_devices=True, merge=merge_shards)
BURN_IN = Stage(
    "burn-in", burn_in, dependencies, CODE_VERSION, reset_burn_in, (TrainingSettings,), (TRAINING, LABELLING),
    LABEL_KEEP_RATES, is_shared=True,
)  # fmt: skip
ROUNDS = Stage(
    "rounds", rounds, rounds_dependencies, f"{CODE_VERSION}, with a model", reset_rounds, artifacts=LABEL_KEEP_RATES,
    is_shared=True,
)  # fmt: skip
