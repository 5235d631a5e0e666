"""Which clusters' metadata the tables of a warehouse tell, and where they do not."""

import shutil
from pathlib import Path

import pytest

from kafka_segments.engine.derived.metadata_in_tables import (
    NoMetadataError,
    clusters_with_metadata,
    metadata_problems,
    rows_held,
)
from kafka_segments.engine.tables.catalog import METADATA_CONFIGS, METADATA_TABLES
from kafka_segments.files.delta.create import create_table
from kafka_segments.files.delta.table_versions import note_versions


def test_a_table_that_was_there_and_is_gone_is_not_taken_for_one_without_rows(
    tmp_path: Path,
) -> None:
    root, gone = str(tmp_path), METADATA_CONFIGS.name
    assert not clusters_with_metadata(root, at_ms=0).at_offset
    for table in METADATA_TABLES:
        uri = f"{root}/{table.name}"
        create_table(uri, schema=table.schema.json(), properties={}, clustered_by=())
    note_versions(root, [table.name for table in METADATA_TABLES])
    assert not clusters_with_metadata(root, at_ms=0).at_offset

    assert not metadata_problems(root)

    shutil.rmtree(tmp_path / gone)

    for ask in (
        lambda: metadata_problems(root),
        lambda: clusters_with_metadata(root, at_ms=0),
        lambda: list(rows_held(root, gone, ("name",), {})),
    ):
        with pytest.raises(NoMetadataError, match=f"its table {gone} was there and is gone"):
            ask()
