"""Tables of int64 as values of a column: numpy arrays become lists of structs, and back."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Table = npt.NDArray[np.int64]


def to_nested(tables: Sequence[Table | None], arrow_type: pa.ListType) -> pa.Array:
    """Build an array of lists of structs; a table's columns are the struct's fields, in order."""
    fields = [arrow_type.value_type.field(i) for i in range(arrow_type.value_type.num_fields)]
    ends = np.zeros(len(tables) + 1, dtype=np.int32)
    np.cumsum([0 if table is None else len(table) for table in tables], out=ends[1:])
    known = [table for table in tables if table is not None and len(table)]
    rows = np.concatenate(known) if known else np.empty((0, len(fields)), dtype=np.int64)
    columns = [
        pa.array(np.ascontiguousarray(rows[:, i])).cast(field.type)
        for i, field in enumerate(fields)
    ]
    structs = pa.StructArray.from_arrays(columns, fields=fields)
    missing = pa.array([table is None for table in tables], type=pa.bool_())
    return pa.ListArray.from_arrays(pa.array(ends), structs, type=arrow_type, mask=missing)


def from_nested(array: pa.ListArray) -> list[Table]:
    """Return one table for each row; a null list becomes an empty table."""
    width = array.type.value_type.num_fields
    structs = array.flatten()
    if len(structs):
        columns = [np.asarray(structs.field(i).cast(pa.int64())) for i in range(width)]
        rows = np.column_stack(columns)
    else:
        rows = np.empty((0, width), dtype=np.int64)
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return np.split(rows, np.cumsum(lengths)[:-1]) if len(array) else []
