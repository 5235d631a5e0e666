"""Control batches with a producer id of every odd form: Kafka's classes against ours."""

import gzip
import struct
from pathlib import Path

import pytest

from kafka_segments.kafka.index.log.loading import RecoveryMode
from kafka_segments.kafka.index.segment import segment_walker
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from support.kafka.kafka_referee import Referee
from support.kafka.side_by_side import (
    loaded_by_kafka,
    loaded_by_us,
    recovered_by_kafka,
    recovered_by_us,
)
from support.logs.strategies import (
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    transaction_marker,
    v2_batch,
    varint,
)

ABORT_KEY, COMMIT_KEY = struct.pack(">hh", 0, 0), struct.pack(">hh", 0, 1)
VALUE = struct.pack(">hi", 0, 7)
PARTS = 3


def control(key: bytes | None = ABORT_KEY, value: bytes | None = VALUE, **fields: object) -> bytes:
    flags = fields.pop("flags", 0)
    records = [(2000, key, value)] * int(fields.pop("records", 1))
    return v2_batch(
        2,
        records,
        flags=CONTROL | TRANSACTIONAL | flags,
        producer_id=7,
        producer_epoch=0,
        **fields,
    )


ODD = {
    "abort": control(),
    "commit": control(COMMIT_KEY),
    "log append time": control(flags=LOG_APPEND_TIME),
    "delete horizon": control(flags=DELETE_HORIZON),
    "longer key and value": control(ABORT_KEY + b"abc", VALUE + b"abc"),
    "later key version": control(struct.pack(">hh", 9, 0)),
    "later value version": control(value=struct.pack(">hi", 9, 7)),
    "negative key version": control(struct.pack(">hh", -1, 0)),
    "negative value version": control(value=struct.pack(">hi", -1, 7)),
    "short key": control(b"\x00\x00\x00"),
    "empty key": control(b""),
    "short value": control(value=b"\x00\x00\x00"),
    "tiny value": control(value=b"\x00"),
    "empty value": control(value=b""),
    "no key": control(None),
    "no value": control(value=None),
    "leader change": control(struct.pack(">hh", 0, 2)),
    "unknown type": control(struct.pack(">hh", 0, 99)),
    "unknown type, no value": control(struct.pack(">hh", 0, 99), None),
    "negative type": control(struct.pack(">hh", 0, -1)),
    "two records": control(records=2),
    "gzip": control(codec=GZIP),
    "gzip that is none": control(codec=GZIP, payload=b"abc", record_count=1),
    "headers": control(headers=[("a", b"b")]),
    "no records, count 0": control(records=0),
    "one record, count 2": control(record_count=2),
    "gzip, two records": control(codec=GZIP, records=2),
    "gzip, one record, count 2": control(codec=GZIP, record_count=2),
    "gzip, two records, count 1": control(codec=GZIP, records=2, record_count=1),
    "gzip, no key, count 2": control(None, codec=GZIP, record_count=2),
    "gzip, record length below 0": control(
        codec=GZIP, payload=gzip.compress(varint(-5) + b"\x00" * 20), record_count=1
    ),
    "two records, count 1": control(records=2, record_count=1),
    "one record, count 0": control(record_count=0),
    "count below 0": control(record_count=-3),
    "unknown codec, count below 0": control(codec=5, payload=b"abc", record_count=-1),
    "lz4 that is none, count below 0": control(codec=3, payload=b"abc", record_count=-1),
    "zstd that is none, count below 0": control(codec=4, payload=b"abc", record_count=-1),
    "gzip, count below 0": control(codec=GZIP, record_count=-1),
    "no payload": control(payload=b"", record_count=1),
    "record length has no end": control(payload=b"\xff" * 20, record_count=1),
    "record length below 0": control(payload=varint(-5) + b"\x00" * 20, record_count=1),
    "record past end": control(payload=varint(60) + b"\x00" * 20, record_count=1),
    "timestamp has no end": control(payload=varint(15) + b"\x00" + b"\xff" * 14, record_count=1),
    "key past end": control(
        payload=varint(10) + b"\x00\x00\x00" + varint(60) + b"\x00" * 6, record_count=1
    ),
}


BEFORE = v2_batch(0, [(1000, b"k", b"v")] * 2, flags=TRANSACTIONAL, producer_id=7, producer_epoch=0)


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is compiled at the first marker that is read, and at the first that cannot be."""
    for name in ("abort", "short key"):
        folder = tmp_path_factory.mktemp("compiled")
        (folder / f"{0:020d}.log").write_bytes(BEFORE + ODD[name])
        recovered_by_us(folder, RecoveryOptions())


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("buffer_bytes", "interval"), [(97, 0), (1024 * 1024, 4096)])
def test_odd_markers_end_as_kafkas_do(
    referee: Referee,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    buffer_bytes: int,
    interval: int,
    part: int,
) -> None:
    monkeypatch.setattr(segment_walker, "_BUFFER_BYTES", buffer_bytes)
    after = v2_batch(3, [(3000, b"k" * 300, b"v")]) + transaction_marker(
        4, timestamp=1, producer_id=7, commit=False
    )
    mine, kafkas = {}, {}
    for number, (name, marker) in enumerate([*ODD.items()][part::PARTS]):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / f"{0:020d}.log").write_bytes(BEFORE + marker + after)
        options = RecoveryOptions(index_interval_bytes=interval)
        mine[name] = recovered_by_us(folder, options)
        kafkas[name] = recovered_by_kafka(referee, folder, options)

    assert mine == kafkas


def test_odd_markers_leave_the_snapshots_that_kafkas_do(referee: Referee, tmp_path: Path) -> None:
    mine, kafkas = {}, {}
    for number, (name, marker) in enumerate(ODD.items()):
        folder = tmp_path / f"t-{number}"
        folder.mkdir()
        (folder / f"{0:020d}.log").write_bytes(BEFORE + marker)
        mine[name] = loaded_by_us(folder, RecoveryMode.LOADER_MISSING)
        kafkas[name] = loaded_by_kafka(referee, folder, RecoveryMode.LOADER_MISSING)

    assert mine == kafkas
    assert sum(f"{3:020d}.snapshot" in files for files in mine.values()) > 10
