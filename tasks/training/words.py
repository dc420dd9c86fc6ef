"""The initial text encoder of TAN* and the student: with word vectors of the corpus, or of a file."""

from pathlib import Path

import torch

from tasks.features.network import read_checkpoint
from tasks.features.s3d_milnce import DICTIONARY, read_dictionary
from tasks.training.corpus import Corpus
from tasks.training.settings import TrainingSettings
from vina_model.text import BagOfWords, WordTraining, train_word_vectors

TOWER = "text_module."
"""Prefix of the text tower in a MIL-NCE checkpoint."""
WORD2VEC = (".bin", ".txt", ".vec", ".gz")
"""Suffixes of word2vec files. Not gensim's own format, which is pickle."""


def make_text_encoder(corpus: Corpus, settings: TrainingSettings) -> BagOfWords:
    """Make the encoder with vectors of the corpus's own sentences, a word2vec file, or a MIL-NCE checkpoint."""
    torch.manual_seed(settings.seed)
    sizes = {"hidden_width": settings.hidden_width, "output_width": settings.text_width}
    if settings.words == "corpus":
        training = WordTraining(vector_size=settings.word_width, min_count=2, epochs=20, sample=0.0, seed=settings.seed)
        vectors = train_word_vectors(corpus.sentences(), training)
        return BagOfWords.from_keyed_vectors(vectors, word_dropout=settings.word_dropout, **sizes)
    path = Path(settings.words)
    if not path.is_file():
        raise ValueError(f"there are no word vectors at {path}: name a file, or `corpus` to train them on the corpus")
    if path.suffix in (".pth", ".pt"):
        vocabulary = read_dictionary(path.with_name(DICTIONARY))
        state = {name: value for name, value in read_checkpoint(path).items() if name.startswith(TOWER)}
        return BagOfWords.from_milnce(state, vocabulary, TOWER, settings.word_dropout)
    if path.suffix not in WORD2VEC:
        raise ValueError(f"{path}: word vectors are read from {', '.join(WORD2VEC)} (gensim's save_word2vec_format)")
    from gensim.models import KeyedVectors

    vectors = KeyedVectors.load_word2vec_format(str(path), binary=".bin" in path.suffixes)
    return BagOfWords.from_keyed_vectors(vectors, word_dropout=settings.word_dropout, **sizes)
