"""What the steps of ``migrate`` print: stage, verify, apply, rollback and status."""

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, fields

from rich.markup import escape

from kafka_segments.console.output import console
from kafka_segments.migrate.log_step import LogStep


def print_steps(steps: Iterable[LogStep], output: str) -> Counter[str]:
    """Print what became of each log; return how many logs have which status."""
    logs: Counter[str] = Counter()
    size_bytes: Counter[str] = Counter()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if output == "csv":
        writer.writerow([field.name for field in fields(LogStep)])
    for step in steps:
        logs[step.status] += 1
        size_bytes[step.status] += step.bytes
        if output == "json":
            sys.stdout.write(json.dumps(asdict(step)) + "\n")
        elif output == "csv":
            writer.writerow(asdict(step).values())
        else:
            what = f"{step.segments} segments, {step.bytes} bytes, in place: {step.in_place}"
            said = f"; {step.message}" if step.message else ""
            log = f"broker {step.broker_id}, {step.log}"
            console().print(escape(f"{log}: {step.status}, {what}{said}"))
    counts = (f"{logs[status]} {status} ({size_bytes[status]} bytes)" for status in sorted(logs))
    sys.stderr.write(f"logs: {', '.join(counts) or 'none'}\n")
    return logs
