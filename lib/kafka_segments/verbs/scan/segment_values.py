"""What a scan measures of a segment, by column of table ``segments``."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any

from pyspark.sql.types import LongType, StringType, StructField

from kafka_segments.engine.tables.catalog import OFFSET_RANGES, SEGMENTS
from kafka_segments.kafka.index.segment.first_look import FirstLook
from kafka_segments.kafka.index.segment.recovered_segment import Ranges, SegmentRecovery
from kafka_segments.kafka.index.segment.recovery_options import FULL
from kafka_segments.kafka.wire import batches
from kafka_segments.verbs.scan.scanner import Scanned

CODECS = dict(enumerate(batches.CODECS))
TIMESTAMP_TYPES = dict(enumerate(batches.TIMESTAMP_TYPES, start=-1))
_NS_A_MS = 1_000_000
_MOST_MS = (2**63 - 1) // _NS_A_MS


def _names(values: tuple[int, ...], names: Mapping[int, str]) -> list[str]:
    return [names[value] for value in values]


def _count(name: str) -> Callable[[SegmentRecovery], int | None]:
    def count(found: SegmentRecovery) -> int | None:
        entries = getattr(found, name)
        return None if entries is None else len(entries)

    return count


_NAMED = set(SegmentRecovery._fields) - {"damage"}
_COUNTED: Mapping[str, Callable[[SegmentRecovery], Any]] = {
    "index_entries": _count("offset_entries"),
    "time_index_entries": _count("time_entries"),
    "codecs": lambda found: _names(found.codecs, CODECS),
    "timestamp_types": lambda found: _names(found.timestamp_types, TIMESTAMP_TYPES),
}
_FIELDS = {
    **{name: name for name in SEGMENTS.schema.names if name in _NAMED - _COUNTED.keys()},
    "first_batch_timestamp_ms": "first_batch_timestamp",
    "min_timestamp_ms": "min_timestamp",
    "max_timestamp_ms": "max_timestamp",
    "producers": "producers.producers",
    "transaction_steps": "producers.steps",
}
_values_of_fields = attrgetter(*_FIELDS.values())
MEASURED = (*_FIELDS, *_COUNTED)
"""The columns of which each has the value of a field, or one that is made of it.

They are null if the segment was not read.
"""

_OF_LOOK = {field.name for field in fields(FirstLook)}
_LOOKED_AT = {name: attrgetter(field) for name, field in _FIELDS.items() if field in _OF_LOOK}
"""The columns that have a value after a first look; the others are null then."""
_CHECKED = ("checked", "checked_bytes", "checked_why")

SCANNED_COLUMNS = (
    *(
        StructField(name, SEGMENTS.schema[name].dataType)
        for name in (*MEASURED, "damage", *_CHECKED)
    ),
    StructField("bytes_read", LongType()),
    StructField("entry_part", StringType()),
    StructField("offset_ranges", OFFSET_RANGES.schema["ranges"].dataType),
)
"""The columns that a scan adds. Their types are those of the published table."""


def scanned_values(
    scanned: Scanned, *, size_bytes: int, mtime_ns: int, entry_part: str | None
) -> dict[str, Any]:
    """Return the values of ``SCANNED_COLUMNS``, and ``size_bytes`` and ``mtime_ns`` of the log.

    Args:
        scanned: the segment.
        size_bytes: the size that the listing found.
        mtime_ns: the mtime in ns that the listing found.
        entry_part: the part of ``entry_files`` that has the segment's index entries.
    """
    found, damage = scanned.recovery, scanned.damage
    of_the_log = _of_the_log(scanned, size_bytes, mtime_ns)
    return {
        **_measured(scanned),
        "damage": None if damage is None else {**vars(damage), "kind": damage.kind.value},
        "checked": None if found is None and scanned.look is None else scanned.checked,
        "checked_bytes": _checked_bytes(scanned),
        "checked_why": scanned.doubt,
        "bytes_read": of_the_log["size_bytes"] if scanned.look is None else scanned.bytes_read,
        "entry_part": entry_part,
        "offset_ranges": _ranges(scanned),
        **of_the_log,
    }


def _measured(scanned: Scanned) -> dict[str, Any]:
    if scanned.look is not None:
        known = {name: value(scanned.look) for name, value in _LOOKED_AT.items()}
        return {**dict.fromkeys(MEASURED), **known}
    found = scanned.recovery
    if found is None:
        return dict.fromkeys(MEASURED)
    counted = {name: count(found) for name, count in _COUNTED.items()}
    return dict(zip(_FIELDS, _values_of_fields(found), strict=True)) | counted


def _checked_bytes(scanned: Scanned) -> int | None:
    if scanned.look is not None:
        return scanned.look.checked_bytes
    if scanned.recovery is None:
        return None
    return scanned.recovery.valid_bytes if scanned.checked == FULL else 0


def _ranges(scanned: Scanned) -> Ranges | None:
    """Return a row for each offset range; None: none was made of the file as it is now."""
    found = scanned.recovery
    if found is None or found.offset_ranges is None or scanned.size_bytes is not None:
        return None
    return found.offset_ranges.T


def _of_the_log(scanned: Scanned, size_bytes: int, mtime_ns: int) -> dict[str, int]:
    """Return size and mtime: the file's, or in tiered storage those of the log in the object."""
    found, fallback_ms = scanned.recovery, scanned.fallback_ms
    if found is not None and found.max_timestamp < 0 and fallback_ms is not None:
        mtime_ns = fallback_ms * _NS_A_MS if 0 <= fallback_ms <= _MOST_MS else mtime_ns
    is_read = found is not None or scanned.look is not None
    if is_read and scanned.size_bytes is not None:
        size_bytes = scanned.size_bytes
    return {"size_bytes": size_bytes, "mtime_ns": mtime_ns}
