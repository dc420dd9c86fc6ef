"""The network that recognises demo videos: on fresh looks, on a video through the decoder, and as a backbone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from storage import Store
from tasks.demo_world.corpus import world_of
from tasks.demo_world.features import ConceptSpace
from tasks.demo_world.files import BACKBONE
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import ACTIONS, THEMES
from tasks.demo_world.network import (
    ACTION_NAMES,
    FRAMES,
    OBJECT_NAMES,
    SCENES,
    SIDE,
    WEIGHTS,
    WIDTH,
    DemoNetwork,
    Guess,
    concepts_of,
    load_demo_network,
    scene_chances,
)
from tasks.demo_world.pixels import render
from tasks.demo_world.scenes import FINISHED, PRESENTER, TITLE, Scene
from tasks.demo_world.script import Video, World
from tasks.demo_world.train_network import BATCH, WIDE, Drawn, accuracy, draw_clips, train
from tasks.features.backbones import backbone_of
from tasks.features.extraction import extract
from tasks.features.recipe import Recipe
from tasks.features.settings import FeatureSettings
from tasks.features.stage import load_network, make_features
from tasks.importers.sources import import_source
from tasks.pipeline.job import Job

SETTINGS = FeatureSettings(backbone=BACKBONE, device="cpu", batch_size=8)


def trained() -> DemoNetwork:
    model = DemoNetwork()
    model.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    return model.eval()


def video_uri_of(world: World, folder: Path, seconds: int) -> tuple[Video, Path]:
    """A test video's script, cut after some seconds, and its video."""
    whole = world.video(19)
    video = replace(
        whole,
        scenes=tuple(scene for scene in whole.scenes if scene.start_s < seconds),
        narrations=(),
        duration_s=float(seconds),
    )
    path = folder / f"{video.video_id}.mp4"
    render(world, video, path)
    return video, path


def test_the_file_is_small_and_holds_half_precision() -> None:
    state = torch.load(WEIGHTS, weights_only=True)
    assert WEIGHTS.stat().st_size < 400_000
    assert {value.dtype for value in state.values() if value.is_floating_point()} == {torch.float16}


def test_scenes_of_looks_it_never_saw_are_recognised() -> None:
    action, thing = accuracy(trained(), draw_clips(60, 12_345))
    assert action >= 0.9
    assert thing >= 0.85


def test_every_scene_of_a_video_is_among_those_it_can_name() -> None:
    assert {action for action, _ in SCENES} == {*ACTIONS, PRESENTER, TITLE, FINISHED}
    objects = {thing.written for theme in THEMES for thing in theme.objects}
    assert len(objects) == 60 and {thing for _, thing in SCENES} == {*objects, ""}
    assert {thing for action, thing in SCENES if action == FINISHED} == objects
    assert {scene for scene in SCENES if scene[1] == ""} == {(PRESENTER, ""), (TITLE, "")}
    assert len(set(SCENES)) == len(SCENES)
    world = world_of("demo:short,num_videos=20,seed=3")
    assert {(scene.action, scene.object) for video in world for scene in video.scenes} <= set(SCENES)


def test_a_sure_recognition_gives_the_eyes_concept() -> None:
    concept_space = ConceptSpace(World(Knobs(), 7))
    for scene in (("chop", "tomato"), (PRESENTER, ""), (TITLE, ""), (FINISHED, "lamp")):
        assert scene in SCENES
        guess = Guess(torch.zeros(1, len(ACTION_NAMES)), torch.zeros(1, len(OBJECT_NAMES)))
        guess.action_BA[0, ACTION_NAMES.index(scene[0])] = 40
        guess.object_BO[0, OBJECT_NAMES.index(scene[1])] = 40
        vector = (scene_chances(guess) @ concepts_of(7))[0].numpy()
        np.testing.assert_allclose(vector, concept_space.concept(*scene), atol=1e-4)


def test_the_seconds_of_a_video_are_nearest_to_their_scenes(tmp_path: Path) -> None:
    world = world_of("demo:short,num_videos=20,seed=5")
    video, path = video_uri_of(world, tmp_path, 24)
    backbone = backbone_of(BACKBONE)
    (found,) = extract([("video", str(path))], backbone.load(None, 5, "cpu"), 8, backbone.frames, lambda count: None)
    assert found.outputs is not None
    vectors = found.outputs.main.astype(np.float32)
    assert vectors.shape == (24, WIDTH) and found.outputs.joint is None
    shown = sorted({(scene.action, scene.object) for scene in video.scenes})
    concept_space = ConceptSpace(world)
    concepts = np.stack([concept_space.concept(*scene) for scene in shown])
    cosines = vectors @ concepts.T / np.linalg.norm(vectors, axis=1)[:, None] / np.linalg.norm(concepts, axis=1)
    right = [shown[row] == at(video, second + 0.5) for second, row in enumerate(cosines.argmax(1))]
    assert len(shown) > 3 and np.mean(right) > 0.8


def test_title_cards_and_finished_objects_are_recognised_after_h264(tmp_path: Path) -> None:
    world = World(Knobs(), 5)
    shown = [(TITLE, ""), (FINISHED, "lamp"), (PRESENTER, ""), (FINISHED, "egg"), ("hang", "lamp"), (FINISHED, "tile")]
    scenes = tuple(Scene(2.0 * row, 2.0 * row + 2, *scene, None) for row, scene in enumerate(shown))
    backbone, concepts_SD = backbone_of(BACKBONE), concepts_of(5).numpy()
    right = []
    for number in (9, 19, 29):
        path = tmp_path / f"{number}.mp4"
        render(world, replace(world.video(number), scenes=scenes, duration_s=12.0), path)
        run = backbone.load(None, 5, "cpu")
        (found,) = extract([("video", str(path))], run, 8, backbone.frames, lambda count: None)
        assert found.outputs is not None and len(found.outputs.main) == 12
        for second, vector in enumerate(found.outputs.main.astype(np.float32)):
            nearest = SCENES[int(np.linalg.norm(concepts_SD - vector, axis=1).argmin())]
            right.append(nearest == shown[second // 2])
    assert np.mean(right) > 0.9


def at(video: Video, time_s: float) -> tuple[str, str]:
    scene: Scene = next(scene for scene in video.scenes if scene.start_s <= time_s < scene.end_s)
    return scene.action, scene.object


def test_its_features_may_stand_beside_imported_ones(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, video_files = Store(tmp_path / "store"), tmp_path / "videos"
    video_uri_of(world_of("demo:short,num_videos=20"), video_files, 2)
    imported = tmp_path / "features" / BACKBONE
    imported.mkdir(parents=True)
    np.save(imported / "AAAAAAAAAAA.mp4.npy", np.zeros((3, WIDTH), np.float16))
    import_source(store, "import", "features", imported)
    import_source(store, "import", "videos", video_files)
    recipe = Recipe.of(SETTINGS)
    assert len(recipe.weights) == 64 and recipe.difference(store) == ""
    assert make_features(Job.of(store.uri, "run", SETTINGS)).startswith("1 of 1 videos got features")
    assert "random" not in caplog.text
    made = {shard.constants["weights_sha256"] for shard in store.table("features").snapshot().shards}
    assert made == {None, recipe.weights}
    load_network.cache_clear()


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    torch.save({"conv.weight": torch.zeros(3)}, tmp_path / "other.pt")
    with pytest.raises(ValueError, match=r"does not hold weights of this network: train them with `python -m tasks"):
        load_demo_network(tmp_path / "other.pt", 0, "cpu")


def test_the_same_seed_draws_the_same_clips_and_another_seed_others() -> None:
    first, again, other = (draw_clips(4, seed) for seed in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.clips_NTHWC, other.clips_NTHWC)


def test_the_same_seed_trains_the_same_network() -> None:
    rng, states = np.random.default_rng(0), []
    clips = rng.integers(0, 256, (BATCH, FRAMES, SIDE, WIDE, 3), np.uint8)
    drawn = Drawn(clips, rng.integers(0, len(ACTION_NAMES), BATCH), rng.integers(0, len(OBJECT_NAMES), BATCH))
    for _ in range(2):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            states.append(train(drawn, 1, lambda text: None).state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
