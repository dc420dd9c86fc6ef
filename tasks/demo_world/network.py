"""A small network that recognises the demo world's videos: which action a second shows, and on which object.

The look of actions and objects does not depend on the world's seed, so one file of weights serves all worlds; it comes
with the package, and `python -m tasks.demo_world.train_network` trains it again. The vector of a second is the mean of
the concepts, weighted by their probabilities, without the look and the noise that `ConceptSpace.watch` adds: it is
cleaner than the vectors that models are trained on. The network recognises no other videos.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tasks.demo_world.articles import actions_of, objects_of
from tasks.demo_world.corpus import seed_in
from tasks.demo_world.features import ConceptSpace
from tasks.demo_world.files import BACKBONE
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.lexicon import ACTIONS, THEMES
from tasks.demo_world.scenes import FINISHED, PRESENTER, TITLE
from tasks.demo_world.script import World
from tasks.features.backbones import Backbone, Layer
from tasks.features.decoding import Frames
from tasks.features.network import Clips, Outputs, Run, read_checkpoint

# B clips, T frames, N = B x T, C channels, H x W pixels, E width of a frame's vector, A actions, O objects,
# S scenes (an action on an object), D width of a concept

SIDE = 64
"""Side of the frames, in pixels."""
WIDTH = Knobs().feature_width
FRAMES = 6
"""Number of frames of a second that the network is given, at equal distances."""
WEIGHTS = Path(__file__).with_name("network.pt")
_CHANNELS, _STRIDES, _WIDTH = (3, 24, 40, 60, 76, 92), (2, 2, 1, 2, 1), 96
ACTION_NAMES = (*ACTIONS, PRESENTER, TITLE, FINISHED)
OBJECT_NAMES = (*(thing.written for theme in THEMES for thing in theme.objects), "")
SCENES = (
    *((action, thing.written) for theme in THEMES for action in actions_of(theme, Knobs())
      for thing in objects_of(theme, Knobs())),
    *((FINISHED, thing.written) for theme in THEMES for thing in theme.objects),
    (PRESENTER, ""),
    (TITLE, ""),
)  # fmt: skip
"""All scenes that a video of any world can show."""
_ACTION_S = [ACTION_NAMES.index(action) for action, _ in SCENES]
_OBJECT_S = [OBJECT_NAMES.index(thing) for _, thing in SCENES]


class Guess(NamedTuple):
    """Logits of a clip's action and of its object."""

    action_BA: Tensor
    object_BO: Tensor


class DemoNetwork(nn.Module):
    """Convolutions on each frame; maximum and mean over the picture, then over time; one linear layer."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after, stride in zip(_CHANNELS[:-1], _CHANNELS[1:], _STRIDES, strict=True):
            layers += [nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.see = nn.Sequential(*layers)
        self.sum_up = nn.Linear(2 * _CHANNELS[-1], _WIDTH)
        self.judge = nn.Linear(3 * _WIDTH, len(ACTION_NAMES) + len(OBJECT_NAMES))

    def forward(self, frames_BTCHW: Tensor) -> Guess:
        """Return the logits of clips of frames with values in [0, 1]."""
        frames_NCHW = (frames_BTCHW.flatten(0, 1) - 0.5).contiguous(memory_format=torch.channels_last)
        seen_NCHW = self.see(frames_NCHW)
        pooled_NE = torch.cat([seen_NCHW.amax((2, 3)), seen_NCHW.mean((2, 3))], 1)
        frames_BTE = F.relu(self.sum_up(pooled_NE)).view(*frames_BTCHW.shape[:2], -1)
        change_BE = frames_BTE.diff(dim=1).abs().mean(1)
        logits = self.judge(torch.cat([frames_BTE.mean(1), frames_BTE.amax(1), change_BE], 1))
        return Guess(*logits.float().split([len(ACTION_NAMES), len(OBJECT_NAMES)], 1))


def load_demo_network(weights: Path | None, seed: int, device: str) -> Run:
    """Return the network for the world with this seed, by default with the weights of the package."""
    model = DemoNetwork()
    try:
        model.load_state_dict(read_checkpoint(weights or WEIGHTS))
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"{weights or WEIGHTS} does not hold weights of this network: train them with "
            f"`python -m tasks.demo_world.train_network` ({str(error)[:300]})"
        ) from error
    model = model.eval().to(device)
    concepts_SD = concepts_of(seed).to(device)

    @torch.inference_mode()
    def run(clips_BTHWC: Clips) -> Outputs:
        guess = model(as_frames(clips_BTHWC, device))
        return Outputs((scene_chances(guess) @ concepts_SD).half().cpu().numpy(), None)

    return run


def as_frames(clips_BTHWC: Clips, device: str) -> Tensor:
    """Return B x FRAMES x C x SIDE x SIDE: the frames that the network takes, scaled if needed."""
    chosen = np.linspace(0, clips_BTHWC.shape[1] - 1, FRAMES).round().astype(int)
    frames_BTCHW = torch.from_numpy(clips_BTHWC[:, chosen]).to(device).permute(0, 1, 4, 2, 3).float() / 255
    if frames_BTCHW.shape[-2:] == (SIDE, SIDE):
        return frames_BTCHW
    scaled_NCHW = F.interpolate(frames_BTCHW.flatten(0, 1), (SIDE, SIDE), mode="bilinear", antialias=True)
    return scaled_NCHW.view(-1, FRAMES, 3, SIDE, SIDE)


def scene_chances(guess: Guess) -> Tensor:
    """Return B x S: the probability of each scene, if action and object are independent among possible scenes."""
    both_BS = guess.action_BA.log_softmax(1)[:, _ACTION_S] + guess.object_BO.log_softmax(1)[:, _OBJECT_S]
    return both_BS.softmax(1)


def concepts_of(seed: int) -> Tensor:
    """Return S x D: the vectors of all scenes in the world with this seed."""
    concept_space = ConceptSpace(World(Knobs(), seed))
    return torch.from_numpy(np.stack([concept_space.concept(action, thing) for action, thing in SCENES]))


DEMO_CONCEPTS = Backbone(
    name=BACKBONE,
    layer=Layer("concept", WIDTH),
    value_range="[0, 1]",
    frames=Frames(16, SIDE),
    load=load_demo_network,
    weights=WEIGHTS,
    seed_in=seed_in,
)
