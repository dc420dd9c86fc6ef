"""Features that are there already, in the joint text-video space: that is one linear layer away.

So whoever has MIL-NCE's published features, and no videos, has its zero-shot baseline too.
"""

from pathlib import Path

import numpy as np
import torch

from storage import Store, fingerprint_of
from storage.feature_reader import FeatureReader
from storage.fingerprint import shard_name
from storage.schemas import TABLES
from storage.vectors import feature_rows
from tasks.features.network import read_checkpoint
from tasks.features.recipe import Recipe
from tasks.features.settings import FeatureSettings
from vina_model.s3d import S3D, load_state

CODE_VERSION = "1"
VIDEOS_PER_SHARD = 256


def project_features(store: Store, run_id: str, recipe: Recipe, settings: FeatureSettings) -> int:
    """The joint features of videos that have the backbone's own and not these; returns how many videos that were."""
    layer, name = recipe.backbone.joint_layer, f"{recipe.backbone.name}-joint"
    reader = FeatureReader(store, recipe.backbone.name)
    table = store.table("features")
    known = table.snapshot().where(backbone=name)
    new = sorted(reader.num_seconds.keys() - (known.distinct("video_id") if known.shards else set()))
    if not new or layer is None or settings.weights is None:
        return 0
    recipe.check(store)
    model = S3D()
    load_state(model, read_checkpoint(Path(settings.weights)))
    constants = dict.fromkeys(TABLES["features"].constants) | {
        "stride_s": 1.0, "layer": layer.name, "weights_sha256": recipe.weights
    }  # fmt: skip
    for begin in range(0, len(new), VIDEOS_PER_SHARD):
        chosen = new[begin : begin + VIDEOS_PER_SHARD]
        shard = shard_name(chosen)
        fingerprint = fingerprint_of(constants | {"videos": chosen}, {}, CODE_VERSION)
        with table.writer(
            {"backbone": name}, shard, fingerprint=fingerprint, run_id=run_id, constants=constants
        ) as writer:
            for video in chosen:
                vectors_TD = torch.from_numpy(reader.read(video).astype(np.float32))
                with torch.inference_mode():
                    writer.write(feature_rows(video, model.fc(vectors_TD).half().numpy()))
    return len(new)
