"""Torn and truncated copies of a lived cluster's files: rows say so, and nothing is thrown."""

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.engine.tables.findings import TORN
from support.kafka.cluster_disks import internal_files
from support.logs.internal_rows import rows_of_file
from support.model.plain_decoder import positions

CUTS_A_FILE = int(os.environ.get("CUTS_A_FILE", "6"))
FILES_A_TOPIC = int(os.environ.get("CUT_FILES", "2"))
_BATCH_HEADER_BYTES = 61
Rows = list[dict[str, Any]]
# They tell of the file as it was listed; the cut one is shorter.
_OF_FILE = ("log_dir", "size_bytes")


@pytest.fixture(scope="module")
def files(cluster: Path, seed: int) -> list[Path]:
    """Some files of each internal topic, snapshots of the metadata among them."""
    draw = random.Random(seed)
    by_kind: dict[tuple[str, str], list[Path]] = {}
    for topic, file in internal_files(cluster / "disks"):
        if file.stat().st_size:
            by_kind.setdefault((topic, file.suffix), []).append(file)
    assert len(by_kind) == 6
    return [
        file
        for kind in sorted(by_kind)
        for file in draw.sample(by_kind[kind], min(FILES_A_TOPIC, len(by_kind[kind])))
    ]


def cuts(data: bytes, draw: random.Random) -> Iterator[int]:
    """Draw places at which a file is cut: anywhere, and at and beside the ends of batches."""
    ends = [end for _, end in positions(data)]
    near = [end + by for end in ends for by in (-1, 0, 1, 11, 12, _BATCH_HEADER_BYTES)]
    drawn = [draw.randrange(len(data)) for _ in range(CUTS_A_FILE // 2)]
    drawn += draw.sample(near, min(CUTS_A_FILE // 2, len(near)))
    yield from sorted({cut for cut in drawn if 0 < cut < len(data)})


def of_records(rows: Rows) -> Rows:
    """Give rows without what is so of the file as a whole."""
    return [{name: value for name, value in row.items() if name not in _OF_FILE} for row in rows]


def test_rows_before_a_cut_are_those_of_the_whole_file(
    files: list[Path], seed: int, tmp_path: Path
) -> None:
    draw = random.Random(seed)
    for file in files:
        data = file.read_bytes()
        whole = of_records(rows_of_file(file))
        for cut in cuts(data, draw):
            rows = rows_of_copy(file, data[:cut], tmp_path)
            end = sound_bytes(data, cut)
            kept = assert_same_before(rows, whole, end)
            assert_torn(rows[kept:], end if end < cut else None)


def assert_torn(rows: Rows, position: int | None) -> None:
    """Expect one row that tells where the rest of the file is cut off, or none."""
    assert [row["batch_position"] for row in rows] == ([] if position is None else [position])
    for row in rows:
        assert re.search(TORN, row["problem"])
        assert (row["offset"], row["kind"], row["value_json"]) == (None, None, None)


def test_a_flipped_bit_changes_no_value_and_hides_no_row_in_silence(
    files: list[Path], seed: int, tmp_path: Path
) -> None:
    draw = random.Random(seed + 1)
    for file in files:
        data = file.read_bytes()
        whole = of_records(rows_of_file(file))
        for _ in range(CUTS_A_FILE):
            at = draw.randrange(len(data))
            spoiled = data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
            rows = rows_of_copy(file, spoiled, tmp_path)
            assert_same_before(rows, whole, sound_bytes(data, at))
            # The checksum does not cover the first offset and the leader epoch.
            values = [row["value_json"] for row in rows]
            is_same = values == [row["value_json"] for row in whole]
            assert is_same or any(row["problem"] for row in rows), (file, at)


def test_zeros_at_the_end_of_a_file_hide_nothing_before_them(
    files: list[Path], seed: int, tmp_path: Path
) -> None:
    draw = random.Random(seed + 2)
    for file in files:
        data = file.read_bytes()
        whole = of_records(rows_of_file(file))
        for _ in range(CUTS_A_FILE):
            at = draw.randrange(len(data))
            rows = rows_of_copy(file, data[:at] + bytes(len(data) - at), tmp_path)
            assert_same_before(rows, whole, sound_bytes(data, at))


def rows_of_copy(file: Path, data: bytes, scratch: Path) -> Rows:
    """Read what a file would be with other bytes."""
    copy = scratch / file.parent.name / file.name
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(data)
    return of_records(rows_of_file(copy))


def sound_bytes(data: bytes, end: int) -> int:
    """Give where the last batch ends that lies before a place."""
    return max((batch_end for _, batch_end in positions(data) if batch_end <= end), default=0)


def assert_same_before(rows: Rows, whole: Rows, position: int) -> int:
    """Expect all rows of the whole file before a byte; give how many there are."""
    kept = [row for row in whole if row["batch_position"] < position]
    assert rows[: len(kept)] == kept
    return len(kept)


def test_a_file_that_is_empty_or_all_zeros_throws_nothing(tmp_path: Path) -> None:
    for topic in ("__cluster_metadata", "__consumer_offsets", "__remote_log_metadata"):
        file = tmp_path / f"{topic}-0" / f"{0:020d}.log"
        file.parent.mkdir()
        file.write_bytes(b"")
        assert rows_of_file(file) == []
        file.write_bytes(bytes(1000))  # as a broker preallocates it
        [read] = rows_of_file(file)  # which says only that it was read
        assert (read["offset"], read["kind"], read["problem"]) == (None, None, None)
