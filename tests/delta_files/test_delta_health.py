"""Tables that are not whole on their disk: found, named with the step, and set aside."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from kafka_segments.engine.tables.catalog import RETENTION_PLANS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import BrokenTableError, NoFolderError, SourceError
from kafka_segments.files.delta.health import (
    broken_file,
    broken_log,
    first_broken,
    refuse_broken_log,
    remove_checksums_behind,
    set_aside_commit,
)
from kafka_segments.files.delta.log import last_version, list_log
from kafka_segments.files.delta.notes import forget_spoilt, forget_version, noted_log
from kafka_segments.files.delta.rows import read_small_table
from kafka_segments.files.delta.table_versions import note_versions
from support.stores.object_store import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_TO_NOTE, MOST_TO_READ = 7, 2


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of three commits, each with a data file."""
    folder = tmp_path / "warehouse" / "segments"
    (folder / "_delta_log").mkdir(parents=True)
    for version in range(3):
        (folder / f"{version}.parquet").write_bytes(bytes(6 + version) + b"PAR1")
        add = {"path": f"{version}.parquet", "size": 10 + version, "dataChange": True}
        lines = [json.dumps({"commitInfo": {}}), json.dumps({"add": add})]
        _commit(folder, version).write_text("\n".join(lines) + "\n")
    return folder


def _commit(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def test_a_table_that_is_whole_has_nothing_broken(table: Path, tmp_path: Path) -> None:
    assert broken_file(str(table)) is None
    assert first_broken(str(tmp_path / "warehouse")) is None
    assert broken_log(str(tmp_path / "nowhere")) is None
    refuse_broken_log(str(table))


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda data: b"", "has 0 bytes"),
        (lambda data: data[: len(data) // 2], "is cut off or spoilt in line 2 (41 bytes)"),
        (lambda data: bytes(len(data)), "is cut off or spoilt in line 1"),
        (lambda data: b"[" * 99_999, "is cut off or spoilt in line 1 (99999 bytes)"),
        (lambda data: b"3\n", "has no action in line 1"),
    ],
)
def test_a_newest_commit_that_is_not_whole_is_named_with_what_a_build_does(
    table: Path, harm: object, why: str
) -> None:
    newest = _commit(table, 2)
    newest.write_bytes(harm(newest.read_bytes()))  # type: ignore[operator]

    with pytest.raises(BrokenTableError) as refused:
        refuse_broken_log(str(table))

    said = str(refused.value)
    assert said.startswith(f"table {table} is broken: _delta_log/{2:020d}.json {why}")
    assert said.endswith("`kafka-segments build` sets it aside, reads all again and makes the table"
                         " whole")  # fmt: skip
    with pytest.raises(BrokenTableError):
        read_small_table(str(table), ("path",), most_bytes=1000)


def test_a_commit_before_the_newest_that_has_no_bytes_hides_no_rows(table: Path) -> None:
    _commit(table, 1).write_bytes(b"")

    found = broken_log(str(table))

    assert found is not None and not found.is_newest
    assert found.text.endswith(f"Move {table} away: `kafka-segments build --full` makes it anew")


def test_a_checkpoint_has_what_older_commits_said(table: Path) -> None:
    (table / "_delta_log" / f"{1:020d}.checkpoint.parquet").touch()
    _commit(table, 0).write_bytes(b"")

    assert broken_log(str(table)) is None
    found = broken_file(str(table))
    assert found is not None and found.file == f"_delta_log/{1:020d}.checkpoint.parquet"


@pytest.mark.parametrize(
    ("harmed", "file", "why"),
    [
        ("_delta_log/00000000000000000000.json", None, "is not there, later commits are"),
        ("_delta_log/00000000000000000001.json", None, "is not there, later commits are"),
        ("0.parquet", None, "is not there"),
        ("1.parquet", b"abc", "has 3 bytes, its commit says 11"),
        ("1.parquet", bytes(11), "is spoilt: it does not end as Parquet does"),
    ],
)
def test_what_is_missing_or_cut_is_found_where_a_verb_has_failed(
    table: Path, harmed: str, file: bytes | None, why: str
) -> None:
    if file is None:
        (table / harmed).unlink()
    else:
        (table / harmed).write_bytes(file)

    found = first_broken(str(table.parent))

    assert found is not None
    assert (found.file, found.why) == (harmed, why)


def test_a_file_that_is_spoilt_in_its_middle_is_found_where_the_failure_names_it(
    tmp_path: Path,
) -> None:
    table = tmp_path / "warehouse" / "segments"
    write_deltalake(str(table), pa.table({"offset": list(range(99))}))
    (file,) = table.glob("*.parquet")
    data = file.read_bytes()
    file.write_bytes(data[:4] + bytes(len(data) // 2) + data[4 + len(data) // 2 :])

    found = first_broken(str(table.parent), f"Encountered error while reading file {file}.")

    assert found is not None and found.file == file.name
    assert found.why.startswith("is spoilt: ")
    assert found.text.endswith(f"Move {table} away: `kafka-segments build --full` makes it anew")
    assert first_broken(str(table.parent), "another failure") is None


@pytest.fixture
def checkpoints(tmp_path: Path) -> list[Path]:
    """The checkpoints of a table, of its versions 1 and 3."""
    table = tmp_path / "warehouse" / "retention_plans"
    for version in range(4):
        write_deltalake(str(table), pa.table({"offset": [version]}), mode="append")
        if version in (1, 3):
            DeltaTable(str(table)).create_checkpoint()
    assert broken_file(str(table)) is None
    return sorted((table / "_delta_log").glob("*.checkpoint.parquet"))


def test_an_older_checkpoint_in_the_place_of_the_newest_is_refused(checkpoints: list[Path]) -> None:
    older, newest = checkpoints
    shutil.copy(older, newest)
    table = newest.parents[1]

    with pytest.raises(BrokenTableError, match=r"has \d+ bytes, it was written with \d+\. Move"):
        refuse_broken_log(str(table))

    newest.unlink()
    newest.with_name("_last_checkpoint").unlink()
    refuse_broken_log(str(table))
    assert len(read_small_table(str(table), ("offset",), most_bytes=1 << 20) or ()) == len("0123")


@pytest.mark.parametrize("taken", [None, 2, 3])
def test_a_spoilt_checkpoint_is_to_be_moved_away_where_its_commits_are_all_there(
    checkpoints: list[Path], taken: int | None
) -> None:
    newest = checkpoints[-1]
    data = newest.read_bytes()
    newest.write_bytes(bytes(len(data)))
    table = newest.parents[1]
    if taken is not None:
        _commit(table, taken).unlink()

    found = broken_file(str(table))

    assert found is not None and found.file == f"_delta_log/{newest.name}"
    if taken is None:
        assert "the commits are all there, and tell the same" in found.text
    else:
        assert f"Restore {table} from a copy" in found.text


def test_a_last_commit_that_is_gone_is_named_also_where_its_checkpoint_is_there(
    checkpoints: list[Path],
) -> None:
    table = checkpoints[-1].parents[1]
    _commit(table, 3).unlink()

    found = broken_file(str(table))

    assert found is not None and found.file == f"_delta_log/{3:020d}.json"
    assert broken_log(str(table)) is None  # without Spark the checkpoint alone tells the rows


def test_a_bit_that_is_flipped_in_the_notes_tells_of_no_commit_that_is_sound(table: Path) -> None:
    warehouse = table.parent
    note_versions(str(warehouse), (table.name,))
    notes, whole = warehouse / "_versions.json", broken_log(str(table))
    data = notes.read_bytes()
    assert whole is None

    for place in range(len(data)):
        notes.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        found = broken_log(str(table))
        assert found is None or found.file == "../_versions.json", (place, found)

    notes.write_bytes(data.replace(b'"sum"', b'"new"'))  # as an older release leaves it
    assert broken_log(str(table)) is None


@pytest.mark.slow
def test_a_last_commit_that_is_gone_is_written_anew_where_its_checkpoint_has_the_rows(
    spark: "SparkSession", tmp_path: Path
) -> None:
    table = tmp_path / "retention_plans"
    for number in range(2):
        rows = spark.range(number, number + 1).write.format("delta").mode("append")
        rows.option("delta.checkpointInterval", "1").save(str(table))
    _commit(table, 1).unlink()
    Path(f"{table}/_delta_log/.{1:020d}.json.crc").unlink()
    moved = table.rename(tmp_path / "moved")  # Delta remembers what it has read

    found = broken_file(str(moved))
    assert found is not None
    step = found.text.partition("Write '")[2].partition("' into a file of that name")[0]
    _commit(moved, 1).write_text(step)

    assert broken_file(str(moved)) is None
    assert {row["id"] for row in spark.read.format("delta").load(str(moved)).collect()} == {0, 1}


def test_a_folder_in_the_place_of_the_notes_is_kept_and_the_notes_begin_anew(table: Path) -> None:
    warehouse = table.parent
    (warehouse / "_versions.json" / "within").mkdir(parents=True)
    found = broken_log(str(table))
    assert found is not None and "_versions.json cannot be read: a folder" in found.text

    forget_spoilt(str(warehouse))

    assert broken_log(str(table)) is None
    assert [kept.name for kept in warehouse.glob("_spoilt_versions-*/*")] == ["within"]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("retention_plans", "Move that file away, and with it the .crc files"),
        ("metadata_configs", "Move .* and internal_records beside it away: `kafka-segments inter"),
        ("internal_records", "Move [^ ]* away: `kafka-segments internals read`"),
    ],
)
def test_rows_that_no_build_makes_are_left_to_a_person(table: Path, name: str, step: str) -> None:
    plans = table.rename(table.with_name(name))
    _commit(plans, 2).write_bytes(b"")

    with pytest.raises(BrokenTableError, match=step):
        refuse_broken_log(str(plans))


def test_a_commit_is_set_aside_with_its_checksums_and_kept(table: Path) -> None:
    _commit(table, 2).write_bytes(b"half")
    for name in (f".{2:020d}.json.crc", f"{2:020d}.crc"):
        (table / "_delta_log" / name).touch()
    found = broken_log(str(table))
    assert found is not None

    kept = set_aside_commit(found)

    assert Path(kept).read_bytes() == b"half"
    assert last_version(str(table)) == 1
    assert sorted(file.name for file in (table / "_delta_log").iterdir()) == [
        f"{0:020d}.json",
        f"{1:020d}.json",
    ]
    assert broken_file(str(table)) is None


def test_a_log_that_ends_before_a_noted_version_was_cut_back(table: Path, tmp_path: Path) -> None:
    warehouse = str(tmp_path / "warehouse")
    note_versions(warehouse, ("segments", "logs"))
    for name in (f".{2:020d}.json.crc", f"{2:020d}.crc", f".{2:020d}.crc.crc", f"{1:020d}.crc"):
        (table / "_delta_log" / name).touch()
    assert broken_log(str(table)) is None
    _commit(table, 2).unlink()

    found = broken_log(str(table))
    remove_checksums_behind(str(table))

    assert found is not None and found.is_cut and not found.is_newest
    assert found.text == (
        f"table {table} is broken: _delta_log ends with version 1, version 2 had been committed."
        " `kafka-segments build` reads all again and makes the table whole"
    )
    left = sorted(file.name for file in (table / "_delta_log").glob("*.crc"))
    assert left == [f"{1:020d}.crc"]
    forget_version(str(table))
    assert broken_log(str(table)) is None


def test_a_builds_table_that_is_gone_is_made_whole_and_another_one_is_as_a_person_left_it(
    table: Path, tmp_path: Path
) -> None:
    plans = table.with_name("retention_plans")
    shutil.copytree(table, plans)
    note_versions(str(tmp_path / "warehouse"), ("segments", "retention_plans"))
    shutil.rmtree(table / "_delta_log")
    shutil.rmtree(plans)

    found = broken_log(str(table))

    assert found is not None and found.is_cut
    assert "_delta_log is not there, version 2 had been committed. `kafka-segments b" in found.text
    assert broken_log(str(plans)) is None


def test_a_table_of_which_the_log_alone_is_gone_is_not_taken_for_one_that_was_moved_away(
    table: Path, tmp_path: Path
) -> None:
    plans, root = table.rename(table.with_name("retention_plans")), str(tmp_path / "warehouse")
    note_versions(root, ("retention_plans",))
    tables = Warehouse(cast("SparkSession", None), root)
    assert tables.version(RETENTION_PLANS) == len(list((plans / "_delta_log").iterdir())) - 1
    shutil.rmtree(plans / "_delta_log")

    with pytest.raises(BrokenTableError, match=r"_delta_log is not there.* Restore .*, or move it"):
        tables.version(RETENTION_PLANS)

    shutil.rmtree(plans)
    assert tables.version(RETENTION_PLANS) is None


@pytest.mark.parametrize(
    "spoilt",
    [
        "{",
        "[" * 60_000,
        "[]",
        '{"segments": "3"}',
        '{"segments": 2}',
        '{"segments": {"version": 2, "bytes": [1]}}',
    ],
)
def test_notes_that_are_spoilt_are_no_notes_of_a_whole_log(
    table: Path, tmp_path: Path, spoilt: str
) -> None:
    warehouse = tmp_path / "warehouse"
    (warehouse / "_versions.json").write_text(spoilt)

    found = broken_log(str(table))

    assert found is not None and found.is_cut
    assert "../_versions.json is spoilt: whether commits were taken away, or cut" in found.text
    forget_version(str(table))
    note_versions(str(warehouse), ("logs", "segments"))
    assert broken_log(str(table)) == found  # other runs do not know either
    for name in ("metadata_topics", "internal_records", "retention_plans"):
        other = broken_log(str(warehouse / name))
        assert other is not None
        assert f" Move {warehouse}/_versions.json away to take tables as they are" in other.text
    forget_spoilt(str(warehouse))
    assert broken_log(str(table)) is None


@pytest.mark.parametrize("name", ["segments", "migration_plans"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_commit_that_ends_behind_one_of_its_lines_is_not_as_it_was_committed(
    table: Path, tmp_path: Path, version: int, name: str
) -> None:
    table = table.rename(table.with_name(name))
    note_versions(str(tmp_path / "warehouse"), (name, "logs"))
    commit = _commit(table, version)
    whole = commit.stat().st_size
    commit.write_text(commit.read_text().splitlines()[0] + "\n")

    found = broken_log(str(table))

    assert found is not None and found.is_newest == (version == 2)
    cut = commit.stat().st_size
    why = f"_delta_log/{commit.name} has {cut} bytes, it was committed with {whole}"
    assert found.text.startswith(f"table {table} is broken: {why}. ")
    if name != "segments" and found.is_newest:
        assert f" and {tmp_path}/warehouse/_versions.json: the table is" in found.text


@pytest.mark.parametrize("version", [1, 2])
def test_a_commit_of_which_a_bit_is_flipped_is_not_as_it_was_committed(
    table: Path, tmp_path: Path, version: int
) -> None:
    note_versions(str(tmp_path / "warehouse"), ("segments",))
    assert broken_log(str(table)) is None
    commit = _commit(table, version)
    commit.write_bytes(commit.read_bytes().replace(b'"add"', b'"ade"'))  # an action that is unknown

    found = broken_log(str(table))

    assert found is not None and found.is_newest == (version == 2)
    assert f"{commit.name} has not the bytes with which it was committed, by" in found.text
    note_versions(str(tmp_path / "warehouse"), ("segments",))
    assert broken_log(str(table)) is None  # the table was looked at by the run that wrote it


def test_notes_of_an_older_release_have_no_crcs(table: Path, tmp_path: Path) -> None:
    notes = tmp_path / "warehouse" / "_versions.json"
    note_versions(str(tmp_path / "warehouse"), ("segments",))
    noted = json.loads(notes.read_text())
    del noted["segments"]["crc32"], noted["_notes"]
    notes.write_text(json.dumps(noted))

    assert broken_log(str(table)) is None


def test_what_other_tables_had_stays_noted(table: Path, tmp_path: Path) -> None:
    warehouse = str(tmp_path / "warehouse")
    note_versions(warehouse, ("segments",))

    note_versions(warehouse, ("logs",))

    noted = noted_log(str(table))
    assert noted is not None and noted.version == 2
    assert noted.commit_bytes == {n: _commit(table, n).stat().st_size for n in range(3)}


def test_in_a_store_a_log_is_held_against_its_notes_too_by_few_requests(
    object_store: ObjectStore, table: Path
) -> None:
    object_store.put_folder(table.parent, "noted-versions/warehouse")
    warehouse = "s3a://noted-versions/warehouse"
    object_store.requests.clear()

    note_versions(warehouse, ("segments", "logs"))

    read = [found for found in object_store.requests if "_delta_log/0" in found.path]
    assert len(read) <= 2 * 3  # its commits, as nothing was noted
    object_store.requests.clear()
    note_versions(warehouse, ("segments", "logs"))
    assert [found.method for found in object_store.requests].count("PUT") == 1
    assert len(object_store.requests) <= MOST_TO_NOTE
    object_store.requests.clear()
    assert broken_log(f"{warehouse}/segments") is None
    about_notes = [found for found in object_store.requests if "_versions.json" in found.path]
    assert len(about_notes) <= MOST_TO_READ
    object_store.files.delete_file(f"noted-versions/warehouse/segments/_delta_log/{2:020d}.json")
    found = broken_log(f"{warehouse}/segments")
    assert found is not None and found.is_cut
    assert "_delta_log ends with version 1, version 2 had been committed" in found.text


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["zeros in the checkpoint", "a file is gone", "no answer"])
def test_in_a_store_what_made_a_read_fail_is_named_but_not_that_it_did_not_answer(
    object_store: ObjectStore, checkpoints: list[Path], harm: str
) -> None:
    checkpoint = checkpoints[-1]
    table, name = checkpoint.parents[1], checkpoint.name
    data = DeltaTable(str(table)).file_uris()[0]
    if harm == "zeros in the checkpoint":
        checkpoint.write_bytes(bytes(checkpoint.stat().st_size))
    if harm == "a file is gone":
        Path(data).unlink()
        name = Path(data).name
    folder = f"failed-{harm.replace(' ', '-')}"
    object_store.put_folder(table, f"{folder}/segments")
    if harm == "no answer":
        object_store.refuses = lambda request: request.path.endswith(".checkpoint.parquet")

    try:
        if harm == "no answer":
            with pytest.raises(OSError, match="checkpoint"):
                broken_file(f"s3a://{folder}/segments", f"failed at {data}")
        else:
            found = broken_file(f"s3a://{folder}/segments", f"failed at {data}")
            assert found is not None and found.file.endswith(name)
    finally:
        object_store.refuses = lambda _: False


@pytest.mark.slow
def test_notes_that_a_store_does_not_give_are_not_taken_for_spoilt(
    object_store: ObjectStore, table: Path
) -> None:
    object_store.put_folder(table.parent, "noted-refused/warehouse")
    warehouse = "s3a://noted-refused/warehouse"
    object_store.put("noted-refused/warehouse/_versions.json", b"{}")
    object_store.refuses = lambda request: request.path.endswith("_versions.json")

    try:
        with pytest.raises(OSError, match=f"^{warehouse}/_versions.json: "):
            broken_log(f"{warehouse}/segments")
    finally:
        object_store.refuses = lambda _: False


def test_a_log_that_cannot_be_listed_is_not_taken_for_none(table: Path) -> None:
    assert list_log(str(table.with_name("nowhere"))).entries == []
    (table.with_name("logs")).touch()

    with pytest.raises(SourceError, match=r"cannot list .*/logs/_delta_log: ") as refused:
        last_version(str(table.with_name("logs")))

    assert not isinstance(refused.value, NoFolderError)
    assert first_broken(str(table.parent)) is None


def _run(root: Path, told: str | None) -> None:
    rows = pa.table({"run_id": ["r"], "table_versions": pa.array([told], pa.string())})
    write_deltalake(str(root / "runs"), rows, mode="append")


def test_where_the_notes_are_lost_the_last_build_tells_that_a_table_is_an_older_copy(
    table: Path,
) -> None:
    _run(table.parent, '{"segments": 9}')
    _run(table.parent, '{"logs": 7, "segments": 3}')

    found = broken_log(str(table))

    assert found is not None
    assert found.text == (
        f"table {table} is broken: _delta_log ends with version 2, version 3 had been committed."
        " `kafka-segments build` reads all again and makes the table whole"
    )
    note_versions(str(table.parent), ["segments"])  # as the next build does
    assert broken_log(str(table)) is None


@pytest.mark.parametrize(
    "told", ['{"segments": 2}', '{"logs": 7}', None, "spoilt", "[]", '{"segments": null}']
)
def test_without_notes_a_table_is_taken_as_it_is_where_the_last_build_tells_nothing_else(
    table: Path, told: str | None
) -> None:
    _run(table.parent, told)

    assert broken_log(str(table)) is None


def test_before_the_first_build_and_of_older_releases_nothing_is_noted(table: Path) -> None:
    assert broken_log(str(table)) is None
    write_deltalake(str(table.parent / "runs"), pa.table({"run_id": ["r"]}))
    assert broken_log(str(table)) is None
    next((table.parent / "runs").glob("*.parquet")).write_bytes(b"")
    assert broken_log(str(table)) is None


def test_the_log_of_another_table_is_named_where_both_are_noted(table: Path) -> None:
    root, other = table.parent, table.parent / "logs"
    shutil.copytree(table, other)
    _commit(other, 2).write_text('{"commitInfo":{"of":"logs"}}\n')
    note_versions(str(root), ["segments", "logs"])
    table.rename(root / "t")
    other.rename(table)
    (root / "t").rename(other)

    found = broken_log(str(table))

    assert found is not None
    assert found.text == (
        f"{table} holds table logs, not segments: folders were renamed, or exchanged. Rename it to"
        f" {other}, and what lies there to its own name"
    )
    with pytest.raises(BrokenTableError, match="holds table segments, not logs"):
        refuse_broken_log(str(other))
