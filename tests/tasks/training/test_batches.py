"""Batches: an order that seed and epoch decide, little padding, labels on the right seconds."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import Store
from tasks.training import corpus
from tasks.training.batches import ExampleReader, count_batches, plan_batches, read_ahead
from tasks.training.corpus import Corpus, Span, corpus_of
from tasks.training.labels import Labels
from tests.tasks.conftest import TINY, MakeJob
from vina_model.tokenizer import Tokenizer

WORDS = Tokenizer(["the", "a", "and"], expected_words=3)


@given(st.lists(st.integers(1, 1000), max_size=300), st.integers(1, 40), st.integers(0, 5))
def test_every_video_is_in_one_batch_of_an_epoch(lengths: list[int], batch_size: int, epoch: int) -> None:
    batches = plan_batches(lengths, batch_size, 0, epoch)
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= batch_size for batch in batches)
    assert len(batches) == count_batches(len(lengths), batch_size)
    assert batches == plan_batches(lengths, batch_size, 0, epoch)


def test_epochs_differ_and_little_is_padding() -> None:
    lengths = np.random.default_rng(0).integers(60, 1024, 4_000).tolist()
    first, second = (plan_batches(lengths, 32, 0, epoch) for epoch in (0, 1))
    assert {tuple(batch) for batch in first}.isdisjoint(tuple(batch) for batch in second)
    padded = sum(max(lengths[n] for n in batch) * len(batch) for batch in first)
    assert sum(lengths) / padded > 0.95


def test_read_ahead_keeps_the_order_and_passes_errors_on() -> None:
    assert list(read_ahead(lambda number: number * number, list(range(50)))) == [n * n for n in range(50)]

    def work(number: int) -> int:
        if number == 7:
            raise ValueError("seven")
        return number

    with pytest.raises(ValueError, match="seven"):
        list(read_ahead(work, list(range(50))))


def test_an_example_has_the_narrations_of_its_videos_and_their_times(job: MakeJob) -> None:
    corpus = Corpus(Store(job().store), TINY.backbone, TINY.selection)
    names = corpus.narrated[:3]
    example = ExampleReader(corpus, WORDS, 128, 0)(names, 0)
    assert example.batch.seconds_B.tolist() == [corpus.num_seconds[name] for name in names]
    assert example.batch.narrations is not None and example.step_positives is None
    for row, name in enumerate(names):
        narrations = corpus.narrations(name)
        assert int(example.batch.narrations.counts_B[row]) == len(narrations.texts)
        for number, (start, end) in enumerate(narrations.spans):
            seconds = example.narration_positives[row, number].nonzero().flatten().tolist()
            assert seconds == list(range(int(start), min(int(np.ceil(end)), corpus.num_seconds[name])))


def test_a_long_video_gives_another_excerpt_in_each_epoch(job: MakeJob) -> None:
    corpus = Corpus(Store(job().store), TINY.backbone, TINY.selection)
    name = max(corpus.narrated, key=lambda name: corpus.num_seconds[name])
    read = ExampleReader(corpus, WORDS, 16, 0)
    excerpts = [read([name], epoch).batch.video_BTV[0] for epoch in range(6)]
    whole = corpus.features(name).astype(np.float32)
    starts = []
    for excerpt in excerpts:
        (start,) = [p for p in range(len(whole) - 15) if np.array_equal(whole[p : p + 16], excerpt.numpy())]
        starts.append(start)
    assert len(set(starts)) > 2 and read([name], 2).batch.video_BTV.equal(excerpts[2][None])


def test_what_is_held_out_is_not_trained_on(job: MakeJob) -> None:
    corpus = Corpus(Store(job().store), TINY.backbone, TINY.selection)
    assert len(corpus.paired) == 32 and len(corpus.held_out) == 8
    assert not corpus.held_out & {*corpus.paired, *corpus.narrated}
    words = set(corpus.sentences())
    trained = {text for name in corpus.narrated for text in corpus.narrations(name).texts}
    held_out = {text for name in corpus.held_out for text in corpus.narrations(name).texts} - trained
    assert trained <= words and held_out and not held_out & words


def test_a_video_that_a_list_holds_out_needs_no_annotations_for_it(job: MakeJob) -> None:
    store = Store(job().store)
    before = Corpus(store, TINY.backbone, TINY.selection)
    videos = store.table("videos")
    rows = pa.Table.from_pylist([{"video_id": before.paired[0], "split": "val_seen"}], schema=videos.schema.files)
    videos.commit(rows, {"source": "list"}, "0", fingerprint="f", run_id="r")
    after = Corpus(store, TINY.backbone, TINY.selection)
    assert after.paired == before.paired[1:] and after.version != before.version


def test_narrations_that_do_not_count_change_no_model_id(job: MakeJob) -> None:
    """Those of the first source by name count."""
    store = Store(job().store)
    before = Corpus(store, TINY.backbone, TINY.selection)
    narrations, video = store.table("narrations"), before.narrated[0]
    row = {"video_id": video, "row": 0, "text": "something else", "start_s": 0.0, "end_s": 1.0}
    rows = pa.Table.from_pylist([row], schema=narrations.schema.files)
    narrations.commit(rows, {"source": "zzz"}, "0", fingerprint="f", run_id="r")
    after = Corpus(store, TINY.backbone, TINY.selection)
    assert after.narrations(video) == before.narrations(video) and after.version == before.version
    narrations.commit(rows, {"source": "aaa"}, "0", fingerprint="f", run_id="r")
    counted = Corpus(store, TINY.backbone, TINY.selection)
    assert counted.narrations(video).texts == ["something else"] and counted.version != before.version


def test_a_corpus_that_another_thread_reads_meanwhile_is_not_taken_for_ours(
    job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(job().store)
    ours, other = corpus_of(store, TINY.backbone, TINY.selection), Corpus(store, TINY.backbone, "top1")

    class Key(str):
        def __ne__(self, key: object) -> bool:
            monkeypatch.setattr(corpus, "_last", ("other", other))  # the other thread comes right after the test
            return str.__ne__(self, key)

    assert corpus._last is not None
    monkeypatch.setattr(corpus, "_last", (Key(corpus._last[0]), ours))
    assert corpus_of(store, TINY.backbone, TINY.selection) is ours


def test_a_benchmark_that_is_imported_later_changes_no_model_id(job: MakeJob) -> None:
    store = Store(job().store)
    before = Corpus(store, TINY.backbone, TINY.selection).version
    steps = store.table("steps")
    row = {"article_id": "other/1", "row": 0, "step_id": "1", "headline": "Stir"}
    steps.commit(
        pa.Table.from_pylist([row], schema=steps.schema.files), {"source": "o"}, "0", fingerprint="f", run_id="r"
    )
    assert Corpus(store, TINY.backbone, TINY.selection).version == before


def test_a_label_past_the_end_of_its_video_is_named(job: MakeJob) -> None:
    corpus = Corpus(Store(job().store), TINY.backbone, TINY.selection)
    name = corpus.paired[0]

    class LateLabels(NoLabels):
        def spans(self, video_id: str, article_id: str) -> list[Span | None]:
            return [None, (9999.0, 10005.0)]

    end = corpus.num_seconds[name]
    with pytest.raises(
        ValueError, match=f"a label of video '{name}' .* begins at 9999 s, but its features end at {end}"
    ):
        ExampleReader(corpus, WORDS, 128, 0, LateLabels())([name], 0)


def test_of_several_articles_another_one_is_drawn_each_time(job: MakeJob) -> None:
    corpus = Corpus(Store(job().store), TINY.backbone, TINY.selection)
    name = corpus.paired[0]
    articles = sorted(article for article in corpus.steps if article.startswith("wikihow/"))
    corpus.articles = {name: [*articles, "an article without steps"]}
    read = ExampleReader(corpus, WORDS, 128, 0, NoLabels())
    drawn = [read([name], epoch).batch.steps for epoch in range(40)]
    counts = {int(steps.counts_B[0]) for steps in drawn if steps is not None}
    assert counts == {len(corpus.steps[article]) for article in articles} and len(counts) > 1
    again = read([name], 7).batch.steps
    assert again is not None and drawn[7] is not None and again.ids_ML.equal(drawn[7].ids_ML)


class NoLabels(Labels):
    """Of any article, no step is labelled."""

    def __init__(self) -> None:
        self._rows_of = {}
        self._spans = []
