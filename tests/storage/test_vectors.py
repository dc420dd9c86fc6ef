import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from storage.vectors import decode, decode_for_sql, encode

matrices = st.sampled_from(["float16", "float32"]).flatmap(
    lambda dtype: hnp.arrays(np.dtype(dtype), st.tuples(st.integers(0, 5), st.integers(1, 7)))
)


@given(matrices, st.integers(0, 5), st.integers(0, 5))
def test_vectors_come_back_bit_for_bit_from_any_slice(vectors_TD: np.ndarray, start: int, count: int) -> None:
    column = encode(vectors_TD, vectors_TD.dtype.name).slice(start, count)
    back_TD = decode(column, vectors_TD.dtype.name)
    expected_TD = vectors_TD[start : start + count]
    assert back_TD.tobytes() == expected_TD.tobytes()
    if len(expected_TD):
        assert back_TD.shape == expected_TD.shape
    lists = decode_for_sql(vectors_TD.dtype.name)(column).to_pylist()
    assert np.array_equal(
        np.array(lists, np.float32).reshape(expected_TD.shape), expected_TD.astype(np.float32), equal_nan=True
    )


def test_chunks_are_joined() -> None:
    vectors_TD = np.arange(12, dtype=np.float16).reshape(4, 3)
    column = pa.chunked_array([encode(vectors_TD[:1], "float16"), encode(vectors_TD[1:], "float16")])
    assert np.array_equal(decode(column, "float16"), vectors_TD)


def test_other_float_types_are_converted_at_write() -> None:
    assert decode(encode(np.full((1, 2), 1 / 3), "float16"), "float16").tolist() == [[0.333251953125] * 2]


def test_widths_that_differ_are_refused() -> None:
    column = pa.array([bytes(6), bytes(10)])
    with pytest.raises(ValueError, match="different widths"):
        decode(column, "float16")


@pytest.mark.parametrize("shape", [(3,), (3, 0), (1, 2, 3)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="2-D array"):
        encode(np.zeros(shape), "float16")


def test_nulls_stay_null_in_sql() -> None:
    column = pa.array([np.float16(1).tobytes(), None, np.float16(2).tobytes()])
    assert decode_for_sql("float16")(column).to_pylist() == [[1.0], None, [2.0]]
