"""Every table of the store: version, columns, types, units, a comment each. Nothing is inferred from data.

A table's `partition_by` columns name its partitions (a backbone, a run and its round, ...). A shard is written whole
into one partition, and a rerun replaces its own shards only. Three columns that every table has say where a row comes
from: PROVENANCE. These, and a table's `constants`, are the same in all rows of a file and are kept once, in the log.
Times are seconds from the start of the video. A row that speaks of *second s* speaks of the interval [s, s + 1).
A change to a table's columns raises its version; a store written with another version is refused, never guessed at.
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
        """The type as a person would say it."""
        if self.vector:
            return f"vector of {self.vector}"
        return f"list of {self.type.value_type}" if pa.types.is_list(self.type) else str(self.type)


def _vector(name: str, dtype: str, comment: str) -> Column:
    return Column(name, pa.binary(), comment, vector=dtype)


PROVENANCE = (
    Column("_shard", STRING, "the shard within the partition: the unit of work and of commit"),
    Column("_fingerprint", STRING, "hash of the configuration, input versions and code version behind the shard"),
    Column("_written_by", STRING, "the run that wrote the shard: runs.run_id"),
)


@dataclass(frozen=True)
class TableSchema:
    """A table's name, version, meaning, columns and partitions. `key` is the column that random access looks up."""

    name: str
    version: int
    comment: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...]
    key: str | None = None
    constants: tuple[str, ...] = ()
    sequence: str | None = None
    """Each write holds the rows of one key, or their next ones, and this column numbers them from 0."""
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
        """Rows in exactly the schema of the files; a SchemaError says what does not fit."""
        self._check_names(set(self.files.names), set(rows.column_names))
        if len(rows.column_names) != len(self.files):
            raise SchemaError(f"table {self.name}: a column is given twice among {', '.join(rows.column_names)}")
        columns = {column.name: self._checked(column, rows.column(column.name)) for column in self.files}
        fields = [column.with_type(columns[column.name].type) for column in self.files]
        return pa.table(columns, schema=pa.schema(fields))

    def cast_constants(self, constants: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the log's columns for one shard; a SchemaError says what does not fit."""
        self._check_names(set(self.log_columns), set(constants))
        fixed = {}
        for name in self.log_columns:
            column = self.arrow.field(name)
            try:
                fixed[name] = pa.scalar(constants[name]).cast(column.type).as_py()
            except (pa.ArrowException, ValueError) as error:
                raise SchemaError(f"table {self.name}, column {name}: {error}") from error
            if fixed[name] is None and not column.nullable:
                raise SchemaError(f"table {self.name}, column {name}: it may not be null")
            if fixed[name] == "":
                raise SchemaError(f"table {self.name}, column {name}: a partition, shard or constant may not be empty")
        return fixed

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
            raise SchemaError(f"table {self.name}, column {column.name}: {array.null_count} nulls where none may be")
        return array


def _difference(expected: set[str], given: set[str]) -> str:
    parts = []
    if missing := sorted(expected - given):
        parts.append(f"missing columns {', '.join(missing)}")
    if unknown := sorted(given - expected):
        parts.append(f"unknown columns {', '.join(unknown)}")
    return "; ".join(parts)


_VIDEO = Column("video_id", STRING, "the data set's own id of the video, taken as it is")
_ARTICLE = Column(
    "article_id", STRING, "SOURCE/ID of the article (in HowTo100M's words: the task), ID being the source's own"
)
_RUN = Column("run_id", STRING, "the run, as `_written_by` names it")
_MODEL_ID = Column(
    "model_id", STRING, "NAME@HASH of the model, HASH being that of its settings and of what it is trained on"
)
_ROUND = Column("round", INT, "0 is burn-in, then one for each teacher")
_SOURCE = Column("source", STRING, "the data set the row comes from: howto100m, wikihow, crosstask, ...")
_BENCHMARK = Column("benchmark", STRING, "crosstask, crosstask-articles, htstep, htm-align, ...")
_METHOD = Column("method", STRING, "family of the model or baseline, e.g. vina, tan-lc, uniform")
_PATHWAY = Column(
    "pathway", STRING, "from text to video: direct (no narrations at inference), fused, direct with narrations, "
    "indirect, indirect by ASR times",
)  # fmt: skip
_BACKBONE = Column("backbone", STRING, "the network's name, e.g. s3d-milnce")
_ENCODER = Column("encoder", STRING, "NAME@HASH of the sentence encoder, HASH being that of its files")


def _start(comment: str, optional: bool = False, type_: pa.DataType = FLOAT) -> Column:
    return Column("start_s", type_, comment, "s", optional)


def _end(comment: str, optional: bool = False, type_: pa.DataType = FLOAT) -> Column:
    return Column("end_s", type_, comment, "s", optional)


_ALL = (
    TableSchema("videos", 2, "every video the store has heard of; one of two tasks has two rows", (
        _SOURCE,
        _VIDEO,
        Column("article_id", STRING, "the task that the data set's metadata names: articles.article_id", optional=True),
        Column("category_1", STRING, "broad category in the data set's metadata", optional=True),
        Column("category_2", STRING, "narrow category in the data set's metadata", optional=True),
        Column("rank", INT, "rank of the video among the search results for its task", optional=True),
        Column("duration_s", FLOAT, "length of the video", "s", optional=True),
        Column("split", STRING, "train, validation, test, ... where the data set says so", optional=True),
        Column("uri", STRING, "where the video file is, if there is one", optional=True),
    ), ("source",), key="video_id"),
    TableSchema("narrations", 1, "what is said in each video, one row a sentence", (
        _SOURCE,
        _VIDEO,
        Column("row", INT, "position of the sentence in the video's spoken order, from 0"),
        Column("text", STRING, "the sentence"),
        _start("when the sentence begins, by speech recognition"),
        _end("when the sentence ends, by speech recognition"),
    ), ("source",), key="video_id"),
    TableSchema("articles", 2, "how-to articles; a variation of an article is an article of its own", (
        _SOURCE,
        _ARTICLE,
        Column("title", STRING, "the title, without its method number"),
        Column("variation", STRING, "the method or variation within the title", optional=True),
        Column("category", STRING, "the data set's own grouping, e.g. primary and related in CrossTask", optional=True),
    ), ("source",), key="article_id"),
    TableSchema("steps", 1, "the ordered steps of each article", (
        _SOURCE,
        _ARTICLE,
        Column("row", INT, "position of the step in the article, from 0"),
        Column("step_id", STRING, "the data set's own id of the step"),
        Column("headline", STRING, "the step in one sentence"),
        Column("paragraph", STRING, "the step's explanation", optional=True),
    ), ("source",), key="article_id"),
    TableSchema("annotations", 2, "ground truth of every benchmark: one row a segment, or a narration", (
        _BENCHMARK,
        _VIDEO,
        Column("article_id", STRING, "the task or article whose step this is; none for narrations", optional=True),
        Column("step_id", STRING, "steps.step_id of the step shown, if it is one; none for narrations", optional=True),
        Column("narration_row", INT, "position of the narration in its video; none for steps", optional=True),
        Column("text", STRING, "the step's headline or the narration"),
        _start("when it begins to be seen; none where it is not alignable", optional=True, type_=DOUBLE),
        _end("when it is no longer seen; none where it is not alignable", optional=True, type_=DOUBLE),
        Column("alignable", BOOL, "whether the text is seen in the video at all"),
        Column("split", STRING, "train, validation, test, ... as the data set says"),
    ), ("benchmark",), key="video_id"),
    TableSchema("features", 3, "one vector a second of video, and how it was made", (
        _BACKBONE,
        _VIDEO,
        Column("second", INT, "the vector describes [second, second + 1)", "s"),
        _vector("vector", "float16", "the network's output"),
        Column("fps", FLOAT, "frames a second taken from the video; none if not known", "1/s", optional=True),
        Column("frames_per_clip", INT, "frames the network sees for one vector; none if not known", optional=True),
        Column("frame_px", INT, "side of the square frames; none if not known", "px", optional=True),
        Column("short_side_px", INT, "what the short side was scaled to; none if not known", "px", optional=True),
        Column("stride_s", FLOAT, "time between the beginnings of two clips", "s"),
        Column("layer", STRING, "the layer the vector is read from, e.g. mixed_5c"),
        Column("value_range", STRING, "range of the pixel values, e.g. [0, 1]; none if not known", optional=True),
        Column("weights_sha256", STRING, "hash of the weights' file, or random:SEED; none if not known", optional=True),
    ), ("backbone",), key="video_id",
        constants=("fps", "frames_per_clip", "frame_px", "short_side_px", "stride_s", "layer", "value_range",
                   "weights_sha256"),
        sequence="second"),
    TableSchema("sentence_embeddings", 2, "one row a distinct text", (
        _ENCODER,
        Column("text_sha256", STRING, "hash of the text; shards hold the texts in its order"),
        Column("text", STRING, "the narration, title or step"),
        _vector("vector", "float16", "the embedding; of unit length if the encoder is one for pairing"),
    ), ("encoder",), key="text_sha256"),
    TableSchema("text_votes", 1, "the article whose title each distinct text is most similar to", (
        _ENCODER,
        Column("text", STRING, "the narration, or a title"),
        _ARTICLE,
        Column("similarity", FLOAT, "cosine similarity of the narration and the article's title"),
    ), ("encoder",)),
    TableSchema("votes", 1, "for each video the articles its narrations voted for, best first", (
        _ENCODER,
        _VIDEO,
        Column("rank", INT, "1 is the winner; ties: more votes, then higher similarity_sum, then smaller id"),
        _ARTICLE,
        Column("votes", INT, "narrations whose most similar title is this article's"),
        Column("similarity_sum", FLOAT, "sum of the cosine similarities of those narrations"),
        Column("num_narrations", INT, "narrations of the video"),
    ), ("encoder",), key="video_id"),
    TableSchema("pairs", 2, "which article each video is trained with", (
        Column("selection", STRING, "metadata, top1 or random_top5"),
        _VIDEO,
        _ARTICLE,
        Column("rank", INT, "the article's rank among the votes; none for metadata", optional=True),
        Column("encoder", STRING, "the encoder whose votes these are; none for metadata", optional=True),
        Column("confidence", FLOAT, "vote margin over the next article as a share of the narrations", optional=True),
        Column("similarity_margin", FLOAT, "how much similarity_sum exceeds the next article's", optional=True),
    ), ("selection",), key="video_id"),
    TableSchema("pseudo_labels", 3, "every candidate segment a teacher proposed, kept or not", (
        _MODEL_ID,
        _ROUND,
        _VIDEO,
        _ARTICLE,
        Column("step_row", INT, "steps.row of the step"),
        Column("peak_s", INT, "second with the highest score", "s"),
        Column("score", FLOAT, "the score there (cosine similarity)"),
        _start("first second of the segment"),
        _end("end of the segment's last second"),
        Column("kept", BOOL, "whether the student is trained on it"),
        Column("reason", STRING, "why it was kept or dropped, e.g. 'confidence below gamma'"),
        Column("confidence", FLOAT, "how sure the teacher was: the score, or what else the training goes by"),
        Column("gamma", FLOAT, "the threshold the confidence was held against"),
        Column("matrix", STRING, "the alignment matrix it was read from: SV or F"),
        Column("teacher", STRING, "the model that made it: a checkpoint's name"),
    ), ("model_id", "round"), key="video_id"),
    TableSchema("alignments", 3, "a teacher's alignment matrices of a sample of the videos, one row a text row", (
        _MODEL_ID,
        _ROUND,
        Column("matrix", STRING, "SV, NV, SN, SNV or F"),
        _VIDEO,
        _ARTICLE,
        Column("text_row", INT, "row of the step (or narration, in NV) within the video's list"),
        Column("scores", SCORES, "one score a second (one a narration, in SN)"),
    ), ("model_id", "round", "matrix"), key="video_id"),
    TableSchema("predictions", 4, "a model's answers about a benchmark's videos", (
        _MODEL_ID,
        Column("protocol", STRING, "what was asked for: htstep-r1, htstep-map, htm-align, crosstask, ..."),
        _METHOD,
        _PATHWAY,
        _VIDEO,
        Column("article_id", STRING, "the task or article whose step this is; none for narrations", optional=True),
        Column("label", LONG, "the step_id (crosstask-articles: the headline's place), or the narration's place"),
        Column("peak_s", INT, "the second it points at; none if the protocol asks for segments", "s", optional=True),
        _start("begin of the detected segment; none if the protocol asks for a second", optional=True),
        _end("end of the detected segment; none if the protocol asks for a second", optional=True),
        Column("score", FLOAT, "confidence, higher is surer"),
    ), ("model_id", "protocol", "method", "pathway"), key="video_id"),
    TableSchema("models", 1, "models that can be used on their own: objects/models/TRAINING.pt", (
        _MODEL_ID,
        Column("tan", STRING, "NAME@HASH of the TAN* whose labels it was burnt in with"),
        Column("settings", STRING, "hash of the training's settings, which its name has too, beside that of its data"),
        _BACKBONE,
        Column("version", STRING, "hash of its weights"),
        Column("is_calibrated", BOOL, "whether it says that a step is not shown"),
        Column("made_at", TIME, "when", "UTC"),
    ), ("model_id",)),
    TableSchema("presences", 2, "is a step shown at all? a model's answers about held-out videos, beside the truth", (
        _MODEL_ID,
        _METHOD,
        _PATHWAY,
        _VIDEO,
        Column("article_id", STRING, "the article whose step this is"),
        Column("label", LONG, "the step_id"),
        Column("split", STRING, "the part of the benchmark: val_seen, test_seen, ..."),
        Column("peak", FLOAT, "the row's highest score (cosine similarity)"),
        Column("presence", FLOAT, "probability that the step is shown, by weights fitted on other videos"),
        Column("is_shown", BOOL, "whether the step is annotated in the video"),
    ), ("model_id", "method", "pathway"), key="video_id"),
    TableSchema("metrics", 4, "every number, with the protocol that gave it", (
        _MODEL_ID,
        _BENCHMARK,
        Column("protocol", STRING, "name of the protocol, e.g. htstep-r1"),
        Column("protocol_version", INT, "version of the protocol's implementation"),
        Column("split", STRING, "the part of the benchmark: val_seen, test_seen, test, all, ..."),
        _METHOD,
        _PATHWAY,
        Column("metric", STRING, "e.g. R@1, AUC, mAP, R@50 IoU 0.3"),
        Column("value", DOUBLE, "the number", "%"),
        Column("low", DOUBLE, "lower end of the 95 % interval (bootstrap over videos)", "%"),
        Column("high", DOUBLE, "upper end of the 95 % interval", "%"),
        Column("num_videos", INT, "videos the number was computed on"),
        Column("num_missing", INT, "annotated videos of the split that have no features: not part of the number"),
        Column("seed", INT, "seed of the training; none for methods without training", optional=True),
    ), ("model_id", "benchmark")),
    TableSchema("ablations", 1, "the cells of the ablation tables: one row a cell and seed", (
        Column("ablation", STRING, "the table: components, pathways, labels, selection, architecture, ..."),
        Column("settings", STRING, "hash of the settings that the rows change, and of the data: one table each"),
        Column("row", INT, "place of the row in the table, from 0"),
        Column("variant", STRING, "what the row is called"),
        Column("measure", STRING, "what the column is called"),
        Column("model_id", STRING, "NAME@HASH of the model that was measured: metrics.model_id"),
        Column("seed", INT, "seed of the training"),
        Column("value", DOUBLE, "the number", "%"),
        Column("paper", DOUBLE, "the paper's number in this cell; none where it has none", "%", optional=True),
    ), ("ablation",)),
    TableSchema("training_log", 3, "losses and rates while training", (
        _MODEL_ID,
        Column("stage", STRING, "tan, or vina for the student"),
        _ROUND,
        Column("epoch", INT, "epochs completed before this step"),
        Column("step", LONG, "optimiser steps done, in this training"),
        Column("loss", FLOAT, "the objective"),
        Column("loss_nv", FLOAT, "its narration part", optional=True),
        Column("loss_sv", FLOAT, "its step part", optional=True),
        Column("learning_rate", FLOAT, "of this step"),
        Column("videos_per_s", FLOAT, "videos trained on a second since the last row", "1/s"),
        Column("waiting_percent", FLOAT, "share of the time in which the reader was waited for", "%"),
        Column("logged_at", TIME, "when", "UTC"),
    ), ("model_id", "stage")),
    TableSchema("runs", 1, "who wrote what: one row a run of the pipeline", (
        _RUN,
        Column("state", STRING, "running, completed, interrupted (saved, to go on) or failed"),
        Column("stages", pa.list_(STRING), "the stages it was asked for"),
        Column("configuration", STRING, "its full configuration, as JSON"),
        Column("code_version", STRING, "version of the package, and the commit where it is known"),
        Column("host", STRING, "the machine that started it"),
        Column("started_at", TIME, "when it began", "UTC"),
        Column("finished_at", TIME, "when it ended; none while it runs", "UTC", optional=True),
        Column("error", STRING, "what ended it, if it failed", optional=True),
    ), ("run_id",)),
    TableSchema("completions", 1, "what each stage was last made of: equal now means that there is nothing to do", (
        Column("stage", STRING, "the stage"),
        Column("settings", STRING, "its settings, as JSON"),
        Column("inputs", STRING, "versions of what it read, as JSON"),
        Column("outputs", STRING, "versions of what it left, as JSON"),
        Column("report", STRING, "what it said it did"),
        Column("took_s", DOUBLE, "how long it took", "s"),
        Column("finished_at", TIME, "when it ended", "UTC"),
    ), ("stage",)),
    TableSchema("rejects", 1, "every item a stage could not use, and why", (
        Column("stage", STRING, "the stage that rejected it"),
        Column("item", STRING, "what was rejected: a video id, a row's id, a file"),
        Column("reason", STRING, "a short reason that can be counted"),
        Column("detail", STRING, "the whole story", optional=True),
        Column("file", STRING, "the file it was read from", optional=True),
        Column("line", LONG, "the line in that file, from 1", optional=True),
    ), ("stage",)),
)  # fmt: skip

TABLES: dict[str, TableSchema] = {schema.name: schema for schema in _ALL}


def schema_of(name: str) -> TableSchema:
    """The declared schema of a table; a SchemaError lists the names there are."""
    if name not in TABLES:
        raise SchemaError(f"there is no table {name!r}; the tables are {', '.join(TABLES)}")
    return TABLES[name]
