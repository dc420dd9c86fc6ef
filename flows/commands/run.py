"""The command that runs the pipeline. Prefect is imported when it runs: the other commands answer at once."""

import argparse
import logging
import os

from flows.commands.shared import Add, whole_number
from flows.commands.training_options import add_training_options, training_settings
from storage import Store
from tasks.features.settings import FeatureSettings
from tasks.job import Job
from tasks.pairing.settings import PairingSettings
from tasks.run_record import name_run


def add_commands(add: Add) -> None:
    """Declare it."""
    run = add("run", _run, "run the pipeline in this process", "vina run --store s3://bucket/prefix --stages catalogue")
    run.add_argument("--stages", type=_stages, metavar="A,B", help="only these, in the pipeline's order (default: all)")
    run.add_argument(
        "--run-id", type=_run_id, metavar="ID", help="name of the run in `runs` (default: made of the time)"
    )
    run.add_argument("--corpus", metavar="FOLDER", help="what the stage `import` reads: a folder for each source")
    run.add_argument("--weights", metavar="FILE", help="features: the network's weights (default: random ones)")
    run.add_argument("--frame-size", type=whole_number, metavar="PX", help="features: side of the frames (default 224)")
    run.add_argument("--short-side", type=whole_number, metavar="PX", help="features: scaled to it first (default PX)")
    run.add_argument("--joint", action="store_true", help="features: keep the joint text-video embeddings too")
    run.add_argument("--dictionary", metavar="FILE", help="features: words of --joint (default: beside the weights)")
    run.add_argument("--retry-rejected", action="store_true", help="features: try undecodable videos again")
    run.add_argument("--model", metavar="NAME", help="pairing: a sentence model's folder, or its name (default: MPNet)")
    run.add_argument("--articles", metavar="SOURCE", help="pairing: whose articles (default: wikihow)")
    run.add_argument("--correct-hubs", action="store_true", help="pairing: take votes from titles that are near all")
    add_training_options(run, "paper")


def _stages(text: str) -> list[str]:
    from flows.full_pipeline import choose_stages

    try:
        return [stage.name for stage in choose_stages(text.split(","))]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _run_id(text: str) -> str:
    try:
        return name_run(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _run(options: argparse.Namespace) -> int:
    from flows.full_pipeline import choose_stages, vina

    training = training_settings(options)
    Store(options.store).location.check()
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("vina").setLevel(logging.INFO)
    features = FeatureSettings(
        weights=options.weights,
        size_px=options.frame_size,
        short_side_px=options.short_side,
        joint=options.joint,
        dictionary=options.dictionary,
        retry_rejected=options.retry_rejected,
    )
    pairing = PairingSettings(
        model=options.model,
        articles=options.articles,
        correct_hubs=options.correct_hubs,
    )
    run_id = _run_id_of_all(options) if int(os.environ.get("WORLD_SIZE", "1")) > 1 else options.run_id
    if int(os.environ.get("RANK", "0")):  # the first process keeps the record and speaks, the others help it
        logging.getLogger("vina").setLevel(logging.WARNING)
        for stage in choose_stages(options.stages):
            stage.work(Job(options.store, name_run(run_id), None, features, pairing, training))
        return 0
    run_id = vina(options.store, options.corpus, features, pairing, training, options.stages, run_id)
    print(f"run {run_id} completed; `vina tables --store {options.store}` shows what there is")
    return 0


def _run_id_of_all(options: argparse.Namespace) -> str:
    """The name that all processes of a torchrun have for their run; a ValueError if they cannot share the stages."""
    from flows.full_pipeline import choose_stages

    alone = [stage.name for stage in choose_stages(options.stages) if not stage.is_shared]
    if alone:
        raise ValueError(
            f"{alone[0]} is for one process: under torchrun name stages that are shared (--stages burn-in)"
        )
    run_id = options.run_id or os.environ.get("TORCHELASTIC_RUN_ID", "none")
    if run_id == "none":
        raise ValueError("under torchrun all processes must know the run's name: give it one (--run-id ID)")
    return str(run_id)
