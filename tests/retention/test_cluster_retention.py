"""Brokers delete the segments that their disks alone tell: settings are of the metadata log."""

import random
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.run import InternalsOptions, run_internals
from kafka_segments.verbs.judge.retention.command_options import retention_options
from kafka_segments.verbs.judge.retention.run import run_retention
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.run import run_build
from support.kafka.kraft_cluster import DIRECTORIES, NODES, ClusterClient, KraftCluster
from support.model.plain_retention import HOUR_MS

DAY_MS = 24 * HOUR_MS
NO_END = str(2**63 - 1)
SEGMENTS, TOPICS = 12, 8
NEVER = {
    "log.retention.check.interval.ms": str(DAY_MS),
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
}
AT_ONCE = {"log.retention.check.interval.ms": "500"}
CHECKPOINTED_SECONDS = 6.0  # a broker writes high watermarks every 5 s
PATIENCE_SECONDS, MORE_CHECKS_SECONDS = 60.0, 2.0

Left = dict[tuple[str, str], list[int]]


def test_brokers_delete_what_the_disks_alone_say(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    draw = random.Random(f"{seed} retention")
    warehouse = str(tmp_path / "warehouse")
    with KraftCluster(tmp_path / "cluster", NEVER) as cluster:
        fill(cluster.client, draw)
        time.sleep(CHECKPOINTED_SECONDS)
        cluster.kill()
        folders = [cluster.node_folder(node) / name for node in NODES for name in DIRECTORIES]
        before = segments_left(folders)
        decided = decided_to_stay(spark, folders, warehouse)

        cluster.properties = AT_ONCE
        cluster.start()
        end = time.monotonic() + PATIENCE_SECONDS
        while segments_left(folders) != decided and time.monotonic() < end:
            time.sleep(0.5)
        time.sleep(MORE_CHECKS_SECONDS)
        cluster.kill()

    assert segments_left(folders) == decided
    assert len(before) == TOPICS
    gone = sum(map(len, before.values())) - sum(map(len, decided.values()))
    assert 0 < gone < sum(map(len, before.values()))


def fill(client: ClusterClient, draw: random.Random) -> None:
    """Make topics with a record a day, each in its own segment, and settings on all levels."""
    client.client(
        "open_producer", producer="p", transactional_id=None, timeout_ms=0, client_id=None
    )
    now_ms = int(time.time() * 1000)
    for number in range(TOPICS):
        topic = f"aging-{number}"
        configs = {"segment.ms": str(HOUR_MS)}
        node = draw.choice(NODES)
        client.change("create", topic=topic, assignments=[[node]], configs=configs)
        for age in range(SEGMENTS, 0, -1):
            client.client(
                "send",
                producer="p",
                partition=f"{topic}-0",
                timestamp_ms=now_ms - age * DAY_MS,
                count=draw.randint(1, 3),
                bytes=draw.randint(10, 200),
            )
        for _ in range(draw.randint(0, 2)):
            alter(client, "TOPIC", topic, drawn_settings(draw, ""))
    for node in draw.sample(NODES, 2):
        alter(client, "BROKER", str(node), drawn_settings(draw, "log."))
    for _ in range(2):
        alter(client, "BROKER", "", drawn_settings(draw, "log."))
    alter(client, "TOPIC", "aging-1", {}, deleted=["retention.ms", "retention.bytes"])
    for topic in ("aging-2", "aging-3"):
        client.change("delete_records", partition=f"{topic}-0", before=draw.randint(2, SEGMENTS))
    alter(
        client, "TOPIC", "aging-2", {"cleanup.policy": "compact", "min.compaction.lag.ms": NO_END}
    )


def drawn_settings(draw: random.Random, prefix: str) -> dict[str, str]:
    """Draw limits that are half a day off any record's age."""
    limits = {
        f"{prefix}retention.ms": str(draw.randint(1, SEGMENTS) * DAY_MS + DAY_MS // 2),
        f"{prefix}retention.bytes": str(draw.randint(1, 2000)),
    }
    return dict(draw.sample(sorted(limits.items()), draw.randint(1, 2)))


def alter(
    client: ClusterClient, kind: str, name: str, settings: dict[str, str], deleted: Any = ()
) -> None:
    client.change("alter_configs", type=kind, name=name, set=settings, delete=deleted)


def segments_left(folders: list[Path]) -> Left:
    """Give the base offsets of the segments of each log, without new ones that are empty."""
    return {
        (str(folder), log.name): sorted(
            int(segment.stem) for segment in log.glob("*.log") if segment.stat().st_size
        )
        for folder in folders
        for log in folder.glob("aging-*")
    }


def decided_to_stay(spark: SparkSession, folders: list[Path], warehouse: str) -> Left:
    """Give what stays of each log, decided with nothing but the disks."""
    sources = tuple(map(str, folders))
    now_ms = int(time.time() * 1000)
    tables = Warehouse(spark, warehouse)
    run_build(tables, BuildOptions(sources, RecoveryOptions(), now_ms))
    with ExitStack() as caches:
        metadata = Origin(sources[:1], topics=(METADATA_TOPIC,))  # one node's is enough
        run_internals(Warehouse(spark, warehouse), InternalsOptions(metadata), caches)
    options = retention_options(
        warehouse=warehouse,
        conf=None,
        pairs=(),
        now_ms=now_ms,
        topic_configs=(),
        server_properties=None,
        remote_offsets=None,
        kafka_version="4.3",
    )
    rows = run_retention(tables, options, dry_run=True).where("topic LIKE 'aging-%'").collect()
    left: Left = {(row["log_dir"], f"{row['topic']}-{row['partition']}"): [] for row in rows}
    for row in sorted(rows, key=lambda row: int(row["base_offset"])):
        if row["decision"] == "keep":
            left[row["log_dir"], f"{row['topic']}-{row['partition']}"].append(row["base_offset"])
    return left
