"""Project stored features into the joint text-video space, by the backbone's last layer.

So MIL-NCE's published features are enough for its zero-shot baseline, without videos.
"""

from storage import Store, fingerprint_of
from storage.feature_reader import FeatureReader
from storage.fingerprint import shard_name
from storage.schemas import TABLES
from storage.vectors import feature_rows
from tasks.features.recipe import Recipe, weights_file
from tasks.features.settings import FeatureSettings

CODE_VERSION = "1"
VIDEOS_PER_SHARD = 256


def project_features(store: Store, run_id: str, recipe: Recipe, settings: FeatureSettings) -> int:
    """Project videos that have the backbone's features but no joint ones; return their number."""
    backbone, weights = recipe.backbone, weights_file(settings, recipe.backbone)
    if backbone.joint_layer is None or backbone.project is None or weights is None:
        return 0
    reader = FeatureReader(store, backbone.name)
    table = store.table("features")
    joint = table.snapshot().where(backbone=backbone.joint_name)
    new = sorted(reader.num_seconds.keys() - (joint.distinct("video_id") if joint.shards else set()))
    if not new:
        return 0
    recipe.check(store)
    project = backbone.project(weights)
    constants = dict.fromkeys(TABLES["features"].constants) | {
        "stride_s": 1.0, "layer": backbone.joint_layer.name, "weights_sha256": recipe.weights
    }  # fmt: skip
    for begin in range(0, len(new), VIDEOS_PER_SHARD):
        chosen = new[begin : begin + VIDEOS_PER_SHARD]
        fingerprint = fingerprint_of(constants | {"videos": chosen}, {}, CODE_VERSION)
        with table.writer(
            {"backbone": backbone.joint_name},
            shard_name(chosen),
            fingerprint=fingerprint,
            run_id=run_id,
            constants=constants,
        ) as writer:
            for video in chosen:
                writer.write(feature_rows(video, project(reader.read(video))))
    return len(new)
