"""A real broker that serves spoilt segments, and a real consumer that reads them."""

import random
from pathlib import Path

import pytest

from kafka_segments.files.folders.walk import find_segments
from kafka_segments.verbs.find.records.decide import Query, Unreadable, Why
from kafka_segments.verbs.find.records.large_batches import LargestBatches
from kafka_segments.verbs.find.records.segment_records import SegmentReader
from support.kafka.kafka_broker import KafkaBroker
from support.logs.spoilt_batches import FAULTS, STRUCTURES, TIME, sound_batches
from support.logs.strategies import v2_batch

SPOILS = FAULTS | STRUCTURES


def _spoil(folder: Path, rng: random.Random, fault: str) -> None:
    """Put a segment with a spoilt batch into a partition, and a sound one behind it."""
    for file in folder.glob("0*"):
        file.unlink()
    chosen: list[int] = []
    while not chosen:  # not the first: a broker that cannot read it makes no partition a leader
        batches = sound_batches(rng)
        chosen = [at for at, (_, _, data) in enumerate(batches) if at and data[16] == 2]
    at = rng.choice(chosen)
    data = [each for _, _, each in batches]
    data[at] = SPOILS[fault](rng, data[at])
    end = batches[-1][1]
    last = v2_batch(end, [(TIME, b"k", b"v")])
    for base, content in ((0, b"".join(data)), (end, last)):
        (folder / f"{base:020d}.log").write_bytes(content)
        for suffix in ("index", "timeindex"):  # else the segment is recovered, and cut
            (folder / f"{base:020d}.{suffix}").write_bytes(b"")


def _told(folder: Path) -> tuple[int, list[Unreadable]]:
    reader = SegmentReader(Query(), most=1, largest=LargestBatches(1))
    scans = [reader.scan(one) for one in find_segments([str(folder)]).segments]
    return sum(scan.records for scan in scans), [one for scan in scans for one in scan.unreadable]


@pytest.mark.long
def test_a_consumer_throws_where_it_is_told_and_goes_on_where_it_is_told(
    tmp_path: Path, seed: int
) -> None:
    topics = {fault: f"t{number}" for number, fault in enumerate(SPOILS)}
    with KafkaBroker(tmp_path) as broker:
        broker.start_broker()
        broker.create(dict.fromkeys(topics.values(), 1))
        broker.stop_broker()
    for number, (fault, topic) in enumerate(topics.items()):
        _spoil(broker.log_dir / f"{topic}-0", random.Random(f"{seed} {number}"), fault)
    with KafkaBroker(tmp_path) as broker:
        broker.start_broker()
        for fault, topic in topics.items():
            records, unreadable = _told(broker.log_dir / f"{topic}-0")
            met = [one for one in unreadable if one.client_error]
            seeks = [one.seek_to for one in met if one.seek_to is not None]

            read, thrown = broker.read_on(f"{topic}-0", seeks)

            told = [one.client_error.partition(":")[0] for one in met]
            assert [what for _, what in thrown] == told, fault
            for (at, _), one in zip(thrown, met, strict=True):
                assert one.seek_to is not None and at <= one.seek_to, fault
            if "no broker finds them" in str(unreadable):
                assert 0 < read < records, fault
            elif all(one.why in (Why.CHECKSUM, Why.FORMAT) for one in met):
                assert read == records, fault
            elif "IllegalArgumentException" not in told:  # it keeps what the poll had read
                assert read >= records, fault
