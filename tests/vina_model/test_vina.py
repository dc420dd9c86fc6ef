"""VINA against plain loops, under every switch; sizes from nothing to many; checkpoints; precision; bad input."""

import inspect
import io
import itertools
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.vina_model.slow_vina import SlowVina, cosines
from vina_model.alignment import Alignment, by_way_of_narrations, cosine
from vina_model.batch import Batch, Texts, places
from vina_model.objective import alignment_loss
from vina_model.text import BagOfWords
from vina_model.vina import Vina, VinaConfig, restored
from vina_model.windows import align_in_windows

VOCABULARY = ["stir", "the", "soup", "salt", "add", "slowly", "cut", "onions"]
TINY = VinaConfig(video_width=5, width=8, layers=2, heads=2, max_seconds=24, max_texts=6)
NARRATIONS = [["now stir the soup", "slowly", "so i add salt"], [], ["cut onions"]]
STEPS = [["cut the onions", "add salt"], ["stir slowly", "", "zzz", "add the soup"], ["salt"]]
SECONDS = [7, 3, 1]


@pytest.fixture(autouse=True)
def a_seed() -> None:
    torch.manual_seed(0)


def made(config: VinaConfig = TINY, vocabulary: Sequence[str] = VOCABULARY) -> Vina:
    """Every parameter is drawn, so that none of them could be left out unseen."""
    model = Vina(config, BagOfWords(vocabulary, torch.randn(len(vocabulary), 6), hidden_width=7, output_width=4))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "word_embd" not in name:
                parameter.normal_(mean=float("norm.weight" in name or "ln_" in name), std=0.4)
    return model.eval()


def batch_of(
    model: Vina,
    seconds: Sequence[int],
    narrations: Sequence[Sequence[str]] | None,
    steps: Sequence[Sequence[str]] | None,
    padding: int = 0,
) -> Batch:
    generator = torch.Generator().manual_seed(1)
    videos = [torch.randn(length, model.config.video_width, generator=generator) for length in seconds]
    video_BTV = torch.zeros(len(seconds), max(seconds) + padding, model.config.video_width)
    for number, video_TV in enumerate(videos):
        video_BTV[number, : len(video_TV)] = video_TV
    texts = [None if lists is None else Texts.of(model.text.tokenizer, lists) for lists in (narrations, steps)]
    return Batch(video_BTV, torch.tensor(seconds), *texts)


def some(matrix: Tensor | None) -> Tensor:
    assert matrix is not None
    return matrix.detach()


def distance(a: Tensor, b: Tensor | np.ndarray) -> float:
    assert a.shape == b.shape
    return float((a - torch.as_tensor(b)).detach().abs().max()) if a.numel() else 0.0


SWITCHES = [
    dict(zip(("narrations", "steps", "step_positions", "separate_text_mlps"), switches, strict=True))
    for switches in itertools.product([True, False], repeat=4)
    if switches[0] or switches[1]
]


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda switches: "".join("ny"[on] for on in switches.values()))
def test_the_matrices_are_those_of_plain_loops_under_every_switch(switches: dict[str, bool]) -> None:
    model = made(replace(TINY, **switches))
    batch = batch_of(model, SECONDS, NARRATIONS, STEPS, padding=2)
    found = model(batch)
    assert (found.sv_BST is not None, found.nv_BNT is not None) == (switches["steps"], switches["narrations"])
    assert (found.sn_BSN is not None) == (switches["steps"] and switches["narrations"])
    weights = {name: value.detach().double().numpy() for name, value in model.named_parameters()}
    slow = SlowVina(weights, VOCABULARY, 2, switches["step_positions"], not switches["separate_text_mlps"])
    for one, length in enumerate(SECONDS):
        narrations = NARRATIONS[one] if switches["narrations"] else []
        steps = STEPS[one] if switches["steps"] else []
        expected = slow.align(batch.video_BTV[one, :length].double().numpy(), narrations, steps, TINY.layers)
        n, s = len(narrations), len(steps)
        if switches["steps"]:
            assert distance(some(found.sv_BST)[one, :s, :length], expected["sv"]) < 1e-5
            assert distance(some(found.fused_BST)[one, :s, :length], expected["fused"]) < 1e-5
        if switches["narrations"]:
            assert distance(some(found.nv_BNT)[one, :n, :length], expected["nv"]) < 1e-5
        if switches["narrations"] and switches["steps"]:
            assert distance(some(found.sn_BSN)[one, :s, :n], expected["sn"]) < 1e-5
            assert distance(some(found.snv_BST)[one, :s, :length], expected["snv"]) < 1e-5


def test_the_switches_leave_out_what_they_say() -> None:
    names = {name for name, _ in made().named_parameters()}
    without = {name for name, _ in made(replace(TINY, step_positions=False)).named_parameters()}
    assert names - without == {"step_positions"}
    shared = {name for name, _ in made(replace(TINY, separate_text_mlps=False)).named_parameters()}
    assert {name.split(".")[0] for name in names - shared} == {"step_mlp"}
    with pytest.raises(ValueError, match="without narrations and without steps"):
        VinaConfig(narrations=False, steps=False)


def test_neither_padding_nor_the_other_videos_change_a_matrix() -> None:
    model = made()
    together = model(batch_of(model, SECONDS, NARRATIONS, STEPS, padding=5))
    video_BTV = batch_of(model, SECONDS, NARRATIONS, STEPS).video_BTV
    for one, length in enumerate(SECONDS):
        texts = [Texts.of(model.text.tokenizer, [lists[one]]) for lists in (NARRATIONS, STEPS)]
        alone = model(Batch(video_BTV[one : one + 1, :length], torch.tensor([length]), *texts))
        n, s = len(NARRATIONS[one]), len(STEPS[one])
        sizes = {"sv_BST": (s, length), "nv_BNT": (n, length), "sn_BSN": (s, n)}
        sizes |= {"snv_BST": (s, length), "fused_BST": (s, length)}
        for name, (rows, columns) in sizes.items():
            matrix, single = some(getattr(together, name)), some(getattr(alone, name))
            assert distance(matrix[one, :rows, :columns], single[0, :rows, :columns]) < 1e-5, name


def test_narrations_that_are_absent_are_no_narrations() -> None:
    """No list, empty lists for all, and a video of no narrations among others: the same steps."""
    model = made()
    absent, empty = model(batch_of(model, SECONDS, None, STEPS)), model(batch_of(model, SECONDS, [[], [], []], STEPS))
    mixed = model(batch_of(model, SECONDS, NARRATIONS, STEPS))
    assert absent.nv_BNT is None and absent.snv_BST is None
    for one, length in enumerate(SECONDS):
        own = one, slice(len(STEPS[one])), slice(length)
        assert distance(some(absent.sv_BST)[own], some(empty.sv_BST)[own]) < 1e-6
        assert distance(some(absent.fused_BST)[own], some(absent.sv_BST)[own]) == 0
        assert distance(some(empty.fused_BST)[own], some(empty.sv_BST)[own]) == 0
        direct = distance(some(mixed.fused_BST)[own], some(mixed.sv_BST)[own])
        assert direct == 0 if one == 1 else direct > 1e-3
    assert some(mixed.snv_BST)[1].abs().max() == 0


def test_the_fused_matrix_has_clean_gradients_where_videos_have_no_narrations() -> None:
    model = made()
    fused = model(batch_of(model, SECONDS, NARRATIONS, STEPS)).fused_BST
    fused.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_a_similarity_that_is_not_a_number_is_not_hidden() -> None:
    sn_BSN = torch.full((1, 2, 3), torch.nan)
    assert by_way_of_narrations(sn_BSN, torch.ones(1, 3, 4), torch.ones(1, 3, dtype=torch.bool)).isnan().all()


@pytest.mark.parametrize(
    ("seconds", "num_narrations", "num_steps"),
    [(1, 0, 0), (1, 1, 1), (3, 0, 1), (3, 2, 0), (3, 400, 200), (24, 600, 600)],
)
def test_videos_of_any_length_take_any_number_of_texts(seconds: int, num_narrations: int, num_steps: int) -> None:
    model = made()
    texts = ["stir the soup", "", "zzz", "add salt slowly"] * 150
    batch = batch_of(model, [seconds], [texts[:num_narrations]], [texts[:num_steps]])
    found = model(batch)
    for matrix, rows in ((found.sv_BST, num_steps), (found.nv_BNT, num_narrations), (found.fused_BST, num_steps)):
        assert some(matrix).shape == (1, max(rows, 1), seconds) and some(matrix).isfinite().all()
        assert some(matrix).abs().max() <= 1 + 1e-5
    positives = torch.zeros(some(found.sv_BST).shape, dtype=torch.bool)
    positives[:, :num_steps, 0] = True
    loss = alignment_loss(found.sv_BST, positives, found.seconds_BT)
    loss.sum().backward()
    assert loss.isfinite().all() and (float(loss.detach()) > 0) == (num_steps > 0 and seconds > 1)


def test_a_video_longer_than_the_positions_is_windowed() -> None:
    model = made()
    batch = batch_of(model, [60], [["stir", "salt"]], [["add salt"]])
    with pytest.raises(ValueError, match="60 seconds: this model has positions for 24; use windows"):
        model(batch)
    found = align_in_windows(model, batch, 24, 12)
    assert some(found.fused_BST).shape == (1, 1, 60) and some(found.nv_BNT).shape == (1, 2, 60)
    first, last = model(batch.between(0, 24)), model(batch.between(36, 60))
    assert distance(some(found.nv_BNT)[:, :, :12], some(first.nv_BNT)[:, :, :12]) < 1e-6
    assert distance(some(found.nv_BNT)[:, :, 48:], some(last.nv_BNT)[:, :, 12:]) < 1e-6


def test_texts_have_places_of_their_own_or_share_them_evenly() -> None:
    found_BR = places(torch.tensor([3, 512, 600, 0]), 600, 512)
    assert found_BR.shape == (4, 600) and found_BR.min() == 0 and found_BR.max() == 511
    assert found_BR[0, :3].tolist() == [0, 1, 2] and found_BR[1, :512].tolist() == list(range(512))
    shared = found_BR[2].tolist()
    assert shared == sorted(shared) and set(shared) == set(range(512))
    assert max(shared.count(place) for place in range(512)) == 2
    assert places(torch.tensor([5, 2]), 5, 2).tolist() == [[0, 0, 0, 1, 1], [0, 1, 1, 1, 1]]


def test_empty_texts_and_unknown_words_are_alike_but_for_their_place() -> None:
    model = made(replace(TINY, step_positions=False))
    sv = some(model(batch_of(model, [5], None, [["", "zzz yyy", "...", "stir"]])).sv_BST)
    assert distance(sv[:, 0], sv[:, 1]) < 1e-6 and distance(sv[:, 0], sv[:, 2]) < 1e-6
    assert distance(sv[:, 0], sv[:, 3]) > 1e-3


def reversed_rows(model: Vina, which: str) -> tuple[Tensor, Tensor]:
    """The direct matrix of one kind of text, and the one of the reversed list turned back."""
    texts = ["stir the soup", "add salt", "slowly cut onions"]
    answers = []
    for listed in (texts, texts[::-1]):
        narrations, steps = ([listed], [["soup"]]) if which == "narrations" else ([["soup"]], [listed])
        found = model(batch_of(model, [6], narrations, steps))
        answers.append(some(found.nv_BNT if which == "narrations" else found.sv_BST))
    return answers[0], answers[1].flip(1)


def test_the_order_of_narrations_and_steps_matters_unless_it_is_not_told() -> None:
    model = made()
    assert distance(*reversed_rows(model, "narrations")) > 1e-3
    assert distance(*reversed_rows(model, "steps")) > 1e-3
    untold = made(replace(TINY, step_positions=False))
    assert distance(*reversed_rows(untold, "steps")) < 1e-5
    assert distance(*reversed_rows(untold, "narrations")) > 1e-3


def test_times_have_no_way_into_the_model() -> None:
    assert list(inspect.signature(Batch).parameters) == ["video_BTV", "seconds_B", "narrations", "steps"]
    assert list(inspect.signature(Texts).parameters) == ["ids_ML", "counts_B"]
    assert list(inspect.signature(Vina.forward).parameters) == ["self", "batch"]


def test_unimodal_similarities_come_before_the_transformer() -> None:
    model = made()
    batch = batch_of(model, SECONDS, NARRATIONS, STEPS)
    found_BNT = model.unimodal(batch)
    weights = {name: value.detach().double().numpy() for name, value in model.named_parameters()}
    slow = SlowVina(weights, VOCABULARY, 2, step_positions=True, shared=False)
    for one, length in enumerate(SECONDS):
        seconds, spoken, _ = slow.unimodal(batch.video_BTV[one, :length].double().numpy(), NARRATIONS[one], [])
        assert distance(found_BNT[one, : len(spoken), :length], cosines(spoken, seconds)) < 1e-5
    with pytest.raises(ValueError, match="no narrations go in"):
        model.unimodal(batch_of(model, SECONDS, None, STEPS))
    with pytest.raises(ValueError, match="no narrations go in"):
        made(replace(TINY, narrations=False)).unimodal(batch)


def test_dropout_is_for_training_alone() -> None:
    model = made(replace(TINY, dropout=0.5))
    batch = batch_of(model, SECONDS, NARRATIONS, STEPS)
    assert torch.equal(some(model(batch).sv_BST), some(model(batch).sv_BST))
    model.train()
    assert distance(some(model(batch).sv_BST), some(model(batch).sv_BST)) > 1e-3


def saved(model: Vina) -> dict[str, Any]:
    """A checkpoint as training writes it."""
    return {"config": asdict(model.config), "state": model.state_dict()}


def loaded(checkpoint: object) -> Any:
    file = io.BytesIO()
    torch.save(checkpoint, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def test_a_saved_model_comes_back_with_its_words_and_its_configuration() -> None:
    model = made(replace(TINY, separate_text_mlps=False, dropout=0.1))
    again = restored(loaded(saved(model)))
    assert again.config == model.config and again.text.vocabulary == tuple(VOCABULARY) and not again.training
    batch = batch_of(model, SECONDS, NARRATIONS, STEPS)
    assert torch.equal(some(again(batch).fused_BST), some(model(batch).fused_BST))
    assert restored(saved(model), replace(model.config, dropout=0.3), word_dropout=0.2).config.dropout == 0.3


def test_a_checkpoint_of_another_configuration_is_refused() -> None:
    checkpoint = loaded(saved(made()))
    for config, message in (
        (replace(TINY, width=16), "width is 8, not 16"),
        (replace(TINY, narrations=False), "narrations is True, not False"),
        (replace(TINY, layers=3, step_positions=False), "layers is 2, not 3, step_positions is True, not False"),
    ):
        with pytest.raises(ValueError, match=f"the checkpoint is of another configuration: {message}"):
            restored(checkpoint, config)
    strangers: list[object] = [None, [1], {"state_dict": {}}, checkpoint["state"]]
    for other in strangers:
        with pytest.raises(ValueError, match="this is no checkpoint of a VINA"):
            restored(other)
    fields = {name: value for name, value in checkpoint["config"].items() if name != "dropout"} | {"colour": 1}
    with pytest.raises(ValueError, match="configuration has other fields: colour, dropout"):
        restored({**checkpoint, "config": fields})
    damaged = {name: value for name, value in checkpoint["state"].items() if name != "norm.bias"}
    with pytest.raises(ValueError, match=r"do not fit Vina; missing: norm\.bias"):
        restored({**checkpoint, "state": damaged})
    with pytest.raises(ValueError, match=r"wrong: norm\.bias is not finite"):
        restored({**checkpoint, "state": checkpoint["state"] | {"norm.bias": torch.full((8,), torch.inf)}})
    with pytest.raises(ValueError, match=r"text\.fc1\.weight is missing"):
        restored({**checkpoint, "state": {"norm.bias": torch.zeros(8)}})


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_gives_similarities_in_float32_near_the_plain_ones(dtype: torch.dtype) -> None:
    model = made()
    batch = batch_of(model, SECONDS, NARRATIONS, STEPS)
    plain = model(batch)
    with torch.autocast("cpu", dtype=dtype):
        cast = model(batch)
        matrices = {name: getattr(cast, name) for name in ("sv_BST", "nv_BNT", "sn_BSN", "snv_BST", "fused_BST")}
    for name, matrix in matrices.items():
        assert matrix.dtype == torch.float32, name
        assert distance(matrix, getattr(plain, name)) < 0.03, name
    assert torch.equal(
        matrices["snv_BST"], cast.snv_BST
    )  # the way by narrations is as exact within autocast as without
    matrices["fused_BST"].sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_cosines_are_taken_in_float32_and_zeros_are_harmless() -> None:
    rows, columns = torch.randn(2, 3, 8), torch.randn(2, 4, 8)
    expected = torch.nn.functional.cosine_similarity(rows[:, :, None], columns[:, None], dim=3)
    assert distance(cosine(rows, columns), expected) < 1e-6
    assert cosine(rows.half(), columns.bfloat16()).dtype == torch.float32
    assert cosine(rows.double(), columns.double()).dtype == torch.float64
    assert cosine(torch.zeros(1, 1, 8), columns[:1]).abs().max() == 0
    assert distance(cosine(1e15 * rows, columns), expected) < 1e-5


def test_stored_features_of_half_precision_are_taken() -> None:
    model = made()
    batch = batch_of(model, SECONDS, NARRATIONS, STEPS)
    half = replace(batch, video_BTV=batch.video_BTV.half())
    assert distance(some(model(half).sv_BST), some(model(batch).sv_BST)) < 0.01
    many = Batch(torch.full((1, 20, 5), 6e4).half(), torch.tensor([20]))  # a sum beyond float16 is no fault
    assert many.mask_BT.all()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_features_that_are_not_finite_are_refused_by_their_place(bad: float, dtype: torch.dtype) -> None:
    video_BTV = torch.randn(3, 4, 5).to(dtype)
    video_BTV[1, 2, 4] = bad
    with pytest.raises(ValueError, match="the features of second 2 of video 1 of the batch are not finite"):
        Batch(video_BTV, torch.tensor([4, 4, 4]))
    Batch(torch.full((1, 4, 5), 3e38), torch.tensor([4]))  # finite, though their sum is not


def test_batches_that_do_not_fit_together_are_refused() -> None:
    model = made()
    two, one = (Texts.of(model.text.tokenizer, lists) for lists in ([["stir"], []], [["stir"]]))
    video_BTV, seconds_B = torch.zeros(2, 4, 5), torch.tensor([4, 2])
    wrong: list[tuple[str, tuple[Any, ...]]] = [
        (r"videos must be floats B x T x V, not torch.float32 \[4, 5\]", (video_BTV[0], seconds_B)),
        (r"videos must be floats B x T x V, not torch.int64 \[2, 4, 5\]", (video_BTV.long(), seconds_B)),
        (r"videos must be floats B x T x V, not torch.float32 \[2, 0, 5\]", (video_BTV[:, :0], seconds_B)),
        (r"2 videos cannot have \[1\] lengths", (video_BTV, seconds_B[:1])),
        (r"2 videos cannot have \[1\] lists of narrations", (video_BTV, seconds_B, one)),
        (r"2 videos cannot have \[1\] lists of steps", (video_BTV, seconds_B, two, one)),
        (r"videos of \[4, 0\] s in a batch of 4 s", (video_BTV, torch.tensor([4, 0]))),
        (r"videos of \[5, 2\] s in a batch of 4 s", (video_BTV, torch.tensor([5, 2]))),
    ]
    for message, arguments in wrong:
        with pytest.raises(ValueError, match=message):
            Batch(*arguments)
    with pytest.raises(ValueError, match=r"3 texts, but the videos' counts are \[1, 1\]"):
        Texts(torch.ones(3, 1, dtype=torch.int64), torch.tensor([1, 1]))
    with pytest.raises(ValueError, match="features of 7 numbers: this model takes 5"):
        model(Batch(torch.zeros(2, 4, 7), seconds_B, two))


def test_an_alignment_without_steps_has_nothing_to_fuse() -> None:
    plain = Alignment(None, torch.ones(1, 2, 3), None, torch.ones(1, 3).bool(), torch.ones(1, 2).bool())
    assert plain.fused_BST is None and plain.snv_BST is None


def test_training_moves_every_parameter_that_goes_in() -> None:
    model = made().train()
    found = model(batch_of(model, SECONDS, NARRATIONS, STEPS))
    positives_BST, positives_BNT = torch.zeros(3, 4, 7).bool(), torch.zeros(3, 3, 7).bool()
    positives_BST[0, :2, 3], positives_BNT[0, :3, 5] = True, True
    loss = alignment_loss(found.sv_BST, positives_BST, found.seconds_BT)
    (loss + alignment_loss(found.nv_BNT, positives_BNT, found.seconds_BT)).mean().backward()
    still = [name for name, p in model.named_parameters() if p.grad is None or p.grad.abs().max() == 0]
    assert still == []
    assert model.text.word_embd.weight.grad is not None and model.text.word_embd.weight.grad[0].abs().max() == 0
