"""`recovery forecast` over the files of a real broker, made worse by hand."""

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafka_segments.cli import cli
from kafka_segments.kafka.index.log.producer_state import ProducerState
from kafka_segments.kafka.index.log.snapshots import encode_snapshot

LOG = "ct-two-partitions-0"
NO_PRODUCERS = encode_snapshot(ProducerState())
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
                (log.parent / f"{log.stem}.snapshot").write_bytes(NO_PRODUCERS)
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


@pytest.mark.parametrize("written", [False, True], ids=["preallocated", "written"])
def test_zeros_behind_the_last_batch_are_no_loss_and_cost_nothing(
    disk: Path, written: bool
) -> None:
    before = _rows("--source", disk)[LOG]
    last = _logs(disk / LOG)[-1]
    size = last.stat().st_size
    if written:
        last.write_bytes(last.read_bytes() + bytes(1 << 20))
    else:
        os.truncate(last, size + (1 << 28))

    assert _rows("--source", disk, rows="findings") == {}
    assert _rows("--source", disk)[LOG] == before


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


def test_what_a_partial_look_leaves_out_is_told_with_what_it_hides(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_segments.verbs.change.recovery.forecast.survey._SMALL_BYTES", 0)
    first, *_, last = _logs(disk / LOG)
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    size = sum(log.stat().st_size for log in disk.glob("*/*.log"))

    silent = _run("--source", disk, rows="options")
    row = json.loads(silent.stdout.splitlines()[0])
    words = ["recovery", "forecast", "--source", str(disk)]
    shown = CliRunner().invoke(cli, words)
    last.write_bytes(last.read_bytes() + last.read_bytes()[:900])
    torn = CliRunner().invoke(cli, words)
    whole = CliRunner().invoke(cli, [*words, "--check", "full"])

    told = f"not looked at: {size:,} bytes of segments that the start recovers or, for the"
    assert silent.exit_code == shown.exit_code == torn.exit_code == 1
    assert (row["lost_bytes"], row["unread_bytes"]) == (0, size)
    assert row["not_known"][-1].startswith(told)
    for done in (silent, shown, torn):
        (line,) = (line for line in done.stderr.splitlines() if "only the ends were read" in line)
        assert "--check full reads them, about " in line
    assert "not known" in shown.stdout
    assert "at least " in torn.stdout
    assert "at least " not in whole.stdout
    assert "only the ends were read" not in whole.stderr


def test_what_is_read_for_the_producers_state_alone_is_looked_at_or_told(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_, last = _logs(disk / LOG)
    _checkpoint(disk, f"{LOG[:-2]} 0 {int(last.stem)}")
    for snapshot in (disk / LOG).glob("*.snapshot"):
        snapshot.unlink()
    monkeypatch.setattr("kafka_segments.verbs.change.recovery.forecast.survey._SMALL_BYTES", 0)
    sizes = [log.stat().st_size for log in _logs(disk / LOG)]

    def unread(*words: str) -> tuple[int, int]:
        done = _run("--source", disk / LOG, *words, rows="options")
        return done.exit_code, json.loads(done.stdout.splitlines()[0])["unread_bytes"]

    assert unread() == (1, sum(sizes))
    assert unread("--check", "full") == (0, 0)
    data = bytearray(first.read_bytes())
    data[8:12] = bytes(4)  # a size that no batch has
    first.write_bytes(data)
    spoilt = _run("--source", disk / LOG, "--check", "full")
    assert spoilt.exit_code == 1
    assert f"not known whether the log loads: the start reads {LOG}/{first.name}" in spoilt.stderr


def test_batches_are_read_from_the_snapshot_before_one_that_is_spoilt(disk: Path) -> None:
    *_, before, last = _logs(disk / LOG)
    _checkpoint(disk, f"{LOG[:-2]} 0 {int(last.stem)}")
    sound = _rows("--source", disk)[LOG]
    (disk / LOG / f"{last.stem}.snapshot").write_bytes(b"")

    spoilt = _rows("--source", disk)[LOG]

    assert (sound["replayed_bytes"], spoilt["replayed_bytes"]) == (0, before.stat().st_size)


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
    assert (row["starts"], row["problem"]) == (False, None)
    assert row["start_problem"] == (
        f"{disk}/lost+found: its name is no partition's: KafkaException, the broker ends"
    )
    assert row["start_problem"] in done.stderr


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


@pytest.mark.parametrize("named", [True, False], ids=["emptied", "new"])
def test_a_log_directory_whose_logs_are_gone_is_not_known_a_new_one_is_fine(
    tmp_path: Path, named: bool
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    (folder / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=7\n")
    _checkpoint(folder, *(["orders 0 5", "orders 1 9"] if named else []))

    forecast = _run("--source", folder, rows="options")
    out = str(tmp_path / "kit")
    kit = CliRunner().invoke(cli, ["recovery", "kit", "--source", str(folder), "--out", out])

    assert (forecast.exit_code, kit.exit_code) == (named, named)
    told = (
        f"{folder}: not known: no log lies there, and its checkpoints name 2: is its disk mounted"
    )
    for done in (forecast, kit):
        assert any(line.startswith(told) for line in done.stderr.splitlines()) == named


def test_a_start_that_is_not_known_is_no_success(disk: Path) -> None:
    (disk / "meta.properties").unlink()

    done = CliRunner().invoke(cli, ["recovery", "forecast", "--source", str(disk)])

    assert done.exit_code == 1
    assert done.stdout.startswith(f"{disk}: not known whether it starts\n")
    assert "there is no meta.properties" in done.stderr


@pytest.mark.parametrize("is_known", [True, False])
def test_a_note_is_not_known_where_the_start_is_not(disk: Path, is_known: bool) -> None:
    if not is_known:
        (disk / "meta.properties").unlink()

    done = _run("--source", disk, "--log-format", "json")

    said = [json.loads(line) for line in done.stderr.splitlines()]
    of_topics = next(line for line in said if line["message"].startswith("not looked at: the meta"))
    assert of_topics.get("not_known", False) != is_known
    assert done.exit_code == (0 if is_known else 1)


def test_a_source_without_logs_is_refused(tmp_path: Path) -> None:
    empty = _run("--source", tmp_path)

    assert empty.exit_code == 2
    assert "no log directory" in empty.stderr
