"""Whether versions of a Delta table hold the same rows, however these lie in its files.

Of each row a number is made, the same for the same values within this process. Their sum does not
tell in which order rows lie, and no more than a batch of them is in memory.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError
from numpy.typing import NDArray

from kafka_segments.files.delta.rows import is_opened_in_place, without_views
from kafka_segments.files.storage.files import place

_NOT_TOLD = (OSError, DeltaError, pa.ArrowException, ArithmeticError, KeyError, ValueError)
_NULL = -0x61C8_8646_80B5_83EB  # no value of ours
# SplitMix64 of Steele, Lea and Flood.
_FIRST, _SECOND = np.uint64(0xBF58_476D_1CE4_E5B9), np.uint64(0x94D0_49BB_1331_11EB)


def have_same_rows(uri: str, version: int, later: int) -> bool | None:
    """Tell whether a later version has the rows of another, by the columns of that one.

    None: it is not known, as one of them has lost its files, or the table lies in a store.
    """
    if not is_opened_in_place(uri):
        return None
    try:
        before, after = (DeltaTable(place(uri).path, version=of) for of in (version, later))
        names, there = ([field.name for field in of.schema().fields] for of in (before, after))
        return set(names) <= set(there) and _sum_of(before, names) == _sum_of(after, names)
    except _NOT_TOLD:
        return None


def _sum_of(table: DeltaTable, names: Sequence[str]) -> tuple[int, int]:
    """Return how many rows there are, and the sum of their numbers."""
    chosen = ", ".join(f'"{name}"' for name in names)
    query = QueryBuilder().register("rows", table).execute(f"SELECT {chosen} FROM rows")  # noqa: S608
    count, total = 0, 0
    for batch in pa.RecordBatchReader.from_stream(query):
        rows = np.zeros(len(batch), np.uint64)
        for column in without_views(pa.Table.from_batches([batch])).columns:
            rows = _mixed(rows ^ _numbers(column.combine_chunks()))
        count, total = count + len(rows), (total + int(rows.sum())) % 2**64
    return count, total


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _SECOND
    return numbers ^ (numbers >> np.uint64(31))


def _numbers(values: pa.Array) -> NDArray[np.uint64]:
    """Return a number for each value; equal ones have the same."""
    if pa.types.is_integer(values.type) or pa.types.is_timestamp(values.type):
        whole = values.cast(pa.int64()).fill_null(_NULL).to_numpy()
        return np.asarray(whole, np.int64).view(np.uint64)
    if pa.types.is_string(values.type):
        coded = values.dictionary_encode(null_encoding="encode")
        found: NDArray[np.uint64] = _hashed(coded.dictionary)[coded.indices.to_numpy()]
        return found
    return _hashed(values)


def _hashed(values: pa.Array) -> NDArray[np.uint64]:
    found = [hash(repr(value)) for value in values.to_pylist()]
    return np.array(found, np.int64).view(np.uint64)
