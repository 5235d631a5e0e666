"""A metadata log of which a part is missing or damaged tells no state as if it were whole."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.node.metadata_log import read_metadata_log
from kafka_segments.files.storage.files import place
from kafka_segments.kafka.broker_rules.start.state import MetadataStart
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


def read(folder: Path) -> MetadataStart:
    """Read the log."""
    return read_metadata_log(place(str(folder)), entries_of(str(folder), ""))


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

    assert found.state is None
    assert found.why_no_state is not None
    assert found.why_no_state.startswith(f"{SNAPSHOT} is not whole: ")


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

    assert found.state is None
    assert found.why_no_state is not None
    assert found.why_no_state.startswith(f"{segment(base)}: checksum is ")


def test_what_followed_the_snapshot_in_a_log_that_begins_anew_is_not_known(folder: Path) -> None:
    (folder / segment(0)).write_bytes(log_bytes(FIRST)[:-1])

    found = read(folder)

    assert (found.is_anew, found.state) == (True, None)


def epochs(*entries: tuple[int, int]) -> str:
    """Write a leader-epoch-checkpoint."""
    lines = [f"{epoch} {start}" for epoch, start in entries]
    return "\n".join(["0", str(len(entries)), *lines, ""])


def test_a_checkpoint_behind_the_logs_end_tells_that_its_end_is_missing(folder: Path) -> None:
    newest = f"{6:020d}-{1:010d}.checkpoint"
    (folder / newest).write_bytes(snapshot_bytes([*FIRST, *BEHIND], end_offset=6))
    (folder / segment(4)).unlink()

    found = read(folder)

    why = "the log ends at offset 4, its newest .checkpoint ends at 6: its last records are missing"
    assert (found.is_anew, found.state, found.why_no_state) == (True, None, why)


def test_a_log_whose_segments_are_all_missing_tells_nothing(folder: Path) -> None:
    for base in (2, 4):
        (folder / segment(base)).unlink()

    found = read(folder)

    assert (found.state, found.why_no_state) == (None, "no segment of the log is there")


def test_an_epoch_that_begins_behind_the_logs_end_tells_that_its_end_is_missing(
    folder: Path,
) -> None:
    (folder / "leader-epoch-checkpoint").write_text(epochs((1, 0), (2, 5)))
    whole = read(folder)
    (folder / segment(4)).unlink()

    found = read(folder)

    assert whole.state is not None
    assert found.state is None
    assert found.why_no_state is not None
    assert found.why_no_state.startswith(
        "the log ends at offset 4, by its leader-epoch-checkpoint epoch 2 begins at 5: "
    )


@pytest.mark.parametrize("text", [epochs(), epochs((1, 0)), epochs((1, 0), (2, 6)), "", "0\nx"])
def test_epochs_that_begin_by_the_logs_end_tell_of_nothing_missing(folder: Path, text: str) -> None:
    (folder / "leader-epoch-checkpoint").write_text(text)

    assert read(folder).facts is not None


@pytest.mark.parametrize("name", [segment(4), segment(6), f"{6:020d}-{1:010d}.checkpoint"])
@pytest.mark.parametrize(("put", "why"), [(Path.mkdir, "it is a folder"), (os.mkfifo, "a pipe")])
def test_what_lies_in_place_of_a_file_is_not_known(
    folder: Path, name: str, put: Callable[[Path], object], why: str
) -> None:
    (folder / name).unlink(missing_ok=True)
    put(folder / name)

    found = read(folder)

    assert found.state is None
    assert found.why_no_state is not None
    assert found.why_no_state.startswith(f"{name}: ")
    assert why in found.why_no_state


def test_what_lies_in_place_of_an_old_file_does_not_matter(folder: Path) -> None:
    (folder / segment(0)).mkdir()
    (folder / f"{1:020d}-{1:010d}.checkpoint").mkdir()

    assert read(folder).facts is not None
