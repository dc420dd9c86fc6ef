"""From video files to rows: exact seconds, batches across videos, broken files as rejects, only what is missing."""

import hashlib
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from storage import Store
from storage.feature_reader import FeatureReader
from tasks.features import stage
from tasks.features.backbones import BACKBONES, Layer, Outputs, backbone_of, load_s3d
from tasks.features.decoding import Frames
from tasks.features.extraction import extract
from tasks.features.recipe import Recipe
from tasks.features.settings import FeatureSettings
from tasks.features.stage import make_features
from tasks.importers.sources import Options, import_source
from tasks.job import Job
from tests.tasks.features.films import COLOURS, write_film
from vina_model.s3d import seeded

SMALL = FeatureSettings(size_px=32, batch_size=5, videos_per_shard=2)
Make = Callable[..., str]


def mean_colour(clips: np.ndarray) -> Outputs:
    """A network that sees the mean colour, and in its joint space the brightness."""
    colours = clips.reshape(len(clips), -1, 3).mean(1)
    return Outputs(colours.astype(np.float16), colours.mean(1, keepdims=True).astype(np.float16))


@pytest.fixture
def films(tmp_path: Path) -> Path:
    folder = tmp_path / "films"
    folder.mkdir()
    for number, seconds in enumerate((3, 1, 6, 2.5, 4)):
        write_film(folder / f"_v-{number}.mp4", seconds, 10)
    return folder


@pytest.fixture
def store(tmp_path: Path, films: Path) -> Store:
    store = Store(tmp_path / "store")
    import_source(store, "import", "videos", films)
    return store


@pytest.fixture
def fake_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of S3D; its layers are as wide as a colour and a brightness."""
    small = replace(BACKBONES["s3d-milnce"], layer=Layer("mixed_5c", 3), joint_layer=Layer("fc", 1))
    monkeypatch.setitem(BACKBONES, "s3d-milnce", small)
    monkeypatch.setattr(stage, "load_network", lambda recipe, settings: mean_colour)


def make(store: Store, run_id: str = "run-1", **changes: Any) -> str:
    settings = FeatureSettings(**{**{name: getattr(SMALL, name) for name in SMALL.__dataclass_fields__}, **changes})
    return make_features(Job(store.uri, run_id, None, settings))


def rejects(store: Store) -> list[tuple[str, str]]:
    snapshot = store.table("rejects").snapshot().where(stage="features")
    return (
        sorted((row["item"], row["reason"]) for row in snapshot.read(["item", "reason"]).to_pylist())
        if snapshot.shards
        else []
    )


def features(store: Store, backbone: str = "s3d-milnce") -> dict[str, np.ndarray]:
    reader = FeatureReader(store, backbone)
    return {name: reader.read(name) for name in sorted(reader.num_seconds)}


def test_every_second_has_its_vector(store: Store, fake_network: None) -> None:
    report = make(store, joint=True)
    assert report.startswith("5 of 5 videos (0 rejected), 17 s of video")
    found = features(store)
    assert {name: len(vectors) for name, vectors in found.items()} == {
        f"_v-{n}": t for n, t in enumerate((3, 1, 6, 3, 4))
    }
    for vectors in found.values():
        assert np.abs(vectors - COLOURS[: len(vectors)]).max() < 14
    assert features(store, "s3d-milnce-joint")["_v-2"].shape == (6, 1)
    (row, *_) = store.table("features").snapshot().where(backbone="s3d-milnce").read().to_pylist()
    how = {
        "fps": 16.0,
        "frames_per_clip": 16,
        "frame_px": 32,
        "short_side_px": 32,
        "stride_s": 1.0,
        "layer": "mixed_5c",
        "value_range": "[0, 1]",
        "weights_sha256": "random:0",
    }
    assert {name: row[name] for name in how} == how


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_batches_across_videos_change_nothing(films: Path, batch_size: int) -> None:
    paths = sorted(films.iterdir())
    addresses = [(path.stem, str(path)) for path in paths]
    seen: list[int] = []

    def network(clips: np.ndarray) -> Outputs:
        seen.append(len(clips))
        return mean_colour(clips)

    counted: list[int] = []
    found = list(extract(addresses, network, batch_size, Frames(16, 32), counted.append))
    assert [done.video_id for done in found] == [path.stem for path in paths]
    assert sum(seen) == sum(counted) == 17 and all(count == batch_size for count in seen[:-1])
    for done in found:
        assert done.outputs is not None
        assert np.abs(done.outputs.main - COLOURS[: len(done.outputs.main)]).max() < 14


def test_broken_videos_are_rejects_and_stop_nobody(store: Store, films: Path, fake_network: None) -> None:
    (films / "_v-1.mp4").write_bytes((films / "_v-1.mp4").read_bytes()[:700])
    (films / "_v-2.mp4").unlink()
    assert "(2 rejected)" in make(store)
    assert rejects(store) == [("_v-1", "cannot be decoded"), ("_v-2", "file is missing")]
    assert sorted(features(store)) == ["_v-0", "_v-3", "_v-4"]
    assert make(store).startswith("1 of 1 videos (1 rejected)"), "a missing file may be there again"
    write_film(films / "_v-2.mp4", 2, 10)
    assert make(store, retry_rejected=True).startswith("2 of 2 videos (1 rejected)")
    assert rejects(store) == [("_v-1", "cannot be decoded")] and len(features(store)["_v-2"]) == 2


def test_a_rerun_makes_what_is_missing_only(store: Store, films: Path, fake_network: None) -> None:
    make(store)
    before = store.table("features").snapshot()
    write_film(films / "new.mp4", 2, 10)
    import_source(store, "import", "videos", films)
    assert make(store, "run-2").startswith("1 of 1 videos")
    after = store.table("features").snapshot()
    assert {shard.path for shard in before.shards} < {shard.path for shard in after.shards} and len(
        features(store)
    ) == 6


def test_a_layer_asked_for_later_is_added_alone(store: Store, fake_network: None) -> None:
    make(store)
    before = features(store)
    assert make(store, joint=True).startswith("5 of 5 videos")
    assert features(store).keys() == before.keys() == features(store, "s3d-milnce-joint").keys()
    assert make(store, joint=True) == "no video file is without features"


def test_a_shard_of_broken_videos_only(store: Store, films: Path, fake_network: None) -> None:
    for path in films.iterdir():
        path.write_bytes(b"broken")
    assert "5 of 5 videos (5 rejected)" in make(store, videos_per_shard=1)
    assert features(store) == {} and len(rejects(store)) == 5


def test_another_network_under_the_same_name_is_refused(store: Store, films: Path, fake_network: None) -> None:
    make(store)
    write_film(films / "new.mp4", 2, 10)
    import_source(store, "import", "videos", films)
    with pytest.raises(
        ValueError, match="weights_sha256 random:0, these would have random:7: use what they were made with"
    ):
        make(store, seed=7)
    with pytest.raises(ValueError, match="frame_px 32, these would have 64"):
        make(store, size_px=64)


def test_imported_features_count_as_done(store: Store, tmp_path: Path, fake_network: None) -> None:
    (tmp_path / "s3d-milnce").mkdir()
    np.save(tmp_path / "s3d-milnce/_v-0.mp4.npy", np.ones((3, 3), np.float16))
    import_source(store, "import", "features", tmp_path / "s3d-milnce")
    with pytest.raises(ValueError, match=r"have weights_sha256 unknown \(imported\), these would have random:0"):
        make(store)
    (tmp_path / "s3d.pth").write_bytes(b"the real ones")
    assert make(store, weights=str(tmp_path / "s3d.pth")).startswith("4 of 4 videos")
    assert (features(store)["_v-0"] == 1).all()


def test_the_real_network_sees_the_colours_change_at_whole_seconds(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "vina.features"):
        make(store)
    assert "random ones (seed 0)" in caplog.text
    vectors = features(store)["_v-2"].astype(np.float32)
    assert vectors.shape == (6, 1024)
    film = store.table("videos").snapshot().read(["video_id", "uri"]).to_pylist()
    (uri,) = (row["uri"] for row in film if row["video_id"] == "_v-2")
    network = load_s3d(None, 0, "cpu")
    (done,) = extract([("x", uri)], network, 2, Frames(16, 32), lambda count: None)
    assert done.outputs is not None
    again = done.outputs.main.astype(np.float32)
    assert np.abs(again - vectors).max() < 2e-2
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)[np.triu_indices(6, 1)]
    assert distances.min() > 10 * np.abs(again - vectors).max(), "each colour has a vector of its own"


def test_weights_that_do_not_fit_are_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are no weights at"):
        make(store, weights=str(tmp_path / "nowhere.pth"))
    (tmp_path / "text.pth").write_text("hello")
    with pytest.raises(ValueError, match=r"text\.pth cannot be read as a checkpoint"):
        make(store, weights=str(tmp_path / "text.pth"))
    torch.save({"conv1.weight": torch.ones(1)}, tmp_path / "other.pth")
    with pytest.raises(ValueError, match=r"unknown: conv1\.weight"):
        make(store, weights=str(tmp_path / "other.pth"))
    with pytest.raises(ValueError, match="there is no backbone 'resnet'"):
        backbone_of("resnet")


def test_weights_of_a_file_are_named_by_their_hash(tmp_path: Path) -> None:
    torch.save(seeded(3).state_dict(), tmp_path / "s3d.pth")
    recipe = Recipe.of(FeatureSettings(weights=str(tmp_path / "s3d.pth")))
    assert recipe.weights == hashlib.sha256((tmp_path / "s3d.pth").read_bytes()).hexdigest()
    clips = np.random.default_rng(0).integers(0, 255, (1, 16, 32, 32, 3), np.uint8)
    of_file, of_seed = load_s3d(tmp_path / "s3d.pth", 0, "cpu"), load_s3d(None, 3, "cpu")
    assert np.array_equal(of_file(clips).main, of_seed(clips).main)


def test_videos_in_the_store_are_read_from_s3(films: Path, s3_uri: str, fake_network: None) -> None:
    store = Store(s3_uri)
    import_source(store, "import", "videos", films, Options(upload=True))
    for path in films.iterdir():
        path.unlink()
    store.objects.delete("videos/_v-3.mp4")
    assert make(store).startswith("5 of 5 videos (1 rejected)")
    assert rejects(store) == [("_v-3", "file is missing")]


SLOWLY = """
import sys, time
import numpy as np
from dataclasses import replace
from tasks.features import stage
from tasks.features.backbones import BACKBONES, Layer, Outputs
from tasks.features.recipe import Recipe
from tasks.features.settings import FeatureSettings
from tasks.job import Job

def slow(clips):
    time.sleep(0.02 * len(clips))
    return Outputs(clips.reshape(len(clips), -1, 3).mean(1).astype(np.float16), None)

BACKBONES["s3d-milnce"] = replace(BACKBONES["s3d-milnce"], layer=Layer("mixed_5c", 3))
stage.load_network = lambda recipe, settings: slow
stage.make_features(Job(sys.argv[1], "run-1", None, FeatureSettings(size_px=32, batch_size=2, videos_per_shard=1)))
"""


def test_a_killed_run_is_finished_by_the_next_one(
    store: Store, tmp_path: Path, films: Path, fake_network: None
) -> None:
    whole = Store(tmp_path / "whole")
    import_source(whole, "import", "videos", films)
    make(whole)
    process = subprocess.Popen([sys.executable, "-c", SLOWLY, store.uri])
    deadline = time.monotonic() + 60
    while not store.table("features").snapshot().shards and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 1 <= len(features(store)) < 5, "the kill did not come in the middle"
    make(store, videos_per_shard=1)
    expected = features(whole)
    assert features(store).keys() == expected.keys()
    for name, vectors in features(store).items():
        assert np.array_equal(vectors, expected[name])
