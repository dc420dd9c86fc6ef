"""How many seconds of drawn videos the demo network recognises after H.264, title cards and finished objects too."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import THEMES
from tasks.demo_world.network import SCENES, WEIGHTS, DemoNetwork, as_frames, scene_chances
from tasks.demo_world.pixels import render
from tasks.demo_world.scenes import FINISHED, PRESENTER, TITLE, Scene
from tasks.demo_world.script import Video, World
from tasks.features.backbones import backbone_of
from tasks.features.extraction import extract
from tasks.features.network import Clips, Outputs

NUM_VIDEOS, SCRIPT_S = 10, 60
SEED = 7
"""Not a seed of train_network.py: the titles are new to the network."""
OBJECTS = [thing.written for theme in THEMES for thing in theme.objects]


def with_title_and_finished(video: Video, objects: list[str]) -> Video:
    """A title card, the first minute of a video, and some finished objects; cuts are at any time of a second."""
    kept = [scene for scene in video.scenes if scene.start_s < SCRIPT_S]
    kept = [Scene(0.0, 3.4, TITLE, "", None), *kept, *(Scene(0.0, 3.4, FINISHED, thing, None) for thing in objects)]
    scenes, clock = [], 0.0
    for scene in kept:
        end_s = clock + scene.end_s - scene.start_s
        scenes.append(replace(scene, start_s=clock, end_s=end_s))
        clock = end_s
    return replace(video, scenes=tuple(scenes), narrations=(), duration_s=clock)


def likeliest_scenes(model: DemoNetwork, path: Path) -> list[tuple[str, str]]:
    """The likeliest scene of every second of a video file."""

    @torch.inference_mode()
    def run(clips_BTHWC: Clips) -> Outputs:
        chances_BS = scene_chances(model(as_frames(clips_BTHWC, "cpu")))
        return Outputs(chances_BS.half().numpy(), None)

    frames = backbone_of("demo-concepts").frames
    (found,) = extract([("video", str(path))], run, 8, frames, lambda count: None)
    assert found.outputs is not None
    return [SCENES[row] for row in found.outputs.main.argmax(1)]


def kind_of(video: Video, second: int) -> tuple[str, Scene]:
    """The kind of a second, and the scene at its middle."""
    scene = next(scene for scene in video.scenes if second + 0.5 < scene.end_s)
    if second < scene.start_s or second + 1 > scene.end_s:
        return "with a cut", scene
    return scene.action if scene.action in (TITLE, FINISHED, PRESENTER) else "actions", scene


def test_seconds_recognised_after_h264(tmp_path: Path) -> None:
    model = DemoNetwork()
    model.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    model.eval()
    right = defaultdict(list)
    world = World(Knobs(num_videos=200), SEED)
    for row in range(NUM_VIDEOS):
        video = with_title_and_finished(world.video(10 * row + 9), OBJECTS[row::NUM_VIDEOS])
        render(world, video, tmp_path / "video.mp4")
        seen = likeliest_scenes(model, tmp_path / "video.mp4")
        for second in range(int(video.duration_s)):
            kind, scene = kind_of(video, second)
            right[kind].append((seen[second][0] == scene.action, seen[second][1] == scene.object))
    for kind, pairs in right.items():
        action, thing = np.sum(pairs, axis=0)
        print(f"\n{kind}: {action} of {len(pairs)} actions and {thing} of {len(pairs)} objects right", flush=True)
    whole = np.concatenate([pairs for kind, pairs in right.items() if kind != "with a cut"])
    assert whole.mean(axis=0).min() > 0.95
