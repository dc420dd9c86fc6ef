"""Embeddings of every step and annotated text by a backbone's text tower, in `sentence_embeddings`.

The zero-shot baseline compares them with the backbone's features in the same space.
"""

from pathlib import Path

from storage import Store
from storage.fingerprint import file_hash
from tasks.features.backbones import TextTowerLoader, backbone_of
from tasks.features.recipe import Recipe, weights_file
from tasks.features.settings import FeatureSettings
from tasks.pipeline.device import best_device
from tasks.pipeline.text_embedding import embed_texts

TEXTS = "SELECT headline AS text FROM steps UNION ALL SELECT text FROM annotations"
TEXTS_PER_SHARD = 50_000


def embed_joint_texts(store: Store, run_id: str, recipe: Recipe, settings: FeatureSettings) -> str:
    """Embed new texts; return a report."""
    backbone, tower = recipe.backbone, recipe.backbone.text_tower
    if tower is None:
        return f"texts have no joint embeddings: {backbone.name} has no text tower"
    weights = weights_file(settings, backbone)
    if weights is None:
        return "texts have no joint embeddings: they need trained weights, not random ones"
    dictionary = _dictionary_file(tower, weights, settings)
    if dictionary is not None and not dictionary.is_file():
        if settings.dictionary:
            raise ValueError(f"there is no dictionary at {dictionary}")
        return (
            f"texts have no joint embeddings: there is no {tower.dictionary} beside the weights "
            "(or set dictionary=FILE)"
        )
    embed = tower.load(weights, dictionary, settings.device or best_device())
    encoder = f"{backbone.joint_name}@{recipe.weights[:8]}"
    count = embed_texts(store, run_id, encoder, embed, TEXTS, TEXTS_PER_SHARD)
    return f"{count:,} texts embedded by {encoder}"


def dictionary_version(settings: FeatureSettings) -> str:
    """Return a hash of the dictionary that the text tower will use; an empty text if there is none."""
    backbone = backbone_of(settings.backbone)
    weights = weights_file(settings, backbone)
    if backbone.text_tower is None or weights is None:
        return ""
    dictionary = _dictionary_file(backbone.text_tower, weights, settings)
    return file_hash(dictionary) if dictionary else ""


def _dictionary_file(tower: TextTowerLoader, weights: Path, settings: FeatureSettings) -> Path | None:
    """Return the file that the settings name, or the one beside the weights; None if the tower needs none."""
    if tower.dictionary is None:
        return None
    return Path(settings.dictionary) if settings.dictionary else weights.with_name(tower.dictionary)
