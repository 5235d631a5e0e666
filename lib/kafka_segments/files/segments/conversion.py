"""What a conversion of a segment to batches v2 is asked for, meets, and comes to."""

from dataclasses import dataclass
from enum import StrEnum

from kafka_segments.kafka.wire.v2_writing import MAX_OFFSET_DELTA


class HazardKind(StrEnum):
    """What a conversion meets; the kinds up to ``SEGMENT_TOO_LARGE`` refuse the segment."""

    UNDECODABLE = "undecodable_batch"
    OFFSET_ORDER = "offset_order"
    OFFSET_SPAN = "offset_span"
    NEGATIVE_TIMESTAMP = "negative_timestamp"
    SEGMENT_TOO_LARGE = "segment_too_large"
    BATCH_TOO_LARGE = "batch_too_large"
    LAST_OFFSET = "last_offset"
    TIMESTAMP_CHANGED = "timestamp_changed"
    RECOMPRESSED = "recompressed"
    DAMAGE = "damage"


WORDS = {
    HazardKind.OFFSET_ORDER: "the offsets of a compressed set do not grow: Kafka writes no such"
    " batch",
    HazardKind.OFFSET_SPAN: f"a compressed set spans more than {MAX_OFFSET_DELTA} offsets:"
    " no batch v2 can",
    HazardKind.NEGATIVE_TIMESTAMP: "a timestamp lies below -1: Kafka writes no such record",
    HazardKind.LAST_OFFSET: "a compressed set's offset is not that of its last message: the greater"
    " one is kept, Kafka's cleaner takes the message's",
    HazardKind.TIMESTAMP_CHANGED: "messages v0 in a set v1 with LogAppendTime: they had no"
    " timestamp, as v2 they have the set's",
    HazardKind.RECOMPRESSED: "compressed anew with the same codec: the records are the same, the"
    " compressed bytes can differ from those of Kafka's cleaner",
}


@dataclass(frozen=True)
class Hazard:
    """Something to look at: how many batches have it, and where the first one lies."""

    kind: HazardKind
    count: int
    position: int
    message: str


@dataclass(frozen=True)
class ConversionOptions:
    """Limits of a conversion.

    Attributes:
        max_message_bytes: The topic's limit on a batch; None: not checked.
        max_batch_bytes: The memory that one batch may take, compressed or not.
    """

    max_message_bytes: int | None = None
    max_batch_bytes: int = 256 * 1024 * 1024


@dataclass(frozen=True)
class Conversion:
    """What became of a segment.

    Attributes:
        size_bytes: Of the source.
        valid_bytes: Of the source, up to where recovery would cut it.
        converted_bytes: Bytes that were written.
        converted_batch_count: Batches v2 made of messages v0 and v1.
        kept_batch_count: Batches v2 that were written as they were.
        converted_record_count: Records in the batches that were made.
        largest_batch_bytes: Size of the largest batch that was written.
        hazards: At most one of each kind.
        refusal: Why the segment cannot be converted; what was written is then of no use. None: it
            was converted.
    """

    size_bytes: int
    valid_bytes: int
    converted_bytes: int
    converted_batch_count: int
    kept_batch_count: int
    converted_record_count: int
    largest_batch_bytes: int
    hazards: tuple[Hazard, ...]
    refusal: Hazard | None
