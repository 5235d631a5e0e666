"""The history of a cluster's metadata: rows that held from one offset until another.

A row holds at an offset if it holds once all records up to and including that offset are applied.
Records of a transaction are applied by its EndTransactionRecord, and never if it is aborted.
Source: MetadataBatchLoader.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kafka_segments.kafka.messages.metadata_image import (
    ImageChange,
    Key,
    MetadataImage,
    MetadataReplayError,
    Values,
)

PROBLEMS = "problems"
_BEGIN, _END, _ABORT = "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"


class Point(NamedTuple):
    """A place in the metadata log: the last offset applied, and its timestamp in ms.

    ``is_snapshot``: what holds there is known from a snapshot that ends there, and may have held
    earlier.
    """

    offset: int
    ms: int | None
    is_snapshot: bool = False


class HistoryRow(NamedTuple):
    """The values of a table's row, and from where to where they held; ``until`` None: they hold."""

    table: str
    values: Values
    since: Point
    until: Point | None


class MetadataHistory:
    """Takes the records of a snapshot, then those of the log, and yields rows that have ended."""

    def __init__(self) -> None:
        self._image = MetadataImage()
        self._held: dict[tuple[str, Key], tuple[Values, Point]] = {}
        self._transaction: list[tuple[str, Values, Point]] | None = None

    def replay(self, kind: str, value: Values, point: Point) -> Iterator[HistoryRow]:
        """Apply a record at its point; all records of a snapshot have the snapshot's.

        A record that does not fit the state before it changes nothing, and becomes a row of
        ``PROBLEMS``.
        """
        if kind == _BEGIN:
            self._transaction = []
        elif kind == _ABORT:
            self._transaction = None
        elif kind == _END:
            records, self._transaction = self._transaction or [], None
            for held_back, its_value, its_point in records:
                yield from self._apply(held_back, its_value, point, its_point)
        elif self._transaction is not None:
            self._transaction.append((kind, value, point))
        else:
            yield from self._apply(kind, value, point, point)

    def end(self) -> Iterator[HistoryRow]:
        """Yield the rows that hold still."""
        for (table, _), (values, since) in self._held.items():
            yield HistoryRow(table, values, since, None)

    def _apply(
        self, kind: str, value: Values, point: Point, own_point: Point
    ) -> Iterator[HistoryRow]:
        try:
            for change in self._image.replay(kind, value):
                yield from self._put(change, point)
        except (MetadataReplayError, KeyError) as error:
            reason = str(error) if isinstance(error, MetadataReplayError) else f"lacks {error}"
            text = f"{kind} at offset {own_point.offset} is not applied: {reason}"
            yield HistoryRow(PROBLEMS, {"problem": text}, own_point, None)

    def _put(self, change: ImageChange, point: Point) -> Iterator[HistoryRow]:
        key = (change.table, change.key)
        before: tuple[Any, Point] | None = self._held.get(key)
        if before is not None:
            values, since = before
            if values == change.values and not change.is_new:
                return
            if since.offset < point.offset:
                yield HistoryRow(change.table, values, since, point)
            del self._held[key]
        if change.values is not None:
            self._held[key] = (change.values, point)
