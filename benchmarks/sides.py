"""Read segments by the package of whatever revision PYTHONPATH leads to: for ``before.py``.

``python sides.py kernel FILE`` recovers a file in memory, ``python sides.py store SOURCE`` all
segments of a source as a task does. What is asked of the package is what the first of these
revisions had. Prints a JSON object: bytes, and the seconds of the quickest round.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_segments.files.folders.walk import find_segments
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.verbs.scan import scanner as scan

try:
    from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
except ModuleNotFoundError:  # where the first of these revisions had it
    from kafka_segments.kafka.index.segment.recovery import RecoveryOptions
if TYPE_CHECKING:
    from kafka_segments.files.folders.walk import ListedSegment

_ROUNDS = 3


def kernel(file: str) -> tuple[int, Callable[[], None]]:
    """Return a file's size, and what recovers it."""
    data = memoryview(Path(file).read_bytes())
    recoverer = SegmentRecoverer(RecoveryOptions())

    def read_into(position: int, view: memoryview) -> int:
        given = data[position : position + len(view)]
        view[: len(given)] = given
        return len(given)

    def recover() -> None:
        found = recoverer.recover(read_into, size_bytes=len(data), base_offset=0)
        assert found.damage is None, found.damage

    return len(data), recover


def store(source: str) -> tuple[int, Callable[[], None]]:
    """Return the bytes of a source's segments, and what recovers them in turn."""
    segments = find_segments([source]).segments

    def recover() -> None:
        scanner = scan.SegmentScanner(scan.ScanOptions(RecoveryOptions(), None))
        for scanned in _scanned(scanner, segments):
            assert scanned.damage is None, scanned.damage

    return sum(found.size_bytes for found in segments), recover


def _scanned(scanner: scan.SegmentScanner, segments: "list[ListedSegment]") -> "list[scan.Scanned]":
    names = [(one.source, one.relative_path, one.name) for one in segments]
    bases = [one.base_offset for one in segments]
    if not hasattr(scanner, "announce"):  # before 0.2.0, one segment was read after another
        return [scanner.scan(*name, base) for name, base in zip(names, bases, strict=True)]
    scanner.announce(names)
    begun = (scanner.begin(*name, base) for name, base in zip(names, bases, strict=True))
    scanned = list(scan.in_turn(begun))
    scanner.close()
    return scanned


def main() -> None:
    """Print one measure."""
    what, given = sys.argv[1:]
    size, action = {"kernel": kernel, "store": store}[what](given)
    action()  # compiles, opens connections
    spans = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        action()
        spans.append(time.perf_counter() - started)
    print(json.dumps({"bytes": size, "seconds": min(spans)}))


if __name__ == "__main__":
    main()
