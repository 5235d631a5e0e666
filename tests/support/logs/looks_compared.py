"""Holds a first look at a segment against reading all of it."""

from dataclasses import fields
from pathlib import Path

import numpy as np

from kafka_segments.kafka.index.segment.first_look import FirstLook
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan.scanner import Scanned, ScanOptions, SegmentScanner

OF_LOOKS = {"checked_bytes", "first_epoch", "last_epoch"}
CLAIMS = [field.name for field in fields(FirstLook) if field.name not in OF_LOOKS]


def scan(
    log: Path, *, is_first_look: bool, is_active: bool = False, interval_bytes: int = 4096
) -> Scanned:
    """Scan a segment as a build does; its source is its own folder."""
    recovery = RecoveryOptions(index_interval_bytes=interval_bytes)
    scanner = SegmentScanner(ScanOptions(recovery, None, is_first_look=is_first_look))
    return scanner.begin(str(log.parent), "", log.name, int(log.name[:20]), is_active=is_active)()


def _plain(value: object) -> object:
    """Return an array as lists, which are compared as a whole."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def denied(looked: Scanned, read: Scanned) -> dict[str, tuple[object, object]]:
    """Return what a first look claims and reading all of the segment denies, by its name."""
    if looked.look is None:
        found, true = (one and one._asdict() for one in (looked.recovery, read.recovery))
        return {} if str(found) == str(true) else {"recovery": (found, true)}
    claimed = {name: _plain(getattr(looked.look, name)) for name in CLAIMS}
    claimed = {name: value for name, value in claimed.items() if value is not None}
    true = {name: _plain(getattr(read.recovery, name, None)) for name in claimed}
    wrong = {name: (claimed[name], true[name]) for name in claimed if claimed[name] != true[name]}
    return wrong if read.damage is None else {**wrong, "damage": (None, read.damage)}


def assert_not_denied(log: Path, *, is_active: bool = False, interval_bytes: int = 4096) -> Scanned:
    """Check that a first look claims nothing that reading the segment denies; return the look."""
    options = {"is_active": is_active, "interval_bytes": interval_bytes}
    looked = scan(log, is_first_look=True, **options)
    assert denied(looked, scan(log, is_first_look=False, **options)) == {}, log
    return looked
