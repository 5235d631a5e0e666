"""Index files that lie beside a segment and are right: a build in place leaves them alone."""

from collections.abc import Iterator, Mapping

from kafka_segments.files.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.files.segments.format_files import Files
from kafka_segments.kafka.broker_rules.index_files.judgement import IndexVerdict, LogFacts
from kafka_segments.kafka.broker_rules.index_files.segment import SEGMENT_SUFFIXES, judge_segment
from kafka_segments.kafka.broker_rules.limits import holds_too_much
from kafka_segments.kafka.index.segment.recovered_segment import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    SegmentRecovery,
)
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.text.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kafka_segments.kafka.wire.batches import Batches
from kafka_segments.kafka.wire.reading import ReadInto

BESIDE = SEGMENT_SUFFIXES
"""The suffixes of the files that are looked at."""
_ENTRY_BYTES = {OFFSET_INDEX_SUFFIX: OFFSET_ENTRY_BYTES, TIME_INDEX_SUFFIX: TIME_ENTRY_BYTES}


class RightFiles:
    """Judges the files beside one segment after another, as ``audit`` does."""

    def __init__(self) -> None:
        self._headers = ChunkReader(ChunkOptions(needs_body=False, check_crc=False))

    def left_out(
        self,
        made: Files,
        beside: Mapping[str, bytes | None],
        recovery: SegmentRecovery,
        read_into: ReadInto,
        *,
        base_offset: int,
        settings: RecoveryOptions,
    ) -> Files:
        """Leave out of the files made of a segment those that are right beside it.

        A file may be right in other bytes: another interval or release wrote it (``audit`` calls it
        valid). One that is longer than the topic's segment.index.bytes is not kept: of an active
        segment it would keep the broker from starting.

        Args:
            made: by suffix, None: to be removed.
            beside: by each of ``BESIDE``, None: not there.
            recovery: what was found in the segment.
            read_into: reads the segment, of which headers are needed where bytes differ.
            base_offset: of the segment.
            settings: those that the files were made by.
        """
        facts = LogFacts.of(
            recovery, base_offset=base_offset, index_interval_bytes=settings.index_interval_bytes
        )
        if facts is None:
            return made

        def walk() -> Iterator[Batches]:
            for chunk in self._headers.read(read_into, size_bytes=recovery.valid_bytes):
                yield chunk.batches

        right = {
            judgement.suffix
            for judgement in judge_segment(beside, facts, walk)
            if judgement.verdict in (IndexVerdict.IDENTICAL, IndexVerdict.VALID)
            and _fits(beside[judgement.suffix], judgement.suffix, settings.segment_index_bytes)
        }
        return {suffix: data for suffix, data in made.items() if suffix not in right}


def _fits(found: bytes | None, suffix: str, segment_index_bytes: int) -> bool:
    """Tell whether a broker takes a file of this length."""
    width = _ENTRY_BYTES.get(suffix)
    return width is None or not holds_too_much(len(found or b""), width, segment_index_bytes)
