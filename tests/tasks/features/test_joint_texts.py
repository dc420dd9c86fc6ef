"""The text half of the joint space: what the tokenizer and the text tower give, for steps and annotated texts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from storage import Store
from storage.vectors import decode
from tasks.features import s3d_milnce
from tasks.features.joint_texts import embed_joint_texts
from tasks.features.recipe import Recipe
from tasks.features.s3d_milnce import DICTIONARY
from tasks.features.settings import FeatureSettings
from vina_model.s3d import S3D, seeded
from vina_model.tokenizer import VOCABULARY_SIZE, Tokenizer

WORDS = [f"word{number}" for number in range(VOCABULARY_SIZE - 3)] + ["stir", "the", "don't"]
STEPS = ["Stir the word7", "Don't stir word66", "nothing known here"]
ANNOTATED = ["stir word11 until word12", "Stir the word7"]


@pytest.fixture(scope="module")
def network() -> S3D:
    return seeded(0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, network: S3D) -> Path:
    folder = tmp_path_factory.mktemp("it's weights")
    torch.save(network.state_dict(), folder / "s3d.pth")
    np.save(folder / DICTIONARY, np.array(WORDS))
    return folder


def add_steps(store: Store, headlines: Sequence[str], shard: str = "0") -> None:
    table = store.table("steps")
    rows = [
        {"article_id": "a/1", "row": row, "step_id": f"{row}", "headline": text} for row, text in enumerate(headlines)
    ]
    found = pa.Table.from_pylist(rows, schema=table.schema.files)
    table.commit(found, {"source": "wikihow"}, shard, fingerprint=shard, run_id="import")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    add_steps(store, STEPS)
    table = store.table("annotations")
    rows = [{"video_id": "v", "text": text, "alignable": True, "split": "test"} for text in ANNOTATED]
    found = pa.Table.from_pylist(rows, schema=table.schema.files)
    table.commit(found, {"benchmark": "htm-align"}, "0", fingerprint="f", run_id="import")
    return store


def make(store: Store, weights: Path | None, dictionary: Path | None = None) -> str:
    given = {"weights": str(weights) if weights else None, "dictionary": str(dictionary) if dictionary else None}
    settings = FeatureSettings(joint=True, device="cpu", **given)
    return embed_joint_texts(store, "run-1", Recipe.of(settings), settings)


def embedded(store: Store) -> dict[str, np.ndarray]:
    rows = store.table("sentence_embeddings").snapshot().read(["text", "vector"])
    return dict(zip(rows["text"].to_pylist(), decode(rows["vector"], "float16"), strict=True))


def test_steps_and_annotations_are_embedded_as_the_tower_does(store: Store, folder: Path, network: S3D) -> None:
    assert make(store, folder / "s3d.pth").startswith("4 texts embedded by s3d-milnce-joint@")
    found, tokenizer = embedded(store), Tokenizer(WORDS)
    assert set(found) == {*STEPS, *ANNOTATED}
    for text, vector in found.items():
        with torch.inference_mode():
            expected = network.text_module(tokenizer.milnce([text]))[0].half().numpy()
        assert vector.shape == (512,) and np.allclose(vector, expected, rtol=2e-3, atol=1e-4)
    assert not np.allclose(found[STEPS[0]], found[STEPS[1]], atol=1e-2)


def test_a_rerun_embeds_what_is_new(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(store, folder / "s3d.pth")
    version = store.table("sentence_embeddings").snapshot().version
    assert make(store, folder / "s3d.pth").startswith("0 texts")
    assert store.table("sentence_embeddings").snapshot().version == version
    asked: list[str] = []

    class Noting(Tokenizer):
        def milnce(self, sentences: Sequence[str]) -> torch.Tensor:
            asked.extend(sentences)
            return super().milnce(sentences)

    monkeypatch.setattr(s3d_milnce, "Tokenizer", Noting)
    add_steps(store, [*STEPS, "a word3 more"], "1")
    assert make(store, folder / "s3d.pth").startswith("1 texts") and asked == ["a word3 more"]


def test_a_dictionary_elsewhere_is_named(store: Store, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "s3d.pth").symlink_to(folder / "s3d.pth")
    assert f"there is no {DICTIONARY} beside the weights" in make(store, tmp_path / "s3d.pth")
    assert embedded_count(store) == 0
    with pytest.raises(ValueError, match="there is no dictionary at"):
        make(store, tmp_path / "s3d.pth", tmp_path / "nowhere.npy")
    assert make(store, tmp_path / "s3d.pth", folder / DICTIONARY).startswith("4 texts")


def embedded_count(store: Store) -> int:
    return store.table("sentence_embeddings").snapshot().num_rows


def test_random_weights_embed_no_texts(store: Store) -> None:
    assert make(store, None) == "texts have no joint embeddings: they need trained weights, not random ones"
    assert embedded_count(store) == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.array(WORDS[:-1]), "holds 66,248 words where the text tower knows 66,249"),
        (np.array([{"a": 1}], dtype=object), "cannot be read as an array of words"),
        (b"not numpy's", "cannot be read as an array of words"),
    ],
)
def test_a_wrong_dictionary_is_refused(
    store: Store, folder: Path, tmp_path: Path, content: np.ndarray | bytes, message: str
) -> None:
    path = tmp_path / "words.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content, allow_pickle=True)
    with pytest.raises(ValueError, match=message):
        make(store, folder / "s3d.pth", path)
    assert embedded_count(store) == 0
