"""Files of others where Kafka's segments are looked for: what they are, by their names."""

import pytest

from kafka_segments.kafka.broker_rules.foreign_files import (
    foreign_file,
    foreign_reason,
    foreign_text,
)


@pytest.mark.parametrize(
    ("path", "what", "has_records"),
    [
        ("0_12/0-1-v1.log", "Redpanda", True),
        ("3_7/1200-4-v1.base_index", "Redpanda", True),
        ("3_7/0-999-1048576-2-v1.log.2", "Redpanda", True),
        ("orders/segment_partition_001_from_offset_0000000400_records", "backup tool", True),
        ("orders/index_partition_000", "backup tool", True),
        ("orders/consumer_offsets_partition_002", "backup tool", True),
        ("partition=0/segment-000001.zst", "backup tool", True),
        ("partition=0/orders+0+0000000400.json", "sink connector", True),
        ("x/orders-0-400.jsonl.gz", "sink connector", True),
        ("x/00000000000000000000_0_v0.segment", "Confluent", True),
        ("current/1f.log", "BookKeeper", True),
        ("version-2/log.1", "ZooKeeper", False),
        ("rocksdb/000012.sst", "RocksDB", False),
        ("msgs/1.blk", "NATS", True),
        ("orders/part-0000.snappy.parquet", "tables or exported", True),
        ("x/orders.tar.gz", "packed archive", True),
        ("logs/server.log", "Kafka's programs", False),
        ("logs/server.log.2026-09-27-10", "Kafka's programs", False),
        ("logs/controller.log", "Kafka's programs", False),
        ("logs/state-change.log.3", "Kafka's programs", False),
        ("logs/kafkaServer-gc.log.0.current", "Kafka's programs", False),
        ("logs/kafka-authorizer.log", "Kafka's programs", False),
        ("logs/hs_err_pid12.log", "JVM", False),
        ("logs/.nfs000012", "operating system", False),
    ],
)
def test_what_a_file_is_by_its_name(path: str, what: str, has_records: bool) -> None:
    folder, name = path.split("/")

    found = foreign_file(folder, name)

    assert found is not None
    assert what in found.what
    assert found.has_records == has_records


@pytest.mark.parametrize(
    "path",
    [
        "orders-0/00000000000000000000.log",
        "orders-0/00000000000000000000.timeindex",
        "orders-0/00000000000000000042.snapshot",
        "__cluster_metadata-0/00000000000000000123-0000000001.checkpoint",
        "orders-0/leader-epoch-checkpoint",
        "orders-0/partition.metadata",
        "logs/recovery-point-offset-checkpoint",
        "logs/meta.properties",
        "logs/.kafka_cleanshutdown",
        "orders-0/00000000000000000000.log.gz",
        "orders-0/00000000000000000000-2QHxCNE8T2Wba-1234567A.log",
        "logs/application.log",
    ],
)
def test_kafkas_own_files_and_what_nobody_knows_have_no_name(path: str) -> None:
    assert foreign_file(*path.split("/")) is None


def test_what_a_broker_does_depends_on_the_place() -> None:
    found = foreign_file("0_12", "0-1-v1.log")
    assert found is not None

    assert "a broker passes over it" in foreign_reason(found, is_read_over=True)
    assert "does not start where its folder lies in a log directory" in foreign_reason(
        found, is_read_over=False
    )


def test_many_are_told_in_one_sentence_and_records_before_what_programs_left() -> None:
    logs = [("logs", f"server.log.{number}") for number in range(9)]
    records = [("0_12", "0-1-v1.log"), ("0_12", "0-1-v1.base_index")]

    told = foreign_text([*logs, *records, ("x", "nobody knows")])

    assert told is not None
    assert told.startswith("2 files there are Redpanda's segments, in a format of its own, e.g.")
    assert "0_12/0-1-v1.log: have Redpanda read them" in told
    assert foreign_text([("x", "nobody knows")]) is None
