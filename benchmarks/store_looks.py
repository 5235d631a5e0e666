"""First looks at segments of 1 GB on an S3 server that answers after a pause, in one task.

``python store_looks.py SOURCE`` takes looks as a task of a build does. Prints a JSON object: the
segments, seconds, CPU seconds of this process and bytes.
"""

import json
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from looks import SIZE_BYTES, write_segments
from sections import SCRATCH, Section
from stores import BUCKET, PAUSE_MS, request_counts, s3_server

from kafka_segments.files.folders.walk import find_segments
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan.first_looks import LOOKS_AT_ONCE, LooksAtOnce

_WARM = 2 * LOOKS_AT_ONCE  # they compile, and open connections


def bench_store_looks(*, quick: bool) -> Section:
    """Take looks at segments on the server; gives what one costs."""
    count = 200 if quick else 2_000
    SCRATCH.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as root:
        write_segments(Path(root, BUCKET, "looks"), count + _WARM)
        with s3_server(Path(root)):
            command = [sys.executable, __file__, f"s3://{BUCKET}/looks"]
            answer = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            requests = request_counts()
    taken = json.loads(answer.stdout.splitlines()[-1])
    section = Section("First looks on an object store")
    section.lines += [
        f"One task looks at {taken['segments']:,} segments of {SIZE_BYTES / 1e9:.2f} GB on a server"
        f" of our own that speaks S3's protocol and answers each request after {PAUSE_MS} ms;"
        f" {LOOKS_AT_ONCE} looks at once. Its CPU includes that of S3's client.",
        "",
    ]
    each = {name: taken[name] / taken["segments"] for name in ("seconds", "cpu", "bytes")}
    gets, heads = (requests[kind] / (taken["segments"] + _WARM) for kind in ("GET", "HEAD"))
    section.table("ms a look", "CPU ms a look", "GETs", "HEADs", "bytes", "looks a second")
    section.row(
        f"{each['seconds'] * 1e3:.1f}",
        f"{each['cpu'] * 1e3:.2f}",
        *(f"{requests:.1f}" for requests in (gets, heads)),
        f"{each['bytes']:,.0f}",
        f"{1 / each['seconds']:,.0f}",
    )
    section.figures |= {**each, "gets": gets, "heads": heads}
    return section


def look(source: str) -> dict[str, float]:
    """Look at all segments of a source; gives what those after the first took."""
    rows: list[dict[str, Any]] = [
        {
            "source": found.source,
            "relative_path": found.relative_path,
            "name": found.name,
            "base_offset": found.base_offset,
            "is_active": False,
        }
        for found in find_segments([source]).segments
    ]
    with closing(LooksAtOnce(RecoveryOptions())) as looks:
        list(looks.begin(rows[:_WARM]))
        cpu, started = time.process_time(), time.perf_counter()
        taken = list(looks.begin(rows[_WARM:]))
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    found = [one for one in taken if one is not None and one.found is not None]
    assert len(found) == len(taken), "looks were not enough"
    size = sum(one.bytes_read for one in found)
    return {"segments": len(taken), "seconds": seconds, "cpu": cpu, "bytes": size}


if __name__ == "__main__":
    print(json.dumps(look(sys.argv[1])))
