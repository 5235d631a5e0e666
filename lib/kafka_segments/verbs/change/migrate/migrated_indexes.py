"""Make the index files that a migrated segment gets."""

from pathlib import Path

from kafka_segments.files.segments.format_files import Around, FormatFiles
from kafka_segments.files.storage.files import open_segment, place
from kafka_segments.kafka.index.formats.kip33_index import Kip33Format, WithoutTimestamps
from kafka_segments.kafka.index.segment.recovered_segment import SegmentRecovery
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.verbs.change.migrate.planned_segment import PlannedSegment


class MigratedIndexes:
    """Makes the ``.index`` and ``.timeindex`` of one segment after another.

    They are those of Kafka's recovery, with one exception: if no record of a closed segment has a
    timestamp, Kafka writes an empty time index, and the rules of KIP-33 give it one entry.
    """

    def __init__(self, rule: WithoutTimestamps) -> None:
        self._kafka = FormatFiles()
        self._by_mtime = None
        if rule is not WithoutTimestamps.EMPTY:
            self._by_mtime = FormatFiles(Kip33Format(without_timestamps=rule))

    def make_of_log(
        self, recoverer: SegmentRecoverer, segment: PlannedSegment, log: Path
    ) -> tuple[SegmentRecovery, dict[str, bytes]]:
        """Recover the log of a segment; return the recovery and the index files.

        Raises:
            FileChangedError: the file ended before its size.
            OSError: it cannot be read.
        """
        with open_segment(place(str(log))) as opened:
            recovery = recoverer.recover(
                opened.read_into, size_bytes=opened.size_bytes, base_offset=segment.base_offset
            )
            files = self.make(
                recovery,
                opened.read_into,
                base_offset=segment.base_offset,
                around=segment.around,
            )
        return recovery, files

    def make(
        self, recovery: SegmentRecovery, read_into: ReadInto, *, base_offset: int, around: Around
    ) -> dict[str, bytes]:
        """Return the files by suffix; none if a broker would not load the segment.

        Raises:
            FileChangedError: the file ended before its valid bytes.
            OSError: whatever ``read_into`` raises.
        """
        if self._by_mtime is not None and recovery.max_timestamp < 0:
            made = self._by_mtime.make(
                recovery, read_into, base_offset=base_offset, around=around
            ).files
            if None not in made.values():  # else the next base offset is out of an entry's reach
                return _present(made)
        made = self._kafka.make(recovery, read_into, base_offset=base_offset, around=around).files
        return _present(made)


def _present(files: dict[str, bytes | None]) -> dict[str, bytes]:
    return {suffix: data for suffix, data in files.items() if data is not None}
