"""Baselines that compare texts by ready-made embeddings: with narrations and their times, or with video features."""

# B videos, S texts, T seconds, N narrations, D numbers of an embedding.

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial

import numpy as np
import pyarrow.compute as pc
import torch
from torch import Tensor

from storage import Store
from storage.catalogue import Catalogue, quoted
from storage.vectors import Floats, decode
from tasks.evaluation.methods import Answer, Method, asr_times
from tasks.evaluation.questions import Question
from tasks.evaluation.truth import HELD_BACK
from tasks.pairing.encoders import find_encoder, load_encoder, name_encoder
from tasks.pairing.settings import PairingSettings
from tasks.pipeline.text_embedding import embed_texts
from tasks.training.corpus import Corpus
from vina_model.alignment import indirect_pathway, mask_of

LOG = logging.getLogger("vina.evaluation")
BY_DOT_PRODUCT = "s3d-milnce-joint"
"""The joint space in which lengths mean something; elsewhere cosines are compared."""
SENTENCES = "sentences by ASR times"


def sentences_by_asr_times(store: Store, run_id: str, corpus: Corpus, settings: PairingSettings) -> Method | None:
    """Each step at the times of the narrations that read like it, by the sentence model of the pairing."""
    if not store.table("narrations").snapshot().num_rows:
        return None
    try:
        folder = find_encoder(settings.encoder)
    except ValueError as error:
        LOG.warning("no sentence model: the steps are not compared with narrations (%s)", error)
        return None
    encoder = name_encoder(settings.encoder, folder)
    load = cache(partial(load_encoder, folder, settings.batch_size, settings.device))  # if there is anything to embed

    def answer(question: Question) -> Iterator[Answer]:
        if not question.has_narrations:
            return
        texts = f"""SELECT headline AS text FROM steps WHERE source = {quoted(question.benchmark)}
            UNION ALL SELECT n.text FROM narrations n SEMI JOIN annotations a
            ON a.video_id = n.video_id AND a.benchmark = {quoted(question.benchmark)} AND a.split NOT IN {HELD_BACK}"""
        embed_texts(store, run_id, encoder, lambda new: load()(new), texts, settings.texts_per_shard)
        vectors = read_embeddings(store, encoder, texts)
        for own, lengths, _ in question.batches():
            videos = [video for video, _ in own]
            said = [_stacked(vectors, question.corpus.narrations(video).texts) for video in videos]
            steps = [_stacked(vectors, question.corpus.steps[article]) for _, article in own]
            counts_B = torch.tensor([len(rows) for rows in said])
            num_narrations = max(int(counts_B.max()), 1)
            sn_BSN = torch.zeros(len(own), max(len(rows) for rows in steps), num_narrations)
            for row, (mine, theirs) in enumerate(zip(steps, said, strict=True)):
                if len(theirs):
                    sn_BSN[row, : len(mine), : len(theirs)] = mine @ theirs.T
            said_BNT = asr_times(videos, question.corpus, num_narrations, max(lengths)).float()
            found_BST = indirect_pathway(sn_BSN, said_BNT, mask_of(counts_B, num_narrations))
            yield Answer.plain(own, found_BST, lengths, question)

    return Method(encoder, SENTENCES, encoder, corpus, answer, reads=("narrations",), knows_narrations=False)


def zero_shot(store: Store) -> Iterator[Method]:
    """Every backbone whose texts are embedded under the same name: MIL-NCE's joint space, CLIP, InternVideo, ..."""
    backbones = _partitions(store, "features", "backbone")
    for encoder in _partitions(store, "sentence_embeddings", "encoder"):
        backbone = encoder.partition("@")[0]
        if backbone not in backbones:
            continue
        widths = [
            store.table(table).snapshot().where(**place).vector_width()
            for table, place in (("features", {"backbone": backbone}), ("sentence_embeddings", {"encoder": encoder}))
        ]
        if widths[0] == widths[1]:
            yield _zero_shot(store, encoder, Corpus(store, backbone, "metadata"))
        else:
            LOG.warning("%s: features of %s numbers and texts of %s: not compared", encoder, *widths)


def _zero_shot(store: Store, encoder: str, corpus: Corpus) -> Method:
    is_cosine = corpus.backbone != BY_DOT_PRODUCT

    def answer(question: Question) -> Iterator[Answer]:
        asked = "annotations WHERE benchmark" if question.is_about_narrations else "steps WHERE source"
        column = "text" if question.is_about_narrations else "headline AS text"
        vectors = read_embeddings(store, encoder, f"SELECT {column} FROM {asked} = {quoted(question.benchmark)}")
        wanted = {text for _, article in question.pairs for text in question.corpus.steps[article]}
        if lost := len(wanted - vectors.keys()):
            LOG.warning(
                "%s: %s of %s texts of %s have no vector: missed", encoder, lost, len(wanted), question.benchmark
            )
        if not vectors:
            return
        for own, lengths, counts in question.batches():
            found_BST = torch.zeros(len(own), max(counts), max(lengths))
            known_BS = torch.zeros(len(own), max(counts), dtype=torch.bool)
            for row, (video, article) in enumerate(own):
                texts = question.corpus.steps[article]
                known_BS[row, : len(texts)] = torch.tensor([text in vectors for text in texts])
                texts_SD = _stacked(vectors, texts)
                seconds_TD = torch.from_numpy(corpus.features(video).astype(np.float32))
                if is_cosine:
                    texts_SD, seconds_TD = (torch.nn.functional.normalize(x, dim=1) for x in (texts_SD, seconds_TD))
                found_BST[row, : counts[row], : lengths[row]] = texts_SD @ seconds_TD.T
            yield Answer.plain(own, found_BST, lengths, question, known_BS)

    texts = store.table("sentence_embeddings").snapshot().where(encoder=encoder).content_version
    return Method(encoder, f"{corpus.backbone} zero-shot", texts, corpus, answer)


def read_embeddings(store: Store, encoder: str, texts_sql: str) -> Mapping[str, Floats]:
    """The vectors of the texts that a query gives; those that have none are left out."""
    with Catalogue(store) as catalogue:
        wanted = catalogue.query(f"SELECT DISTINCT text FROM ({texts_sql})")["text"]
    snapshot = store.table("sentence_embeddings").snapshot().where(encoder=encoder)
    if not snapshot.shards:
        return {}
    rows = snapshot.read(["text", "vector"], where=pc.field("text").isin(wanted.combine_chunks()))
    return dict(zip(rows["text"].to_pylist(), decode(rows["vector"], "float16"), strict=True))


def _stacked(vectors: Mapping[str, Floats], texts: Sequence[str]) -> Tensor:
    """The texts' vectors, S x D; zeros for a text that has none."""
    width = len(next(iter(vectors.values()))) if vectors else 1
    rows = [vectors[text] if text in vectors else np.zeros(width, np.float16) for text in texts]
    return torch.from_numpy(np.stack(rows).astype(np.float32)) if rows else torch.zeros(0, width)


def _partitions(store: Store, table: str, column: str) -> list[str]:
    return sorted({str(shard.constants[column]) for shard in store.table(table).snapshot().shards})
