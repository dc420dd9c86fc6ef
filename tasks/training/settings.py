"""The settings of the training stages, and two presets: the paper's numbers, and minutes on two cores."""

import math
from dataclasses import dataclass
from typing import ClassVar

from tasks.pipeline.settings_check import Limited


@dataclass(frozen=True)
class TrainingSettings(Limited):
    """What may be asked of the training; the defaults are the paper's; its words come from a file."""

    CHOICES: ClassVar = {
        "label_matrix": ("SV", "F"),
        "confidence": ("peak", "mutual"),
        "selection": ("metadata", "top1", "random_top5"),
    }
    LIMITS: ClassVar = {
        (1, math.inf): "word_width hidden_width text_width width layers heads tan_epochs epochs burn_in_epochs "
        "batch_size accumulate",
        (4, math.inf): "max_seconds",
        (0, math.inf): "refresh_epochs warmup_steps seed feature_noise weight_decay checkpoint_minutes",
        (0, 1): "keep_share alignment_share zeta",
        (0, 0.99): "dropout word_dropout",
        (-1, 1): "gamma",
        (1e-12, math.inf): "learning_rate clip",
    }

    backbone: str = "s3d-milnce"
    """Whose features are used."""
    selection: str = "top1"
    """Which article a video is trained with: metadata, top1 or random_top5."""
    words: str = "corpus"
    """Word vectors: trained on the corpus's own sentences, or a file of gensim's or of MIL-NCE's."""
    word_width: int = 300
    """Text encoder: numbers of a word vector."""
    hidden_width: int = 2048
    """Text encoder: hidden units."""
    text_width: int = 512
    """Text encoder: numbers of a text's embedding."""

    width: int = 512
    """Transformer: numbers of a token."""
    layers: int = 6
    """Transformer: layers."""
    heads: int = 8
    """Transformer: attention heads; they divide the width."""
    max_seconds: int = 1024
    """Seconds that are trained on at once; a longer video gives a part of itself, another one each time."""
    dropout: float = 0.0
    """Share of the transformer's activations that are left out in training."""
    word_dropout: float = 0.0
    """Share of the words that are left out in training."""
    feature_noise: float = 0.0
    """Standard deviation of the noise that is added to features in training, in units of theirs."""
    narrations: bool = True
    """Whether narrations go into the student beside the video."""
    steps: bool = True
    """Whether steps go into the student; without them it aligns them as if they were narrations."""
    step_positions: bool = True
    """Whether the student knows the order of the steps."""
    separate_text_mlps: bool = True
    """Whether steps and narrations are projected apart."""
    tan_text_positions: bool = False
    """Whether TAN* knows the order of the narrations (the paper's PE+LC)."""

    tan: str = "train"
    """The burn-in's teacher: TAN* trained here, or the file of a published TAN, with its `s3d_dict.npy` beside it."""
    tan_epochs: int = 12
    """Epochs of TAN*."""
    epochs: int = 12
    """Epochs of the student, burn-in and rounds together."""
    burn_in_epochs: int = 3
    """How many of the epochs are trained on TAN*'s labels."""
    refresh_epochs: int = 3
    """After how many epochs the student becomes the teacher; 0: never, TAN*'s labels are kept."""
    confidence: str = "peak"
    """What tells good labels from bad ones: `peak`, the score as in the paper, or `mutual`, which also asks whether
    another step has the higher claim to the peak (`vina_model/pseudo_labels.py`)."""
    gamma: float = 0.65
    """The least confidence of a label that is kept."""
    keep_share: float = 0.0
    """If not 0, gamma is chosen anew in each round, shard by shard, so that this share of the labels is kept."""
    zeta: float = 0.7
    """A label goes on while the score is at least this share of its peak."""
    label_matrix: str = "SV"
    """The matrix that labels are read from: SV, or F (fused)."""
    alignment_share: float = 0.01
    """Of how many videos the alignment matrices are kept in each round (`alignments`): 0 none, 1 all."""

    batch_size: int = 32
    """Videos of one optimiser step, of all processes together."""
    accumulate: int = 1
    """In how many parts a process works through its share of them."""
    learning_rate: float = 2e-4
    """AdamW's, after the warm-up; then half a cosine down to nothing."""
    weight_decay: float = 0.01
    """AdamW's."""
    warmup_steps: int = 0
    """Steps in which the learning rate rises."""
    clip: float = 1.0
    """The largest norm of a gradient."""
    seed: int = 0
    """Of all that is drawn at random."""
    device: str | None = None
    """cuda, mps, cpu, ... (default: the best there is)."""
    checkpoint_minutes: float = 10.0
    """Minutes between two checkpoints within an epoch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise ValueError(f"setting width is {self.width}: choose a multiple of heads, {self.heads}")
        if self.burn_in_epochs > self.epochs:
            raise ValueError(f"setting burn_in_epochs is {self.burn_in_epochs}, more than all epochs, {self.epochs}")
        if not (self.narrations or self.steps):
            raise ValueError("settings narrations and steps are both false: there is nothing to learn")


PRESETS = {
    "paper": TrainingSettings(),
    "demo": TrainingSettings(
        backbone="demo-concepts",
        word_width=96,
        hidden_width=256,
        text_width=128,
        width=128,
        layers=2,
        heads=4,
        max_seconds=256,
        dropout=0.2,
        word_dropout=0.1,
        feature_noise=0.5,
        tan_epochs=16,
        epochs=16,
        burn_in_epochs=4,
        refresh_epochs=4,
        confidence="mutual",
        keep_share=0.3,
        learning_rate=7e-4,
        weight_decay=0.05,
        warmup_steps=50,
    ),
}
