"""What a scan finds of segments where numba compiles nothing, as under a debugger, or coverage."""

import os
import random
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from kafka_segments.kafka.index.segment.kernel import scan_buffer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan.scanner import ScanOptions, SegmentScanner
from support.logs.producer_logs import producer_log

CASES = (
    *("v0-one-record", "v2-mixed-codecs"),
    *("v2-idempotent-pids-epochs", "v2-txn-mixed-with-plain"),
)


def scanned(logs: list[Path]) -> str:
    """Scan logs; return all that was found as text."""
    scanner = SegmentScanner(ScanOptions(RecoveryOptions(), None))
    with np.printoptions(threshold=sys.maxsize):
        return "\n".join(
            repr(scanner.begin(str(log.parent), "", log.name, int(log.stem))().recovery)
            for log in logs
        )


@pytest.mark.slow
def test_a_scan_without_compiled_code_finds_the_same(synthetic: Path, tmp_path: Path) -> None:
    logs = [log for case in CASES for log in sorted((synthetic / case / "t-0").glob("*.log"))]
    for seed in range(8):
        logs.append(tmp_path / str(seed) / f"{0:020}.log")
        logs[-1].parent.mkdir()
        logs[-1].write_bytes(producer_log(random.Random(seed)))

    uncompiled = subprocess.run(
        [sys.executable, "-W", "error", __file__, *logs],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout

    assert uncompiled == f"{scanned(logs)}\n"


if __name__ == "__main__":
    assert isinstance(scan_buffer, FunctionType), "it is compiled"
    print(scanned([Path(log) for log in sys.argv[1:]]))
