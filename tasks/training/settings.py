"""The settings of the training stages, and two presets: the paper's numbers, and minutes on two cores."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class TrainingSettings:
    """What may be asked of the training; the defaults are the paper's; its words come from a file."""

    backbone: str = "s3d-milnce"
    """Whose features are used."""
    selection: str = "top1"
    """Which article a video is trained with: metadata, top1 or random_top5."""
    words: str = "corpus"
    """Word vectors: trained on the corpus's own sentences, or a file of gensim's or of MIL-NCE's."""
    word_width: int = 300
    hidden_width: int = 2048
    text_width: int = 512
    """The text encoder: numbers of a word vector, hidden units, numbers of a text's embedding."""

    width: int = 512
    layers: int = 6
    heads: int = 8
    max_seconds: int = 1024
    """Seconds that are trained on at once; a longer video gives a part of itself, another one each time."""
    dropout: float = 0.0
    word_dropout: float = 0.0
    feature_noise: float = 0.0
    """Standard deviation of the noise that is added to features in training, in units of theirs."""
    narrations: bool = True
    steps: bool = True
    """What goes into the student beside the video; without steps it aligns them as if they were narrations."""
    step_positions: bool = True
    separate_text_mlps: bool = True
    tan_text_positions: bool = False

    tan: str = "train"
    """The burn-in's teacher: TAN* trained here, or the file of a published TAN, with its `s3d_dict.npy` beside it."""
    tan_epochs: int = 12
    epochs: int = 12
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
    weight_decay: float = 0.01
    warmup_steps: int = 0
    clip: float = 1.0
    """The largest norm of a gradient."""
    seed: int = 0
    device: str | None = None
    checkpoint_minutes: float = 10.0

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"setting {name} is {getattr(self, name)!r}: choose {' or '.join(choices)}")
        for (low, high), names in LIMITS.items():
            for name in names.split():
                if not low <= getattr(self, name) <= high:  # also false for NaN
                    raise ValueError(f"setting {name} is {getattr(self, name)}; it goes from {low} to {high}")
        if self.width % self.heads:
            raise ValueError(f"setting width is {self.width}: choose a multiple of heads, {self.heads}")
        if self.burn_in_epochs > self.epochs:
            raise ValueError(f"setting burn_in_epochs is {self.burn_in_epochs}, more than all epochs, {self.epochs}")
        if not (self.narrations or self.steps):
            raise ValueError("settings narrations and steps are both false: there is nothing to learn")


CHOICES = {
    "label_matrix": ("SV", "F"),
    "confidence": ("peak", "mutual"),
    "selection": ("metadata", "top1", "random_top5"),
}
LIMITS = {
    (1, math.inf): "word_width hidden_width text_width width layers heads tan_epochs epochs burn_in_epochs batch_size "
    "accumulate",
    (4, math.inf): "max_seconds",
    (0, math.inf): "refresh_epochs warmup_steps seed feature_noise weight_decay checkpoint_minutes",
    (0, 1): "keep_share alignment_share zeta",
    (0, 0.99): "dropout word_dropout",
    (-1, 1): "gamma",
    (1e-12, math.inf): "learning_rate clip",
}


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


def choose_settings(preset: str, changes: dict[str, str]) -> TrainingSettings:
    """A preset with some settings changed, given as text."""
    kinds: dict[str, Any] = {field.name: type(field.default) for field in fields(TrainingSettings)}
    values: dict[str, Any] = {}
    for name, text in changes.items():
        if name not in kinds:
            raise ValueError(f"there is no setting {name!r}; the settings are {', '.join(kinds)}")
        if kinds[name] is bool and text not in ("true", "false"):
            raise ValueError(f"setting {name}: {text!r} is not true or false")
        try:
            values[name] = text == "true" if kinds[name] is bool else text if name == "device" else kinds[name](text)
        except ValueError:
            raise ValueError(f"setting {name}: {text!r} is not a number") from None
    return replace(PRESETS[preset], **values)
