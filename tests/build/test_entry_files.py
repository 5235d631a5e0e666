"""What tasks leave of a build's entries; what becomes of them in tables needs Spark."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from kafka_segments.build.entry_files import EntryFiles, entry_file, make_folders
from kafka_segments.storage.files import place
from kafka_segments.storage.publishing import remove_folder
from kafka_segments.tables.catalog import OFFSET_INDEX, TIME_INDEX

KEYS = ("", -1, "/logs", "t", 0, 100)
ENTRIES = np.array([(103, 293), (105, 525)])


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
