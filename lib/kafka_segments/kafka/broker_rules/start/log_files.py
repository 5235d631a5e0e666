"""What a start opens in a partition's folder, and what of that ends it or costs the directory.

After a clean stop the last segment is read from its last index entry on, and what lies behind the
newest ``.snapshot``. So a torn end stays, and bytes that are no batch end the broker.

Source: LogLoader.load, LogSegment.readNextOffset (4.3.1).
"""

from collections.abc import Iterator

from kafka_segments.kafka.broker_rules.limits import MOST_SEGMENT_BYTES, holds_too_much
from kafka_segments.kafka.broker_rules.start.effects import Effect, effect_at
from kafka_segments.kafka.broker_rules.start.facts import Bad, Parsed
from kafka_segments.kafka.broker_rules.start.log_facts import LoadedLog, odd_names, offset_of
from kafka_segments.kafka.broker_rules.start.rules import StartFinding
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS, PARTITION_METADATA
from kafka_segments.kafka.text.names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    FolderState,
    file_name,
)

_ENTRY_BYTES = {OFFSET_INDEX_SUFFIX: 8, TIME_INDEX_SUFFIX: 12}


class FilesOfLog(LoadedLog):
    """Says what ends the broker or costs the directory."""

    def of_files(self) -> Iterator[StartFinding]:
        """Yield what ends the broker or costs the directory, in the order of the load."""
        log = self._log
        if log.unreadable is not None:
            yield self._finding("unreadable", Effect.NOT_KNOWN, "", log.unreadable, known=False)
            return
        for name, why in log.unread:
            yield self._finding("not-read", Effect.NOT_KNOWN, name, why, known=False)
        yield from self._thrown("epochs", LEADER_EPOCHS, log.epochs)
        for name in odd_names(log.files):
            yield self._finding(
                "file-name",
                Effect.ENDS,
                name,
                "there is no number before its first dot",
                exception="NumberFormatException",
            )
        yield from self._large_segments()
        for name, reason in sorted(log.bad_swaps.items()):
            yield self._finding(
                "unreadable-swap",
                Effect.ENDS,
                name,
                reason,
                exception="CorruptRecordException",
            )
        for base, found in sorted(log.transactions.items()):
            if found.is_refused_version:
                name = file_name(base, TXN_INDEX_SUFFIX)
                yield self._finding(
                    "txn-version",
                    Effect.ENDS,
                    name,
                    found.problem or "",
                    exception="KafkaException",
                )
        if log.state != FolderState.DELETE:
            yield from self._refused()
            yield from self._unreadable_end()
            yield from self._folders()
            yield from self._large_index()
        yield from self._thrown("partition-metadata", PARTITION_METADATA, log.topic_id)

    def _thrown(self, rule: str, name: str, parsed: Parsed) -> Iterator[StartFinding]:
        bad: Bad | None = parsed.bad
        if bad is not None:
            effect = effect_at(bad.exception, is_needed=self._is_needed)
            yield self._finding(
                rule, effect, name, bad.reason, line=bad.line, exception=bad.exception
            )

    def _large_segments(self) -> Iterator[StartFinding]:
        """Yield segments that no broker opens; of folders marked ``-delete``, too."""
        suffixes = (LOG_SUFFIX, LOG_SUFFIX + SWAP_SUFFIX)
        for name, size in sorted(self._log.files.items()):
            if size > MOST_SEGMENT_BYTES and name.endswith(suffixes):
                yield self._finding(
                    "segment-too-large",
                    Effect.ENDS,
                    name,
                    f"{size} bytes, a segment has {MOST_SEGMENT_BYTES} at most",
                    exception="KafkaException",
                )

    def _unreadable_end(self) -> Iterator[StartFinding]:
        last = self._last()
        if last is None or not self._is_read_back(last[0]) or last[1].problem is None:
            return
        base, end = last
        yield self._finding(
            "unreadable-end",
            Effect.ENDS,
            file_name(base, LOG_SUFFIX),
            f"{end.problem} (at byte {end.position})",
            exception=end.exception,
        )

    def _refused(self) -> Iterator[StartFinding]:
        for damage in self._log.damages:
            if damage.consequence == "refused":
                yield self._finding(
                    "refused-segment",
                    Effect.ENDS,
                    file_name(damage.base_offset, LOG_SUFFIX),
                    f"{damage.message} (at byte {damage.position})",
                    exception="IllegalArgumentException",
                )

    def _folders(self) -> Iterator[StartFinding]:
        """Yield folders in the place of files that the start opens.

        A ``.txnindex`` that is there is opened with its segment, and no folder is one.

        Source: TransactionIndex.openChannel.
        """
        opened = {*self._log.recovered, *self._log.bases[-1:]}
        numbers = [offset_of(name) for name in self._log.files if name.endswith(SNAPSHOT_SUFFIX)]
        snapshots = [name for name in self._log.folders if name.endswith(SNAPSHOT_SUFFIX)]
        newest = max([*numbers, *map(offset_of, snapshots)], default=None)
        names = {file_name(base, suffix) for base in opened for suffix in _ENTRY_BYTES}
        names |= {file_name(base, TXN_INDEX_SUFFIX) for base in self._log.bases}
        names |= {name for name in snapshots if offset_of(name) == newest}
        for name in sorted(names.intersection(self._log.folders)):
            is_index = name.endswith(tuple(_ENTRY_BYTES))
            exception = "FileNotFoundException" if is_index else "FileSystemException"
            effect = effect_at(exception, is_needed=self._is_needed)
            found = "a folder, no file"
            yield self._finding("folder-for-file", effect, name, found, exception=exception)

    def _large_index(self) -> Iterator[StartFinding]:
        if not self._log.bases:
            return
        base = self._log.bases[-1]
        if not self._is_read_back(base):
            return
        for suffix, width in _ENTRY_BYTES.items():
            name = file_name(base, suffix)
            size = self._log.files.get(name, 0)
            if holds_too_much(size, width, self._index_bytes):
                yield self._finding(
                    "index-too-large",
                    Effect.ENDS,
                    name,
                    f"{size} bytes, segment.index.bytes is {self._index_bytes}",
                    exception="IllegalArgumentException",
                )
