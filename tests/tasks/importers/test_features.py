"""Feature files of other programs: what comes in, and what is refused."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch

from storage import Store
from storage.feature_reader import FeatureReader
from tasks.importers.sources import Options
from tests.tasks.importers.conftest import Import, rows


def test_features(tmp_path: Path, bring: Import) -> None:
    folder, rng = tmp_path / "clip-l14", np.random.default_rng(0)
    folder.mkdir()
    vectors = rng.standard_normal((5, 6))
    np.save(folder / "_a.b-.mp4.npy", vectors)
    torch.save(torch.tensor(vectors[None, :3], dtype=torch.float32), folder / "c.pth.tar")
    torch.save({"features": torch.tensor(vectors)}, folder / "d.webm.pth.tar")
    bad: dict[str, Any] = {
        "nan": np.where(np.eye(5, 6) > 0, np.nan, vectors),
        "large": vectors * 1e6,
        "flat": vectors[0],
        "empty": vectors[:0],
        "ints": np.ones((5, 6), int),
        "wide": np.ones((5, 7)),
    }
    for name, array in bad.items():
        np.save(folder / f"z{name}.npy", array)
    (folder / "zpickle.npy").write_bytes(b"\x93NUMPY" + pickle.dumps([Path]))
    np.save(folder / "zobject.npy", np.array([{"a": 1}], object), allow_pickle=True)
    torch.save({"a": torch.ones(2, 2), "b": torch.ones(2, 2)}, folder / "ztwo.pth.tar")
    (folder / "ztext.pth.tar").write_text("hello")
    summary = bring("features", folder)
    reader = FeatureReader(Store(tmp_path / "store"), "clip-l14")
    for name, expected in (("_a.b-", vectors), ("c", vectors[:3]), ("d", vectors)):
        np.testing.assert_array_equal(reader.read(name), expected.astype(np.float32).astype(np.float16))
    assert dict(summary.rejected) == {"not finite": 2, "wrong shape": 3, "wrong width": 1, "not an array": 4}
    assert summary.kept["features"] == 3 and summary.damaged == []
    assert {"layer": "as imported", "stride_s": 1.0, "fps": None}.items() <= rows(tmp_path, "features")[0].items()


def test_features_of_another_width_than_the_store_has(tmp_path: Path, bring: Import) -> None:
    for name, width in (("a", 4), ("b", 6)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / f"{name}.npy", np.ones((2, width)))
    bring("features", tmp_path / "a", options=Options(backbone="net"))
    assert dict(bring("features", tmp_path / "b", options=Options(backbone="net")).rejected) == {"wrong width": 1}
    assert dict(bring("features", tmp_path / "b").rejected) == {}
