"""What a record is beside its offset, key, value and headers, and how copies differ in that alone.

A leader writes a batch once, and followers take its bytes. What the cleaner writes anew keeps all
of these fields: of a delete horizon the base timestamp changes, and the records' timestamps stay.

Source: MemoryRecords.filterTo, DefaultRecordBatch.writeEmptyHeader (4.3.1).
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple


class Fields(NamedTuple):
    """Fields of a record or of a batch; None: its format has none, or it tells nothing.

    Attributes:
        timestamp: in ms, the batch's with LogAppendTime; of a batch the greatest one.
        attributes: the bits beside timestamp type, codec, delete horizon and the two below.
        sequence: of a batch that of its first record.
        last_offset: of a batch.
    """

    timestamp: int | None = None
    is_append_time: bool | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    sequence: int | None = None
    is_transactional: bool | None = None
    is_control: bool | None = None
    attributes: int | None = None
    last_offset: int | None = None


_WORDS = (
    *("timestamp", "timestamp type", "producer id", "producer epoch", "sequence"),
    *("transactional flag", "control flag", "attributes", "last offset"),
)


class HeldBatch(NamedTuple):
    """A batch and how many records it has."""

    records: int
    fields: Fields


class HeldRecords(NamedTuple):
    """What a copy holds in some offsets.

    Attributes:
        contents: a digest of key, value and headers of each record, by its offset.
        fields: of each record, by its offset.
        batches: by their base offsets; those of formats v0 and v1 are left out.
    """

    contents: dict[int, Hashable]
    fields: dict[int, Fields]
    batches: dict[int, HeldBatch]

    @classmethod
    def none(cls) -> "HeldRecords":
        """Return one without records."""
        return cls({}, {}, {})

    def add(self, other: "HeldRecords") -> None:
        """Take what the copy holds behind."""
        self.contents.update(other.contents)
        self.fields.update(other.fields)
        self.batches.update(other.batches)


class OtherFields(NamedTuple):
    """That copies hold the same contents with other fields.

    Attributes:
        wrong: the copies that most contradict; all of them if there is no majority.
        right: the others.
        words: the names of the fields.
    """

    wrong: tuple[str, ...]
    right: tuple[str, ...]
    words: tuple[str, ...]


def other_fields(variants: Sequence[tuple[Sequence[str], HeldRecords]]) -> OtherFields | None:
    """Return how records of equal contents differ in their fields; None: they do not.

    ``variants``: what copies hold, with the names of those that hold it in the same bytes.
    """
    differing = {
        (first, second): set(_differing(variants[first][1], variants[second][1]))
        for first, second in combinations(range(len(variants)), 2)
    }
    words = set().union(*differing.values())
    if not words:
        return None
    agreeing = [
        [at for at in range(len(variants)) if not differing.get((min(at, one), max(at, one)))]
        for one in range(len(variants))
    ]
    voters = [tuple(name for at in group for name in variants[at][0]) for group in agreeing]
    names = tuple(name for found, _ in variants for name in found)
    right = max(voters, key=len)
    if 2 * len(right) <= len(names):
        right = ()
    wrong = tuple(name for name in names if name not in right)
    return OtherFields(wrong, right, tuple(word for word in _WORDS if word in words))


def _differing(one: HeldRecords, other: HeldRecords) -> Iterator[str]:
    """Yield the words of the fields that contradict each other where both hold something."""
    yield from _of_each(one.fields, other.fields)
    yield from _of_each(*(_comparable(*pair) for pair in ((one, other), (other, one))))


def _comparable(own: HeldRecords, other: HeldRecords) -> dict[int, Fields]:
    """Return the fields of batches that both hold.

    The cleaner takes the greatest timestamp of the records that it leaves, and keeps that of a
    batch which it empties.
    """
    return {
        base: batch.fields
        if batch.records and batch.records == other.batches[base].records
        else batch.fields._replace(timestamp=None)
        for base, batch in own.batches.items()
        if base in other.batches
    }


def _of_each(one: Mapping[int, Fields], other: Mapping[int, Fields]) -> Iterator[str]:
    pairs = {(fields, other[at]) for at, fields in one.items() if at in other}
    for own, others in pairs:
        if own == others:
            continue
        for word, value, against in zip(_WORDS, own, others, strict=True):
            if value is not None and against is not None and value != against:
                yield word
