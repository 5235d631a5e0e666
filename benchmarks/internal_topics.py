"""Records of internal topics as JSON and as rows of a table, beside kafka-dump-log's decoders."""

import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from sections import ROOT, SCRATCH, Section, best

from kafka_segments.engine.spark.session import spark_session
from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.messages.encoder import encode, write_unsigned_varint
from kafka_segments.kafka.messages.messages import LAYOUTS
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.run import InternalsOptions, run_internals
from kafka_segments.verbs.find.internals.tasks import InternalReader
from support.kafka.kafka_referee import KAFKA_JARS, QUIET
from support.logs.strategies import v2_batch

FIRST_MS = 1_700_000_000_000
RECORDS_A_BATCH = 20
ROUNDS = 3
_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


class Case(NamedTuple):
    """A topic of a log, its records (key and value), and the decoder that the tool takes."""

    topic: str
    records: list[tuple[bytes | None, bytes]]
    decoder: str


def bench_internals(*, quick: bool) -> Section:
    """Decode the same segments with both; ours into a table, too."""
    count = 2_000 if quick else 60_000
    section = Section("Internal topics, against kafka-dump-log's decoders")
    section.lines += [
        f"One segment each of {count:,} records, of groups a tenth, {RECORDS_A_BATCH} a batch, in"
        " the page cache, one core. *kafka-dump-log* decodes to JSON with Kafka's own classes and"
        " prints lines, thrown away; what it takes for a log of one record is its start, and not in"
        " its records a second. *JSON*: key and value of each record as the same JSON, in Arrow"
        " columns, in one process of Python. *Table*: a whole run of `internals` into a new"
        " warehouse, in a warm session with `local[1]`: listing, decoding, commits to Delta, and"
        f" for metadata the history. The quickest of {ROUNDS} rounds in one process, of 2 else.",
        "",
    ]
    section.table(
        *("records", "bytes each", "kafka-dump-log s", "of it start s", "its records/s"),
        *("JSON s", "records/s", "ratio", "table s", "records/s"),
    )
    with spark_session("bench", root=ROOT, master="local[1]") as spark:
        cases = _cases(count)
        for case in cases.values():  # the first run in a JVM compiles
            _fill(spark, _write(case, 1, "start").parent.parent)
        shutil.rmtree(SCRATCH / "internals")
        for name, case in cases.items():
            count = len(case.records)
            log = _write(case, count)
            short = _write(case, 1, "start")
            start = best(lambda short=short, case=case: _dump(short, case.decoder), 2)
            kafka = best(lambda log=log, case=case: _dump(log, case.decoder), 2)
            ours = best(lambda log=log, case=case: _decode(log, case.topic), ROUNDS)
            table = best(lambda log=log: _fill(spark, log.parent.parent), 2)
            section.row(
                *(name, f"{log.stat().st_size / count:.0f}", f"{kafka:.1f}", f"{start:.1f}"),
                *(f"{count / (kafka - start):,.0f}", f"{ours:.2f}", f"{count / ours:,.0f}"),
                f"**{(kafka - start) / ours:.1f}x**, with its start {kafka / ours:.1f}x",
                *(f"{table:.1f}", f"{count / table:,.0f}"),
            )
            section.figures[f"{name}: us a record"] = ours / count * 1e6
            shutil.rmtree(SCRATCH / "internals")
    return section


def _cases(count: int) -> dict[str, Case]:
    draw = random.Random(1)
    offsets, states = "__consumer_offsets", "__transaction_state"
    return {
        "committed offsets": Case(
            offsets, [_commit(draw) for _ in range(count)], "--offsets-decoder"
        ),
        "groups of ten members": Case(
            offsets, [_group(draw) for _ in range(count // 10)], "--offsets-decoder"
        ),
        "transactions": Case(
            states, [_transaction(draw) for _ in range(count)], "--transaction-log-decoder"
        ),
        "changes of partitions": Case(
            "__cluster_metadata", list(_changes(draw, count)), "--cluster-metadata-decoder"
        ),
    }


def _keyed(
    kind: str, version: int, names: dict[str, object], fields: dict[str, object]
) -> tuple[bytes, bytes]:
    key, value = LAYOUTS[f"{kind}Key"], LAYOUTS[f"{kind}Value"]
    return (
        struct.pack(">h", key.type_id) + encode(key, 0, names),
        struct.pack(">h", version) + encode(value, version, fields),
    )


def _commit(draw: random.Random) -> tuple[bytes, bytes]:
    group = draw.randrange(40)
    names = {"group": f"group-{group}", "topic": f"topic-{group}", "partition": draw.randrange(50)}
    fields = {
        "offset": draw.randrange(10**9),
        "leaderEpoch": draw.randrange(20),
        "commitTimestamp": FIRST_MS,
    }
    return _keyed("OffsetCommit", 3, names, fields)


def _group(draw: random.Random) -> tuple[bytes, bytes]:
    members = [
        {
            "memberId": f"consumer-{number}-{draw.randrange(10**12)}",
            "clientId": f"consumer-{number}",
            "clientHost": "/10.0.0.1",
            "rebalanceTimeout": 300_000,
            "sessionTimeout": 45_000,
            "subscription": draw.randbytes(40),
            "assignment": draw.randbytes(40),
        }
        for number in range(10)
    ]
    fields = {
        "protocolType": "consumer",
        "generation": draw.randrange(100),
        "protocol": "range",
        "leader": members[0]["memberId"],
        "currentStateTimestamp": FIRST_MS,
        "members": members,
    }
    names = {"group": f"group-{draw.randrange(500)}"}
    return _keyed("GroupMetadata", 3, names, fields)


def _transaction(draw: random.Random) -> tuple[bytes, bytes]:
    fields = {
        "producerId": draw.randrange(10**6),
        "producerEpoch": draw.randrange(100),
        "transactionTimeoutMs": 60_000,
        "transactionStatus": draw.randrange(6),
        "transactionPartitions": [
            {"topic": f"topic-{number}", "partitionIds": draw.sample(range(50), 4)}
            for number in range(3)
        ],
        "transactionLastUpdateTimestampMs": FIRST_MS,
        "transactionStartTimestampMs": FIRST_MS,
    }
    return _keyed("TransactionLog", 1, {"transactionalId": f"id-{draw.randrange(5_000)}"}, fields)


def _changes(draw: random.Random, count: int) -> Iterator[tuple[None, bytes]]:
    """Yield a topic of a thousand partitions, and then changes of leaders and ISRs."""
    yield _metadata("TopicRecord", {"name": "orders", "topicId": _ID})
    for number in range(count - 1):
        replicas = draw.sample(range(1, 7), 3)
        log = {"partitionId": number % 1_000, "topicId": _ID}
        isr = {"isr": replicas[:2], "leader": replicas[0]}
        name, fields = "PartitionChangeRecord", log | isr
        if number < 1_000:
            name, fields = "PartitionRecord", log | isr | {"replicas": replicas, "leaderEpoch": 0}
        yield _metadata(name, fields)


def _metadata(name: str, fields: dict[str, object]) -> tuple[None, bytes]:
    layout = LAYOUTS[name]
    frame = b"\x01" + write_unsigned_varint(layout.type_id or 0) + b"\x00"
    return None, frame + encode(layout, 0, fields)


def _write(case: Case, count: int, name: str = "disk") -> Path:
    """Write a log directory with one segment of the first records."""
    log = SCRATCH / "internals" / name / f"{case.topic}-0" / f"{0:020d}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        for first in range(0, count, RECORDS_A_BATCH):
            some = case.records[first : min(first + RECORDS_A_BATCH, count)]
            rows = [(FIRST_MS + first, key, value) for key, value in some]
            file.write(v2_batch(first, rows, leader_epoch=0))
    return log


def _dump(log: Path, decoder: str) -> None:
    tool = ["java", *QUIET, "-cp", f"{KAFKA_JARS}/*", "org.apache.kafka.tools.DumpLogSegments"]
    asked = [*tool, decoder, "--files", str(log)]
    done = subprocess.run(["taskset", "-c", "0", *asked], stdout=subprocess.DEVNULL, check=False)
    done.check_returncode()


def _decode(log: Path, topic: str) -> None:
    reader = InternalReader(to_arrow_schema(INTERNAL_RECORDS.schema))
    file = {
        **{"cluster": "c", "broker_id": 1, "log_dir": "/", "topic": topic, "partition": 0},
        **{"file": log.name, "path": str(log), "is_snapshot": False, "is_active": True},
        **{"base_offset": 0, "size_bytes": log.stat().st_size, "mtime_ns": 1},
    }
    for _ in reader.file(file):
        pass


def _fill(spark: SparkSession, disk: Path) -> None:
    warehouse = SCRATCH / "internals" / "warehouse"
    shutil.rmtree(warehouse, ignore_errors=True)
    options = InternalsOptions(Origin((str(disk),)))
    with ExitStack() as caches:
        run_internals(Warehouse(spark, str(warehouse)), options, caches)
