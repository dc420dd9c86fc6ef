"""Vectors in tables: one `binary` cell a vector, the little-endian bytes of its floats.

Why not a list of floats: a full read of `fixed_size_list<float16>` is four times slower than of bytes, and a table
format without float16 (Delta) can still declare bytes. SQL users see `FLOAT[]` all the same: the catalogue's views
pass every vector column through `decode_for_sql`. Any width fits, so that backbones of all kinds share one table.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.floating[Any]]


def encode(vectors_TD: Floats, dtype: str) -> pa.Array:
    """Rows of a 2-D array as a binary column; bytes are shared with the array where its type already fits."""
    if vectors_TD.ndim != 2:
        raise ValueError(f"vectors must be a 2-D array (rows x width), not of shape {vectors_TD.shape}")
    little_TD = np.ascontiguousarray(vectors_TD, dtype=np.dtype(dtype).newbyteorder("<"))
    width = little_TD.shape[1] * little_TD.itemsize
    if little_TD.nbytes >= 2**31:
        raise ValueError(f"{little_TD.nbytes} bytes of vectors in one column: write them in several row groups")
    offsets = np.arange(len(little_TD) + 1, dtype=np.int32) * width
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(little_TD)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(little_TD), buffers)


def decode(column: pa.Array | pa.ChunkedArray, dtype: str) -> Floats:
    """The 2-D array behind a binary column whose vectors all have one width; no copy for a single chunk."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    offsets, floats = _flatten(column, np.dtype(dtype))
    if len(column) == 0:
        return floats.reshape(0, 0)
    if (len(floats) * floats.itemsize) != (offsets[1] - offsets[0]) * len(column):
        raise ValueError("the vectors of this column have different widths")
    return floats.reshape(len(column), -1)


def decode_for_sql(dtype: str) -> Any:
    """A DuckDB function body: BLOB column in, FLOAT[] column out, nulls kept."""

    def to_lists(column: pa.Array | pa.ChunkedArray) -> pa.Array:
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        column = column.cast(pa.binary())
        offsets, floats = _flatten(column, np.dtype(dtype))
        starts = pa.array(((offsets - offsets[0]) // floats.itemsize).astype(np.int32))
        mask = column.is_null() if column.null_count else None
        return pa.ListArray.from_arrays(starts, pa.array(floats.astype(np.float32)), mask=mask)

    return to_lists


def _flatten(column: pa.Array, dtype: np.dtype[Any]) -> tuple[npt.NDArray[np.int32], Floats]:
    _, offset_buffer, data = column.buffers()
    if offset_buffer is None or offset_buffer.size == 0:
        return np.zeros(1, np.int32), np.zeros(0, dtype)
    offsets = np.frombuffer(offset_buffer, np.int32)[column.offset : column.offset + len(column) + 1]
    count = int(offsets[-1] - offsets[0]) // dtype.itemsize
    if count == 0:
        return offsets, np.zeros(0, dtype)
    return offsets, np.frombuffer(data, dtype.newbyteorder("<"), count=count, offset=int(offsets[0]))
