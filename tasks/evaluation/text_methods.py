"""Baselines that compare embeddings of texts: with those of narrations and their times, or with video features."""

# B videos, S texts, T seconds, N narrations, D numbers of an embedding.

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial

import numpy as np
import pyarrow.compute as pc
import torch
from torch import Tensor

from storage import Store
from storage.catalogue import Catalogue
from storage.vectors import Floats, decode
from tasks.evaluation.families import SENTENCES, Pathway
from tasks.evaluation.methods import Answer, Method, asr_times
from tasks.evaluation.queries import BenchmarkQueries
from tasks.features.backbones import backbone_of_space
from tasks.pairing.encoders import find_encoder, load_encoder, name_encoder
from tasks.pairing.settings import PairingSettings
from tasks.pipeline.text_embedding import embed_texts
from tasks.training.corpus import Corpus
from vina_model.alignment import indirect_pathway, mask_of

LOG = logging.getLogger("vina.evaluation")
_STEPS_AND_NARRATIONS = """
    SELECT text FROM ({steps}) UNION ALL SELECT n.text FROM video_narrations n SEMI JOIN annotations a
    ON a.video_id = n.video_id AND a.benchmark = {{benchmark}} AND a.split NOT IN ({{held_back}})"""


def sentences_by_asr_times(store: Store, run_id: str, corpus: Corpus, settings: PairingSettings) -> Method | None:
    """Return the method that predicts each step at the ASR times of similar narrations, by the pairing's encoder."""
    if not store.table("narrations").snapshot().num_rows:
        return None
    try:
        folder = find_encoder(settings.encoder)
    except ValueError as error:
        LOG.warning("no sentence encoder: steps are not compared with narrations (%s)", error)
        return None
    encoder = name_encoder(settings.encoder, folder)
    load = cache(
        partial(load_encoder, folder, settings.batch_size, settings.device)
    )  # only if there is anything to embed

    def answer(queries: BenchmarkQueries) -> Iterator[Answer]:
        if not queries.has_speech:
            return
        texts = queries.benchmark.query(_STEPS_AND_NARRATIONS.format(steps=queries.benchmark.texts_sql))
        embed_texts(store, run_id, encoder, lambda new: load()(new), texts, settings.texts_per_shard)
        vectors = read_embeddings(store, encoder, texts)
        for pairs, lengths, _ in queries.batches():
            videos = [video for video, _ in pairs]
            narrations = [_stacked(vectors, queries.corpus.narrations(video).texts) for video in videos]
            steps = [_stacked(vectors, queries.corpus.steps[article]) for _, article in pairs]
            counts_B = torch.tensor([len(rows) for rows in narrations])
            num_narrations = max(int(counts_B.max()), 1)
            sn_BSN = torch.zeros(len(pairs), max(len(rows) for rows in steps), num_narrations)
            for row, (steps_SD, narrations_ND) in enumerate(zip(steps, narrations, strict=True)):
                if len(narrations_ND):
                    sn_BSN[row, : len(steps_SD), : len(narrations_ND)] = steps_SD @ narrations_ND.T
            times_BNT = asr_times(videos, queries.corpus, num_narrations, max(lengths)).float()
            scores_BST = indirect_pathway(sn_BSN, times_BNT, mask_of(counts_B, num_narrations))
            yield Answer.plain(pairs, scores_BST, lengths, queries, pathway=Pathway.INDIRECT_BY_ASR)

    return Method(
        encoder, SENTENCES, encoder, corpus, answer, reads=("narrations",), takes_narrations=False,
        main_pathways=(Pathway.INDIRECT_BY_ASR,),
    )  # fmt: skip


def zero_shot(store: Store) -> Iterator[Method]:
    """Yield a method for every backbone with text embeddings of the same name: MIL-NCE's joint space, CLIP, ..."""
    backbones = _partitions(store, "features", "backbone")
    for encoder in _partitions(store, "sentence_embeddings", "encoder"):
        backbone = encoder.partition("@")[0]
        if backbone not in backbones:
            continue
        widths = [
            store.table("features").snapshot().where(backbone=backbone).vector_width(),
            store.table("sentence_embeddings").snapshot().where(encoder=encoder).vector_width(),
        ]
        if widths[0] == widths[1]:
            yield _zero_shot(store, encoder, Corpus(store, backbone, "metadata"))
        else:
            LOG.warning("%s: features have width %s and texts %s: not compared", encoder, *widths)


def _zero_shot(store: Store, encoder: str, corpus: Corpus) -> Method:
    backbone = backbone_of_space(corpus.backbone)
    is_cosine = backbone is None or backbone.compares_by == "cosine"

    def answer(queries: BenchmarkQueries) -> Iterator[Answer]:
        vectors = read_embeddings(store, encoder, queries.benchmark.query(queries.benchmark.texts_sql))
        wanted = {text for _, article in queries.pairs for text in queries.corpus.steps[article]}
        if num_missing := len(wanted - vectors.keys()):
            count = f"{num_missing} of {len(wanted)} texts of {queries.benchmark.name}"
            LOG.warning("%s: %s have no embedding: they count as missed", encoder, count)
        if not vectors:
            return
        for pairs, lengths, counts in queries.batches():
            scores_BST = torch.zeros(len(pairs), max(counts), max(lengths))
            answered_BS = torch.zeros(len(pairs), max(counts), dtype=torch.bool)
            for row, (video, article) in enumerate(pairs):
                texts = queries.corpus.steps[article]
                answered_BS[row, : len(texts)] = torch.tensor([text in vectors for text in texts])
                texts_SD = _stacked(vectors, texts)
                seconds_TD = torch.from_numpy(corpus.features(video).astype(np.float32))
                if is_cosine:
                    texts_SD, seconds_TD = (torch.nn.functional.normalize(x, dim=1) for x in (texts_SD, seconds_TD))
                scores_BST[row, : counts[row], : lengths[row]] = texts_SD @ seconds_TD.T
            yield Answer.plain(pairs, scores_BST, lengths, queries, answered_BS)

    texts = store.table("sentence_embeddings").snapshot().where(encoder=encoder).content_version
    return Method(encoder, f"{corpus.backbone} zero-shot", texts, corpus, answer)


def read_embeddings(store: Store, encoder: str, texts_sql: str) -> Mapping[str, Floats]:
    """Return the embeddings of the texts that a query selects; texts without one are left out."""
    with Catalogue(store) as catalogue:
        wanted = catalogue.query(f"SELECT DISTINCT text FROM ({texts_sql})")["text"]
    snapshot = store.table("sentence_embeddings").snapshot().where(encoder=encoder)
    if not snapshot.shards:
        return {}
    rows = snapshot.read(["text", "vector"], where=pc.field("text").isin(wanted.combine_chunks()))
    return dict(zip(rows["text"].to_pylist(), decode(rows["vector"], "float16"), strict=True))


def _stacked(vectors: Mapping[str, Floats], texts: Sequence[str]) -> Tensor:
    """Return the embeddings of texts, S x D; zeros for a text without one."""
    width = len(next(iter(vectors.values()))) if vectors else 1
    rows = [vectors[text] if text in vectors else np.zeros(width, np.float16) for text in texts]
    return torch.from_numpy(np.stack(rows).astype(np.float32)) if rows else torch.zeros(0, width)


def _partitions(store: Store, table: str, column: str) -> list[str]:
    return sorted({str(shard.constants[column]) for shard in store.table(table).snapshot().shards})
