"""What an index format is: the index file of its own, and how it is made of a segment.

A new format is a class in a module of its own, registered in ``index.formats``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.index.segment.recovered_segment import Entries

if TYPE_CHECKING:  # `build --help` asks the formats for their options, and needs no compiled code
    from kafka_segments.kafka.wire.record_times import RecordTimes

Int64s = npt.NDArray[np.int64]


class BatchTimes(NamedTuple):
    """Some batches, in the order of the log: a row each.

    ``position`` is the first byte of the batch in the file, ``max_timestamp`` is in ms.
    """

    position: Int64s
    last_offset: Int64s
    max_timestamp: Int64s


class SegmentToIndex(Protocol):
    """A recovered segment for which Kafka has both indexes, as a format sees it.

    ``offset_entries`` has rows (offset, position), ``time_entries`` (timestamp ms, offset).
    ``next_base_offset`` is None for the last segment of a log, the active one. All methods read
    the bytes that recovery kept, and raise what reading raises.
    """

    base_offset: int
    offset_entries: Entries
    time_entries: Entries
    next_offset: int
    next_base_offset: int | None
    last_modified_ms: int

    def records(self) -> Iterator["RecordTimes"]:
        """Yield the records, some at a time; a batch that cannot be decoded is damage."""

    def batches(self) -> Iterator[BatchTimes]:
        """Yield what the headers of the batches say, some batches at a time."""

    def first_offset(self) -> int | None:
        """Return the offset of the first record; None if there is no record."""


@dataclass(frozen=True)
class IndexFormat(ABC):
    """A format of index files; its dataclass fields are the options of its variants.

    A field becomes an option of ``build`` under the field's name: a ``StrEnum`` is a choice, an
    ``int`` a positive number. The field's metadata hold the option's ``help``.
    """

    name: ClassVar[str]
    """The name in ``--index-format`` and in column ``index_format``."""
    suffix: ClassVar[str]
    """The suffix of the file that this format makes itself."""
    replaces: ClassVar[str]
    """The suffix of Kafka's file that this one takes the place of; the other one is Kafka's."""
    needs_next: ClassVar[bool] = False
    """The file depends on where the next segment begins."""
    note: ClassVar[str] = ""
    """What someone who reads the files needs to know; ``build`` prints it after the name."""

    @abstractmethod
    def encode(self, segment: SegmentToIndex) -> bytes:
        """Return the bytes of the format's own file.

        Raises:
            OffsetOverflowError: an offset has no room in an entry.
            OffsetGoesBackError: the offsets of entries do not rise.
        """

    def __str__(self) -> str:
        """Name the format with its variant, e.g. ``every-n:100:by-offset``."""
        return ":".join([self.name, *(str(getattr(self, field.name)) for field in fields(self))])
