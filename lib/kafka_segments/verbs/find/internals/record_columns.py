"""Columns of ``internal_records`` that come from records' keys and values."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_segments.engine.rows.arrow_columns import Bools, Int64s, numbers, strings
from kafka_segments.kafka.messages.record_messages import RecordMessages, messages_of
from kafka_segments.kafka.messages.records import UNKNOWN, decode_internal
from kafka_segments.kafka.messages.text_tables import TextTables, text_tables
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.kafka.wire import message_text
from kafka_segments.kafka.wire.batches import read_only
from kafka_segments.kafka.wire.filling import Bytes

GIVEN = ("key", "value", "is_control", "error")
_MOST_ROWS = 64 * 1024
_TEXT_BYTES = 16 * 1024 * 1024  # of keys, of values, before rows are given away


class Decoded(NamedTuple):
    """The columns of a row that come from the record's key and value."""

    kind: str | None = None
    key_version: int | None = None
    value_version: int | None = None
    key_json: str | None = None
    value_json: str | None = None
    is_tombstone: bool | None = None
    key: bytes | None = None
    value: bytes | None = None
    problem: str | None = None


class RecordColumns:
    """Decodes the records of one batch of rows after another, in room that is made once.

    Compiled code writes what is sound and usual; ``decode_row`` decodes the others.
    """

    def __init__(self, arrow_schema: pa.Schema) -> None:
        self._types = {name: arrow_schema.field(name).type for name in Decoded._fields}
        self._keys, self._values = (
            Bytes(
                np.empty(_TEXT_BYTES, np.uint8),
                np.zeros(_MOST_ROWS + 1, np.int32),
                np.empty(_MOST_ROWS, np.bool_),
            )
            for _ in range(2)
        )

    def decode(self, topic: str, given: pa.RecordBatch) -> Iterator[dict[str, pa.Array]]:
        """Yield the columns of ``Decoded`` of the next rows of ``given``, until all are decoded.

        ``given``: at least the columns of ``GIVEN``.
        """
        tables = text_tables(topic)
        keys, values = (_bytes_of(given.column(name)) for name in ("key", "value"))
        is_control = _is_control(topic, given)
        is_error = given.column("error").is_valid().to_numpy(zero_copy_only=False)
        messages = messages_of(tables, keys, values, is_control, is_error)
        is_tombstone = values.is_null & ~is_control
        first = 0
        while first < given.num_rows:
            until = _write(tables, values, messages.value_step, first, self._values)
            until = _write(tables, keys, messages.key_step[:until], first, self._keys)
            columns = self._columns(tables, messages.rows(first, until))
            columns["is_tombstone"] = pa.array(is_tombstone[first:until])
            is_left = messages.rows(first, until).is_left()
            yield self._with_left(topic, given.slice(first, until - first), columns, is_left)
            first = until

    def _columns(self, tables: TextTables, messages: RecordMessages) -> dict[str, pa.Array]:
        """Return the columns of what was written."""
        kinds = pa.array(tables.kinds, type=pa.string())
        count = len(messages.type)
        return {
            "kind": kinds.take(pa.array(messages.type, mask=messages.is_left())),
            "key_version": self._numbers("key_version", messages.key_version),
            "value_version": self._numbers("value_version", messages.value_version),
            "key_json": _texts(self._keys, messages.key_step),
            "value_json": _texts(self._values, messages.value_step),
            **{name: pa.nulls(count, self._types[name]) for name in ("key", "value", "problem")},
        }

    def _numbers(self, name: str, values: Int64s) -> pa.Array:
        return numbers(values, self._types[name], values < 0)

    def _with_left(
        self, topic: str, given: pa.RecordBatch, columns: dict[str, pa.Array], is_left: Bools
    ) -> dict[str, pa.Array]:
        """Decode the rows that are left in Python."""
        if not is_left.any():
            return columns
        is_by_python = pa.array(is_left)
        asked = (given.column(name).filter(is_by_python).to_pylist() for name in GIVEN)
        rows = (decode_row(topic, *row) for row in zip(*asked, strict=True))
        for name, values in zip(Decoded._fields, zip(*rows, strict=True), strict=True):
            by_python = pa.array(values, type=self._types[name])
            columns[name] = pc.replace_with_mask(columns[name], is_by_python, by_python)
        return columns


def _write(tables: TextTables, given: Bytes, steps: Int64s, first: int, texts: Bytes) -> int:
    """Write rows from ``first`` on; return the one behind the last that had room."""
    until: int = message_text.write_texts(
        *(tables.steps, tables.texts, given.data, given.ends, steps, first),
        *(texts.data, texts.ends, np.zeros(tables.slots, np.int64)),
    )
    return until


def _texts(written: Bytes, steps: Int64s) -> pa.Array:
    written.is_null[: len(steps)] = steps < 0
    return strings(written, len(steps))


def _is_control(topic: str, given: pa.RecordBatch) -> Bools:
    is_control = pc.fill_null(given.column("is_control"), False)
    if topic == METADATA_TOPIC:  # every record with a key is one
        is_control = pc.or_(is_control, given.column("key").is_valid())
    found: Bools = is_control.to_numpy(zero_copy_only=False)
    return found


def _bytes_of(column: pa.Array) -> Bytes:
    """Return a column of bytes as compiled code reads it, for which it is compiled once."""
    _, ends, data = column.buffers()
    all_ends = np.frombuffer(ends, np.int32)
    its_ends = all_ends[column.offset : column.offset + len(column) + 1]
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    return Bytes(read_only(np.frombuffer(data or b"", np.uint8)), its_ends, is_null)


def decode_row(
    topic: str, key: bytes | None, value: bytes | None, is_control: bool | None, error: str | None
) -> Decoded:
    """Decode a record of an internal topic, whatever its bytes are."""
    if error is not None:
        return Decoded(problem=error)
    record = decode_internal(topic, key, value, is_control=bool(is_control))
    is_decoded = record.kind != UNKNOWN and record.problem is None
    return Decoded(
        kind=record.kind,
        key_version=record.key_version,
        value_version=record.value_version,
        key_json=record.key_json(),
        value_json=record.value_json(),
        is_tombstone=value is None and not is_control,
        key=None if is_decoded and record.key is not None else key,
        value=None if is_decoded else value,
        problem=record.problem,
    )
