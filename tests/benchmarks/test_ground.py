"""`vina ground` from a rendered demo video to its page, against the extraction of the video's S3D features alone."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the command does, before torch is loaded

import subprocess
import sys
import time
from pathlib import Path

import torch

from tasks.demo_world.knobs import Knobs
from tasks.demo_world.pixels import render
from tasks.demo_world.script import World
from tasks.features.backbones import backbone_of
from tasks.features.extraction import extract
from tests.benchmarks.measure import report
from vina_model.grounder import Grounder
from vina_model.text import BagOfWords
from vina_model.vina import Vina, VinaConfig

REPEATS = 3


def test_grounding_takes_little_more_than_its_features(tmp_path: Path) -> None:
    """A model of the paper's size with weights that were never trained: what it costs does not depend on them."""
    world = World(Knobs(), 0)
    video = world.video(world.rendered[0])
    video_file, page, said = tmp_path / "video.mp4", tmp_path / "page.html", tmp_path / "said.json"
    render(world, video, video_file)
    rows = [f'{{"text": "{n.text}", "start": {n.start_s}, "end": {n.end_s}}}' for n in video.narrations]
    said.write_text(f"[{', '.join(rows)}]")
    words = sorted({word for step in video.article.steps for word in step.headline.lower().rstrip(".").split()})
    text = BagOfWords(words, torch.randn(len(words), 300))
    model = Grounder(Vina(VinaConfig(), text).eval(), {}, "s3d-milnce", {"weights_sha256": "random:0"})
    torch.save(model.saved(), tmp_path / "model.pt")
    steps = [step.headline for step in video.article.steps]
    command = [
        sys.executable,
        "-m",
        "flows.cli",
        "ground",
        str(video_file),
        "--narrations",
        str(said),
        "--steps",
        *steps,
    ]
    command += ["--checkpoint", str(tmp_path / "model.pt"), "--store", str(tmp_path / "none"), "--output", str(page)]

    network = backbone_of("s3d-milnce").load(None, 0, "cpu")
    extraction, whole = [], []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        list(extract([("video", str(video_file))], network, 16, backbone_of("s3d-milnce").frames, lambda count: None))
        extraction.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        whole.append(time.perf_counter() - begin)
    assert page.stat().st_size > video_file.stat().st_size
    features_s, command_s = min(extraction), min(whole)
    report(
        f"vina ground, {video.duration_s:.0f} s of video, S3D at 224 px: the whole command / its extraction",
        command_s / features_s,
        "<= 1.3",
        f"{command_s:.1f} s, start and page included; extraction alone, network loaded, {features_s:.1f} s",
    )
