"""Vectors in tables: each is stored as the bytes of its floats, little-endian; all vectors of a file have one width.

Why not lists of floats: a full read of `fixed_size_list<float16>` is four times slower than of bytes, and Delta has no
float16. SQL users see `FLOAT[]`: the catalogue's views pass every vector column through `decode_for_sql`. Files of
different widths share a table, so that every backbone can use it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.floating[Any]]


def encode(vectors_TD: Floats, dtype: str) -> pa.Array:
    """Return the rows of a 2-D array as a column of bytes; an array of the right type is not copied."""
    if vectors_TD.ndim != 2 or vectors_TD.shape[1] == 0:
        raise ValueError(f"vectors must be a 2-D array (rows x width), not of shape {vectors_TD.shape}")
    little_TD = np.ascontiguousarray(vectors_TD, dtype=np.dtype(dtype).newbyteorder("<"))
    kind = pa.binary(little_TD.shape[1] * little_TD.itemsize)
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(little_TD), [None, pa.py_buffer(little_TD)])


def feature_rows(video_id: str, vectors_TD: Floats, first: int = 0) -> pa.Table:
    """Return rows of the table `features`: a video's vectors from second `first` on."""
    size = len(vectors_TD)
    return pa.table(
        {
            "video_id": pa.array([video_id] * size, pa.string()),
            "second": pa.array(np.arange(first, first + size, dtype=np.int32)),
            "vector": encode(vectors_TD, "float16"),
        }
    )


def decode(column: pa.ChunkedArray, dtype: str) -> Floats:
    """Return a column of vectors of one width as a 2-D array."""
    offsets, floats = _flatten(column, np.dtype(dtype))
    widths = np.diff(offsets)
    if len(widths) and (widths != widths[0]).any():
        raise ValueError("the vectors of this column have different widths")
    return floats.reshape(len(widths), -1) if len(widths) else floats.reshape(0, 0)


def decode_for_sql(dtype: str) -> Callable[[pa.ChunkedArray], pa.Array]:
    """Return a DuckDB function that turns a BLOB column into a FLOAT[] column and keeps nulls."""

    def to_lists(column: pa.ChunkedArray) -> pa.Array:
        offsets, floats = _flatten(column, np.dtype(dtype))
        mask = pa.array(column.is_null().to_pylist()) if column.null_count else None
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(floats.astype(np.float32)), mask=mask)

    return to_lists


def _flatten(column: pa.Array | pa.ChunkedArray, dtype: np.dtype[Any]) -> tuple[npt.NDArray[np.int32], Floats]:
    """Return where each row's floats begin and end, and the floats of all rows."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    column = column.cast(pa.binary())
    _, offset_buffer, data = column.buffers()
    if len(column) == 0 or data is None or data.size == 0:
        return np.zeros(len(column) + 1, np.int32), np.zeros(0, dtype)
    offsets = np.frombuffer(offset_buffer, np.int32)[column.offset : column.offset + len(column) + 1]
    count = int(offsets[-1] - offsets[0]) // dtype.itemsize
    floats = np.frombuffer(data, dtype.newbyteorder("<"), count=count, offset=int(offsets[0]))
    return ((offsets - offsets[0]) // dtype.itemsize).astype(np.int32), floats
