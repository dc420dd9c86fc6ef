"""Training against the matrix product and a plain version; labelling against a loop; waiting for the reader."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the command does, before torch is loaded

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from storage import Store
from tasks.demo_world.files import write_world
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.script import World
from tasks.importers.settings import ImportSettings
from tasks.importers.stage import import_corpus
from tasks.pairing.settings import PairingSettings
from tasks.pairing.stage import make_pairs
from tasks.pipeline.job import Job
from tasks.training.batches import plan_batches
from tasks.training.settings import TrainingSettings
from tasks.training.stage import burn_in
from tests.benchmarks.measure import ratio_of_times, report
from tests.vina_model.test_pseudo_labels import plain_segment
from vina_model.batch import Batch, Texts
from vina_model.objective import alignment_loss
from vina_model.pseudo_labels import ZETA, candidate_segments
from vina_model.text import BagOfWords
from vina_model.vina import Vina, VinaConfig

NARRATIONS, STEPS, WORDS = 100, 12, 12
VOCABULARY = [f"word{number}" for number in range(5_000)]


class PlainAttention(nn.Module):
    """torch's own, with a mask of the padding."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x_BLD: Tensor, keys_BL: Tensor | None) -> Tensor:
        masked_BL = torch.zeros(x_BLD.shape[:2], dtype=torch.bool) if keys_BL is None else ~keys_BL
        return self.inner(x_BLD, x_BLD, x_BLD, key_padding_mask=masked_BL, need_weights=False)[0]


def made_model() -> Vina:
    torch.manual_seed(0)
    text = BagOfWords(VOCABULARY, torch.randn(len(VOCABULARY), 300), hidden_width=2048, output_width=512)
    return Vina(VinaConfig(), text).train()


def plain_model() -> Vina:
    model = made_model()
    for block in model.encoder.resblocks:
        block.attn = PlainAttention(512, 8)
    return model


def made_batch(lengths: Sequence[int]) -> tuple[Batch, Tensor, Tensor]:
    """Videos of these lengths with narrations and steps, each labelled with some seconds."""
    rng = torch.Generator().manual_seed(sum(lengths))
    video_BTV = torch.randn(len(lengths), max(lengths), 1024, generator=rng)

    def texts(count: int) -> Texts:
        ids = torch.randint(1, len(VOCABULARY), (len(lengths) * count, WORDS), generator=rng)
        return Texts(ids, torch.full((len(lengths),), count))

    def positives(count: int) -> Tensor:
        begins = torch.rand(len(lengths), count, 1, generator=rng) * (torch.tensor(lengths)[:, None, None] - 6)
        seconds = torch.arange(max(lengths))
        return (seconds >= begins) & (seconds < begins + 5)

    batch = Batch(video_BTV, torch.tensor(lengths), texts(NARRATIONS), texts(STEPS))
    return batch, positives(NARRATIONS), positives(STEPS)


def trained(model: Vina, batches: Sequence[tuple[Batch, Tensor, Tensor]]) -> Callable[[], None]:
    """One optimiser step a batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def run() -> None:
        for batch, narrations, steps in batches:
            optimizer.zero_grad(set_to_none=True)
            found = model(batch)
            assert found.nv_BNT is not None and found.sv_BST is not None
            losses = alignment_loss(found.nv_BNT, narrations, batch.mask_BT)
            losses = losses + alignment_loss(found.sv_BST, steps, batch.mask_BT)
            losses.mean().backward()
            optimizer.step()

    return run


def flops_of(num_seconds: int) -> float:
    """Multiplications and additions of the matrix products of a step, of one video: forward once, backward twice."""
    tokens, width = num_seconds + NARRATIONS + STEPS, 512
    layer = 2 * 12 * width**2 * tokens + 2 * 2 * tokens**2 * width
    projections = num_seconds * (1024 + width) * width + (NARRATIONS + STEPS) * 2 * width**2
    words = (NARRATIONS + STEPS) * (WORDS * 300 * 2048 + 2048 * 512)
    similarities = (NARRATIONS + STEPS) * num_seconds * width
    return 3.0 * (6 * layer + 2 * (projections + words + similarities))


def test_a_training_step_as_a_share_of_the_machines_matrix_product() -> None:
    step = trained(made_model(), [made_batch([1024, 1024])])
    size = 2048
    a, b = torch.rand(size, size), torch.rand(size, size)

    def product() -> None:
        for _ in range(20):
            torch.mm(a, b)

    product_s, step_s, _ = ratio_of_times(product, step, repeats=5)
    peak, ours = 20 * 2 * size**3 / product_s, 2 * flops_of(1024) / step_s
    detail = f"{ours / 1e9:.0f} of {peak / 1e9:.0f} GFLOP/s; {step_s / 2:.2f} s a video of 1,024 s"
    report("training step, D = 512, 6 layers, 1,136 tokens: share of the matrix product", ours / peak, ">= 0.6", detail)


def test_videos_a_second_against_a_plain_version() -> None:
    """Lengths as HowTo100M has them: around 6 minutes, 60 to 1,024 s."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(np.log(360), 0.6, 64), 60, 1024).astype(int).tolist()
    ours = plan_batches(lengths, 8, seed=0, epoch=0)
    order = rng.permutation(len(lengths))
    plain = [order[begin : begin + 8].tolist() for begin in range(0, len(order), 8)]
    works = [
        trained(model, [made_batch([lengths[number] for number in batch]) for batch in batches])
        for model, batches in ((plain_model(), plain), (made_model(), ours))
    ]
    slow, fast, ratio = ratio_of_times(*works, repeats=1)
    padded = [sum(max(lengths[n] for n in batch) * len(batch) for batch in plan) for plan in (plain, ours)]
    shares = [f"{100 * (1 - sum(lengths) / seconds):.0f} %" for seconds in padded]
    detail = f"{64 / slow:.1f} and {64 / fast:.1f} videos a second; padding {' and '.join(shares)}"
    report("videos a second, ours / nn.MultiheadAttention in random batches", ratio, ">= 1.5", detail)


def test_labelling_against_a_loop() -> None:
    scores_BST = torch.rand(32, 12, 1024)
    seconds_BT = torch.ones(32, 1024, dtype=torch.bool)

    def loop() -> None:
        for video in scores_BST:
            for row in video:
                plain_segment(row.tolist(), ZETA)

    slow, fast, ratio = ratio_of_times(loop, lambda: candidate_segments(scores_BST, seconds_BT), repeats=5)
    report("labels, a plain loop / ours", ratio, ">= 50", f"{1e3 * slow:.0f} and {1e3 * fast:.2f} ms for 32 videos")


def test_the_reader_is_not_waited_for(tmp_path: Path) -> None:
    write_world(World(Knobs(num_videos=400, num_rendered=0, feature_width=1024), 0), tmp_path / "corpus")
    store = Store(tmp_path / "store")
    job = Job.of(store.uri, "bench", ImportSettings(corpus=str(tmp_path / "corpus")), PairingSettings())
    import_corpus(job)
    make_pairs(job)
    settings = TrainingSettings.of_preset("demo").changed(tan_epochs=2, epochs=2, burn_in_epochs=2)
    burn_in(Job.of(store.uri, "bench", settings))
    rows = store.table("training_log").snapshot().read(["waiting_percent", "videos_per_s"]).to_pylist()
    waiting = float(np.mean([row["waiting_percent"] for row in rows]))
    rate = float(np.median([row["videos_per_s"] for row in rows]))
    report("time that the trainer waits for the reader, %", waiting, "<= 5", f"{rate:.0f} videos a second")
