"""Which messages the keys and values of records hold, told by the bytes that they begin with."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.messages.text_tables import FRAME_BYTES, VERSION_BYTES, TextTables
from kafka_segments.kafka.wire.filling import Bytes
from kafka_segments.kafka.wire.message_text import IS_LEFT, NOTHING

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_FRAME_VERSION = 1
_END_TYPES = 2  # of control records: abort, commit


class RecordMessages(NamedTuple):
    """Of each record its type and versions, and the first steps of its key and of its value.

    A type of a marker: the one behind the last. A version of -1: there is none.
    """

    type: Int64s
    key_version: Int64s
    value_version: Int64s
    key_step: Int64s
    value_step: Int64s

    def rows(self, first: int, until: int) -> "RecordMessages":
        """Return those of some records."""
        return RecordMessages(*(column[first:until] for column in self))

    def is_left(self) -> Bools:
        """Tell which records a decoder in Python is to decode."""
        is_left: Bools = (self.key_step == IS_LEFT) | (self.value_step == IS_LEFT)
        return is_left


def messages_of(
    tables: TextTables, keys: Bytes, values: Bytes, is_control: Bools, is_left: Bools
) -> RecordMessages:
    """Return the messages of records; one that is unusual is left, as are those of ``is_left``."""
    ours = _keyed if len(tables.of_keys) else _framed
    given = tables, keys, values
    messages = RecordMessages(*np.where(is_control, _of_markers(*given), ours(*given)))
    is_left = is_left | messages.is_left()
    messages.key_step[is_left] = messages.value_step[is_left] = IS_LEFT
    return messages


def _keyed(tables: TextTables, keys: Bytes, values: Bytes) -> RecordMessages:
    """Read what a coordinator's records begin with; the version of a key is the type again."""
    types, versions = (_int16_at(column, 0) for column in (keys, values))
    key_step = _look_up(tables.of_keys, types, np.zeros_like(types))
    value_step = np.where(values.is_null, NOTHING, _look_up(tables.of_values, types, versions))
    return RecordMessages(types, types, versions, key_step, value_step)


def _framed(tables: TextTables, keys: Bytes, values: Bytes) -> RecordMessages:
    """Read frames of types and versions below 128, as all are."""
    frame, types, versions = (_byte_at(values, place, FRAME_BYTES) for place in range(3))
    is_usual = keys.is_null & (frame == _FRAME_VERSION)
    value_step = np.where(is_usual, _look_up(tables.of_values, types, versions), IS_LEFT)
    no_key = np.full_like(types, NOTHING)
    return RecordMessages(types, no_key, versions, no_key, value_step)


def _of_markers(tables: TextTables, keys: Bytes, values: Bytes) -> RecordMessages:
    """Read the ends of transactions, of whichever version: later ones begin as the first."""
    versions, types = (_int16_at(keys, place) for place in (0, VERSION_BYTES))
    is_end = (versions >= 0) & (types >= 0) & (types < _END_TYPES) & (_int16_at(values, 0) >= 0)
    steps = (np.where(is_end, step, IS_LEFT) for step in tables.of_marker)
    kind = np.full_like(types, len(tables.of_values))
    return RecordMessages(kind, versions, np.zeros_like(types), *steps)


def _look_up(table: Int64s, types: Int64s, versions: Int64s) -> Int64s:
    """Return the first steps of messages; IS_LEFT where a type has none in that version."""
    found = np.full_like(types, NOTHING)
    is_in = (types >= 0) & (types < table.shape[0]) & (versions >= 0) & (versions < table.shape[1])
    found[is_in] = table[types[is_in], versions[is_in]]
    return np.where(found == NOTHING, IS_LEFT, found)


def _int16_at(column: Bytes, place: int) -> Int64s:
    """Return an int16 that is not negative from each row; -1: there is none."""
    high, low = (_byte_at(column, at, place + VERSION_BYTES) for at in (place, place + 1))
    return np.where(high < 0x80, high << 8 | low, -1)


def _byte_at(column: Bytes, place: int, needs: int) -> Int64s:
    """Return a byte of each row that has so many bytes as are needed, else -1."""
    begins = column.ends[:-1]
    has = ~column.is_null & (column.ends[1:] - begins >= needs)
    found = np.full(len(begins), -1)
    found[has] = column.data[begins[has] + place]
    return found
