"""Settings of the stages `burn-in` and `rounds`. The defaults are the paper's, except for the word vectors' source."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from tasks.pairing.selections import SELECTIONS
from tasks.pipeline.settings import NotNegative, Positive, Settings, Share

DropoutRate = Annotated[float, Field(ge=0, le=0.99)]
PositiveFloat = Annotated[float, Field(ge=1e-12)]
NotNegativeFloat = Annotated[float, Field(ge=0)]
Selection = Literal[tuple(SELECTIONS)]  # type: ignore[valid-type]


class TrainingSettings(Settings):
    """How TAN* and the student are trained."""

    group: ClassVar[str] = "training"
    presets: ClassVar = {
        "demo": {
            "backbone": "demo-concepts", "word_width": 96, "hidden_width": 256, "text_width": 128, "width": 128,
            "layers": 2, "heads": 4, "max_seconds": 256, "dropout": 0.2, "word_dropout": 0.1, "feature_noise": 0.5,
            "tan_epochs": 8, "epochs": 24, "burn_in_epochs": 12, "refresh_epochs": 4, "confidence": "mutual",
            "keep_share": 0.2, "batch_size": 8, "learning_rate": 1e-3, "weight_decay": 0.05, "warmup_steps": 50,
        }
    }  # fmt: skip

    backbone: str = "s3d-milnce"
    """Backbone whose features are used."""
    selection: Selection = "top1"  # type: ignore[valid-type]
    """Which article a video is trained with."""
    words: str = "corpus"
    """Word vectors: `corpus` trains them on the corpus's sentences; else a word2vec file, or MIL-NCE's weights."""
    word_width: Positive = 300
    """Text encoder: width of a word vector."""
    hidden_width: Positive = 2048
    """Text encoder: hidden units."""
    text_width: Positive = 512
    """Text encoder: width of a text embedding."""

    width: Positive = 512
    """Transformer: width of a token."""
    layers: Positive = 6
    """Transformer: number of layers."""
    heads: Positive = 8
    """Transformer: attention heads; they must divide the width."""
    max_seconds: Annotated[int, Field(ge=4)] = 1024
    """Seconds of a video per training example; a longer video is cropped, differently in each epoch."""
    dropout: DropoutRate = 0.0
    """Dropout rate of the transformer."""
    word_dropout: DropoutRate = 0.0
    """Share of words dropped in training."""
    feature_noise: NotNegativeFloat = 0.0
    """Standard deviation of Gaussian noise added to features in training, relative to theirs."""
    narrations: bool = True
    """Whether the student gets narrations in addition to the video."""
    steps: bool = True
    """Whether the student gets steps; without them it aligns steps as if they were narrations."""
    step_positions: bool = True
    """Whether steps have positional embeddings."""
    separate_text_mlps: bool = True
    """Whether steps and narrations have separate MLPs."""
    tan_text_positions: bool = False
    """Whether TAN* has positional embeddings for narrations (the paper's PE+LC)."""

    tan: str = "train"
    """Teacher of the burn-in: `train` trains TAN* here; else the file of a published TAN, with its `s3d_dict.npy`
    beside it."""
    tan_epochs: Positive = 12
    """Epochs of TAN*."""
    epochs: Positive = 12
    """Epochs of the student, burn-in and rounds together."""
    burn_in_epochs: Positive = 3
    """Epochs that are trained on TAN*'s labels."""
    refresh_epochs: NotNegative = 3
    """Epochs after which the teacher is replaced by the student; 0: never, only TAN*'s labels are used."""
    confidence: Literal["peak", "mutual"] = "peak"
    """Confidence of a label: `peak` is the score, as in the paper; `mutual` also checks if another step has a higher
    score at the peak (`vina_model/pseudo_labels.py`)."""
    gamma: Annotated[float, Field(ge=-1, le=1)] = 0.65
    """Lowest confidence of a label that is kept."""
    keep_share: Share = 0.0
    """If not 0, gamma is chosen in each round and shard so that this share of the labels is kept."""
    zeta: Share = 0.7
    """A label extends while the score is at least this share of its peak."""
    label_matrix: Literal["SV", "F"] = "SV"
    """Alignment matrix that labels are read from: SV (direct) or F (fused)."""
    alignment_share: Share = 0.01
    """Share of videos whose alignment matrices are stored in each round (`alignments`)."""

    batch_size: Positive = 32
    """Videos per optimiser step, over all processes."""
    accumulate: Positive = 1
    """Micro-batches per optimiser step and process."""
    learning_rate: PositiveFloat = 2e-4
    """AdamW learning rate after the warm-up; it decays to 0 along half a cosine."""
    weight_decay: NotNegativeFloat = 0.01
    """AdamW weight decay."""
    warmup_steps: NotNegative = 0
    """Steps of linear warm-up."""
    clip: PositiveFloat = 1.0
    """Largest norm of a gradient."""
    seed: NotNegative = 0
    """Random seed."""
    device: str | None = None
    """cuda, mps, cpu, ... (default: the best available)."""
    checkpoint_minutes: NotNegativeFloat = 10.0
    """Minutes between two checkpoints within an epoch."""

    @model_validator(mode="after")
    def _check_together(self) -> "TrainingSettings":
        if self.width % self.heads:
            raise ValueError(f"setting width is {self.width}: choose a multiple of heads, {self.heads}")
        if self.burn_in_epochs > self.epochs:
            raise ValueError(f"setting burn_in_epochs is {self.burn_in_epochs}, more than all epochs, {self.epochs}")
        if not (self.narrations or self.steps):
            raise ValueError("settings narrations and steps are both false: there is nothing to learn")
        return self
