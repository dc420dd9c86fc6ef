"""TAN: the published model's own answers, its files under all their names, both variants, and long videos."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tests.vina_model import golden
from vina_model.alignment import mask_of
from vina_model.batch import Batch, Texts
from vina_model.s3d import load_state
from vina_model.tan import PUBLISHED_WINDOW_S, PublishedTan, Tan, TanAligner, TanConfig, load_published, published_state
from vina_model.tokenizer import Tokenizer
from vina_model.windows import align_in_windows

AGREE = 1e-4
TINY = TanConfig(video_width=5, text_width=4, width=8, layers=2, heads=2, max_tokens=16)


@pytest.fixture(autouse=True)
def a_seed_and_no_gradients() -> Iterator[None]:
    torch.manual_seed(0)
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def published() -> PublishedTan:
    with torch.no_grad():
        return load_published({"epoch": 3, "state_dict": golden.filled(PublishedTan().state_dict())})


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(golden.vocabulary())


def tiny(text_positions: bool) -> Tan:
    model = Tan(replace(TINY, text_positions=text_positions)).eval()
    if text_positions:
        model.text_temporal_pos_embed.normal_()
    return model


def distance(a: Tensor, b: Tensor) -> float:
    assert a.shape == b.shape
    return float((a - b).abs().max())


def everything(size: int) -> Tensor:
    return torch.ones(1, size, dtype=torch.bool)


def test_names_and_shapes_are_the_published_ones(published: PublishedTan) -> None:
    ours = {name: list(value.shape) for name, value in published.state_dict().items()}
    assert ours == golden.answers("tan_keys")


def test_the_published_models_answers(published: PublishedTan, tokenizer: Tokenizer) -> None:
    expected = golden.answers("tan")
    ids_ML = tokenizer.tan(expected["sentences"])
    known = [[number for number in row if number] for row in expected["input_ids_first_12"]]
    assert [[number for number in row if number] for row in ids_ML.tolist()] == known
    text_ME = published.embed(ids_ML)
    assert distance(text_ME, torch.tensor(expected["text_embedding"])) < AGREE
    video_BTV = golden.made_input(*expected["video_shape"])
    found_BRT = published(video_BTV, everything(64), text_ME[None], everything(4))
    assert distance(found_BRT[0], torch.tensor(expected["joint_last_layer"])) < AGREE
    batch = Batch(video_BTV, torch.tensor([64]), narrations=Texts.of(tokenizer, [expected["sentences"]]))
    found = TanAligner(published, published.embed).eval()(batch)
    assert found.sv_BST is None and found.nv_BNT is not None
    assert distance(found.nv_BNT[0], torch.tensor(expected["joint_last_layer"])) < AGREE


def test_a_file_is_read_with_weights_only(published: PublishedTan) -> None:
    file = io.BytesIO()
    small = {name: value for name, value in published.state_dict().items() if value.numel() < 10_000}
    torch.save({"epoch": 3, "state_dict": {f"module.online.{name}": value for name, value in small.items()}}, file)
    file.seek(0)
    assert published_state(torch.load(file, weights_only=True)).keys() == small.keys()


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("prefix", ["", "module.", "online.", "module.online."])
@pytest.mark.parametrize("text", ["bert.", "lang_model."])
def test_every_way_of_naming_is_the_same_model(wrapped: bool, prefix: str, text: str) -> None:
    names = ["temporal_pos_embed", "bert.fc1.weight", "mlp.weight", "joint_temporal_encoder.resblocks.0.ln_1.bias"]
    state = {prefix + name.replace("bert.", text): torch.tensor(number) for number, name in enumerate(names)}
    if "online." in prefix:  # the slowly moving copy, and the twin's own name of the online text module
        state |= {name.replace("online.", "target."): -value for name, value in state.items()}
        state["bert.fc1.weight"] = torch.tensor(-1)
    checkpoint = {"epoch": 1, "state_dict": state, "optimizer": {}} if wrapped else state
    assert {name: int(value) for name, value in published_state(checkpoint).items()} == {  # type: ignore[call-overload]
        name: number for number, name in enumerate(names)
    }


@pytest.mark.parametrize("checkpoint", [None, [1], torch.zeros(3), {"state_dict": [1]}, {"state_dict": {3: 4}}])
def test_what_is_no_checkpoint_is_refused(checkpoint: object) -> None:
    with pytest.raises(ValueError, match="this is no TAN checkpoint"):
        published_state(checkpoint)


def without(state: Mapping[str, Tensor], *names: str) -> dict[str, Tensor]:
    return {name: value for name, value in state.items() if name not in names}


def test_a_file_with_other_names_or_shapes_is_refused_naming_them(published: PublishedTan) -> None:
    state = published.state_dict()
    wrong = {
        "missing: mlp.weight, mlp.bias;? ?": without(state, "mlp.weight", "mlp.bias"),
        "unknown: head.weight": state | {"head.weight": torch.zeros(3)},
        r"wrong: mlp.bias is \[3\], not \[512\]": state | {"mlp.bias": torch.zeros(3)},
        "wrong: mlp.bias is not finite": state | {"mlp.bias": torch.full((512,), torch.nan)},
        "missing: temporal_pos_embed, .* and 164 more; unknown: target.mlp.bias": {"target.mlp.bias": torch.zeros(512)},
    }
    for message, checkpoint in wrong.items():
        with pytest.raises(ValueError, match=f"do not fit PublishedTan; {message}"):
            load_state(published, published_state(checkpoint))
    assert all(value.isfinite().all() for value in (published.mlp.bias, published.mlp.weight))
    with pytest.raises(ValueError, match="do not fit PublishedTan; missing"):
        load_published({"state_dict": {"conv1.weight": torch.zeros(3)}})


def test_long_videos_are_the_average_of_64_second_windows(published: PublishedTan, tokenizer: Tokenizer) -> None:
    steps = ["cut the tomato", "", "don't boil", "zzz zzz"]
    video_BTV = golden.made_input(1, 150, 1024)
    batch = Batch(video_BTV, torch.tensor([150]), steps=Texts.of(tokenizer, [steps]))
    found = align_in_windows(TanAligner(published, published.embed).eval(), batch, PUBLISHED_WINDOW_S, overlap=32)
    text_BRE = published.embed(tokenizer.tan(steps))[None]
    windows = {
        start: published(video_BTV[:, start : start + 64], everything(64), text_BRE, everything(4))
        for start in (0, 32, 64, 86)
    }
    assert found.sv_BST is not None and found.sv_BST.shape == (1, 4, 150) and found.nv_BNT is None
    for second in range(150):
        scores = [window[0, :, second - start] for start, window in windows.items() if start <= second < start + 64]
        assert distance(found.sv_BST[0, :, second], sum(scores, torch.zeros(4)) / len(scores)) < 1e-5


def test_without_positions_texts_in_another_order_are_rows_in_another_order() -> None:
    model, order = tiny(text_positions=False), torch.tensor([3, 0, 4, 1, 2])
    video_BTV, texts_BRE = torch.randn(1, 6, 5), torch.randn(1, 5, 4)
    plain = model(video_BTV, everything(6), texts_BRE, everything(5))
    moved = model(video_BTV, everything(6), texts_BRE[:, order], everything(5))
    assert distance(moved, plain[:, order]) < 1e-6
    assert distance(plain[:, 0], plain[:, 1]) > 0.01


def test_with_positions_the_order_of_the_texts_matters() -> None:
    model, order = tiny(text_positions=True), torch.tensor([3, 0, 4, 1, 2])
    without_positions = Tan(TINY).eval()
    without_positions.load_state_dict(without(model.state_dict(), "text_temporal_pos_embed"))
    video_BTV, texts_BRE = torch.randn(1, 6, 5), torch.randn(1, 5, 4)
    plain = model(video_BTV, everything(6), texts_BRE, everything(5))
    moved = model(video_BTV, everything(6), texts_BRE[:, order], everything(5))
    assert distance(moved, plain[:, order]) > 0.01
    assert distance(plain, without_positions(video_BTV, everything(6), texts_BRE, everything(5))) > 0.01


def test_the_order_of_the_seconds_matters() -> None:
    model, video_BTV, texts_BRE = tiny(text_positions=False), torch.randn(1, 6, 5), torch.randn(1, 3, 4)
    plain = model(video_BTV, everything(6), texts_BRE, everything(3))
    assert distance(model(video_BTV.flip(1), everything(6), texts_BRE, everything(3)), plain.flip(2)) > 1e-3


@pytest.mark.parametrize("text_positions", [True, False])
def test_neither_padding_nor_the_other_videos_change_a_similarity(text_positions: bool) -> None:
    model, seconds, counts = tiny(text_positions), [9, 1, 3], [2, 20, 0]
    video_BTV, texts_BRE = torch.randn(3, 9, 5), torch.randn(3, 20, 4)
    padded = model(video_BTV, mask_of(torch.tensor(seconds), 9), texts_BRE, mask_of(torch.tensor(counts), 20))
    assert padded.isfinite().all()
    for one, (length, count) in enumerate(zip(seconds, counts, strict=True)):
        video, texts = video_BTV[one : one + 1, :length], texts_BRE[one : one + 1, :count]
        alone = model(video, everything(length), texts, everything(count))
        assert distance(padded[one, :count, :length], alone[0]) < 1e-5 if count else alone.shape == (1, 0, length)


def test_every_layer_answers_in_training_and_the_last_at_inference() -> None:
    model, given = tiny(False), (torch.randn(1, 6, 5), everything(6), torch.randn(1, 3, 4), everything(3))
    layers = model.layer_similarities(*given)
    assert len(layers) == 2 and distance(layers[0], layers[1]) > 1e-3
    assert distance(model(*given), layers[-1]) == 0
    assert all(layer.abs().max() <= 1 + 1e-6 for layer in layers)


def test_more_texts_than_positions_work_and_more_seconds_ask_for_windows() -> None:
    for text_positions in (True, False):
        model = tiny(text_positions)
        found = model(torch.randn(1, 3, 5), everything(3), torch.randn(1, 40, 4), everything(40))
        assert found.shape == (1, 40, 3) and found.isfinite().all()
        with pytest.raises(ValueError, match="17 seconds: this model has positions for 16; use windows"):
            model(torch.randn(1, 17, 5), everything(17), torch.randn(1, 2, 4), everything(2))


def test_features_of_another_width_are_refused_and_half_precision_is_taken() -> None:
    model, texts = tiny(False), (torch.randn(1, 2, 4), everything(2))
    with pytest.raises(ValueError, match="features of 7 numbers: this model takes 5"):
        model(torch.randn(1, 3, 7), everything(3), *texts)
    video_BTV = torch.randn(1, 3, 5).half()
    assert distance(model(video_BTV, everything(3), *texts), model(video_BTV.float(), everything(3), *texts)) == 0


def test_narrations_and_steps_are_aligned_apart() -> None:
    model, table_WE = tiny(True), torch.randn(9, 4)

    def texts(*ids: int) -> Texts:
        return Texts(torch.tensor(ids, dtype=torch.int64)[:, None], torch.tensor([len(ids)]))

    def embed(ids_ML: Tensor) -> Tensor:
        return table_WE[ids_ML[:, 0]]

    video, narrations, steps = (torch.randn(1, 6, 5), torch.tensor([6])), texts(1, 2, 3), texts(7, 8)
    both = TanAligner(model, embed).eval()(Batch(*video, narrations, steps))
    as_narrations = TanAligner(model, embed).eval()(Batch(*video, narrations=steps))
    assert both.sv_BST is not None and both.nv_BNT is not None and as_narrations.nv_BNT is not None
    assert distance(both.sv_BST, as_narrations.nv_BNT) == 0 and both.nv_BNT.shape == (1, 3, 6)
    assert both.fused_BST is both.sv_BST  # TAN has no pathway from steps to narrations


def test_in_training_the_earlier_layers_answer_too() -> None:
    model = TanAligner(tiny(False), torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten()))
    batch = Batch(torch.randn(1, 6, 5), torch.tensor([6]), Texts(torch.tensor([[1], [2]]), torch.tensor([2])))
    inference, training = model.eval()(batch), model.train()(batch)
    assert inference.earlier_nv == () and len(training.earlier_nv) == 1
    assert distance(training.nv_BNT, inference.nv_BNT) == 0 and training.earlier_nv[0].shape == (1, 2, 6)
    assert distance(training.earlier_nv[0], training.nv_BNT) > 1e-3
