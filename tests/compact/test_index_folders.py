"""Whose the index files of a folder are, by the builds that wrote them."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.console.not_known import noting
from kafka_segments.engine.sources.missing import no_segments
from kafka_segments.errors import UsageError
from kafka_segments.verbs.change.compact.decide.index_folders import (
    check_builds,
    is_compacted,
    only_builds_into,
    origins_of,
    segments_by_folder,
)
from kafka_segments.verbs.change.compact.run import _partition_folders, _told_if_none
from support.spark.rows_of import rows_of


def _build(index_format: str, *sources: str, index_dir: str = "/idx") -> dict[str, object]:
    options = json.dumps({"index_dir": index_dir, "index_format": index_format})
    return {"sources": list(sources), "options": options}


@pytest.mark.parametrize(
    ("builds", "is_thinned", "message"),
    [
        ([], False, "--index-dir /idx: no build of /wh wrote there, so what is an orphan cannot"),
        ([_build("minute")], True, "/idx holds files of format minute; only kafka and kip33 can"),
        ([_build("kafka"), _build("every-n")], True, "files of format every-n, kafka; only kafka"),
    ],
)
def test_files_of_nobody_or_of_formats_that_cannot_be_thinned_are_refused(
    builds: list[dict[str, object]], is_thinned: bool, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        check_builds(builds, index_dir="/idx", warehouse="/wh", is_thinned=is_thinned)


def test_files_of_any_format_can_be_trimmed_and_those_of_two_thinned() -> None:
    for builds, is_thinned in (
        ([_build("minute")], False),
        ([_build("kafka"), _build("kip33")], True),
    ):
        check_builds(builds, index_dir="/idx", warehouse="/wh", is_thinned=is_thinned)


def test_segments_are_found_by_the_folder_that_their_builds_wrote_to(spark: SparkSession) -> None:
    runs = [
        _build("kafka", "/a/logs", "/b/more"),
        _build("kafka", "/a/logs", "/b/more"),
        _build("kafka", "/alone"),
        _build("kafka", "/elsewhere", index_dir="/other"),
    ]
    columns = "sources array<string>, options string"
    found = rows_of(spark, [(run["sources"], run["options"]) for run in runs], columns).transform(
        only_builds_into("/idx")
    )
    builds = [row.asDict() for row in found.collect()]
    paths = [
        ("/a/logs/t-0/0.log", 0, None),
        ("/a/logs/t-0/9.log", 9, None),
        ("/a/logs/t-0/5.log", 5, 1),
        ("/b/more/u-0/0.log", 0, None),
        ("/alone/v-0/0.log", 0, None),
        ("/alone-too/v-0/0.log", 0, None),
        ("/elsewhere/w-0/0.log", 0, None),
    ]
    segments = rows_of(spark, paths, "path string, base_offset long, vanished_at int")

    rows = segments.transform(segments_by_folder(builds, index_dir="/idx")).collect()

    assert sorted((run["options"], *run["sources"]) for run in builds) == [
        (runs[0]["options"], "/a/logs", "/b/more"),
        (runs[2]["options"], "/alone"),
    ]
    assert {row["folder"]: sorted(row["base_offsets"]) for row in rows} == {
        "/idx/logs/t-0": [0, 9],
        "/idx/more/u-0": [0],
        "/idx/v-0": [0],
    }
    for folder, origin in {"/idx/logs/t-0": "/a/logs/t-0", "/idx/v-0": "/alone/v-0"}.items():
        assert origin in origins_of(folder, builds, index_dir="/idx")
    assert list(origins_of("/elsewhere/t-0", builds, index_dir="/idx")) == []


def test_a_disk_whose_name_ends_in_a_number_is_no_partitions_folder(tmp_path: Path) -> None:
    disk = tmp_path / "node-1"
    (disk / "t-0").mkdir(parents=True)
    (disk / "t-0" / f"{0:020d}.log").touch()
    (disk / "u-0").mkdir()
    (disk / "v-0.0123456789abcdef0123456789abcdef-delete").mkdir()

    assert sorted(_partition_folders(str(disk))) == [f"{disk}/t-0", f"{disk}/u-0"]


@pytest.mark.parametrize(
    ("name", "has_folders", "files", "expected"),
    [
        ("t-0", False, [], True),
        ("t-0", False, ["0.index"], True),
        ("t-0", True, [f"{0:020d}.log"], True),
        ("t-0", True, ["0.index"], False),
        ("t-0.0123456789abcdef0123456789abcdef-future", False, [], True),
        ("t-0.0123456789abcdef0123456789abcdef-delete", False, [f"{0:020d}.log"], False),
        ("t-0.0123456789abcdef0123456789abcdef-stray", False, [f"{0:020d}.log"], False),
        ("logs", False, [f"{0:020d}.log"], False),
    ],
)
def test_the_folder_of_a_partition_that_stays_is_compacted(
    name: str, has_folders: bool, files: list[str], expected: bool
) -> None:
    assert is_compacted(name, has_folders=has_folders, files=files) == expected


def test_a_source_without_any_partition_is_told(tmp_path: Path) -> None:
    (tmp_path / "logs" / "t-0").mkdir(parents=True)
    (tmp_path / "logs" / "t-0" / f"{0:020d}.log").touch()
    (tmp_path / "empty").mkdir()

    with noting() as told:
        found = [list(_told_if_none(str(tmp_path / name))) for name in ("logs", "empty", "gone")]

    assert found == [[str(tmp_path / "logs" / "t-0")], [], []]
    assert told == [no_segments(str(tmp_path / name)) for name in ("empty", "gone")]
