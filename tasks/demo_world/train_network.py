"""Make network.pt: draw seconds of videos, and train the network that recognises them.

`python -m tasks.demo_world.train_network OUTPUT` takes 8 to 15 minutes on one core, a third of it to draw. Looks
come from video numbers that no world uses. Only the frames that the network is given are drawn, half of the clips with
JPEG artefacts in place of those of H.264. The same seed gives the same file on one machine.
"""

import argparse
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from tasks.demo_world.knobs import Knobs
from tasks.demo_world.network import (
    ACTION_NAMES,
    FRAMES,
    OBJECT_NAMES,
    SCENES,
    SIDE,
    DemoNetwork,
    as_frames,
    scene_chances,
)
from tasks.demo_world.pixels import FPS, HEIGHT, WIDTH, draw_moments, frames_of_loop, look_of, through_camera
from tasks.demo_world.scenes import PRESENTER, TITLE, Scene
from tasks.demo_world.script import Video, World

# N clips, B clips of a batch, T frames, C channels, H x W pixels

WIDE = SIDE + 8
"""Drawn frames are a little wider than the network's, so that they can be shifted."""
SHOWN = (0, 2, 5, 7, 9, 11)
"""The frames of a second of video that the network is given, after the decoder has made 16 from 12."""
FIRST_NUMBER = 100_000_000
STRENGTHS = (0.2, 0.5, 0.5, 0.65, 0.8)
WITHOUT_OBJECT = [(PRESENTER, ""), (TITLE, "")]
SHARE_WITHOUT_OBJECT = 0.06
NUM_TITLES = 100
NUM_CLIPS, HELD_OUT, BATCH, EPOCHS, RATE = 8_000, 500, 64, 11, 4e-3


class Drawn(NamedTuple):
    """Clips with the rows of their actions and objects in the network's names."""

    clips_NTHWC: npt.NDArray[np.uint8]
    action_N: npt.NDArray[np.int64]
    object_N: npt.NDArray[np.int64]


def draw_clips(count: int, seed: int, on_progress: Callable[[str], None] = lambda text: None) -> Drawn:
    """Return seconds of videos, each with a different look; all scenes with an object in turn, in random order."""
    rng = np.random.default_rng(seed)
    worlds = [World(Knobs(look_strength=strength, num_articles=NUM_TITLES), seed) for strength in STRENGTHS]
    with_object = [scene for scene in SCENES if scene not in WITHOUT_OBJECT]
    rng.shuffle(with_object)
    clips_NTHWC = np.empty((count, FRAMES, SIDE, WIDE, 3), np.uint8)
    scenes: list[tuple[str, str]] = []
    for row in range(count):
        chosen = WITHOUT_OBJECT if rng.random() < SHARE_WITHOUT_OBJECT else with_object
        scenes.append(chosen[row % len(chosen)])
        clips_NTHWC[row] = _draw_clip(rng, worlds[rng.integers(len(worlds))], FIRST_NUMBER + row, *scenes[-1])
        if row % 500 == 0:
            on_progress(f"drawing clip {row:,} of {count:,}")
    return Drawn(
        clips_NTHWC,
        np.array([ACTION_NAMES.index(action) for action, _ in scenes]),
        np.array([OBJECT_NAMES.index(thing) for _, thing in scenes]),
    )


def _draw_clip(rng: np.random.Generator, world: World, number: int, action: str, thing: str) -> npt.NDArray[np.uint8]:
    """Return T x H x W x C: a second that begins at a random point of the scene's loop."""
    article = world.articles[rng.integers(len(world.articles))]
    look = look_of(world, Video(number, "", article, "train", 1.0, (), (), ()))
    scene = Scene(0.0, 1.0, action, thing, None)
    begin, start_s = int(rng.integers(24)), rng.uniform(0, 60)
    canvases = draw_moments(scene, look, article.title, [(begin + frame) % frames_of_loop(scene) for frame in SHOWN])
    edge = (WIDTH - HEIGHT * WIDE / SIDE) / 2
    pictures = [
        through_camera(canvas, look, start_s + frame / FPS) for canvas, frame in zip(canvases, SHOWN, strict=True)
    ]
    if rng.random() < 0.5:
        pictures = [_as_jpeg(picture, int(rng.integers(30, 90))) for picture in pictures]
    small = [
        picture.resize((WIDE, SIDE), Image.Resampling.BILINEAR, (edge, 0, WIDTH - edge, HEIGHT)) for picture in pictures
    ]
    return np.stack([np.asarray(picture) for picture in small])


def _as_jpeg(picture: Image.Image, quality: int) -> Image.Image:
    """Encode as JPEG and decode, for artefacts similar to those of video encoding."""
    file = BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return Image.open(file)


def vary(clips_BTHWC: Tensor) -> Tensor:
    """Return B x T x C x SIDE x SIDE: augmented clips, shifted, zoomed, with other light and grain, some with a cut."""
    count = len(clips_BTHWC)
    frames_BTCHW = clips_BTHWC.permute(0, 1, 4, 2, 3).float() / 255
    cut_B1 = torch.where(torch.rand(count, 1) < 0.2, torch.randint(1, 3, (count, 1)), 0)
    to_end_BT = torch.where(torch.rand(count, 1) < 0.5, torch.arange(FRAMES), torch.arange(FRAMES).flip(0))
    is_other_BT111 = (to_end_BT < cut_B1)[..., None, None, None]
    frames_BTCHW = torch.where(is_other_BT111, frames_BTCHW.roll(1, 0), frames_BTCHW)
    zoom_B = 1 + 0.1 * (2 * torch.rand(count) - 1)
    matrix_B23 = torch.zeros(count, 2, 3)
    matrix_B23[:, 0, 0], matrix_B23[:, 1, 1] = zoom_B * SIDE / WIDE, zoom_B
    matrix_B23[:, :, 2] = 0.14 * (2 * torch.rand(count, 2) - 1)
    grid = F.affine_grid(matrix_B23.repeat_interleave(FRAMES, 0), [count * FRAMES, 3, SIDE, SIDE], False)
    moved_NCHW = F.grid_sample(frames_BTCHW.flatten(0, 1), grid, padding_mode="border", align_corners=False)
    light_B1C11 = (0.1 * torch.randn(count, 1, 1, 1, 1) + 0.06 * torch.randn(count, 1, 3, 1, 1)).exp()
    grain = 0.02 * torch.rand(count, 1, 1, 1, 1) * torch.randn(count, FRAMES, 1, SIDE, SIDE)
    return (moved_NCHW.view(count, FRAMES, 3, SIDE, SIDE) * light_B1C11 + grain).clamp(0, 1)


def train(drawn: Drawn, epochs: int, on_progress: Callable[[str], None]) -> DemoNetwork:
    """Train a network on the clips, with a one-cycle learning rate."""
    model = DemoNetwork().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    clips, actions, things = (torch.from_numpy(array) for array in drawn)
    batches = len(clips) // BATCH
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=epochs * batches, pct_start=0.2)
    for epoch in range(epochs):
        total = 0.0
        for rows in torch.randperm(len(clips))[: batches * BATCH].view(batches, BATCH):
            with torch.autocast("cpu", torch.bfloat16):
                guess = model(vary(clips[rows]))
            loss = F.cross_entropy(guess.action_BA, actions[rows]) + F.cross_entropy(guess.object_BO, things[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            total += loss.item() / batches
        on_progress(f"epoch {epoch + 1} of {epochs}: loss {total:.3f}")
    return model.eval()


@torch.inference_mode()
def accuracy(model: DemoNetwork, drawn: Drawn) -> tuple[float, float]:
    """Return the shares of clips whose action, and whose object, is predicted correctly."""
    edge = (WIDE - SIDE) // 2
    clips_NTHWC = drawn.clips_NTHWC[:, :, :, edge:-edge]
    parts = np.array_split(clips_NTHWC, max(len(clips_NTHWC) // 50, 1))
    rows = np.concatenate([scene_chances(model(as_frames(part, "cpu"))).argmax(1).numpy() for part in parts])
    actions, things = zip(*(SCENES[row] for row in rows), strict=True)
    return (
        float(np.mean([ACTION_NAMES[row] for row in drawn.action_N] == np.array(actions))),
        float(np.mean([OBJECT_NAMES[row] for row in drawn.object_N] == np.array(things))),
    )


def main() -> None:
    """Draw, train, print the accuracy, write the file."""
    parser = argparse.ArgumentParser(description="Make the weights of the network that recognises demo videos.")
    parser.add_argument("output", type=Path, help="the file to write")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--clips", type=int, default=NUM_CLIPS, help="clips to draw")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="training epochs")
    options = parser.parse_args()
    torch.set_num_threads(1)  # more threads would change the order of sums
    torch.manual_seed(options.seed)
    model = train(draw_clips(options.clips, 2 * options.seed, print), options.epochs, print)
    model = model.half().float()  # as stored in the file
    action, thing = accuracy(model, draw_clips(HELD_OUT, 2 * options.seed + 1))
    print(f"on {HELD_OUT} clips with new looks: {action:.1%} of the actions and {thing:.1%} of the objects are right")
    torch.save(model.half().state_dict(), options.output)
    print(f"wrote {options.output}: {options.output.stat().st_size / 1000:,.0f} kB")


if __name__ == "__main__":
    main()
