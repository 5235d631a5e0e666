"""What a tier's objects say of a segment: its manifest, and the headers of its batches."""

from dataclasses import replace
from typing import Any

import numpy as np

from kafka_segments.kafka.index.segment.recovered_segment import Damage, DamageKind, unread_segment
from kafka_segments.kafka.text.checkpoints import EpochStart
from kafka_segments.kafka.text.names import TXN_INDEX_SUFFIX
from kafka_segments.kafka.tier.chunk_index import ChunkIndex
from kafka_segments.kafka.tier.segment_manifest import IndexPart, RemoteSegment, SegmentManifest
from kafka_segments.verbs.find.internals.tier.decide.object_facts import (
    HEADERS,
    MANIFESTS,
    NAMES,
    told_by_headers,
    told_by_manifest,
)

BY_NAMES = {"source": NAMES, "start_offset": 100, "size_bytes": None}
ROW: dict[str, Any] = {"base_offset": 100, "log_bytes": 60, "found": BY_NAMES, "problem": None}
SIZES = ChunkIndex(chunk_bytes=50, log_bytes=90, stored_chunk_bytes=40, last_stored_bytes=20)
ANNOUNCED = RemoteSegment("t", "A", 0, "id", 101, 199, 7_000, 8_000, [EpochStart(3, 101)], 5)


def test_a_manifest_may_tell_of_sizes_alone() -> None:
    told = told_by_manifest(ROW, SegmentManifest(SIZES, False, False))

    assert told == {
        "found": {"source": MANIFESTS, "start_offset": 100, "size_bytes": 90},
        "problem": None,
    }


def test_a_log_of_another_size_than_its_manifest_says_is_a_problem() -> None:
    told = told_by_manifest(ROW | {"log_bytes": 61}, SegmentManifest(SIZES, False, False))

    assert told["problem"] == "its log has 61 bytes in the tier, 60 says its manifest"


def test_a_manifest_says_what_was_announced() -> None:
    plain = SegmentManifest(SIZES, False, False, segment=ANNOUNCED)
    with_aborts = replace(plain, parts={TXN_INDEX_SUFFIX: IndexPart(0, 34)})

    found = told_by_manifest(ROW, plain)["found"]

    assert found == {
        "source": MANIFESTS,
        "size_bytes": 90,
        "start_offset": 101,
        "end_offset": 199,
        "max_timestamp_ms": 7_000,
        "leader_epochs": [{"epoch": 3, "start_offset": 101}],
        "event_ms": 8_000,
        "broker_id": 5,
        "is_txn_index_empty": True,
    }
    assert not told_by_manifest(ROW, with_aborts)["found"]["is_txn_index_empty"]
    assert ROW["found"] == {"source": NAMES, "start_offset": 100, "size_bytes": None}


def test_headers_say_it_in_the_place_of_the_manifest_and_damage_says_nothing() -> None:
    torn = Damage(DamageKind.PARTIAL_BATCH, 40, "cut off")
    damaged = unread_segment(size_bytes=60, base_offset=100, damage=torn)
    sound = damaged._replace(
        damage=None,
        next_offset=150,
        max_timestamp=9_000,
        leader_epochs=np.array([[3, 100], [4, 120]]),
    )
    row = ROW | told_by_manifest(ROW, SegmentManifest(SIZES, False, False, segment=ANNOUNCED))

    told = told_by_headers(row, sound, size_bytes=90)

    assert told == {
        "found": {
            "source": HEADERS,
            "start_offset": 100,
            "end_offset": 149,
            "max_timestamp_ms": 9_000,
            "size_bytes": 90,
            "leader_epochs": [
                {"epoch": 3, "start_offset": 100},
                {"epoch": 4, "start_offset": 120},
            ],
            "event_ms": 8_000,
            "broker_id": 5,
            "is_txn_index_empty": True,
        }
    }
    assert told_by_headers(row, damaged, size_bytes=90) == {"problem": "byte 40: cut off"}
