"""A new backbone as README.md says: one declaration, one line in the registry; it has a text tower too."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import torch

from storage import Store
from storage.feature_reader import FeatureReader
from storage.vectors import decode
from tasks.evaluation.text_methods import zero_shot
from tasks.features.backbones import BACKBONES, Backbone, Layer, TextTowerLoader
from tasks.features.decoding import Frames
from tasks.features.network import Clips, Outputs, Run, read_checkpoint
from tasks.features.settings import FeatureSettings
from tasks.features.stage import make_features
from tasks.importers.sources import import_source
from tasks.pipeline.job import Job
from tasks.pipeline.text_embedding import Embed
from tests.tasks.features.videos import write_video

COLOURS = ("red", "green", "blue")
STEPS = ["Add the blue one", "Show red", "Stir the green"]
"""The video is red in second 0, green in second 1, blue in second 2."""


def load_colours(weights: Path | None, seed: int, device: str) -> Run:
    assert weights is not None
    gains_C = read_checkpoint(weights).numpy()

    def run(clips_BTHWC: Clips) -> Outputs:
        return Outputs((clips_BTHWC.mean((1, 2, 3)) / 255 * gains_C).astype(np.float16), None)

    return run


def load_colour_words(weights: Path, dictionary: Path | None, device: str) -> Embed:
    gains_C = read_checkpoint(weights).numpy()

    def embed(texts: Sequence[str]) -> npt.NDArray[np.float16]:
        return np.array([[colour in text for colour in COLOURS] * gains_C for text in texts], np.float16)

    return embed


MEAN_COLOUR = Backbone(
    name="mean-colour",
    layer=Layer("mean", 3),
    value_range="[0, 1]",
    frames=Frames(fps=4, size_px=32),
    load=load_colours,
    text_tower=TextTowerLoader(load_colour_words),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A video of three seconds, and an article about it."""
    store = Store(tmp_path / "store")
    (tmp_path / "videos").mkdir()
    write_video(tmp_path / "videos/colours.mp4", 3)
    import_source(store, "import", "videos", tmp_path / "videos")
    table = store.table("steps")
    rows = [{"article_id": "a/1", "row": row, "step_id": f"{row}", "headline": text} for row, text in enumerate(STEPS)]
    steps = pa.Table.from_pylist(rows, schema=table.schema.files)
    table.commit(steps, {"source": "wikihow"}, "0", fingerprint="f", run_id="import")
    return store


@pytest.mark.parametrize("registered", [MEAN_COLOUR, f"{__name__}:MEAN_COLOUR"])
def test_a_new_backbone_makes_features_and_is_a_zero_shot_method(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registered: Backbone | str
) -> None:
    monkeypatch.setitem(BACKBONES, "mean-colour", registered)
    torch.save(torch.ones(3), tmp_path / "gains.pt")
    settings = FeatureSettings(backbone="mean-colour", weights=str(tmp_path / "gains.pt"), joint=True, device="cpu")
    report = make_features(Job.of(store.uri, "run-1", settings))
    assert report.startswith("1 of 1 videos got features (0 rejected); 3 texts embedded by mean-colour@")

    (shard,) = store.table("features").snapshot().shards
    names = ("backbone", "fps", "frame_px", "layer", "value_range")
    assert [shard.constants[name] for name in names] == ["mean-colour", 4.0, 32, "mean", "[0, 1]"]
    vectors_TC = FeatureReader(store, "mean-colour").read("colours").astype(np.float32)
    assert vectors_TC.shape == (3, 3) and vectors_TC.argmax(1).tolist() == [0, 1, 2]

    (method,) = zero_shot(store)
    assert (method.family, method.model_id[:12]) == ("mean-colour zero-shot", "mean-colour@")
    rows = store.table("sentence_embeddings").snapshot().where(encoder=method.model_id).read(["text", "vector"])
    by_text = dict(zip(rows["text"].to_pylist(), decode(rows["vector"], "float16").astype(np.float32), strict=True))
    assert [int((vectors_TC @ by_text[text]).argmax()) for text in STEPS] == [2, 0, 1]


def test_a_backbone_without_weights_embeds_no_texts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKBONES, "mean-colour", MEAN_COLOUR)
    monkeypatch.setattr("tasks.features.stage.load_network", lambda recipe, settings: lambda clips: Outputs(
        np.zeros((len(clips), 3), np.float16), None))  # fmt: skip
    settings = FeatureSettings(backbone="mean-colour", joint=True, device="cpu")
    assert "they need trained weights, not random ones" in make_features(Job.of(store.uri, "run-1", settings))
    assert list(zero_shot(store)) == []
