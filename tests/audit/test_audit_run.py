"""``audit`` over a log directory, on a real Spark."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from pyspark.testing import assertSchemaEqual

from kafka_segments.cli import cli
from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.tables.catalog import INDEX_AUDITS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.schemas import schema

FIRST, SECOND = f"{0:020d}", f"{1581:020d}"


@pytest.fixture
def log_dir(broker: Path, tmp_path: Path) -> Path:
    """A broker's log directory after a clean stop, with the index files that it rebuilt."""
    root = tmp_path / "logs"
    for name in ("ct-two-partitions-0", "ct-two-partitions-1", "txn-0"):
        shutil.copytree(broker / "logs" / name, root / name)
        shutil.copytree(broker / "rebuilt" / name, root / name, dirs_exist_ok=True)
    (root / "meta.properties").write_text("version=1\ncluster.id=east\nnode.id=3\n")
    (root / ".kafka_cleanshutdown").touch()
    return root


def _run(*arguments: object) -> tuple[int, list[dict[str, object]]]:
    result = CliRunner().invoke(cli, ["audit", "--output", "json", *map(str, arguments)])
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


def _findings(rows: list[dict[str, object]]) -> dict[str, tuple[object, ...]]:
    return {
        "/".join(Path(str(row["path"])).parts[-2:]): (
            row["verdict"],
            row["kind"],
            row["effect"],
        )
        for row in rows
        if row["is_finding"]
    }


def test_a_sound_log_directory_has_no_findings(spark: SparkSession, log_dir: Path) -> None:
    status, rows = _run("--source", log_dir)

    assert status == 0
    assert len(rows) == 10 * 2 + 3 + 3 * 3 + 4
    assert {(row["cluster"], row["broker_id"]) for row in rows} == {("east", 3)}
    assert {row["verdict"] for row in rows if "index" in str(row["suffix"])} == {"identical"}


def test_findings_are_rows_and_a_table(spark: SparkSession, log_dir: Path, tmp_path: Path) -> None:
    partition, other = log_dir / "ct-two-partitions-0", log_dir / "ct-two-partitions-1"
    with (partition / f"{FIRST}.timeindex").open("ab") as file:
        file.write(bytes(1200))
    (partition / f"{SECOND}.timeindex").unlink()
    (partition / f"{9999:020d}.index").write_bytes(b"")
    (other / f"{FIRST}.index").write_bytes(bytes(8))
    (other / f"{FIRST}.timeindex").rename(tmp_path / "moved")
    (other / f"{FIRST}.timeindex").symlink_to(tmp_path / "moved")
    (other / f"{FIRST}.txnindex").mkdir()
    (other / f"{5:020d}.log").symlink_to(tmp_path / "moved")
    (log_dir / "loop").symlink_to(".")
    (other / "leader-epoch-checkpoint").write_text("0\n1\n")
    (log_dir / "txn-0" / f"{1165:020d}.txnindex").unlink()

    status, rows = _run("--source", log_dir, "--warehouse", tmp_path / "wh", "--now-ms", 1000)

    assert status == 1
    assert _findings(rows) == {
        f"{partition.name}/{FIRST}.timeindex": ("padded", "trailing_zeros", "deletes_data"),
        f"{partition.name}/{SECOND}.timeindex": ("missing", None, "falls_back_to_mtime"),
        f"{partition.name}/{9999:020d}.index": ("orphan", "no_segment", "deleted_at_start"),
        f"{other.name}/{FIRST}.index": ("never_written", "all_zero", "slow_lookups"),
        f"{other.name}/{FIRST}.timeindex": ("unjudged", "link", "writes_elsewhere"),
        f"{other.name}/{FIRST}.txnindex": ("corrupt", "folder", "fails_to_start"),
        f"{other.name}/{5:020d}.log": ("unjudged", "link", "writes_elsewhere"),
        f"txn-0/{1165:020d}.txnindex": ("missing", None, "wrong_lookups"),
        "logs/loop": ("unjudged", "unreadable", "unknown"),
        f"{other.name}/leader-epoch-checkpoint": ("corrupt", "bad_content", "fails_to_start"),
    }
    with few_rows(spark):
        table = Warehouse(spark, str(tmp_path / "wh")).read(INDEX_AUDITS)
    assertSchemaEqual(table.schema, schema("index_audits.v1"), ignoreNullable=True)
    assert [row["kafka_version"] for row in table.collect()] == ["4.3"] * len(rows)


def test_after_a_crash_what_lies_behind_the_recovery_point_is_rebuilt(
    spark: SparkSession, log_dir: Path
) -> None:
    (log_dir / ".kafka_cleanshutdown").unlink()
    checkpoint = "0\n3\nct-two-partitions 0 1581\nct-two-partitions 1 1708\ntxn 0 2632\n"
    (log_dir / "recovery-point-offset-checkpoint").write_text(checkpoint)
    active = log_dir / "ct-two-partitions-0" / f"{SECOND}.index"
    active.write_bytes(active.read_bytes().ljust(10_485_760, b"\0"))

    status, rows = _run("--source", log_dir)

    rebuilt = [row for row in rows if row["effect"] == "rebuilt_at_start"]
    segments = {row["base_offset"] for row in rebuilt if row["suffix"] == ".timeindex"}
    assert segments == {1581, 1566, 2329}
    snapshots = {row["base_offset"] for row in rebuilt if row["suffix"] == ".snapshot"}
    assert snapshots == {1748, 1708, 2632}
    assert status == 0
    found = next(row for row in rows if row["path"] == str(active))
    assert (found["verdict"], found["kind"]) == ("padded", "preallocated")


def test_the_release_decides(spark: SparkSession, log_dir: Path) -> None:
    (log_dir / "ct-two-partitions-0" / f"{FIRST}.timeindex").unlink()

    assert _run("--source", log_dir, "--kafka-version", "0.9.0.1")[0] == 0
    assert _run("--source", log_dir, "--kafka-version", "four")[0] == 2


def test_what_a_person_reads_names_file_consequence_and_remedy(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    (log_dir / "ct-two-partitions-0" / f"{FIRST}.index").unlink()
    (log_dir / "ct-two-partitions-0" / f"{SECOND}.timeindex").unlink()

    result = CliRunner().invoke(cli, ["audit", "--source", str(log_dir), "--dry-run"])

    assert result.exit_code == 1
    assert f"{SECOND}.timeindex: missing" in result.stdout
    assert "consequence: not rebuilt: retention and searches" in result.stdout
    assert "action: with the broker stopped" in result.stdout
    (note,) = (line for line in result.stdout.splitlines() if line.startswith("note: "))
    assert f"{FIRST}.index: missing, the segment is recovered at start" in note


def test_the_topics_own_limit_decides(spark: SparkSession, log_dir: Path, tmp_path: Path) -> None:
    configs = tmp_path / "configs.txt"
    configs.write_text(
        "Dynamic configs for topic ct-two-partitions are:\n"
        "  segment.index.bytes=12 sensitive=false synonyms={}\n"
    )

    status, rows = _run("--source", log_dir, "--topic-configs", configs)

    assert status == 1
    active = {f"ct-two-partitions-0/{SECOND}", f"ct-two-partitions-1/{1566:020d}"}
    assert {name.rpartition(".")[0] for name in _findings(rows)} == active
    assert {found[0::2] for found in _findings(rows).values()} == {("identical", "fails_to_start")}
