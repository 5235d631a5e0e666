"""Drawn faults of batches: what a consumer's own classes cannot read is told, and no more."""

import random
import struct
from pathlib import Path

import pytest

from kafka_segments.files.folders.walk import find_segments
from kafka_segments.verbs.find.records.decide import Query, Why
from kafka_segments.verbs.find.records.large_batches import LargestBatches
from kafka_segments.verbs.find.records.segment_records import SegmentReader, SegmentScan
from support.kafka.kafka_referee import Referee
from support.logs.spoilt_batches import FAULTS, STRUCTURES, TIME, put, sound_batches
from support.logs.strategies import v2_batch


def _scanned(folder: Path, data: bytes) -> tuple[SegmentScan, Path]:
    log = folder / "t-0" / f"{0:020d}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(data)
    (segment,) = find_segments([str(folder)]).segments
    return SegmentReader(Query(), most=10, largest=LargestBatches(3)).scan(segment), log


@pytest.mark.parametrize("draw", range(10))
def test_of_a_sound_segment_all_records_are_read(
    referee: Referee, tmp_path: Path, seed: int, draw: int
) -> None:
    rng = random.Random(seed + draw)
    scan, log = _scanned(tmp_path, b"".join(data for _, _, data in sound_batches(rng)))

    kafka = referee.consume(log)

    assert not scan.unreadable
    assert (scan.records, scan.next_offset) == (kafka["records"], kafka["next"])
    assert (kafka["bad"], kafka["stuck"]) == ([], False)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_batches_that_a_consumer_cannot_read_are_told(
    referee: Referee, tmp_path: Path, seed: int, fault: str
) -> None:
    for draw in range(12):
        rng = random.Random(seed + draw)
        batches = sound_batches(rng)
        chosen = [at for at, (_, _, data) in enumerate(batches) if data[16] == 2]
        for at in rng.sample(chosen, min(len(chosen), 2)):
            first, behind, data = batches[at]
            batches[at] = first, behind, FAULTS[fault](rng, data)
        scan, log = _scanned(tmp_path, b"".join(data for _, _, data in batches))

        kafka = referee.consume(log)

        told = [
            [one.base_offset, one.seek_to, one.client_error.partition(":")[0]]
            for one in scan.unreadable
        ]
        assert sorted(told) == kafka["bad"], (draw, scan.unreadable)
        assert (scan.records, scan.next_offset) == (kafka["records"], kafka["next"]), draw


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("is_indexed", [True, False])
def test_where_no_batch_begins_the_log_goes_on_behind(
    referee: Referee, tmp_path: Path, seed: int, structure: str, is_indexed: bool
) -> None:
    rng = random.Random(seed)
    first = v2_batch(0, [(TIME, b"a", b"1")])
    bad = STRUCTURES[structure](rng, v2_batch(1, [(TIME, b"b", b"2"), (TIME, b"c", b"3")]))
    last = v2_batch(3, [(TIME, b"d", rng.randbytes(9))])
    entry = struct.pack(">ii", 3, len(first + bad))
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.index").write_bytes(entry if is_indexed else b"")
    scan, log = _scanned(tmp_path, first + bad + last)

    kafka = referee.consume(log)

    is_beyond = structure == "a length beyond the file"
    assert (kafka["stuck"], kafka["next"]) == (not is_beyond, 1)
    (one,) = scan.unreadable
    assert (one.base_offset, one.why) == (1, Why.LENGTH if is_beyond else Why.FORMAT)
    assert (one.position, one.size_bytes) == (len(first), len(bad))
    assert bool(one.client_error) == (not is_beyond)
    assert scan.records == 2
    assert one.seek_to == (3 if is_indexed else None)
    assert ("offsets 3 on follow, and no broker finds them" in one.reason) == (not is_indexed)


def test_a_magic_that_consumers_do_not_know_is_told(referee: Referee, tmp_path: Path) -> None:
    data = v2_batch(0, [(TIME, b"a", b"1")]) + v2_batch(1, [(TIME, b"b", b"2")], magic=7)
    scan, log = _scanned(tmp_path, data + v2_batch(2, [(TIME, b"c", b"3")]))

    assert referee.consume(log)["stuck"]
    (one,) = scan.unreadable
    assert (one.base_offset, one.seek_to) == (1, 2)
    assert "magic is 7" in one.reason


def test_batches_behind_a_greater_offset_are_passed_over(tmp_path: Path) -> None:
    far = put(v2_batch(1, [(TIME, b"b", b"2")]), 0, struct.pack(">q", 1 + 2**26))
    behind = v2_batch(2, [(TIME, b"c", b"3"), (TIME, b"d", b"4")]) + v2_batch(
        4, [(TIME, b"e", b"5")]
    )
    scan, _ = _scanned(tmp_path, v2_batch(0, [(TIME, b"a", b"1")]) + far + behind)

    (one,) = scan.unreadable
    assert (one.base_offset, one.seek_to, one.why) == (2, None, Why.ORDER)
    assert one.size_bytes == len(behind)
    assert f"offset {1 + 2**26} stands in front" in one.reason
    assert scan.next_offset == 2 + 2**26


def test_a_torn_end_is_no_batch_that_a_consumer_comes_to(tmp_path: Path) -> None:
    whole, torn = v2_batch(0, [(TIME, b"a", b"1")]), v2_batch(1, [(TIME, b"b", b"2")])
    scan, _ = _scanned(tmp_path, whole + torn[:-3])

    (one,) = scan.unreadable
    assert (one.why, one.seek_to, one.client_error) == (Why.TORN, None, "")


def test_zeros_behind_the_batches_of_a_closed_segment_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    first = v2_batch(0, [(TIME, b"a", b"1")]) + bytes(5000)
    (folder / f"{0:020d}.log").write_bytes(first)
    (folder / f"{7:020d}.log").write_bytes(v2_batch(7, [(TIME, b"a", b"1")]))
    segment = find_segments([str(tmp_path)]).segments[0]

    scan = SegmentReader(Query(), most=1, largest=LargestBatches(1)).scan(segment)

    (one,) = scan.unreadable
    assert (one.why, one.base_offset, one.seek_to) == (Why.FORMAT, 1, 7)
    assert one.size_bytes == 5000
    assert "zeros up to the end of a segment that is not the last" in one.reason


def test_preallocated_zeros_are_nothing(tmp_path: Path) -> None:
    scan, _ = _scanned(tmp_path, v2_batch(0, [(TIME, b"a", b"1")]) + bytes(5000))

    assert not scan.unreadable
    assert scan.records == 1
