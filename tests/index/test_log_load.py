"""Which segments a load reads again to rebuild the producer state, without their bytes."""

from kafka_segments.kafka.index.log.load import LogLoad
from kafka_segments.kafka.index.log.loading import LoadOptions
from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary, empty_summary
from kafka_segments.kafka.index.segment.recovered_segment import SegmentSummary


def _segment(base_offset: int, producer_end_offset: int) -> SegmentSummary:
    """A segment of ten offsets with a compressed message v1, and with offsets that go back."""
    return SegmentSummary(
        base_offset=base_offset,
        next_offset=base_offset + 10,
        producer_end_offset=producer_end_offset,
        valid_bytes=100,
        truncated_bytes=0,
        damage_kind=None,
        leader_epochs=(),
        producers=empty_summary().gone_back(0, base_offset),
        has_wrappers=True,
    )


def test_what_lies_before_the_segment_of_the_newest_snapshot_is_not_read_again() -> None:
    read_again = []

    def reread(segment: SegmentSummary, start: int, end: int | None) -> ProducerSummary:
        read_again.append((segment.base_offset, start, end))
        return empty_summary()

    load = LogLoad(LoadOptions(now_ms=0), is_unclean=True, reread=reread)
    for segment in (_segment(0, 10), _segment(10, 20), _segment(20, 20), _segment(30, 40)):
        load.take(segment)

    assert read_again == [(20, 20, None)]
