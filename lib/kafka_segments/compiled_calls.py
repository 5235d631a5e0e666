"""The calls from Python to compiled functions that reading segments makes: what to compile early.

A call with other types is compiled when it comes, as are those of ``migrate``, which few need.
"""

from typing import Any

import numba
from numba import types

from kafka_segments.kafka.index.segment import appending, kernel, offset_ranges, summarizer
from kafka_segments.kafka.wire import batches, crc, filling, message_text, record_form

_BYTES = types.Array(types.uint8, 1, "C")
_READ_ONLY = types.Array(types.uint8, 1, "C", readonly=True)
_INTS = types.Array(types.int64, 1, "C")
_TABLE = types.Array(types.int64, 2, "C")
_PART_OF_TABLE = types.Array(types.int64, 2, "A")
_ENDS = types.Array(types.int32, 1, "C")
_READ_ENDS = types.Array(types.int32, 1, "C", readonly=True)
_INT, _BOOL = types.int64, types.boolean
_NO_COLUMNS = filling.new_columns(rows=0, data_bytes=0, headers=0, wants=(True, True, True))
_COLUMNS = numba.typeof(_NO_COLUMNS)

CALLS: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (kernel.scan_buffer, (_BYTES, _INT, _INT, _INTS, *[_TABLE] * 5)),
    (summarizer._summarize, (*[_TABLE] * 4, *[_INTS] * 3)),
    (summarizer._hash_all, (_TABLE, _INT, _INTS)),
    (summarizer._keep_open, (_TABLE, _TABLE, _INTS, _TABLE, _INTS)),
    (appending.append_last_time_entry, (_INTS, _TABLE)),
    (crc._crc32c, (_READ_ONLY, _BOOL)),
    (batches._walk_batches, (_BYTES, _INT, _INT, _TABLE, _INT, _INTS)),
    (batches.crc_piece, (_BYTES, _INT, _INT, _INT, _BOOL, _BOOL)),
    (filling.fill_columns, (_READ_ONLY, _INTS, _INTS, _INT, _TABLE, _COLUMNS, _INTS, _INTS)),
    (record_form.form_batches, (_READ_ONLY, _INTS, _INTS, _INT, _TABLE, _BYTES, _INTS, _INTS)),
    (
        message_text.write_texts,
        (_TABLE, *[_READ_ONLY] * 2, _READ_ENDS, _INTS, _INT, _BYTES, _ENDS, _INTS),
    ),
    *(
        (offset_ranges.fold_ranges, (found, _INT, _INT, _TABLE, _INT, _INT))
        for found in (_TABLE, _PART_OF_TABLE)
    ),
)
"""Functions, each with the types of the arguments of one call."""


def compile_calls() -> str | None:
    """Compile all calls that are not compiled yet.

    Return the folder in which the code is kept between runs; None: there is none that can be
    written to, and each process compiles anew.
    """
    for function, signature in CALLS:
        function.compile(signature)
    folder: str | None = CALLS[0][0].stats.cache_path
    return folder
