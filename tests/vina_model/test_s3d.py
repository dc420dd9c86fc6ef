import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.vina_model import golden
from vina_model import s3d, s3d_inference
from vina_model.s3d import S3D, load_state, seeded
from vina_model.s3d_inference import FoldedS3D
from vina_model.tokenizer import Tokenizer

AGREE = 1e-4


@pytest.fixture(autouse=True, scope="module")
def one_thread_without_gradients() -> Iterator[None]:
    """Small clips on several threads wait for each other more than they compute, most of all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.inference_mode():
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def plain() -> S3D:
    model = S3D().eval()
    load_state(model, golden.filled(model.state_dict()))
    return model


@pytest.fixture(scope="module")
def random_weights() -> S3D:
    return seeded(0)


@pytest.fixture(scope="module")
def folded(plain: S3D) -> FoldedS3D:
    return FoldedS3D(plain)


def largest_difference(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape
    return float((found - expected).abs().max())


def smooth_clips(count: int, seed: int = 0) -> Tensor:
    """Clips in which colours change slowly over time and space, as in video."""
    coarse = torch.rand(count, 3, 4, 4, 4, generator=torch.Generator().manual_seed(seed))
    return F.interpolate(coarse, size=(16, 64, 64), mode="trilinear")


def test_names_shapes_and_order_are_the_published_ones(plain: S3D) -> None:
    ours = {name: list(value.shape) for name, value in plain.state_dict().items()}
    published = golden.answers("s3d_keys")
    assert ours == published and list(ours) == list(published)


@pytest.mark.parametrize("form", ["plain", "folded"])
def test_video_answers(request: pytest.FixtureRequest, form: str) -> None:
    expected = golden.answers("s3d_video")
    found = request.getfixturevalue(form)(golden.made_input(*expected["input_shape"]))
    assert largest_difference(found.mixed_5c_BD, torch.tensor(expected["mixed_5c"])) < AGREE
    assert largest_difference(found.video_embedding_BE, torch.tensor(expected["video_embedding"])) < AGREE


def test_text_answers(plain: S3D) -> None:
    expected = golden.answers("s3d_text")
    ids_NL = Tokenizer(golden.vocabulary()).milnce(expected["sentences"])
    assert largest_difference(plain.text_module(ids_NL), torch.tensor(expected["text_embedding"])) < AGREE


def test_masked_zeros_do_not_count_unless_all_are_zeros(plain: S3D) -> None:
    tower = plain.text_module
    text_NE = tower(torch.tensor([[7, 0, 9, 0], [0, 0, 0, 0]]), mask_zeros=True)
    assert largest_difference(text_NE[:1], tower(torch.tensor([[7, 9]]))) < 1e-5
    assert largest_difference(text_NE[1:], tower(torch.tensor([[0]]))) < 1e-5
    assert largest_difference(text_NE[:1], tower(torch.tensor([[7, 0, 9, 0]]))) > 1e-2


@pytest.mark.parametrize(
    "shape", [(1, 8, 32, 50), (2, 32, 50, 66), (3, 10, 34, 62), (2, 16, 112, 112), (1, 2, 2, 2), (1, 18, 90, 38)]
)
def test_folded_agrees_with_plain(plain: S3D, folded: FoldedS3D, shape: tuple[int, int, int, int]) -> None:
    video_BCTHW = torch.rand(shape[0], 3, *shape[1:], generator=torch.Generator().manual_seed(1))
    for found, expected in zip(folded(video_BCTHW), plain(video_BCTHW), strict=True):
        assert largest_difference(found, expected) < AGREE


def test_folded_agrees_with_plain_on_larger_activations(random_weights: S3D) -> None:
    folded, video_BCTHW = FoldedS3D(random_weights), smooth_clips(2)
    for found, expected in zip(folded(video_BCTHW), random_weights(video_BCTHW), strict=True):
        assert expected.std() > 0.2
        assert largest_difference(found, expected) < AGREE


def test_folded_agrees_with_plain_where_batch_norm_scales_are_zero_or_negative() -> None:
    model, chance = seeded(0), torch.Generator().manual_seed(1)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm3d):
            assert module.running_var is not None
            module.weight.data = torch.randint(-1, 2, module.weight.shape, generator=chance).float()
            module.running_var.uniform_(0.5, 2, generator=chance)
    folded, video_BCTHW = FoldedS3D(model), smooth_clips(2)
    for found, expected in zip(folded(video_BCTHW), model(video_BCTHW), strict=True):
        assert expected.std() > 0.01
        assert largest_difference(found, expected) < AGREE


@pytest.mark.parametrize("form", ["plain", "folded"])
def test_a_clip_does_not_depend_on_the_others(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    model, video_BCTHW = request.getfixturevalue(form), smooth_clips(3)
    together = model(video_BCTHW).mixed_5c_BD
    alone = torch.cat([model(clip_BCTHW).mixed_5c_BD for clip_BCTHW in video_BCTHW.split(1)])
    assert largest_difference(together, alone) < 1e-6
    monkeypatch.setattr(s3d_inference, "CPU_PIXELS_AT_ONCE", 2 * 16 * 64 * 64)
    assert largest_difference(model(video_BCTHW).mixed_5c_BD, alone) < 1e-6


def test_frames_with_colours_last_in_memory(folded: FoldedS3D) -> None:
    video_BCTHW = smooth_clips(2)
    as_decoded = video_BCTHW.permute(0, 2, 3, 4, 1).contiguous().permute(0, 4, 1, 2, 3)
    assert largest_difference(folded(as_decoded).mixed_5c_BD, folded(video_BCTHW).mixed_5c_BD) < 1e-6


def test_no_clips_give_no_features(folded: FoldedS3D) -> None:
    assert [tuple(part.shape) for part in folded(torch.rand(0, 3, 16, 32, 32))] == [(0, 1024), (0, 512)]


def test_half_precision_gives_nearly_the_same(plain: S3D, folded: FoldedS3D, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = folded(smooth_clips(2))
    monkeypatch.setattr(s3d_inference, "AUTOCAST_DTYPES", {"cpu": torch.bfloat16})
    for rough, fine in zip(folded(smooth_clips(2)), exact, strict=True):
        assert rough.dtype == torch.float32
        assert 0 < largest_difference(rough, fine) < 0.05 * float(fine.abs().max())


def test_folding_takes_copies() -> None:
    plain = seeded(0)
    folded = FoldedS3D(plain)
    before = folded(smooth_clips(1)).video_embedding_BE
    for value in plain.state_dict().values():
        value.zero_()
    assert torch.equal(folded(smooth_clips(1)).video_embedding_BE, before)
    assert not any(parameter.requires_grad for parameter in folded.parameters())


def test_space_to_depth_order() -> None:
    video = torch.rand(2, 3, 4, 6, 8)
    found = s3d.space_to_depth(video)
    assert found.shape == (2, 24, 2, 3, 4)
    for t, h, w, colour in itertools.product(range(4), range(6), range(8), range(3)):
        channel = ((t % 2 * 2 + h % 2) * 2 + w % 2) * 3 + colour
        assert torch.equal(found[:, channel, t // 2, h // 2, w // 2], video[:, colour, t, h, w])


def slow_same_max_pool(x: np.ndarray, kernel: tuple[int, ...], stride: tuple[int, ...]) -> np.ndarray:
    """Window by window over x padded with zeros: T x H x W."""
    totals = [max(size - step, 0) for size, step in zip(kernel, stride, strict=True)]
    x = np.pad(x, [(total // 2, total - total // 2) for total in totals])
    counts = [-(-max(n - k, 0) // s) + 1 for n, k, s in zip(x.shape, kernel, stride, strict=True)]
    out = np.empty(counts, np.float32)
    for at in itertools.product(*map(range, counts)):
        out[at] = x[tuple(slice(i * s, i * s + k) for i, s, k in zip(at, stride, kernel, strict=True))].max()
    return out


POOLS = [((1, 3, 3), (1, 2, 2)), ((3, 3, 3), (2, 2, 2)), ((2, 2, 2), (2, 2, 2))]


@pytest.mark.parametrize(("kernel", "stride"), POOLS)
@pytest.mark.parametrize("shape", [(4, 6, 8), (5, 7, 9), (1, 2, 5), (1, 1, 1), (2, 3, 4)])
def test_same_max_pool(kernel: tuple[int, int, int], stride: tuple[int, int, int], shape: tuple[int, int, int]) -> None:
    x = np.random.default_rng(0).standard_normal((3, *shape)).astype(np.float32)
    expected = np.stack([slow_same_max_pool(channel, kernel, stride) for channel in x])
    assert np.array_equal(s3d.same_max_pool(torch.from_numpy(x)[None], kernel, stride)[0], expected)
    positive = np.stack([slow_same_max_pool(channel, kernel, stride) for channel in np.abs(x)])
    found_BTHWC = s3d_inference.same_max_pool(torch.from_numpy(np.abs(x)).permute(1, 2, 3, 0)[None], kernel)
    assert np.array_equal(found_BTHWC[0].permute(3, 0, 1, 2), positive)


def test_neighbour_max() -> None:
    x_BTHWC = torch.rand(2, 3, 5, 4, 6)
    found_BTHWC = s3d_inference.neighbour_max(x_BTHWC)
    assert found_BTHWC.shape == x_BTHWC.shape
    for t, h, w in itertools.product(range(3), range(5), range(4)):
        near = x_BTHWC[:, max(t - 1, 0) : t + 2, max(h - 1, 0) : h + 2, max(w - 1, 0) : w + 2]
        assert torch.equal(found_BTHWC[:, t, h, w], near.amax(dim=(1, 2, 3)))


def test_self_gating() -> None:
    gating, x_BCTHW = s3d.SelfGating(4), torch.randn(2, 4, 3, 5, 6)
    found_BCTHW = gating(x_BCTHW)
    weight, bias = gating.fc.weight.numpy(), gating.fc.bias.numpy()
    for clip, channel in itertools.product(range(2), range(4)):
        means = [x_BCTHW[clip, other].numpy().mean() for other in range(4)]
        linear = sum(weight[channel, other] * means[other] for other in range(4)) + bias[channel]
        expected = x_BCTHW[clip, channel] / (1 + np.exp(-linear))
        assert largest_difference(found_BCTHW[clip, channel], expected) < 1e-6
    on_other_layout = s3d_inference.gate(gating, x_BCTHW.permute(0, 2, 3, 4, 1)).permute(0, 4, 1, 2, 3)
    assert largest_difference(on_other_layout, found_BCTHW) < 1e-6


def test_a_state_with_other_names_or_shapes_is_refused(plain: S3D) -> None:
    state: dict[str, object] = dict(plain.state_dict())
    del state["fc.bias"], state["conv_2b.bn1.running_var"]
    state |= {"head.weight": torch.zeros(3), "fc.weight": torch.zeros(512, 512), "gating.fc.bias": "text"}
    with pytest.raises(ValueError) as refusal:
        load_state(plain, state)
    assert str(refusal.value).startswith(
        "these weights do not fit S3D; missing: conv_2b.bn1.running_var, fc.bias; unknown: head.weight; "
        "wrong: fc.weight is [512, 512], not [512, 1024], gating.fc.bias is a str. Load the published"
    )


def test_a_wrapped_state_is_refused_with_the_first_names_only(plain: S3D) -> None:
    before = plain.fc.weight.clone()
    with pytest.raises(ValueError, match=r"missing: .*conv1\.bn1\.bias and 534 more; unknown: module\.conv1\.conv1\."):
        load_state(plain, {f"module.{name}": value + 1 for name, value in plain.state_dict().items()})
    assert torch.equal(plain.fc.weight, before)


@pytest.mark.parametrize(
    ("state", "kind"), [(torch.zeros(3), "Tensor"), ([torch.zeros(3)], "list"), (None, "NoneType")]
)
def test_what_is_no_state_is_refused(plain: S3D, state: Any, kind: str) -> None:
    with pytest.raises(ValueError, match=f"these weights are a {kind}: a state dict, names to tensors, is expected"):
        load_state(plain, state)


def test_a_state_with_numbers_for_names_is_refused(plain: S3D) -> None:
    state: Any = {**plain.state_dict(), 0: torch.zeros(3), 1: torch.zeros(3)}
    with pytest.raises(ValueError, match="unknown: 0, 1"):
        load_state(plain, state)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda weight: weight.to_sparse(), r"torch\.float32, torch\.sparse_coo"),
        (lambda weight: weight.to(torch.complex64), r"torch\.complex64, torch\.strided"),
        (lambda weight: weight.int(), r"torch\.int32, torch\.strided"),
        (lambda weight: torch.full_like(weight, float("nan")), "not finite"),
        (lambda weight: weight.index_fill(0, torch.tensor([5]), float("inf")), "not finite"),
    ],
    ids=["sparse", "complex", "integers", "nan", "one row infinite"],
)
def test_tensors_of_another_kind_are_refused_by_name(
    plain: S3D, change: Callable[[Tensor], Tensor], problem: str
) -> None:
    state, before = plain.state_dict(), plain.fc.bias.clone()
    with pytest.raises(ValueError, match=rf"wrong: fc\.weight is {problem}"):
        load_state(plain, state | {"fc.weight": change(state["fc.weight"]), "fc.bias": before + 1})
    assert torch.equal(plain.fc.bias, before), "nothing of it is taken"


def test_a_sparse_tensor_that_is_not_finite_is_refused_too(plain: S3D) -> None:
    state = plain.state_dict()
    broken = torch.full_like(state["fc.weight"], float("nan")).to_sparse()
    with pytest.raises(ValueError, match=r"wrong: fc\.weight is torch\.float32, torch\.sparse_coo"):
        load_state(plain, state | {"fc.weight": broken})


def test_seeded_weights(random_weights: S3D) -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    first, again, other = random_weights, seeded(0), seeded(8)
    assert torch.equal(torch.rand(3), expected), "the global generator was used"
    for name, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    differing = [name for name, value in first.state_dict().items() if not torch.equal(value, other.state_dict()[name])]
    matrices = [name for name, value in first.state_dict().items() if value.dim() >= 2]
    assert set(differing) == {*matrices, "conv1.bn1.running_mean"}
    assert not first.training


@pytest.mark.parametrize("seed", [0, 1])
def test_seeded_features_tell_clips_apart(seed: int) -> None:
    model, spreads = seeded(seed), {}
    for name, module in model.named_children():
        if isinstance(module, s3d.InceptionBlock):
            module.register_forward_hook(lambda _m, _i, out, name=name: spreads.update({name: float(out.std())}))
    flat_clips = torch.tensor([[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0.5], [0, 0, 0]])[:, :, None, None, None]
    for clips in (smooth_clips(6), flat_clips.expand(4, 3, 16, 64, 64)):
        features_BD, embeddings_BE = model(clips)
        assert len(spreads) == 9 and all(0.2 < value < 0.8 for value in spreads.values()), spreads
        assert float((features_BD.amax(dim=0) == 0).float().mean()) < 0.05  # dead features
        cosines = F.cosine_similarity(features_BD[:, None], features_BD[None], dim=2)
        assert float(cosines.fill_diagonal_(0).max()) < 0.97
        assert float(features_BD.std(dim=0).mean()) > 0.3 * float(features_BD.std(dim=1).mean())
        assert 0.1 < float(embeddings_BE.std()) < 1


@pytest.mark.parametrize("form", ["plain", "folded"])
@pytest.mark.parametrize("shape", [(3, 16, 32, 32), (1, 4, 16, 32, 32), (1, 3, 15, 32, 32), (1, 3, 16, 0, 32)])
def test_other_tensors_are_refused(request: pytest.FixtureRequest, form: str, shape: tuple[int, ...]) -> None:
    model: nn.Module = request.getfixturevalue(form)
    with pytest.raises(ValueError, match="clips must be B x 3 x T x H x W with even T, H and W, not "):
        model(torch.zeros(shape))
    with pytest.raises(ValueError, match=r"floats in \[0, 1\], not torch.uint8: divide bytes by 255"):
        model(torch.zeros(1, 3, 16, 32, 32, dtype=torch.uint8))
