"""What a notebook asks of a session, by the public names; as a process, of SPARK_REMOTE's."""

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import kafka_segments

NOW_MS = 1_795_000_000_000
OF_THE_RUN = {"run_id", "decided_at"}


def asked(logs: str, warehouse: str, spark: SparkSession | None = None) -> dict[str, Any]:
    """Open tables, ask each verb, and read raw segments; return the rows by what was asked."""
    with kafka_segments.open(warehouse, spark) as opened:
        kafka_segments.register(opened.spark)
        batches, records = (
            opened.spark.read.format("kafka_segments").option("topic", "txn") for _ in range(2)
        )
        records.option("rows", "records").option("columns", "offset,timestamp_ms,value")
        frames = {
            "segments": opened.segments,
            "retention": opened.retention(now=NOW_MS, settings={"retention_ms": 2_592_000_000}),
            "explain": opened.explain("txn-0", now=NOW_MS),
            "roll": opened.roll(now=NOW_MS),
            "search": opened.search("LATEST", "2023-11-14T22:13:25Z", now=NOW_MS),
            "latency": opened.latency(topics="lat-none"),
            "sql": opened.sql("SELECT topic, count(*) AS n FROM segments GROUP BY topic"),
            "batches": batches.load(logs).where("segment_base_offset < 1165"),
            "records": records.load(logs),
        }
        return {"tables": opened.tables, **{name: _rows(of) for name, of in frames.items()}}


def _rows(frame: DataFrame) -> list[str]:
    """Return the rows as text, sorted, without what differs from run to run."""
    rows = frame.drop(*OF_THE_RUN).collect()
    return sorted(json.dumps(row.asDict(recursive=True), default=str) for row in rows)


if __name__ == "__main__":
    print(json.dumps(asked(*sys.argv[1:])))
