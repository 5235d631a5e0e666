"""Which records are asked for, and what a consumer says where it cannot read a batch.

A consumer throws a KafkaException at the first record of such a batch, of one that is not
compressed at the first bad one, and again at each further poll: it goes on where it is told to seek
behind the batch; where it stands there already, once it has forgotten what it has fetched. Batches
whose length or format is wrong it does not get: the broker meets them first, and answers with
CORRUPT_MESSAGE, or, where the length goes beyond the file, with the next segment. A batch that says
it has no records is read as an empty one, whatever it holds.
Source: CompletedFetch.fetchRecords, maybeEnsureValid;
FetchCollector.handleInitializeErrors; FileLogInputStream.nextBatch (4.3.1).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.wire import filling

_MIN, _MAX = -(2**63), 2**63 - 1
_LAST_CODEC = 4  # zstd
Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Query:
    """Which records are asked for; all that is given has to fit.

    Attributes:
        key: The whole key.
        header: The name of a header.
        header_value: Its value; None: any.
        low_offset: The first offset.
        high_offset: The last one.
        low_timestamp: The least timestamp, in ms.
        high_timestamp: The greatest one.
    """

    key: bytes | None = None
    header: str | None = None
    header_value: bytes | None = None
    low_offset: int = _MIN
    high_offset: int = _MAX
    low_timestamp: int = _MIN
    high_timestamp: int = _MAX

    @property
    def is_by_offset(self) -> bool:
        """Tell whether other offsets are left out."""
        return (self.low_offset, self.high_offset) != (_MIN, _MAX)

    @property
    def is_by_time(self) -> bool:
        """Tell whether other times are left out."""
        return (self.low_timestamp, self.high_timestamp) != (_MIN, _MAX)

    @property
    def is_any(self) -> bool:
        """Tell whether any record fits."""
        return self == Query()


class Why(StrEnum):
    """Why a batch cannot be read."""

    CHECKSUM = "its checksum does not fit"
    RECORDS = "its records cannot be decoded"
    FORMAT = "no batch begins there"
    LENGTH = "its length goes beyond the file"
    ORDER = "its offsets lie before those in front of it"
    TORN = "the log ends within it"


class Unreadable(NamedTuple):
    """A batch, or bytes, that a consumer cannot read.

    Attributes:
        path: The segment's file.
        topic: Topic.
        partition: Kafka partition.
        position: The byte at which it begins.
        size_bytes: Its bytes; of bytes that are no batch up to the next one; of several batches
            out of order those of all.
        base_offset: Its first offset; where the header cannot be trusted, the next expected.
        seek_to: The offset to seek to; None: nothing that can be read follows.
        why: What is wrong.
        reason: The same, in figures.
        producer_id: Of the batch; -1: none, or not known.
        codec: Of the batch, as a number; above 4 nobody knows it.
    """

    path: str
    topic: str
    partition: int
    position: int
    size_bytes: int
    base_offset: int
    seek_to: int | None
    why: Why
    reason: str
    producer_id: int = -1
    codec: int = 0

    @property
    def client_error(self) -> str:
        """Return what a consumer says; empty: nothing, as it never comes to it, or passes over."""
        log = f"{self.topic}-{self.partition}"
        if self.why in (Why.TORN, Why.ORDER, Why.LENGTH):
            return ""
        if self.why == Why.RECORDS and self.codec > _LAST_CODEC:
            return f"IllegalArgumentException: Unknown compression type id: {self.codec}"
        if self.why == Why.FORMAT:
            return (
                f"KafkaException: Encountered corrupt message when fetching offset"
                f" {self.base_offset} for topic-partition {log}"
            )
        return (
            f"KafkaException: Received exception when fetching the next record from {log}. If"
            " needed, please seek past the record to continue consumption."
        )


def matching(query: Query, columns: filling.Columns, rows: int, headers: int) -> Rows:
    """Return the numbers of the rows that fit.

    Args:
        query: what is asked for.
        columns: decoded records, with keys where a key, with headers where one is asked for.
        rows: how many there are.
        headers: how many headers they have.
    """
    offset, timestamp = columns.rows[filling.ROW_OFFSET, :rows], columns.rows[filling.ROW_TIMESTAMP]
    fits = (offset >= query.low_offset) & (offset <= query.high_offset)
    if (query.low_timestamp, query.high_timestamp) != (_MIN, _MAX):
        fits &= (timestamp[:rows] >= query.low_timestamp) & (
            timestamp[:rows] <= query.high_timestamp
        )
    if query.key is not None:
        fits &= equal(columns.key, rows, query.key)
    if query.header is not None:
        named = equal(columns.header_key, headers, query.header.encode())
        if query.header_value is not None:
            named &= equal(columns.header_value, headers, query.header_value)
        before = np.concatenate([[0], np.cumsum(named)])
        ends = columns.header_ends[: rows + 1]
        fits &= before[ends[1:]] > before[ends[:-1]]
    return np.flatnonzero(fits)


def equal(column: filling.Bytes, rows: int, wanted: bytes) -> npt.NDArray[np.bool_]:
    """Tell of each byte string of a column whether it is the one that is wanted."""
    starts = column.ends[:rows]
    is_equal = (column.ends[1 : rows + 1] - starts == len(wanted)) & ~column.is_null[:rows]
    candidates = np.flatnonzero(is_equal)
    for at, byte in enumerate(wanted):
        if not len(candidates):
            break
        candidates = candidates[column.data[starts[candidates] + at] == byte]
    found = np.zeros(rows, dtype=np.bool_)
    found[candidates] = True
    return found
