"""Records as the log cleaner sees them, and what is asked about them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from kafka_segments.verbs.copies.divergence.decide.copies import CopyPiece


class Keyed(NamedTuple):
    """A record as the cleaner sees it, or a marker.

    Attributes:
        offset: of the record.
        key: a digest of its key; 0: it has none; None: its batch cannot be decoded.
        has_value: it is no tombstone.
        producer_id: of the transaction that it is of, or that it ends.
        is_commit: of a marker whether it commits; None: it ends no transaction.
    """

    offset: int
    key: int | None = 0
    has_value: bool = False
    producer_id: int | None = None
    is_commit: bool | None = None


class OfTransaction(NamedTuple):
    """A batch of a transaction, or the marker that ends one."""

    base: int
    producer_id: int
    is_marker: bool


class Question(NamedTuple):
    """Offsets of which a copy lacks records below its end.

    Attributes:
        base: the first offset.
        held: what other copies hold there, by their names.
        is_cleaned: the cleaner's offset lies behind; else something else is told of these offsets.
    """

    base: int
    held: Mapping[str, Sequence[CopyPiece]]
    is_cleaned: bool


Questions = dict[str, list[Question]]
"""What is in question, by the names of the copies that lack it, ascending."""


class OwnKeys(Protocol):
    """Reads keys of what copies hold."""

    def own(self, copy: str, offset: int) -> Iterator[Keyed]:
        """Yield what a copy holds from the segment of an offset on, ascending."""


class Keys(OwnKeys, Protocol):
    """Reads keys of records."""

    def held(self, piece: CopyPiece) -> Sequence[Keyed]:
        """Return what the copy of a piece holds in it, ascending."""

    def of_transactions(self, copy: str) -> Sequence[OfTransaction]:
        """Return the batches of transactions, and the markers, that a copy holds, ascending."""
