"""Imported features in the joint space: what the network's last layer makes of them, once."""

from pathlib import Path

import numpy as np
import pytest
import torch

from storage import Store
from storage.feature_reader import FeatureReader
from tasks.features.settings import FeatureSettings
from tasks.features.stage import make_features
from tasks.importers.sources import Options, import_source
from tasks.pipeline.job import Job
from vina_model.s3d import S3D, seeded


@pytest.fixture(scope="module")
def network() -> S3D:
    return seeded(1).eval()


def test_published_features_are_projected(tmp_path: Path, network: S3D) -> None:
    torch.save(network.state_dict(), tmp_path / "s3d.pth")
    (tmp_path / "imported").mkdir()
    rng = np.random.default_rng(0)
    features = {name: rng.random((seconds, 1024), np.float32) for name, seconds in (("a", 3), ("b", 1))}
    for name, vectors in features.items():
        np.save(tmp_path / f"imported/{name}.mp4.npy", vectors)
    store = Store(tmp_path / "store")
    import_source(store, "import", "features", tmp_path / "imported", Options(backbone="s3d-milnce"))
    settings = FeatureSettings(weights=str(tmp_path / "s3d.pth"), joint=True, device="cpu")
    report = make_features(Job.of(store.uri, "run-1", settings))
    assert "2 videos were projected into the joint space" in report
    reader = FeatureReader(store, "s3d-milnce-joint")
    for name, vectors in features.items():
        with torch.inference_mode():
            expected = network.fc(torch.from_numpy(vectors.astype(np.float16).astype(np.float32))).numpy()
        np.testing.assert_allclose(reader.read(name).astype(np.float32), expected, atol=2e-3)
    version = store.table("features").snapshot().version
    assert "projected" not in make_features(Job.of(store.uri, "run-2", settings))
    assert store.table("features").snapshot().version == version


def test_nothing_is_projected_without_weights(tmp_path: Path) -> None:
    (tmp_path / "imported").mkdir()
    np.save(tmp_path / "imported/a.npy", np.ones((2, 1024), np.float32))
    store = Store(tmp_path / "store")
    import_source(store, "import", "features", tmp_path / "imported", Options(backbone="s3d-milnce"))
    assert "projected" not in make_features(Job.of(store.uri, "run-1", FeatureSettings(joint=True)))
    assert not store.table("features").snapshot().where(backbone="s3d-milnce-joint").shards
