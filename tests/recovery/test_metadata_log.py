"""A metadata log of which a part is missing or damaged tells no state as if it were whole."""

from pathlib import Path

import pytest

from kafka_segments.files.storage.files import place
from kafka_segments.verbs.change.recovery.forecast.metadata_log import (
    MetadataLog,
    read_metadata_log,
)
from support.logs.metadata_logs import config, log_bytes, snapshot_bytes, topic

FIRST = [topic("a", 1), config("a", "cleanup.policy", "compact")]
BEHIND = [topic("b", 2), topic("c", 3)]
SNAPSHOT = f"{2:020d}-{1:010d}.checkpoint"


def segment(base: int) -> str:
    """Name a segment."""
    return f"{base:020d}.log"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of two segments from offset 2 on, behind a snapshot of the records before."""
    (tmp_path / SNAPSHOT).write_bytes(snapshot_bytes(FIRST, end_offset=2))
    (tmp_path / segment(2)).write_bytes(log_bytes(BEHIND, base_offset=2))
    (tmp_path / segment(4)).write_bytes(log_bytes([topic("d", 4), topic("e", 5)], base_offset=4))
    return tmp_path


def read(folder: Path) -> MetadataLog:
    """Read the log."""
    sizes = {one.name: one.stat().st_size for one in folder.iterdir()}
    return read_metadata_log(place(str(folder)), sizes)


def test_a_whole_log_tells_all_topics(folder: Path) -> None:
    found = read(folder)

    assert found.unknown is None
    assert found.facts is not None
    assert sorted(found.facts.topics.values()) == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    "behind", [b"", b"\0" * 5000, log_bytes([topic("f", 6)], base_offset=6)[:70]]
)
def test_a_batch_that_is_being_written_hides_nothing(folder: Path, behind: bytes) -> None:
    last = folder / segment(4)
    last.write_bytes(last.read_bytes() + behind)

    assert read(folder).facts is not None


@pytest.mark.parametrize("kept", [0, 100, -90])
def test_a_snapshot_without_its_end_tells_nothing(folder: Path, kept: int) -> None:
    snapshot = folder / SNAPSHOT
    snapshot.write_bytes(snapshot.read_bytes()[:kept])

    found = read(folder)

    assert found.facts is None
    assert found.unknown is not None
    assert found.unknown.startswith(f"{SNAPSHOT} is not whole: ")


def test_a_log_that_begins_later_needs_a_snapshot(folder: Path) -> None:
    (folder / SNAPSHOT).unlink()

    found = read(folder)

    assert found.facts is None
    assert found.unknown == "the log begins at offset 2, and no .checkpoint has what was before"


def test_a_segment_that_is_missing_behind_the_snapshot_is_told(folder: Path) -> None:
    (folder / segment(2)).unlink()
    (folder / segment(0)).write_bytes(log_bytes(FIRST))

    found = read(folder)

    assert (found.facts, found.unknown) == (None, "offsets 2 to 3 are missing in the log")


def test_what_is_missing_before_the_snapshot_does_not_matter(folder: Path) -> None:
    (folder / segment(0)).write_bytes(log_bytes(FIRST[:1]))

    assert read(folder).facts is not None


@pytest.mark.parametrize("base", [2, 4])
def test_the_state_behind_a_damaged_batch_is_not_known(folder: Path, base: int) -> None:
    file = folder / segment(base)
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)

    found = read(folder)

    assert found.facts is None
    assert found.unknown is not None
    assert found.unknown.startswith(f"{segment(base)}: checksum is ")


def test_what_followed_the_snapshot_in_a_log_that_begins_anew_is_not_known(folder: Path) -> None:
    (folder / segment(0)).write_bytes(log_bytes(FIRST)[:-1])

    found = read(folder)

    assert (found.is_anew, found.facts) == (True, None)
