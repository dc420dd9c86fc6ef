"""From video files to rows: exact seconds, batches across videos, broken files as rejects, only what is missing."""

import hashlib
import logging
import signal
import subprocess
import sys
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
from tasks.features.backbones import BACKBONES, Layer, backbone_of
from tasks.features.decoding import Frames
from tasks.features.extraction import extract
from tasks.features.network import Outputs
from tasks.features.recipe import Recipe
from tasks.features.s3d_milnce import load_s3d
from tasks.features.settings import FeatureSettings
from tasks.features.stage import make_features
from tasks.importers.sources import Options, forget_source, import_source
from tasks.pipeline.job import Job
from tests.tasks.features.videos import COLOURS, write_video
from vina_model.s3d import seeded

SMALL = FeatureSettings(size_px=32, batch_size=5, videos_per_shard=2)
Make = Callable[..., str]


def mean_colour(clips: np.ndarray) -> Outputs:
    """A network that sees the mean colour, and in its joint space the brightness."""
    colours = clips.reshape(len(clips), -1, 3).mean(1)
    return Outputs(colours.astype(np.float16), colours.mean(1, keepdims=True).astype(np.float16))


@pytest.fixture
def video_files(tmp_path: Path) -> Path:
    folder = tmp_path / "videos"
    folder.mkdir()
    for number, seconds in enumerate((3, 1, 6, 2.5, 4)):
        write_video(folder / f"_v-{number}.mp4", seconds, 10)
    return folder


@pytest.fixture
def store(tmp_path: Path, video_files: Path) -> Store:
    store = Store(tmp_path / "store")
    import_source(store, "import", "videos", video_files)
    return store


@pytest.fixture
def fake_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of S3D; its layers are as wide as a colour and a brightness."""
    small = replace(backbone_of("s3d-milnce"), layer=Layer("mixed_5c", 3), joint_layer=Layer("fc", 1))
    monkeypatch.setitem(BACKBONES, "s3d-milnce", small)
    monkeypatch.setattr(stage, "load_network", lambda recipe, settings: mean_colour)


def make(store: Store, run_id: str = "run-1", **changes: Any) -> str:
    settings = SMALL.changed(**changes)
    return make_features(Job.of(store.uri, run_id, settings))


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
    assert report.startswith("5 of 5 videos got features (0 rejected)")
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
def test_batches_across_videos_change_nothing(video_files: Path, batch_size: int) -> None:
    paths = sorted(video_files.iterdir())
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


def test_broken_videos_are_rejects_and_stop_nobody(store: Store, video_files: Path, fake_network: None) -> None:
    (video_files / "_v-1.mp4").write_bytes((video_files / "_v-1.mp4").read_bytes()[:700])
    (video_files / "_v-2.mp4").unlink()
    assert "(2 rejected)" in make(store)
    assert rejects(store) == [("_v-1", "cannot be decoded"), ("_v-2", "file is missing")]
    assert sorted(features(store)) == ["_v-0", "_v-3", "_v-4"]
    assert make(store).startswith("0 of 1 videos got features (1 rejected)"), "a missing file may be there again"
    write_video(video_files / "_v-2.mp4", 2, 10)
    assert make(store, retry_rejected=True).startswith("1 of 2 videos got features (1 rejected)")
    assert rejects(store) == [("_v-1", "cannot be decoded")] and len(features(store)["_v-2"]) == 2


def test_a_rerun_makes_what_is_missing_only(store: Store, video_files: Path, fake_network: None) -> None:
    make(store)
    before = store.table("features").snapshot()
    write_video(video_files / "new.mp4", 2, 10)
    import_source(store, "import", "videos", video_files)
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
    assert make(store, joint=True).startswith("all video files have features; texts have no joint embeddings")


def test_a_shard_of_broken_videos_only(store: Store, video_files: Path, fake_network: None) -> None:
    for path in video_files.iterdir():
        path.write_bytes(b"broken")
    assert "0 of 5 videos got features (5 rejected)" in make(store, videos_per_shard=1)
    assert features(store) == {} and len(rejects(store)) == 5


def test_another_network_under_the_same_name_is_refused(store: Store, video_files: Path, fake_network: None) -> None:
    make(store)
    write_video(video_files / "new.mp4", 2, 10)
    import_source(store, "import", "videos", video_files)
    with pytest.raises(
        ValueError,
        match="weights_sha256 random:0, new ones would have random:7: use the settings that they were made with",
    ):
        make(store, seed=7)
    with pytest.raises(ValueError, match="frame_px 32, new ones would have 64"):
        make(store, size_px=64)


def test_imported_features_count_as_done(store: Store, tmp_path: Path, fake_network: None) -> None:
    (tmp_path / "s3d-milnce").mkdir()
    np.save(tmp_path / "s3d-milnce/_v-0.mp4.npy", np.ones((3, 3), np.float16))
    import_source(store, "import", "features", tmp_path / "s3d-milnce")
    with pytest.raises(ValueError, match=r"have weights_sha256 unknown \(imported\), new ones would have random:0"):
        make(store)
    (tmp_path / "s3d.pth").write_bytes(b"the real ones")
    assert make(store, weights=str(tmp_path / "s3d.pth")).startswith("4 of 4 videos")
    assert (features(store)["_v-0"] == 1).all()


def test_the_real_network_sees_the_colours_change_at_whole_seconds(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "vina.features"):
        make(store)
    assert "random weights (seed 0)" in caplog.text
    vectors = features(store)["_v-2"].astype(np.float32)
    assert vectors.shape == (6, 1024)
    video_file = store.table("videos").snapshot().read(["video_id", "uri"]).to_pylist()
    (uri,) = (row["uri"] for row in video_file if row["video_id"] == "_v-2")
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


def test_videos_in_the_store_are_read_from_s3(video_files: Path, s3_uri: str, fake_network: None) -> None:
    store = Store(s3_uri)
    import_source(store, "import", "videos", video_files, Options(upload=True))
    for path in video_files.iterdir():
        path.unlink()
    store.objects.delete("videos/_v-3.mp4")
    assert make(store).startswith("4 of 5 videos got features (1 rejected)")
    assert rejects(store) == [("_v-3", "file is missing")]


def break_file(path: Path) -> bytes:
    """Spoil a video; gives what it was."""
    whole = path.read_bytes()
    path.write_bytes(whole[:700])
    return whole


@pytest.mark.parametrize("joint", [False, True])
def test_a_video_alone_in_its_shard_is_made_once_it_is_repaired(
    store: Store, video_files: Path, fake_network: None, joint: bool
) -> None:
    whole = break_file(video_files / "_v-4.mp4")  # the fifth, in shards of two
    make(store)
    assert rejects(store) == [("_v-4", "cannot be decoded")] and len(features(store)) == 4
    (video_files / "_v-4.mp4").write_bytes(whole)
    assert make(store, "run-2") == "all video files have features", "it is not tried unasked"
    make(store, "run-3", retry_rejected=True, joint=joint)
    assert rejects(store) == [] and len(features(store)["_v-4"]) == 4
    assert len(features(store, "s3d-milnce-joint")) == (5 if joint else 0)
    assert seconds_are_told_once(store)


def seconds_are_told_once(store: Store) -> bool:
    rows = store.table("features").snapshot().read(["backbone", "video_id", "second"]).to_pylist()
    return len(rows) == len({tuple(row.values()) for row in rows})


def test_a_rejected_video_does_not_bind_a_store_to_its_weights(
    tmp_path: Path, video_files: Path, fake_network: None
) -> None:
    store = Store(tmp_path / "of one video")
    import_source(store, "import", "videos", video_files / "_v-0.mp4")
    whole = break_file(video_files / "_v-0.mp4")
    make(store)
    assert len(rejects(store)) == 1
    (video_files / "_v-0.mp4").write_bytes(whole)
    make(store, "run-2", seed=7, retry_rejected=True)
    assert rejects(store) == [] and len(features(store)["_v-0"]) == 3
    assert {shard.constants["weights_sha256"] for shard in store.table("features").snapshot().shards} == {"random:7"}


def test_what_was_rejected_is_tried_again_after_it_was_forgotten(
    store: Store, video_files: Path, fake_network: None
) -> None:
    whole = break_file(video_files / "_v-1.mp4")
    make(store)
    assert make(store) == "all video files have features" and len(rejects(store)) == 1
    forget_source(store, "features", "s3d-milnce")
    assert rejects(store) == [] and features(store) == {}
    assert make(store).startswith("4 of 5 videos got features (1 rejected)")
    (video_files / "_v-1.mp4").write_bytes(whole)
    forget_source(store, "videos")
    assert rejects(store) == []
    import_source(store, "import", "videos", video_files)
    assert make(store).startswith("1 of 1 videos got features (0 rejected)") and len(features(store)) == 5


def test_forgetting_one_backbone_keeps_what_another_rejected(
    store: Store, video_files: Path, fake_network: None
) -> None:
    break_file(video_files / "_v-1.mp4")
    make(store)
    forget_source(store, "features", "s3d")
    assert len(rejects(store)) == 1 and len(features(store)) == 4


def test_other_weights_are_refused_even_where_nothing_is_missing(
    store: Store, tmp_path: Path, fake_network: None
) -> None:
    make(store)
    (tmp_path / "s3d.pth").write_bytes(b"others")
    with pytest.raises(ValueError, match=r"weights_sha256 random:0, new ones would have [0-9a-f]{64}"):
        make(store, weights=str(tmp_path / "s3d.pth"))
    assert make(store) == "all video files have features"


def test_a_complete_store_needs_no_weights(store: Store, tmp_path: Path, fake_network: None) -> None:
    (tmp_path / "s3d.pth").write_bytes(b"the real ones")
    make(store, weights=str(tmp_path / "s3d.pth"))
    before = store.table("features").snapshot().version
    assert make(store) == "all video files have features"
    assert store.table("features").snapshot().version == before


def test_a_joint_layer_of_other_weights_is_refused_by_its_name(store: Store, fake_network: None) -> None:
    make(store, joint=True)
    store.table("features").retire({"backbone": "s3d-milnce"})
    with pytest.raises(ValueError, match=r"features of s3d-milnce-joint have weights_sha256 random:0.*random:7"):
        make(store, seed=7, joint=True)
    assert features(store) == {}
    forget_source(store, "features", "s3d-milnce")  # takes out what was projected from them, too
    make(store, seed=7, joint=True)
    assert len(features(store)) == 5


def test_what_others_bring_while_the_stage_runs_is_not_doubled(
    store: Store, tmp_path: Path, fake_network: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s3d-milnce").mkdir()
    np.save(tmp_path / "s3d-milnce/_v-2.npy", np.ones((6, 3), np.float16))

    def slow_network(clips: np.ndarray) -> Outputs:
        import_source(Store(store.uri), "other", "features", tmp_path / "s3d-milnce")
        return mean_colour(clips)

    monkeypatch.setattr(stage, "load_network", lambda recipe, settings: slow_network)
    make(store)
    assert len(features(store)) == 5 and (features(store)["_v-2"] == 1).all() and seconds_are_told_once(store)


def test_the_next_run_removes_the_reject_that_an_interrupted_one_left(
    store: Store, video_files: Path, fake_network: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = break_file(video_files / "_v-1.mp4")
    make(store)
    (video_files / "_v-1.mp4").write_bytes(whole)

    def interrupted(*anything: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(stage.rejects, "settle", interrupted)
        make(store, "run-2", retry_rejected=True)
    assert len(features(store)["_v-1"]) == 1 and len(rejects(store)) == 1
    make(store, "run-3")
    assert rejects(store) == []


def test_a_folder_that_is_mounted_again_is_made_by_a_plain_rerun(
    store: Store, video_files: Path, fake_network: None
) -> None:
    video_files.rename(video_files.with_name("unmounted"))
    assert make(store).startswith("0 of 5 videos got features (5 rejected)")
    assert {reason for _, reason in rejects(store)} == {"file is missing"}
    video_files.with_name("unmounted").rename(video_files)
    assert make(store, "run-2").startswith("5 of 5 videos got features (0 rejected)")
    assert rejects(store) == [] and len(features(store)) == 5


@pytest.mark.parametrize("layer", ["main", "joint"])
def test_values_that_are_not_finite_stop_the_stage(
    store: Store, fake_network: None, monkeypatch: pytest.MonkeyPatch, layer: str
) -> None:
    def broken_network(clips: np.ndarray) -> Outputs:
        outputs = mean_colour(clips)
        getattr(outputs, layer)[0] = np.nan
        return outputs

    monkeypatch.setattr(stage, "load_network", lambda recipe, settings: broken_network)
    with pytest.raises(ValueError, match="not finite, for _v-0, _v-1: check its weights"):
        make(store, joint=True)
    assert features(store) == {} and features(store, "s3d-milnce-joint") == {} and rejects(store) == []


KILLED = """
import os, signal, sys
import numpy as np
from dataclasses import replace
from tasks.features import stage
from tasks.features.backbones import BACKBONES, Layer, backbone_of
from tasks.features.network import Outputs
from tasks.features.settings import FeatureSettings
from tasks.pipeline.job import Job

calls = 0

def network(clips):
    global calls
    calls += 1
    if calls == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return Outputs(clips.reshape(len(clips), -1, 3).mean(1).astype(np.float16), None)

BACKBONES["s3d-milnce"] = replace(backbone_of("s3d-milnce"), layer=Layer("mixed_5c", 3))
stage.load_network = lambda recipe, settings: network
stage.make_features(Job.of(sys.argv[1], "killed", FeatureSettings(size_px=32, batch_size=1, videos_per_shard=2)))
"""


def content(store: Store, table: str) -> list[dict[str, Any]]:
    """The rows of the stage, less what says when and by whom they were written, and in which shards."""
    snapshot = store.table(table).snapshot().where(**({"stage": "features"} if table == "rejects" else {}))
    rows = snapshot.read().to_pylist() if snapshot.shards else []
    return sorted(({k: v for k, v in row.items() if not k.startswith("_")} for row in rows), key=repr)


@pytest.mark.slow
def test_a_killed_run_is_finished_by_the_next_one(
    store: Store, tmp_path: Path, video_files: Path, fake_network: None
) -> None:
    whole = Store(tmp_path / "whole")
    import_source(whole, "import", "videos", video_files)
    break_file(video_files / "_v-2.mp4")  # with _v-3 in the second shard
    make(whole)
    assert len(content(whole, "features")) == 11 and len(content(whole, "rejects")) == 1
    process = subprocess.run([sys.executable, "-c", KILLED, store.uri, "6"], check=False)  # the second second of _v-3
    assert process.returncode == -signal.SIGKILL
    assert sorted(features(store)) == ["_v-0", "_v-1"] and rejects(store) == [], "the kill did not come in the middle"
    make(store, "run-2")
    for table in ("features", "rejects"):
        assert content(store, table) == content(whole, table), table


def test_a_part_that_is_done_again_makes_only_what_it_had_not(
    store: Store, video_files: Path, fake_network: None
) -> None:
    listed = list(stage.list_video_files(store).values())
    job = Job.of(store.uri, "run-1", SMALL)
    part = {"shards": [[list(video_file)] for video_file in listed]}
    stage.make_shards(job, {"shards": part["shards"][:2]})
    before = {shard.path for shard in store.table("features").snapshot().shards}
    stage.make_shards(job, part)
    after = {shard.path for shard in store.table("features").snapshot().shards}
    assert before < after and len(after) == len(listed)


def test_other_frames_are_said_where_nothing_is_missing(store: Store, fake_network: None) -> None:
    make(store)
    report = make(store, size_px=64)
    assert "have frame_px 32, new ones would have 64: --force extracts them again" in report
