"""What tasks leave of a build's entries; what becomes of them in tables needs Spark."""

import random
import re

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from kafka_segments.engine.tables.catalog import OFFSET_INDEX, TIME_INDEX
from kafka_segments.files.delta.append import MEETS_CONSTRAINTS
from kafka_segments.files.storage.files import place
from kafka_segments.files.storage.publishing import remove_folder
from kafka_segments.verbs.scan.entry_files import EntryFiles, entry_file, make_folders

KEYS = ("", -1, "/logs", "t", 0, 100)
ENTRIES = np.array([(103, 293), (105, 525)])
ENDS = (0, 100, 2**31 - 1, 2**63 - 2**31, 2**63 - 1)


def test_a_tasks_entries_lie_in_a_file_for_each_index(tmp_path):
    folder = str(tmp_path / "run")
    make_folders(folder)

    with EntryFiles(folder) as written:
        part = written.add(KEYS, ENTRIES, None)

    stored = pq.read_table(entry_file(folder, OFFSET_INDEX, part)).to_pylist()
    assert [tuple(row.values())[:8] for row in stored] == [(*KEYS, *entry) for entry in ENTRIES]
    assert pq.read_table(entry_file(folder, TIME_INDEX, part)).num_rows == 0


def test_a_task_that_outlives_its_build_leaves_nothing_behind(tmp_path):
    folder = str(tmp_path / "run")
    make_folders(folder)

    with pytest.raises(FileNotFoundError, match="run/offset_index"), EntryFiles(folder) as late:
        late.add(KEYS, ENTRIES, ENTRIES)
        remove_folder(place(folder))

    assert list(tmp_path.iterdir()) == []


def _written(folder: str, base_offset: int, entry: tuple[int, int]) -> str:
    """Write an entry of either index; return the name of its part."""
    with EntryFiles(folder) as files:
        entries = np.array([entry])
        part = files.add((*KEYS[:-1], base_offset), entries, entries)
        assert part is not None
        return part


@pytest.mark.parametrize("table", [OFFSET_INDEX, TIME_INDEX])
def test_a_file_says_that_it_meets_constraints_only_if_it_does(tmp_path, table):
    folder, rng = str(tmp_path / "run"), random.Random(8)
    make_folders(folder)
    held = " AND ".join(f"coalesce({condition}, false)" for _, condition in table.constraints)
    held = re.sub(r"\boffset\b", '"offset"', held)  # a word of DuckDB's
    told = []
    for _ in range(60):
        base_offset = rng.choice(ENDS)
        near = rng.choice((base_offset, base_offset + 2**31 - 1, -(2**63), -1, *ENDS))
        drawn = [min(max(near + rng.randint(-2, 2), -(2**63)), 2**63 - 1), rng.choice((-1, 0, 7))]
        if table is TIME_INDEX:
            drawn.reverse()
        file = entry_file(folder, table, _written(folder, base_offset, (drawn[0], drawn[1])))
        is_told = MEETS_CONSTRAINTS in (pq.read_metadata(file).metadata or {})
        (row,) = duckdb.sql(f"SELECT {held} FROM '{file}'").fetchall()
        assert row[0] or not is_told, (base_offset, drawn)
        told.append((is_told, row[0]))

    assert told.count((True, True)) > 10
    assert told.count((False, False)) > 10


def test_entries_of_a_segment_are_known_to_meet_constraints(tmp_path):
    folder = str(tmp_path / "run")
    make_folders(folder)
    part = _written(folder, KEYS[-1], (103, 293))

    for table in (OFFSET_INDEX, TIME_INDEX):
        file = pq.read_metadata(entry_file(folder, table, part))
        assert MEETS_CONSTRAINTS in (file.metadata or {}), table.name
