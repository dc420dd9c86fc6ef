"""The stage `evaluation`: step R@1 on held-out videos, of chance, of TAN* and of VINA, in `metrics`."""

import pyarrow as pa

from storage import Store, fingerprint
from tasks.evaluation.htstep import HeldOut
from tasks.job import Job
from tasks.training.curriculum import Curriculum, NothingToTrain
from tasks.training.processes import alone
from vina_model.metrics import step_recall

CODE_VERSION = "1"
RULES = "rules"
"""Where a training's name would stand, for methods that learn nothing."""


def evaluate(job: Job) -> str:
    """Measure what is trained, and what needs no training."""
    try:
        work = Curriculum(job, alone(job.training.device))
        held_out = HeldOut.of(work.store, work.corpus)
        if not held_out.truth:
            return "no annotated video is held out and has features: nothing to evaluate on"
        numbers = [(RULES, "chance", held_out.by_chance()), (RULES, "evenly spread", held_out.evenly())]
        for training, method, model in work.trained():
            found = held_out.recall(model, work.processes.device)
            numbers += [(training, method + way, value) for way, value in found.items()]
    except NothingToTrain as nothing:
        return str(nothing)
    _write(work.store, job, numbers, len({video for video, _ in held_out.truth}))
    width = max(len(method) for _, method, _ in numbers)
    return "step R@1 on held-out videos\n" + "\n".join(
        f"  {method:{width}}  {value:5.1f} %" for _, method, value in numbers
    )


def _write(store: Store, job: Job, numbers: list[tuple[str, str, float]], num_videos: int) -> None:
    table = store.table("metrics")
    for training in dict.fromkeys(training for training, _, _ in numbers):
        rows = [
            {
                "protocol": step_recall.NAME,
                "protocol_version": step_recall.VERSION,
                "method": method,
                "metric": "R@1",
                "value": value,
                "low": None,
                "high": None,
                "num_videos": num_videos,
                "seed": None if own == RULES else job.training.seed,
            }
            for own, method, value in numbers
            if own == training
        ]
        found = pa.Table.from_pylist(rows, schema=table.schema.files)
        mark = fingerprint({"rows": rows}, {}, CODE_VERSION)
        partition = {"training": training, "benchmark": "htstep"}
        table.commit(found, partition, "r1", fingerprint=mark, run_id=job.run_id)
