"""Declare every table of the store: version, columns, types, units, one comment per column. Nothing is inferred.

`partition_by` names the columns that divide a table into partitions (one per backbone, one per model and round, ...). A
shard is written whole into one partition; a rerun replaces its own shards only. PROVENANCE are the three columns that
every table has. They, `partition_by` and `constants` have one value per file, which is in the log and not in the file.
Times are seconds from the start of the video. *Second s* is the interval [s, s + 1).
A change to a table's columns raises its version; a store written with another version is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from storage.errors import SchemaError

STRING, INT, LONG, FLOAT, DOUBLE, BOOL = pa.string(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_()
TIME = pa.timestamp("us", tz="UTC")
SCORES = pa.list_(pa.float32())


@dataclass(frozen=True)
class Column:
    """One column. `vector` names the float type packed into the bytes of a vector column."""

    name: str
    type: pa.DataType
    comment: str
    unit: str = ""
    optional: bool = False
    vector: str | None = None

    @property
    def type_name(self) -> str:
        """Readable name of the type, e.g. "vector of float16"."""
        if self.vector:
            return f"vector of {self.vector}"
        return f"list of {self.type.value_type}" if pa.types.is_list(self.type) else str(self.type)


def _vector(name: str, dtype: str, comment: str) -> Column:
    return Column(name, pa.binary(), comment, vector=dtype)


PROVENANCE = (
    Column("_shard", STRING, "name of the shard within its partition"),
    Column("_fingerprint", STRING, "hash of the configuration, input versions and code version of the shard"),
    Column("_written_by", STRING, "run that wrote the shard: runs.run_id"),
)


@dataclass(frozen=True)
class TableSchema:
    """One table. `key` is the column that rows are looked up by: files whose key range excludes it are skipped."""

    name: str
    version: int
    comment: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...]
    key: str | None = None
    constants: tuple[str, ...] = ()
    sequence: str | None = None
    """Column that numbers the rows of one key from 0. Each write holds consecutive rows of one key."""
    arrow: pa.Schema = field(init=False)
    """All columns, as readers see them."""
    files: pa.Schema = field(init=False)
    """The columns that are in the data files."""
    log_columns: tuple[str, ...] = field(init=False)
    """The columns that are in the log."""

    def __post_init__(self) -> None:
        fields = [
            pa.field(c.name, c.type, nullable=c.optional, metadata={"comment": c.comment, "unit": c.unit})
            for c in self.columns + PROVENANCE
        ]
        in_log = self.partition_by + self.constants + tuple(c.name for c in PROVENANCE)
        object.__setattr__(self, "arrow", pa.schema(fields))
        object.__setattr__(self, "log_columns", in_log)
        object.__setattr__(self, "files", pa.schema([f for f in fields if f.name not in in_log]))

    @property
    def vectors(self) -> tuple[str, ...]:
        """The names of the vector columns."""
        return tuple(column.name for column in self.columns if column.vector)

    def cast(self, rows: pa.Table) -> pa.Table:
        """Cast rows to the schema of the files. Raise SchemaError if they do not fit."""
        self._check_names(set(self.files.names), set(rows.column_names))
        if len(rows.column_names) != len(self.files):
            raise SchemaError(f"table {self.name}: a column is given twice among {', '.join(rows.column_names)}")
        columns = {column.name: self._checked(column, rows.column(column.name)) for column in self.files}
        fields = [column.with_type(columns[column.name].type) for column in self.files]
        return pa.table(columns, schema=pa.schema(fields))

    def cast_constants(self, constants: Mapping[str, Any]) -> dict[str, Any]:
        """Cast one shard's values of the log columns. Raise SchemaError if they do not fit."""
        self._check_names(set(self.log_columns), set(constants))
        values = {}
        for name in self.log_columns:
            column = self.arrow.field(name)
            try:
                values[name] = pa.scalar(constants[name]).cast(column.type).as_py()
            except (pa.ArrowException, ValueError) as error:
                raise SchemaError(f"table {self.name}, column {name}: {error}") from error
            if values[name] is None and not column.nullable:
                raise SchemaError(f"table {self.name}, column {name}: it may not be null")
            if values[name] == "":
                raise SchemaError(f"table {self.name}, column {name}: a partition, shard or constant may not be empty")
        return values

    def _check_names(self, expected: set[str], given: set[str]) -> None:
        if problem := _difference(expected, given):
            raise SchemaError(f"table {self.name}: {problem}; `vina describe {self.name}` lists its columns")

    def _checked(self, column: pa.Field, array: pa.Array) -> pa.Array:
        try:
            if column.name not in self.vectors:
                array = array.cast(column.type)
            elif not pa.types.is_fixed_size_binary(array.type):
                raise SchemaError(
                    f"table {self.name}, column {column.name}: use storage.vectors.encode, not {array.type}"
                )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaError(f"table {self.name}, column {column.name}: {error}") from error
        if array.null_count and not column.nullable:
            raise SchemaError(
                f"table {self.name}, column {column.name}: {array.null_count} nulls in a column that may not be null"
            )
        return array


def _difference(expected: set[str], given: set[str]) -> str:
    problems = []
    if missing := sorted(expected - given):
        problems.append(f"missing columns {', '.join(missing)}")
    if unknown := sorted(given - expected):
        problems.append(f"unknown columns {', '.join(unknown)}")
    return "; ".join(problems)


_VIDEO = Column("video_id", STRING, "id of the video in its data set, unchanged")
_ARTICLE = Column("article_id", STRING, "SOURCE/ID of the article (HowTo100M: task); ID is the id in its data set")
_RUN = Column("run_id", STRING, "id of the run; `_written_by` refers to it")
_MODEL_ID = Column("model_id", STRING, "NAME@HASH of the model; HASH is the hash of its settings and training data")
_ROUND = Column("round", INT, "0 for the burn-in, then one more for each new teacher")
_SOURCE = Column("source", STRING, "data set the row comes from: howto100m, wikihow, crosstask, ...")
_BENCHMARK = Column("benchmark", STRING, "name of the benchmark: crosstask, crosstask-articles, htstep, htm-align, ...")
_METHOD = Column("method", STRING, "family of the model or baseline, e.g. vina, tan-lc, uniform")
_PATHWAY = Column(
    "pathway", STRING, "how a text is aligned with the video: direct (no narrations at inference), fused, direct with "
    "narrations, indirect, indirect by ASR times",
)  # fmt: skip
_BACKBONE = Column("backbone", STRING, "name of the network, e.g. s3d-milnce")
_ENCODER = Column("encoder", STRING, "NAME@HASH of the sentence encoder; HASH is the hash of its files")


def _start(comment: str, optional: bool = False, type_: pa.DataType = FLOAT) -> Column:
    return Column("start_s", type_, comment, "s", optional)


def _end(comment: str, optional: bool = False, type_: pa.DataType = FLOAT) -> Column:
    return Column("end_s", type_, comment, "s", optional)


_ALL = (
    TableSchema("videos", 3, "videos of the imported data sets; a video with two tasks has two rows", (
        _SOURCE,
        _VIDEO,
        Column("article_id", STRING, "article in the data set's metadata: articles.article_id", optional=True),
        Column("category_1", STRING, "broad category in the data set's metadata", optional=True),
        Column("category_2", STRING, "narrow category in the data set's metadata", optional=True),
        Column("rank", INT, "rank of the video among the search results for its task", optional=True),
        Column("duration_s", FLOAT, "length of the video", "s", optional=True),
        Column("split", STRING, "train, validation, test, ... if the data set has splits", optional=True),
        Column("uri", STRING, "address of the video file, or key of an object; null without a file", optional=True),
    ), ("source",), key="video_id"),
    TableSchema("narrations", 1, "narrations of each video, one row per sentence", (
        _SOURCE,
        _VIDEO,
        Column("row", INT, "position of the sentence in the video, from 0"),
        Column("text", STRING, "the sentence"),
        _start("start of the sentence, by speech recognition"),
        _end("end of the sentence, by speech recognition"),
    ), ("source",), key="video_id"),
    TableSchema("articles", 2, "how-to articles; each variation of an article is a row", (
        _SOURCE,
        _ARTICLE,
        Column("title", STRING, "title, without its method number"),
        Column("variation", STRING, "method or variation of the article", optional=True),
        Column("category", STRING, "category in the data set, e.g. primary or related in CrossTask", optional=True),
    ), ("source",), key="article_id"),
    TableSchema("steps", 1, "steps of each article, in order", (
        _SOURCE,
        _ARTICLE,
        Column("row", INT, "position of the step in the article, from 0"),
        Column("step_id", STRING, "id of the step in its data set"),
        Column("headline", STRING, "step in one sentence"),
        Column("paragraph", STRING, "explanation of the step", optional=True),
    ), ("source",), key="article_id"),
    TableSchema("annotations", 3, "ground truth of the benchmarks, one row per segment or narration", (
        _BENCHMARK,
        _VIDEO,
        Column("article_id", STRING, "article of the step; null for narrations", optional=True),
        Column("step_id", STRING, "steps.step_id of the step; null for narrations", optional=True),
        Column("narration_row", INT, "position of the narration in its video, from 0; null for steps", optional=True),
        Column("text", STRING, "headline of the step, or the narration"),
        _start("start of the segment; null if not alignable", optional=True, type_=DOUBLE),
        _end("end of the segment; null if not alignable", optional=True, type_=DOUBLE),
        Column("alignable", BOOL, "whether the video shows what the text describes"),
        Column("split", STRING, "train, validation, test, ... as in the data set"),
    ), ("benchmark",), key="video_id"),
    TableSchema("features", 3, "one feature vector per second of video, and how it was computed", (
        _BACKBONE,
        _VIDEO,
        Column("second", INT, "second that the vector describes: [second, second + 1)", "s"),
        _vector("vector", "float16", "output of the network"),
        Column("fps", FLOAT, "frames per second read from the video; null if not known", "1/s", optional=True),
        Column("frames_per_clip", INT, "frames that one vector is computed from; null if not known", optional=True),
        Column("frame_px", INT, "side of the square frames; null if not known", "px", optional=True),
        Column("short_side_px", INT, "length the short side was scaled to; null if not known", "px", optional=True),
        Column("stride_s", FLOAT, "time between the starts of two successive clips", "s"),
        Column("layer", STRING, "layer of the network, e.g. mixed_5c"),
        Column("value_range", STRING, "range of the pixel values, e.g. [0, 1]; null if not known", optional=True),
        Column("weights_sha256", STRING, "hash of the weights, or random:SEED; null if not known", optional=True),
    ), ("backbone",), key="video_id",
        constants=("fps", "frames_per_clip", "frame_px", "short_side_px", "stride_s", "layer", "value_range",
                   "weights_sha256"),
        sequence="second"),
    TableSchema("sentence_embeddings", 3, "embeddings of narrations, titles and steps, one row per distinct text", (
        _ENCODER,
        Column("text_sha256", STRING, "hash of the text; the rows of a shard are sorted by it"),
        Column("text", STRING, "narration, title or step"),
        _vector("vector", "float16", "embedding; of unit length if the encoder is used for pairing"),
    ), ("encoder",), key="text_sha256"),
    TableSchema("text_votes", 2, "article with the most similar title, one row per distinct text", (
        _ENCODER,
        Column("text", STRING, "narration or title"),
        _ARTICLE,
        Column("similarity", FLOAT, "cosine similarity of the text and the article's title"),
    ), ("encoder",)),
    TableSchema("votes", 2, "articles that the narrations of each video voted for, ranked", (
        _ENCODER,
        _VIDEO,
        Column("rank", INT, "1 is best: most votes, then highest similarity_sum, then smallest id"),
        _ARTICLE,
        Column("votes", INT, "number of narrations whose most similar title is that of the article"),
        Column("similarity_sum", FLOAT, "sum of the cosine similarities of these narrations"),
        Column("num_narrations", INT, "number of narrations of the video"),
    ), ("encoder",), key="video_id"),
    TableSchema("pairs", 3, "article that each video is trained with", (
        Column("selection", STRING, "how the article was chosen: metadata, top1 or random_top5"),
        _VIDEO,
        _ARTICLE,
        Column("rank", INT, "votes.rank of the article; null for metadata", optional=True),
        Column("encoder", STRING, "encoder of the votes; null for metadata", optional=True),
        Column("confidence", FLOAT, "votes minus those of the next article, divided by num_narrations", optional=True),
        Column("similarity_margin", FLOAT, "similarity_sum minus that of the next article", optional=True),
    ), ("selection",), key="video_id"),
    TableSchema("pseudo_labels", 4, "candidate segments of every teacher, kept or not", (
        _MODEL_ID,
        _ROUND,
        _VIDEO,
        _ARTICLE,
        Column("step_row", INT, "steps.row of the step"),
        Column("peak_s", INT, "second with the highest score", "s"),
        Column("score", FLOAT, "highest score (cosine similarity)"),
        _start("start of the segment"),
        _end("end of the segment"),
        Column("kept", BOOL, "whether the student is trained on the segment"),
        Column("reason", STRING, "why it was kept or dropped, e.g. 'confidence below gamma'"),
        Column("confidence", FLOAT, "confidence of the teacher: the score, or another measure by setting"),
        Column("gamma", FLOAT, "threshold of the confidence"),
        Column("matrix", STRING, "alignment matrix of the scores: SV or F"),
        Column("teacher", STRING, "model that proposed the segment: name of its checkpoint"),
    ), ("model_id", "round"), key="video_id"),
    TableSchema("alignments", 4, "alignment matrices of every teacher on a sample of videos, one row per matrix row", (
        _MODEL_ID,
        _ROUND,
        Column("matrix", STRING, "name of the matrix: SV, NV, SN, SNV or F"),
        _VIDEO,
        _ARTICLE,
        Column("text_row", INT, "row of the matrix: position of the step (in NV: of the narration)"),
        Column("scores", SCORES, "one score per second; in SN one per narration"),
    ), ("model_id", "round", "matrix"), key="video_id"),
    TableSchema("predictions", 4, "predictions of each model and baseline on the benchmarks", (
        _MODEL_ID,
        Column("protocol", STRING, "protocol that scores them: htstep-r1, htstep-map, htm-align, crosstask, ..."),
        _METHOD,
        _PATHWAY,
        _VIDEO,
        Column("article_id", STRING, "article of the step; null for narrations", optional=True),
        Column("label", LONG, "step_id (crosstask-articles: position of the headline), or narration_row"),
        Column("peak_s", INT, "predicted second; null if the protocol scores segments", "s", optional=True),
        _start("start of the predicted segment; null if the protocol scores seconds", optional=True),
        _end("end of the predicted segment; null if the protocol scores seconds", optional=True),
        Column("score", FLOAT, "score of the prediction, higher is better"),
    ), ("model_id", "protocol", "method", "pathway"), key="video_id"),
    TableSchema("models", 2, "trained models that `vina ground` can use: objects/models/MODEL_ID.pt", (
        _MODEL_ID,
        Column("tan", STRING, "model_id of the TAN* that labelled its burn-in"),
        Column("settings", STRING, "hash of the settings of the training"),
        _BACKBONE,
        Column("version", STRING, "hash of the weights"),
        Column("is_calibrated", BOOL, "whether it can predict that a step is not shown"),
        Column("made_at", TIME, "time the model was written", "UTC"),
    ), ("model_id",)),
    TableSchema("presences", 2, "predicted probability that a step is shown, and the truth, on held-out videos", (
        _MODEL_ID,
        _METHOD,
        _PATHWAY,
        _VIDEO,
        Column("article_id", STRING, "article of the step"),
        Column("label", LONG, "step_id of the step"),
        Column("split", STRING, "split of the benchmark: val_seen, test_seen, ..."),
        Column("peak", FLOAT, "highest score of the step (cosine similarity)"),
        Column("presence", FLOAT, "predicted probability that the step is shown; fitted on other videos"),
        Column("is_shown", BOOL, "whether the step is annotated in the video"),
    ), ("model_id", "method", "pathway"), key="video_id"),
    TableSchema("metrics", 4, "results of each model and baseline, by protocol, split and metric", (
        _MODEL_ID,
        _BENCHMARK,
        Column("protocol", STRING, "name of the protocol, e.g. htstep-r1"),
        Column("protocol_version", INT, "version of the protocol's implementation"),
        Column("split", STRING, "split of the benchmark: val_seen, test_seen, test, all, ..."),
        _METHOD,
        _PATHWAY,
        Column("metric", STRING, "name of the metric, e.g. R@1, AUC, mAP, R@50 IoU 0.3"),
        Column("value", DOUBLE, "value of the metric", "%"),
        Column("low", DOUBLE, "lower end of the 95 % interval (bootstrap over videos)", "%"),
        Column("high", DOUBLE, "upper end of the 95 % interval", "%"),
        Column("num_videos", INT, "number of videos the metric was computed on"),
        Column("num_missing", INT, "number of annotated videos left out because they have no features"),
        Column("seed", INT, "seed of the training; null if there is no training", optional=True),
    ), ("model_id", "benchmark")),
    TableSchema("ablations", 2, "cells of the ablation tables, one row per cell and seed", (
        Column("ablation", STRING, "ablation table: components, pathways, labels, selection, architecture, ..."),
        Column("settings", STRING, "hash of the common settings and of the data; one table for each"),
        Column("row", INT, "position of the row in the table, from 0"),
        Column("variant", STRING, "name of the row"),
        Column("measure", STRING, "name of the column"),
        Column("model_id", STRING, "model that was measured: metrics.model_id"),
        Column("seed", INT, "seed of the training"),
        Column("value", DOUBLE, "value of the metric", "%"),
        Column("paper", DOUBLE, "value in the paper; null if the paper has no such number", "%", optional=True),
    ), ("ablation",)),
    TableSchema("training_log", 4, "loss, learning rate and speed during training", (
        _MODEL_ID,
        Column("stage", STRING, "tan, or vina (the student)"),
        _ROUND,
        Column("epoch", INT, "number of epochs completed"),
        Column("step", LONG, "number of optimiser steps done"),
        Column("loss", FLOAT, "value of the objective"),
        Column("loss_nv", FLOAT, "narration term of the objective", optional=True),
        Column("loss_sv", FLOAT, "step term of the objective", optional=True),
        Column("learning_rate", FLOAT, "learning rate of this step"),
        Column("videos_per_s", FLOAT, "training speed since the last row, in videos per second", "1/s"),
        Column("waiting_percent", FLOAT, "share of the time spent waiting for input", "%"),
        Column("logged_at", TIME, "time of the row", "UTC"),
    ), ("model_id", "stage")),
    TableSchema("runs", 1, "runs of the pipeline", (
        _RUN,
        Column("state", STRING, "running, completed, interrupted (can be resumed) or failed"),
        Column("stages", pa.list_(STRING), "stages that were requested"),
        Column("configuration", STRING, "full configuration, as JSON"),
        Column("code_version", STRING, "version of the package, and the commit if known"),
        Column("host", STRING, "machine that started the run"),
        Column("started_at", TIME, "start time", "UTC"),
        Column("finished_at", TIME, "end time; null while the run is running", "UTC", optional=True),
        Column("error", STRING, "error message, if it failed", optional=True),
    ), ("run_id",)),
    TableSchema("completions", 1, "dependencies of each stage at its last completion: if unchanged, it is skipped", (
        Column("stage", STRING, "name of the stage"),
        Column("settings", STRING, "settings of the stage, as JSON"),
        Column("inputs", STRING, "versions of its inputs, as JSON"),
        Column("outputs", STRING, "versions of its outputs, as JSON"),
        Column("report", STRING, "summary of what it did"),
        Column("took_s", DOUBLE, "duration", "s"),
        Column("finished_at", TIME, "end time", "UTC"),
    ), ("stage",)),
    TableSchema("rejects", 1, "items that a stage could not use, and why", (
        Column("stage", STRING, "stage that rejected the item"),
        Column("item", STRING, "id of a video or row, or a file name"),
        Column("reason", STRING, "short reason, the same text for the same kind of problem"),
        Column("detail", STRING, "full explanation", optional=True),
        Column("file", STRING, "file the item was read from", optional=True),
        Column("line", LONG, "line in that file, from 1", optional=True),
    ), ("stage",)),
)  # fmt: skip

TABLES: dict[str, TableSchema] = {schema.name: schema for schema in _ALL}


def schema_of(name: str) -> TableSchema:
    """Return the declared schema of a table. Raise SchemaError if there is none of this name."""
    if name not in TABLES:
        raise SchemaError(f"there is no table {name!r}; the tables are {', '.join(TABLES)}")
    return TABLES[name]
