"""Every parser of bytes from outside, given golden files that were spoiled at random.

A parser gives a value, a finding, or an error of its own; it never fails otherwise, and never
takes memory or time for what a length in the file merely says. `make fuzz` runs more rounds, on
new input, with numba's bounds checks.
"""

import json
import os
import random
import struct
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kafka_segments.errors import KafkaSegmentsError
from kafka_segments.files.segments.converter import SegmentConverter
from kafka_segments.files.segments.digest import RecordDigester
from kafka_segments.kafka.broker_rules.lookups import lookup_timestamp
from kafka_segments.kafka.index.log.snapshots import decode_snapshot
from kafka_segments.kafka.index.segment.offset_index import (
    check_offset_index,
    decode_offset_index,
    lookup_offset,
)
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.splitting import split_overflowed
from kafka_segments.kafka.index.segment.time_index import check_time_index, decode_time_index
from kafka_segments.kafka.index.segment.transaction_index import decode_transaction_index
from kafka_segments.kafka.messages.records import decode_internal
from kafka_segments.kafka.text.checkpoints import (
    parse_leader_epochs,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
)
from kafka_segments.kafka.text.kafka_configs import parse_described_configs, parse_server_properties
from kafka_segments.kafka.text.names import (
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    parse_partition_folder,
    parse_segment_name,
)
from kafka_segments.kafka.tier.chunk_index import decode_chunk_sizes
from kafka_segments.kafka.tier.segment_manifest import parse_manifest
from kafka_segments.kafka.tier.tiered_names import tiered_log_of
from kafka_segments.kafka.tier.tiered_offsets import parse_tiered_offsets
from support.logs.log_reading import reader_of, record_times
from support.logs.spoiled_bytes import spoil
from support.logs.strategies import crc32c
from support.stores.tiered_objects import OTHER_ID, TOPIC_ID, chunk_index, encode_chunk_sizes

ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "150"))
BASE = 1_000
COMMIT_KEY = struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 0)
Parser = Callable[[bytes], object]


def _recover(data: bytes) -> object:
    return _recoverer().recover(reader_of(data), size_bytes=len(data), base_offset=BASE)


def _split(data: bytes) -> object:
    read = reader_of(data)
    return split_overflowed(_recoverer(), read, size_bytes=len(data), base_offset=BASE)


@cache
def _recoverer() -> SegmentRecoverer:
    return SegmentRecoverer(RecoveryOptions())


@cache
def _converter() -> SegmentConverter:
    return SegmentConverter()


@cache
def _digester() -> RecordDigester:
    return RecordDigester(max_batch_bytes=1 << 22)


def _read_offset_index(data: bytes) -> object:
    entries = decode_offset_index(data, base_offset=BASE)
    lookup_offset(entries, BASE + 5, base_offset=BASE)
    return check_offset_index(data, base_offset=BASE)


def _read_time_index(data: bytes) -> object:
    entries = decode_time_index(data, base_offset=BASE)
    lookup_timestamp(entries, 1_700_000_000_000, base_offset=BASE)
    return check_time_index(data, base_offset=BASE)


def _internal(topic: str, key: bytes | None, value: bytes | None) -> object:
    record = decode_internal(topic, key, value)
    return record.problem, record.key_json(), record.value_json()


def _text(parse: Callable[[str], object]) -> Parser:
    return lambda data: parse(data.decode("utf-8", "replace"))


def _manifest(kind: str) -> bytes:
    part = {"position": 0, "size": 8}
    remote = {
        "remoteLogSegmentId": {
            "topicIdPartition": {
                "topicId": TOPIC_ID,
                "topicPartition": {"topic": "t", "partition": 0},
            },
            "id": OTHER_ID,
        },
        **dict.fromkeys(("startOffset", "endOffset", "maxTimestampMs", "eventTimestampMs"), 7),
        "segmentLeaderEpochs": {"0": 7, "3": 9},
    }
    indexes = ("offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction")
    manifest = {
        "version": "1",
        "chunkIndex": chunk_index(bytes(25), 10, [b"abc", b"abcde", b"a"], kind),
        "segmentIndexes": dict.fromkeys(indexes, part),
        "compression": True,
        "remoteLogSegmentMetadata": remote,
    }
    return json.dumps(manifest).encode()


LOGS: dict[str, Parser] = {
    "recover": _recover,
    "split": _split,
    "records": lambda data: list(record_times(data, max_batch_bytes=1 << 22)),
    "convert": lambda data: _converter().convert(
        reader_of(data), lambda _: None, size_bytes=len(data)
    ),
    "digest": lambda data: _digester().digest(reader_of(data), size_bytes=len(data)),
}
FILES: dict[str, tuple[str, Parser]] = {
    "offset index": (".index", _read_offset_index),
    "time index": (".timeindex", _read_time_index),
    "transaction index": (".txnindex", decode_transaction_index),
    "snapshot": (".snapshot", decode_snapshot),
    "leader epochs": ("leader-epoch-checkpoint", _text(parse_leader_epochs)),
}
TEXTS: dict[str, tuple[bytes, Parser]] = {
    "offset checkpoint": (
        b"0\n2\nt-a 0 17\nt 1 9\n",
        _text(lambda t: parse_offset_checkpoint("c", t)),
    ),
    "meta.properties": (b"#x\nversion=1\ncluster.id=c\nnode.id=3\n", _text(parse_meta_properties)),
    "partition.metadata": (
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n",
        _text(parse_partition_metadata),
    ),
    "server.properties": (
        b"log.retention.hours=5\nlog.segment.bytes : 9\n",
        _text(lambda t: parse_server_properties("s", t)),
    ),
    "described configs": (
        b"Dynamic configs for topic t are:\n  retention.ms=5 sensitive=false"
        b" synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5}\n",
        _text(lambda t: parse_described_configs("d", t)),
    ),
    "manifest": (_manifest("fixed"), lambda data: parse_manifest("m", data)),
    "manifest of a compressed log": (
        _manifest("variable"),
        lambda data: parse_manifest("m", data),
    ),
    "chunk sizes": (encode_chunk_sizes([300, 70_000, 5]), decode_chunk_sizes),
    "tiered name": (f"x-{TOPIC_ID}/0/{0:020d}-{OTHER_ID}.log".encode(), _text(tiered_log_of)),
    "tiered offsets": (b"t:0:5\n", _text(lambda t: parse_tiered_offsets("x", t))),
    "commit key": (COMMIT_KEY, lambda data: _internal(OFFSETS_TOPIC, data, None)),
    "commit value": (
        struct.pack(">hqihq", 3, 42, 7, 0, 1_700_000_000_000),
        lambda data: _internal(OFFSETS_TOPIC, COMMIT_KEY, data),
    ),
    "control record": (
        bytes.fromhex("0000 00000001 02 00000001 00 02 00000001 00 00"),
        lambda data: _internal(METADATA_TOPIC, bytes.fromhex("0000 0002"), data),
    ),
    "metadata record": (
        bytes.fromhex(
            "01 03 01 00000007 000102030405060708090a0b0c0d0e0f 02 00000001 02 00000001 01 01"
            " 00000001 00000000 00000000 01 01 00 01 02"
        ),
        lambda data: _internal(METADATA_TOPIC, None, data),
    ),
    "segment name": (b"00000000000000000042.log", _text(parse_segment_name)),
    "folder name": (
        b"topic-7.0123456789abcdef0123456789abcdef-delete",
        _text(parse_partition_folder),
    ),
}


def _with_right_checksums(data: bytes) -> bytes:
    """Let what was spoiled pass as sound, so that it reaches what reads the records."""
    mended, position = bytearray(data), 0
    while position + 17 <= len(mended):
        size = 12 + int.from_bytes(mended[position + 8 : position + 12], "big", signed=True)
        if size < 14 or position + size > len(mended):
            break
        if mended[position + 16] >= 2 and size >= 61:
            crc = crc32c(bytes(mended[position + 21 : position + size]))
            mended[position + 17 : position + 21] = crc.to_bytes(4, "big")
        else:
            crc = zlib.crc32(mended[position + 16 : position + size])
            mended[position + 12 : position + 16] = crc.to_bytes(4, "big")
        position += size
    return bytes(mended)


def _feed(parser: Parser, data: bytes) -> None:
    try:
        parser(data)
    except KafkaSegmentsError as error:
        assert str(error)


@pytest.fixture(scope="module")
def files(synthetic: Path) -> list[Path]:
    return sorted(path for path in synthetic.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", LOGS)
def test_spoiled_logs_end_in_a_value_or_an_error_of_ours(
    files: list[Path], name: str, seed: int
) -> None:
    choice = random.Random(f"{seed} {name}")
    logs = [path.read_bytes()[:20_000] for path in files if path.suffix == ".log"]
    for _ in range(ROUNDS):
        spoiled = spoil(choice, choice.choice(logs), logs)
        _feed(LOGS[name], spoiled)
        _feed(LOGS[name], _with_right_checksums(spoiled))


@pytest.mark.parametrize("name", FILES)
def test_spoiled_files_beside_logs_do_so_too(files: list[Path], name: str, seed: int) -> None:
    choice = random.Random(f"{seed} {name}")
    suffix, parser = FILES[name]
    seeds = [path.read_bytes()[:5_000] for path in files if path.name.endswith(suffix)]
    for _ in range(ROUNDS):
        _feed(parser, spoil(choice, choice.choice(seeds), seeds))


@pytest.mark.parametrize("name", TEXTS)
def test_spoiled_texts_and_names_do_so_too(name: str, seed: int) -> None:
    choice = random.Random(f"{seed} {name}")
    sound, parser = TEXTS[name]
    parser(sound)
    for _ in range(ROUNDS * 4):
        _feed(parser, spoil(choice, sound, [sound]))
