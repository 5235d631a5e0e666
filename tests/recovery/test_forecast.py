"""`recovery forecast` over the files of a real broker, made worse by hand."""

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafka_segments.cli import cli

LOG = "ct-two-partitions-0"
NO_TABLES = ("--broker-threads", "2", "--output", "json")


@pytest.fixture
def disk(broker: Path, tmp_path: Path) -> Path:
    """A log directory as a killed broker leaves it: index files, snapshots, a checkpoint."""
    target = tmp_path / "disk"
    for name in (LOG, "txn-0"):
        shutil.copytree(broker / "logs" / name, target / name)
        shutil.copytree(broker / "rebuilt" / name, target / name, dirs_exist_ok=True)
        for log in target.glob(f"{name}/*.log"):
            if log.stem != "0" * 20:
                (log.parent / f"{log.stem}.snapshot").touch()
    (target / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=7\n")
    return target


def _run(*arguments: object, rows: str = "logs") -> Result:
    words = ["recovery", "forecast", *map(str, arguments), *NO_TABLES, "--rows", rows]
    return CliRunner().invoke(cli, words)


def _rows(*arguments: object, rows: str = "logs", status: int = 0) -> dict[str, dict]:
    done = _run(*arguments, rows=rows)
    assert done.exit_code == status, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {row.get("folder", str(row.get("with_kit"))): row for row in found}


def _logs(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def _records(log: Path, end: int | None = None) -> int:
    """Count the records of a segment by the headers of its batches, up to a position."""
    data, position, records = log.read_bytes()[:end], 0, 0
    while position < len(data):
        records += int.from_bytes(data[position + 57 : position + 61], "big")
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return records


def _checkpoint(disk: Path, *lines: str) -> None:
    text = "\n".join(["0", str(len(lines)), *lines, ""])
    (disk / "recovery-point-offset-checkpoint").write_text(text)


def test_segments_and_bytes_from_the_recovery_point_on(disk: Path) -> None:
    logs = _logs(disk / LOG)
    _checkpoint(disk, f"ct-two-partitions 0 {int(logs[1].stem)}")

    found = _rows("--source", disk)

    of_log = found[LOG]
    assert of_log["segments"] == len(logs)
    assert of_log["recovered_segments"] == len(logs) - 1
    assert of_log["recovered_bytes"] == sum(log.stat().st_size for log in logs[1:])
    assert of_log["first_recovered_offset"] == int(logs[1].stem)
    assert found["txn-0"]["recovered_segments"] == len(_logs(disk / "txn-0"))
    assert found["txn-0"]["recovery_point"] is None


def test_a_clean_stop_leaves_nothing_to_recover_unless_killed_is_asked_for(disk: Path) -> None:
    (disk / ".kafka_cleanshutdown").touch()

    clean, killed = _rows("--source", disk), _rows("--source", disk, "--killed")

    assert [row["recovered_segments"] for row in clean.values()] == [0, 0]
    assert all(row["recovered_segments"] == row["segments"] for row in killed.values())


def test_options_have_a_row_each_with_the_broker_and_with_a_kit(disk: Path) -> None:
    found = _rows("--source", disk, rows="options")

    without, with_kit = found["False"], found["True"]
    assert (without["cluster"], without["broker_id"], without["threads"]) == ("c", 7, 2)
    assert (
        without["recovered_segments"] == without["segments"] > with_kit["recovered_segments"] == 2
    )
    assert without["logs_without_recovery_point"] == 2
    assert without["least_seconds"] < without["seconds"] < without["most_seconds"]
    assert with_kit["seconds"] < without["seconds"]


@pytest.mark.parametrize("check", ["tails", "full"])
def test_a_torn_tail_is_told_with_its_bytes_and_records(disk: Path, check: str) -> None:
    last = _logs(disk / LOG)[-1]
    whole = last.read_bytes()
    torn = whole[:900]
    last.write_bytes(whole + torn)

    found = _rows("--source", disk, "--check", check, rows="findings", status=1)

    finding = found[LOG]
    assert (finding["consequence"], finding["base_offset"]) == ("cut", int(last.stem))
    assert (finding["position"], finding["lost_segments"]) == (len(whole), 0)
    assert finding["lost_bytes"] == 900 or finding["position"] < len(whole)


def test_a_tail_of_zeros_tells_of_no_records(disk: Path) -> None:
    last = _logs(disk / LOG)[-1]
    size = last.stat().st_size
    os.truncate(last, size + 4096)

    finding = _rows("--source", disk, rows="findings", status=1)[LOG]

    assert (finding["position"], finding["lost_bytes"]) == (size, 4096)
    assert finding["lost_records"] is None
    assert _rows("--source", disk, rows="options", status=1)["False"]["lost_records"] is None


def test_a_full_check_finds_a_flipped_bit_and_what_goes_with_it(disk: Path) -> None:
    first, *later = _logs(disk / LOG)
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)

    records = sum(map(_records, (first, *later)))

    found = _rows("--source", disk, "--check", "full", rows="findings", status=1)[LOG]
    left = _rows("--source", disk, "--check", "full", status=1)[LOG]

    assert (found["consequence"], found["lost_segments"]) == ("cut", len(later))
    cut = len(data) - found["position"]
    assert found["lost_bytes"] == cut + sum(log.stat().st_size for log in later)
    assert found["lost_records"] == records - _records(first, found["position"])
    assert left["recovered_segments"] == 1


def test_a_sample_tells_the_batches_that_a_full_check_counts(disk: Path) -> None:
    sampled, counted = _rows("--source", disk), _rows("--source", disk, "--check", "full")

    for folder, row in counted.items():
        assert sampled[folder]["recovered_batches"] == pytest.approx(
            row["recovered_batches"], rel=0.1
        )


def test_missing_indexes_leftovers_and_folders_of_no_partition_are_told(disk: Path) -> None:
    log = _logs(disk / LOG)[0]
    log.with_suffix(".index").unlink()
    (disk / LOG / "00000000000000000000.log.deleted").touch()
    shutil.copytree(disk / LOG, disk / f"old-0.{'0' * 32}-delete")
    (disk / "lost+found").mkdir()

    done = _run("--source", disk, rows="options")

    row = json.loads(done.stdout.splitlines()[0])
    assert done.exit_code == 1
    assert (row["missing_indexes"], row["left_over_files"], row["delete_logs"]) == (2, 2, 1)
    assert row["problem"] == "lost+found: no <topic>-<partition>; a broker would not start"
    assert row["problem"] in done.stderr


def test_one_partitions_folder_goes_by_the_checkpoints_above_it(disk: Path) -> None:
    logs = _logs(disk / LOG)
    _checkpoint(disk, f"ct-two-partitions 0 {int(logs[-1].stem)}")

    found = _rows("--source", disk / LOG)

    assert [row["recovered_segments"] for row in found.values()] == [1]


def test_calibrating_measures_and_leaves_nothing_behind(disk: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    done = _run("--source", disk, "--calibrate", scratch, "--cold", rows="options")

    assert done.exit_code == 0
    assert json.loads(done.stdout.splitlines()[0])["is_calibrated"]
    assert done.stderr.startswith("costs measured here: ")
    assert list(scratch.iterdir()) == []


def test_the_table_shows_directories_options_and_findings(disk: Path) -> None:
    os.truncate(_logs(disk / LOG)[-1], 70)
    words = ["recovery", "forecast", "--source", str(disk), "--check", "full"]

    done = CliRunner().invoke(cli, words)

    assert done.exit_code == 1
    assert "unclean" in done.stdout
    assert "with kit" in done.stdout
    assert f"{LOG}  " in done.stdout


def test_a_source_without_logs_is_refused(tmp_path: Path) -> None:
    empty = _run("--source", tmp_path)

    assert empty.exit_code == 2
    assert "no log directory" in empty.stderr
