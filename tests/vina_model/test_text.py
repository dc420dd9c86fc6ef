import copy
import io
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from gensim.models import KeyedVectors  # type: ignore[import-untyped]
from torch import Tensor, nn

from tests.vina_model import golden
from vina_model.s3d_text import TextTower
from vina_model.text import BagOfWords, WordTraining, drop_words, train_word_vectors
from vina_model.tokenizer import words

VOCABULARY = ["stir", "the", "soup", "don't", "salt", "crème", "2", "add", "slowly"]
SENTENCES = ["Stir the soup", "don't add SALT, add crème!", "soup", "the quick fox stirs", "2 2 2 slowly add the salt"]


@pytest.fixture(autouse=True)
def one_thread_and_a_seed() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def encoder() -> BagOfWords:
    return BagOfWords(VOCABULARY, torch.randn(len(VOCABULARY), 6), hidden_width=16, output_width=5).eval()


def embed(encoder: BagOfWords, sentences: Sequence[str]) -> Tensor:
    embeddings_NE: Tensor = encoder(encoder.tokenizer.tan(sentences))
    return embeddings_NE


def slow_embedding(encoder: BagOfWords, sentence: str) -> np.ndarray:
    """One word and one unit at a time."""
    state = {name: value.detach().double().numpy() for name, value in encoder.named_parameters()}
    pooled = [0.0] * len(state["fc1.bias"])
    for word in words(sentence)[:32]:
        if word not in encoder.vocabulary:
            continue
        vector = state["word_embd.weight"][encoder.vocabulary.index(word) + 1]
        for unit, bias in enumerate(state["fc1.bias"]):
            value = bias + sum(w * x for w, x in zip(state["fc1.weight"][unit], vector, strict=True))
            pooled[unit] = max(pooled[unit], value)
    embedding: np.ndarray = state["fc2.weight"] @ np.array(pooled) + state["fc2.bias"]
    return embedding


def distance(a: Tensor, b: Tensor | np.ndarray) -> float:
    assert a.shape == b.shape
    return float((a - torch.as_tensor(b)).detach().abs().max())


def test_numbers(encoder: BagOfWords) -> None:
    found_NE = embed(encoder, SENTENCES)
    assert found_NE.shape == (5, 5) and found_NE.dtype == torch.float32
    for embedding_E, sentence in zip(found_NE, SENTENCES, strict=True):
        assert distance(embedding_E, slow_embedding(encoder, sentence)) < 1e-6
    assert distance(found_NE[0], found_NE[1]) > 0.01


def test_neither_padding_nor_the_other_sentences_change_an_embedding(encoder: BagOfWords) -> None:
    alone_NE = torch.cat([embed(encoder, [sentence]) for sentence in SENTENCES])
    assert distance(embed(encoder, SENTENCES), alone_NE) < 1e-6
    assert distance(embed(encoder, [*reversed(SENTENCES), "", "zzz " * 30]), torch.cat([
        alone_NE.flip(0), embed(encoder, ["", "zzz"]),
    ])) < 1e-6  # fmt: skip
    ids_NL = encoder.tokenizer.tan(SENTENCES)
    zeros_in_between = torch.stack([ids_NL, torch.zeros_like(ids_NL)], dim=2).flatten(1)
    assert distance(encoder(zeros_in_between.flip(1)), alone_NE) < 1e-6
    assert distance(encoder(ids_NL.int()), alone_NE) < 1e-6


def test_unknown_words_take_no_part(encoder: BagOfWords) -> None:
    assert distance(embed(encoder, ["Zounds! Stir ye the hot soup"]), embed(encoder, ["stir the soup"])) < 1e-6


@pytest.mark.parametrize("nothing", ["", " ...!", "zzz", "zzz " * 100])
def test_a_sentence_without_known_words_is_the_bias(encoder: BagOfWords, nothing: str) -> None:
    assert distance(embed(encoder, [nothing])[0], encoder.fc2.bias.detach()) == 0
    assert distance(embed(encoder, [nothing, "stir"])[0], encoder.fc2.bias.detach()) == 0


def test_apostrophes_and_unicode(encoder: BagOfWords) -> None:
    same = embed(encoder, ["don't crème 2", "DON'T, CRÈME (2)", "don't crème 2 \u6c64 \U0001f372", "don t crème 2"])
    assert distance(same[1], same[0]) < 1e-6 and distance(same[2], same[0]) < 1e-6
    assert distance(same[3], same[0]) > 1e-3  # "don" and "t" are unknown


def test_a_very_long_sentence_is_cut_at_32_words(encoder: BagOfWords) -> None:
    long = "stir " * 31 + "the " + "soup " * 10_000
    assert distance(embed(encoder, [long]), embed(encoder, ["stir the"])) < 1e-6


def test_no_sentences(encoder: BagOfWords) -> None:
    assert embed(encoder, []).shape == (0, 5)


def test_other_ids_are_refused(encoder: BagOfWords) -> None:
    for ids in (torch.zeros(3), torch.zeros(2, 3), torch.zeros(2, 0, dtype=torch.int64)):
        with pytest.raises(ValueError, match=r"ids must be integers N x L, L >= 1, not torch\.\w+ \[\d"):
            encoder(ids)
    with pytest.raises(ValueError, match="ids range from 1 to 10, not 0 to 9: make them with this encoder's own"):
        encoder(torch.tensor([[1, 10]]))
    with pytest.raises(ValueError, match="ids range from -1 to 3"):
        encoder(torch.tensor([[-1, 3]]))


def test_the_milnce_tower_gives_its_own_embeddings() -> None:
    tower, vocabulary = TextTower(), golden.vocabulary()
    checkpoint = {f"text_module.{name}": value for name, value in tower.state_dict().items()}
    encoder = BagOfWords.from_milnce(checkpoint | {"fc.bias": torch.zeros(3)}, vocabulary, prefix="text_module.")
    assert encoder.vocabulary == tuple(vocabulary)
    sentences = [*golden.answers("s3d_text")["sentences"][:3], "word66248 word00077", "zzz word00100 yyy " * 20]
    with torch.no_grad():
        expected_NE = tower(encoder.tokenizer.tan(sentences), mask_zeros=True)
        assert distance(embed(encoder, sentences), expected_NE) < 1e-6
    assert [name for name, _ in encoder.named_parameters()] == [name for name, _ in tower.named_parameters()]
    assert torch.equal(encoder.word_embd.weight, tower.word_embd.weight)
    assert encoder.word_embd.weight is not tower.word_embd.weight and encoder.word_embd.weight.requires_grad


def test_a_dictionary_of_another_size_is_refused(encoder: BagOfWords) -> None:
    state = dict(encoder.named_parameters())
    with pytest.raises(ValueError, match=r"word_embd.weight is \[10, 6\], not \[3, 6\] .* vocabulary of 2 words ask"):
        BagOfWords.from_milnce(state, ["salt", "pepper"])


@pytest.fixture(scope="module")
def keyed_vectors() -> KeyedVectors:
    keys = ["the", "Salt", "salt", "New_York", "deep-fried", "don't", "</s>", "crème", "2", "two words", "soup"]
    vectors = KeyedVectors(vector_size=7)
    vectors.add_vectors(keys, np.random.default_rng(0).standard_normal((len(keys), 7)).astype(np.float32))
    return vectors


def test_gensim_vectors_are_used_as_they_are(keyed_vectors: KeyedVectors) -> None:
    encoder = BagOfWords.from_keyed_vectors(keyed_vectors, hidden_width=8, output_width=4)
    assert encoder.vocabulary == ("the", "salt", "don't", "crème", "2", "soup")
    for number, word in enumerate(encoder.vocabulary, start=1):
        assert encoder.tokenizer.tan([word]).tolist() == [[number]]
        assert np.array_equal(encoder.word_embd.weight[number].detach().numpy(), keyed_vectors[word])
    assert encoder.word_embd.weight.dtype == torch.float32 and not encoder.word_embd.weight[0].any()
    assert distance(embed(encoder, ["Salt the soup"])[0], slow_embedding(encoder, "Salt the soup")) < 1e-6


def test_the_vectors_of_gensim_are_copied_in_its_order(keyed_vectors: KeyedVectors) -> None:
    encoder = BagOfWords.from_keyed_vectors(keyed_vectors, hidden_width=8, output_width=4)
    assert encoder.vocabulary[:3] == ("the", "salt", "don't")
    with torch.no_grad():
        encoder.word_embd.weight += 1
    assert np.array_equal(encoder.word_embd.weight[2].detach().numpy(), keyed_vectors["salt"] + 1)  # a copy


def test_words_are_needed_with_a_finite_vector_each() -> None:
    phrases = KeyedVectors(vector_size=2)
    phrases.add_vectors(["New York"], np.ones((1, 2), np.float32))
    with pytest.raises(ValueError, match="no words to know: of gensim's keys only lower-case words count"):
        BagOfWords.from_keyed_vectors(phrases)
    with pytest.raises(ValueError, match=r"the word vectors are \[3, 2\]: give a row to each of 2 words"):
        BagOfWords(["salt", "pepper"], torch.zeros(3, 2))
    with pytest.raises(ValueError, match="the vector of 'pepper' is not finite"):
        BagOfWords(["salt", "pepper"], torch.tensor([[0.0, 1], [1, torch.inf]]))
    with pytest.raises(ValueError, match=r"word_dropout is a probability .* not 1"):
        BagOfWords(["salt"], torch.zeros(1, 2), word_dropout=1)


def small_corpus() -> list[str]:
    """Stir and mix, pan and skillet, occur in the same contexts; one of each pair in a sentence."""
    drawn = np.random.default_rng(0)
    sentences = []
    for _ in range(400):
        verb, pan = drawn.choice(["stir", "mix"]), drawn.choice(["pan", "skillet"])
        sentences.append(f"{verb} the {drawn.choice(['soup', 'batter', 'sauce'])} with a spoon until smooth")
        sentences.append(f"Heat oil in your {pan} over high {drawn.choice(['flame', 'heat'])}, then fry")
    return [*sentences, "once"]


SMALL_TRAINING = WordTraining(vector_size=12, min_count=2, window=3, sample=0, epochs=10, seed=3)


@pytest.fixture(scope="module")
def trained() -> KeyedVectors:
    return train_word_vectors(small_corpus(), SMALL_TRAINING)


def test_training_is_reproducible(trained: KeyedVectors) -> None:
    again = train_word_vectors(tuple(small_corpus()), SMALL_TRAINING)
    assert again.index_to_key == trained.index_to_key
    assert np.array_equal(again.vectors, trained.vectors)
    other = train_word_vectors(small_corpus(), WordTraining(**(vars(SMALL_TRAINING) | {"seed": 4})))
    assert not np.array_equal(other.vectors, trained.vectors)


def test_training_brings_synonyms_together(trained: KeyedVectors) -> None:
    synonyms = [("stir", "mix"), ("pan", "skillet")]
    strangers = [(a, b) for a in synonyms[0] for b in synonyms[1]]
    nearest_strangers = max(trained.similarity(a, b) for a, b in strangers)
    assert min(trained.similarity(a, b) for a, b in synonyms) > nearest_strangers + 0.1
    for a, b in synonyms:
        others = [trained.similarity(a, word) for word in trained.index_to_key if word not in (a, b)]
        assert trained.similarity(a, b) > np.mean(others) + 0.1


def test_training_counts_words_as_the_tokenizer_does(trained: KeyedVectors) -> None:
    encoder = BagOfWords.from_keyed_vectors(trained, hidden_width=8, output_width=4)
    assert set(encoder.vocabulary) == {word for sentence in small_corpus()[:-1] for word in words(sentence)}
    assert encoder.vocabulary == tuple(trained.index_to_key) and "once" not in encoder.vocabulary
    counts = [trained.get_vecattr(word, "count") for word in encoder.vocabulary]
    assert counts == sorted(counts, reverse=True) and counts[0] == 400 + sum(
        sentence.count("heat") for sentence in small_corpus()
    )


def test_a_corpus_that_cannot_be_trained_on_is_refused() -> None:
    with pytest.raises(ValueError, match="no word occurs 5 times in the 2 sentences: give more of them, or lower"):
        train_word_vectors(["stir the soup", ""], WordTraining())
    with pytest.raises(ValueError, match="no word occurs 5 times in the 0 sentences"):
        train_word_vectors([], WordTraining())
    with pytest.raises(ValueError, match="can be read only once"):
        train_word_vectors(iter(["stir the soup"]), WordTraining(min_count=1))


def saved_and_loaded(state: object) -> dict[str, Tensor]:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Tensor] = torch.load(file, weights_only=True)
    return loaded


def test_a_checkpoint_stands_alone(encoder: BagOfWords) -> None:
    state = saved_and_loaded(encoder.state_dict())
    assert all(isinstance(value, Tensor) for value in state.values())
    again = BagOfWords.from_state(state).eval()
    assert again.vocabulary == encoder.vocabulary
    assert torch.equal(embed(again, SENTENCES), embed(encoder, SENTENCES))
    inside = BagOfWords.from_state(saved_and_loaded(nn.ModuleDict({"text": encoder}).state_dict()), prefix="text.")
    assert torch.equal(embed(inside, SENTENCES), embed(encoder, SENTENCES))


def test_any_word_survives_the_checkpoint() -> None:
    odd = ["a\nb", "", "crème", "\u6c64", "\U0001f372", "don't", '"', "\udc80", "a"]
    encoder = BagOfWords(odd, torch.randn(len(odd), 2), 3, 2)
    assert BagOfWords.from_state(saved_and_loaded(encoder.state_dict())).vocabulary == tuple(odd)
    array = BagOfWords(np.array(["salt", "pepper"]), torch.randn(2, 2), 3, 2)  # type: ignore[arg-type]
    assert BagOfWords.from_state(saved_and_loaded(array.state_dict())).vocabulary == ("salt", "pepper")


def test_loading_a_state_of_the_same_size_takes_its_words_too(encoder: BagOfWords) -> None:
    other = BagOfWords([f"{word}x" for word in VOCABULARY], torch.randn(9, 6), 16, 5)
    model, parameters = nn.ModuleDict({"text": other}), list(other.parameters())
    model.load_state_dict(saved_and_loaded(nn.ModuleDict({"text": encoder}).state_dict()))
    assert other.vocabulary == encoder.vocabulary
    assert torch.equal(embed(other, SENTENCES), embed(encoder, SENTENCES))
    assert all(a is b for a, b in zip(parameters, other.parameters(), strict=True))  # an optimizer's are still valid


@pytest.mark.parametrize(
    ("words_known", "width", "hidden", "output", "message"),
    [
        (9, 7, 16, 5, r"word_embd.weight is \[10, 6\], not \[10, 7\], text.fc1.weight is \[16, 6\], not \[16, 7\]\. "),
        (9, 6, 8, 5, r"fc1.weight is \[16, 6\], not \[8, 6\], text.fc1.bias is \[16\], not \[8\], text.fc2.weight is "),
        (9, 6, 16, 4, r"fc2.weight is \[5, 16\], not \[4, 16\], text.fc2.bias is \[5\], not \[4\]. Load it with "),
        (8, 6, 16, 5, r"word_embd.weight is \[10, 6\], not \[9, 6\]\. Load it with BagOfWords.from_state"),
    ],
)
def test_a_state_of_other_widths_is_refused(
    encoder: BagOfWords, words_known: int, width: int, hidden: int, output: int, message: str
) -> None:
    other = BagOfWords(VOCABULARY[:words_known], torch.randn(words_known, width), hidden, output)
    before = copy.deepcopy(other.state_dict())
    for strict in (True, False):
        with pytest.raises(ValueError, match=f"a BagOfWords of other widths: text.{message}"):
            nn.ModuleDict({"text": other}).load_state_dict(nn.ModuleDict({"text": encoder}).state_dict(), strict=strict)
    assert all(torch.equal(value, before[name]) for name, value in other.state_dict().items())


def test_a_state_of_something_else_is_refused(encoder: BagOfWords) -> None:
    state = encoder.state_dict()
    without = {name: value for name, value in state.items() if name not in ("fc1.bias", "_extra_state")}
    for load in (BagOfWords.from_state, encoder.load_state_dict):
        with pytest.raises(
            ValueError, match=r"no state of a BagOfWords: fc1\.bias is missing, _extra_state is missing"
        ):
            load(without)
        with pytest.raises(ValueError, match=r"no state of a BagOfWords: fc3\.bias is unknown"):
            load({**state, "fc3.bias": torch.zeros(3)})
        with pytest.raises(ValueError, match=r"fc2\.weight is \[5, 15\], not \[5, 16\]"):
            load({**state, "fc2.weight": torch.zeros(5, 15)})
        with pytest.raises(ValueError, match=r"word_embd\.weight is \[\], not \[10, 6\]"):
            load({**state, "word_embd.weight": torch.tensor(0.0)})
        with pytest.raises(ValueError, match="_extra_state holds no vocabulary, the checkpoint is damaged"):
            load({**state, "_extra_state": state["_extra_state"][:-3]})
    with pytest.raises(ValueError, match=r"text\.word_embd\.weight is missing"):
        BagOfWords.from_state(state, prefix="text.")


def test_a_part_of_a_model_may_be_loaded_without_the_text(encoder: BagOfWords) -> None:
    model, before = nn.ModuleDict({"text": encoder, "head": nn.Linear(2, 2)}), embed(encoder, SENTENCES)
    model.load_state_dict({"head.bias": torch.ones(2)}, strict=False)
    with pytest.raises(RuntimeError, match=r"Missing key.*text\._extra_state.*text\.word_embd\.weight"):
        model.load_state_dict({"head.bias": torch.ones(2), "head.weight": torch.ones(2, 2)})
    assert torch.equal(embed(encoder, SENTENCES), before)


def test_a_copy_is_independent(encoder: BagOfWords) -> None:
    teacher = copy.deepcopy(encoder)
    with torch.no_grad():
        encoder.word_embd.weight.add_(1)
    assert distance(embed(teacher, SENTENCES), embed(encoder, SENTENCES)) > 0.01
    teacher.load_state_dict(encoder.state_dict())
    assert torch.equal(embed(teacher, SENTENCES), embed(encoder, SENTENCES))


def test_gradients_reach_the_words_of_the_batch_alone(encoder: BagOfWords) -> None:
    torch.autograd.backward(embed(encoder, ["stir the soup", "soup zzz", ""]).square().sum())
    gradient_VW = encoder.word_embd.weight.grad
    assert gradient_VW is not None
    reached = gradient_VW.abs().sum(dim=1) > 0
    assert reached.tolist() == [False, True, True, True] + [False] * 6
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in encoder.parameters())


def test_gradients_are_those_of_the_plain_formula(encoder: BagOfWords) -> None:
    encoder = encoder.double()
    ids_NL = encoder.tokenizer.tan(SENTENCES)
    hidden_NLK = torch.relu(encoder.fc1(encoder.word_embd(ids_NL)))
    plain_NE = encoder.fc2(torch.where((ids_NL != 0)[:, :, None], hidden_NLK, 0).amax(dim=1))
    parameters = list(encoder.parameters())
    expected = torch.autograd.grad(plain_NE.sin().sum(), parameters)
    for found, right in zip(torch.autograd.grad(encoder(ids_NL).sin().sum(), parameters), expected, strict=True):
        assert distance(found, right) < 1e-12


def test_the_vector_of_the_padding_does_not_matter(encoder: BagOfWords) -> None:
    before = embed(encoder, [*SENTENCES, ""])
    for value in (1e6, torch.nan):
        with torch.no_grad():
            encoder.word_embd.weight[0] = value
        assert torch.equal(embed(encoder, [*SENTENCES, ""]), before)


def test_descent_lowers_a_loss(encoder: BagOfWords) -> None:
    target_NE, losses = torch.randn(5, 5), []
    for _ in range(200):
        loss = (embed(encoder, SENTENCES) - target_NE).square().mean()
        gradients = torch.autograd.grad(loss, list(encoder.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(encoder.parameters(), gradients, strict=True):
                parameter.sub_(0.1 * gradient)
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.05 * losses[0]
    assert not encoder.word_embd.weight[0].any()


def test_dropped_words() -> None:
    ids_NL = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8, 9, 0], [0, 5, 0, 0, 0, 0, 0, 0, 0, 0], [0] * 10]).repeat(2000, 1)
    kept_NL = drop_words(ids_NL, 0.3)
    assert ((kept_NL == ids_NL) | (kept_NL == 0)).all()
    long_NL, single_NL = kept_NL[0::3] != 0, kept_NL[1::3]
    assert (single_NL[:, 1] == 5).all() and not kept_NL[2::3].any()
    assert long_NL[:, :9].float().mean(dim=0).sub(0.7).abs().max() < 0.05
    almost_all_NL = drop_words(ids_NL, 0.999)[0::3] != 0
    assert almost_all_NL.any(dim=1).all() and float(almost_all_NL.sum(dim=1).float().mean()) < 1.1
    assert almost_all_NL[:, :9].float().mean(dim=0).sub(1 / 9).abs().max() < 0.03  # any of them may stay


def test_words_are_dropped_in_training_alone(encoder: BagOfWords) -> None:
    state = encoder.state_dict()
    dropping = BagOfWords.from_state(state, word_dropout=0.5)
    embeddings = torch.stack([embed(dropping, SENTENCES) for _ in range(20)])
    assert distance(embeddings[:, 2], embed(encoder, ["soup"]).expand(20, -1)) < 1e-6  # its only word
    assert float(embeddings[:, 0].detach().std(dim=0).max()) > 0.01
    assert torch.equal(embed(dropping.eval(), SENTENCES), embed(encoder, SENTENCES))
    torch.manual_seed(5)
    first = embed(dropping.train(), SENTENCES)
    torch.manual_seed(5)
    assert torch.equal(embed(dropping, SENTENCES), first)


def test_half_precision(encoder: BagOfWords) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = embed(encoder, SENTENCES)
        torch.autograd.backward(rough.sum())
    assert distance(rough.float(), embed(encoder, SENTENCES).detach()) < 0.05
