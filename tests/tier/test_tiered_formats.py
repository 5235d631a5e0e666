"""Names, chunk indexes and manifests of tiered storage, held against writers of the tests' own."""

import base64
import json
from pathlib import Path
from typing import Any

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.errors import CorruptTextError
from kafka_segments.kafka.tier.chunk_index import decode_chunk_sizes, parse_chunk_sizes
from kafka_segments.kafka.tier.segment_manifest import (
    RemoteSegment,
    SegmentManifest,
    parse_manifest,
)
from kafka_segments.kafka.tier.tiered_names import (
    parse_name_with_id,
    parse_object_name,
    parse_tiered_folder,
    parse_tiered_name,
    tiered_log_of,
)
from support.stores.tiered_objects import (
    OTHER_ID,
    SEGMENT_ID,
    TOPIC_ID,
    encode_chunk_sizes,
    put_segment,
)

SIZES = st.lists(st.integers(0, 2**31 - 1), max_size=200)
BASE = "00000000000000001234"


def test_ids_may_begin_with_a_dash() -> None:
    folder = parse_tiered_folder(f"a-b-{TOPIC_ID}", "7")
    name = parse_tiered_name(f"{BASE}-{SEGMENT_ID}.rsm-manifest")

    assert TOPIC_ID.startswith("-")
    assert folder == ("a-b", TOPIC_ID, 7)
    assert name == (1234, SEGMENT_ID, ".rsm-manifest")
    assert name is not None
    assert name.stem == f"{BASE}-{SEGMENT_ID}"


@pytest.mark.parametrize(
    ("topic", "partition"),
    [
        (f"-{TOPIC_ID}", "7"),
        (TOPIC_ID, "7"),
        ("events-0", "7"),
        (f"events-{TOPIC_ID}", "07"),
        (f"events-{TOPIC_ID}", "2147483648"),
        (f"events-{TOPIC_ID}", "-1"),
        (f"events-{TOPIC_ID}", "\u0667"),
    ],
)
def test_folders_of_other_names_are_none(topic: str, partition: str) -> None:
    assert parse_tiered_folder(topic, partition) is None


@pytest.mark.parametrize(
    "name",
    [
        f"{BASE}.log",
        f"{BASE[1:]}-{OTHER_ID}.log",
        f"{'9' * 20}-{OTHER_ID}.log",
        f"{BASE}-{OTHER_ID}x.log",
        f"{BASE}-{OTHER_ID}",
    ],
)
def test_objects_of_other_names_are_none(name: str) -> None:
    assert parse_tiered_name(name) is None


def test_a_log_is_known_by_the_end_of_its_path() -> None:
    folder, log = f"bucket/pre/events-{TOPIC_ID}/7", f"{BASE}-{SEGMENT_ID}.log"

    assert tiered_log_of(f"{folder}/{log}") == (1234, SEGMENT_ID, ".log")
    assert tiered_log_of(f"bucket/events-7/{log}") is None
    assert tiered_log_of(f"{folder}/{BASE}-{SEGMENT_ID}.indexes") is None
    assert tiered_log_of(log) is None


def test_raw_names_may_have_an_id() -> None:
    assert parse_name_with_id(f"{BASE}.log") == 1234
    assert parse_name_with_id(f"{BASE}-{SEGMENT_ID}.log") == 1234
    assert parse_name_with_id(f"{BASE}-123e4567-e89b-12d3-a456-426614174000.log") == 1234
    assert parse_name_with_id(f"{BASE}-5.log") is None
    assert parse_name_with_id(f"{'9' * 20}-{OTHER_ID}.log") is None


# -- the chunk index ----------------------------------------------------------------------------


@given(SIZES)
def test_chunk_sizes_come_back_as_they_were_encoded(sizes: list[int]) -> None:
    assert decode_chunk_sizes(encode_chunk_sizes(sizes)).tolist() == sizes


@given(SIZES, st.integers(0, 2**16), st.binary(max_size=9))
def test_spoiled_chunk_sizes_are_sizes_or_an_error(sizes: list[int], at: int, by: bytes) -> None:
    data = bytearray(encode_chunk_sizes(sizes))
    at %= len(data) + 1
    data[at : at + len(by)] = by
    try:
        found = decode_chunk_sizes(bytes(data))
    except CorruptTextError:
        return
    assert all(0 <= size < 2**31 for size in found.tolist())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0",
        (-1).to_bytes(4, "big", signed=True),
        (2**31 - 1).to_bytes(4, "big") + bytes(4) + b"\4",
        (3).to_bytes(4, "big") + bytes(4) + b"\0" + bytes(4),
        (3).to_bytes(4, "big") + bytes(4) + b"\5" + bytes(14),
        (1).to_bytes(4, "big") + (-1).to_bytes(4, "big", signed=True),
    ],
)
def test_chunk_sizes_that_cannot_be_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptTextError, match="transformedChunks"):
        decode_chunk_sizes(data)


def test_the_text_of_chunk_sizes_is_bounded() -> None:
    most = 10 * 1024 * 1024
    bomb, largest = (
        base64.b64encode(bytes(cramjam.zstd.compress(bytes(size)))).decode()
        for size in (most + 1, most)
    )

    assert len(bomb) < 2_000
    with pytest.raises(CorruptTextError, match=f"transformedChunks.*above {most} bytes"):
        parse_chunk_sizes(bomb)
    with pytest.raises(CorruptTextError, match=f"transformedChunks.*{most} bytes, 4 expected"):
        parse_chunk_sizes(largest)
    for text in ("é", "AAA", "AAAA"):
        with pytest.raises(CorruptTextError, match="transformedChunks"):
            parse_chunk_sizes(text)


# -- the manifest -------------------------------------------------------------------------------


def _manifest(tmp_path: Path, **options: Any) -> dict[str, Any]:
    log = put_segment(
        tmp_path,
        b"x" * 25_000,
        {".index": b"i" * 8, ".timeindex": b"t" * 12},
        base_offset=1000,
        end_offset=1009,
        max_timestamp_ms=9000,
        **options,
    )
    found: dict[str, Any] = json.loads(log.with_suffix(".rsm-manifest").read_bytes())
    return found


def _parsed(manifest: object) -> SegmentManifest:
    return parse_manifest("m", json.dumps(manifest).encode())


def test_a_manifest_says_how_a_log_is_stored_and_what_is_in_it(tmp_path: Path) -> None:
    found = _parsed(_manifest(tmp_path, epochs={3: 1000, 12: 1004}))

    assert (found.is_compressed, found.is_encrypted) == (False, False)
    assert (found.chunks.count, found.chunks.stored_bytes) == (3, 25_000)
    assert [tuple(found.chunks.at(at)) for at in (0, 19_999, 24_999)] == [
        (0, 10_000, 0, 10_000),
        (10_000, 10_000, 10_000, 10_000),
        (20_000, 5_000, 20_000, 5_000),
    ]
    assert found.parts[".timeindex"] == (8, 12)
    assert ".txnindex" not in found.parts
    assert found.segment == RemoteSegment(
        topic="events",
        topic_id=TOPIC_ID,
        partition=7,
        segment_id=SEGMENT_ID,
        start_offset=1000,
        end_offset=1009,
        max_timestamp_ms=9000,
        event_timestamp_ms=1_700_000_000_000,
        leader_epochs=[(3, 1000), (12, 1004)],
        broker_id=2,
    )


def test_the_id_in_an_objects_name_may_be_written_as_a_uuid() -> None:
    offset, uuid = f"{7:020d}", "12345678-9abc-4def-8123-456789abcdef"

    assert parse_object_name(f"{offset}-{uuid}.log") == (7, "EjRWeJq8Te-BI0VniavN7w", ".log")
    assert parse_object_name(f"{offset}-{SEGMENT_ID}.leader_epoch_checkpoint") == (
        *(7, SEGMENT_ID),
        ".leader_epoch_checkpoint",
    )
    for name in (f"{offset}.log", f"{offset}-{uuid}", f"{2**63}-{uuid}.log", f"{offset}-x.log"):
        assert parse_object_name(name) is None


@pytest.mark.parametrize("kind", ["fixed", "variable"])
def test_a_log_without_bytes_has_no_chunks(tmp_path: Path, kind: str) -> None:
    manifest = _manifest(tmp_path)
    index = {"type": kind, "originalChunkSize": 10, "originalFileSize": 0}
    packed = bytes(cramjam.zstd.compress(bytes(4)))
    index |= {"transformedChunks": base64.b64encode(packed).decode()}
    index |= {"transformedChunkSize": 10, "finalTransformedChunkSize": 0}

    chunks = _parsed({**manifest, "chunkIndex": index}).chunks

    assert (chunks.count, chunks.stored_bytes) == (0, 0)


def test_a_segment_without_timestamps_has_minus_1(tmp_path: Path) -> None:
    manifest = _manifest(tmp_path)
    manifest["remoteLogSegmentMetadata"] |= {"maxTimestampMs": -1, "eventTimestampMs": -1}

    segment = _parsed(manifest).segment

    assert segment is not None
    assert (segment.max_timestamp_ms, segment.event_timestamp_ms) == (-1, -1)


def test_what_the_plugin_does_not_read_need_not_be_there(tmp_path: Path) -> None:
    manifest = _manifest(tmp_path)
    del manifest["remoteLogSegmentMetadata"]

    assert _parsed(manifest).segment is None


@pytest.mark.parametrize(
    ("where", "value", "reason"),
    [
        ("version", 1, "version 1, only 1"),
        ("version", "2", "version 2"),
        ("compression", None, "compression is None, true or false"),
        ("compression", 1, "compression is 1"),
        ("chunkIndex", [], "chunkIndex is"),
        ("chunkIndex.type", "other", "fixed or variable"),
        ("chunkIndex.type", ["fixed"], "fixed or variable"),
        ("chunkIndex.originalChunkSize", 0, "from 1 to 2147483647"),
        ("chunkIndex.originalFileSize", 2**31, "originalFileSize is 2147483648"),
        ("chunkIndex.originalFileSize", -1, "originalFileSize is -1"),
        ("chunkIndex.originalFileSize", 25e3, "originalFileSize is 25000.0"),
        ("chunkIndex.originalFileSize", True, "originalFileSize is True"),
        ("chunkIndex.transformedChunkSize", None, "transformedChunkSize is None"),
        ("segmentIndexes.offset", None, "offset is None"),
        ("segmentIndexes.timestamp.position", "0", "position is 0"),
        ("segmentIndexes.leaderEpoch.size", -1, "size is -1"),
        ("remoteLogSegmentMetadata", "x", "metadata is x"),
        ("remoteLogSegmentMetadata.endOffset", 2**63 - 1, "endOffset"),
        ("remoteLogSegmentMetadata.maxTimestampMs", -2, "from -1 to 9223372036854775807"),
        ("remoteLogSegmentMetadata.segmentLeaderEpochs", {"-1": 0}, "-1, an epoch"),
        ("remoteLogSegmentMetadata.segmentLeaderEpochs", {"9" * 11: 0}, "an epoch"),
        ("remoteLogSegmentMetadata.segmentLeaderEpochs", {"1": -5}, "1 is -5"),
    ],
)
def test_a_manifest_with_a_value_that_cannot_be_is_refused(
    tmp_path: Path, where: str, value: object, reason: str
) -> None:
    manifest = _manifest(tmp_path)
    *folders, last = where.split(".")
    inner = manifest
    for folder in folders:
        inner = inner[folder]
    inner[last] = value

    with pytest.raises(CorruptTextError, match=reason):
        _parsed(manifest)


def test_as_many_sizes_as_chunks_are_expected(tmp_path: Path) -> None:
    manifest = _manifest(tmp_path, kind="variable", is_compressed=True)
    manifest["chunkIndex"]["originalFileSize"] = 2**31 - 1

    with pytest.raises(CorruptTextError, match="of 3 chunks, 214749 of them expected"):
        _parsed(manifest)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"[]", b"null", b"{", b"[" * 100_000, b'{"version": NaN}', b"9" * 5_000],
    ids=["empty", "no text", "a list", "null", "cut", "deep", "NaN", "a long number"],
)
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptTextError, match=r"^m: "):
        parse_manifest("m", data)
