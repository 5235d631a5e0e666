"""What a kit holds of logs as crashes leave them; made in threads."""

import errno
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafka_segments.cli import cli
from kafka_segments.errors import UsageError
from kafka_segments.kafka.index.log.producer_state import NewestBatch, ProducerEntry, ProducerState
from kafka_segments.kafka.index.log.snapshots import decode_snapshot, encode_snapshot
from kafka_segments.kafka.text.checkpoints import PARTITION_METADATA, RECOVERY_POINT
from kafka_segments.verbs.change.recovery.kit.listing import plan_kit
from kafka_segments.verbs.change.recovery.kit.run import (
    is_quicker_in_threads,
    read_in_threads,
    run_kit,
)
from kafka_segments.verbs.change.recovery.kit_manifest import KitState
from support.verbs.recovery_kits import METADATA, NOW_MS, crashed_log, flip, kit_options, made_kit

CASE = "v2-txn-interleaved-multi-segment"


def _segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def test_a_kit_has_the_index_files_that_a_load_makes(synthetic: Path, tmp_path: Path) -> None:
    folder = crashed_log(tmp_path / "logs", synthetic / CASE / "t-0")

    log = made_kit(tmp_path / "logs", tmp_path / "kit")["t-0"]

    expected = synthetic / CASE / "expected" / "loader-unclean"
    made = {path.name: path.read_bytes() for path in (tmp_path / "kit" / "0" / "t-0").iterdir()}
    assert sorted(made) == sorted(file.name for file in log.files)
    for path in [*expected.rglob("*index"), *expected.rglob("*.snapshot")]:
        assert made[path.name] == path.read_bytes(), path.name
    assert log.recovery_point == 0
    assert [segment.base_offset for segment in log.segments] == [
        int(path.stem) for path in _segments(folder)
    ]
    assert made[f"{log.next_recovery_point:020d}.log"] == b""


def test_reading_from_a_snapshot_on_ends_in_the_state_of_reading_all(
    synthetic: Path, tmp_path: Path
) -> None:
    folder = crashed_log(tmp_path / "logs", synthetic / CASE / "t-0")
    whole = made_kit(tmp_path / "logs", tmp_path / "whole")["t-0"]
    middle = whole.segments[len(whole.segments) // 2].base_offset
    shutil.copy(tmp_path / "whole" / "0" / "t-0" / f"{middle:020d}.snapshot", folder)
    shutil.copy(tmp_path / "whole" / "0" / "t-0" / "leader-epoch-checkpoint", folder)
    (tmp_path / "logs" / RECOVERY_POINT).write_text(f"0\n1\nt 0 {middle}\n")

    part = made_kit(tmp_path / "logs", tmp_path / "part")["t-0"]

    assert [segment.base_offset for segment in part.segments] == [
        segment.base_offset for segment in whole.segments if segment.base_offset >= middle
    ]
    assert set(part.files) < set(whole.files)
    end = f"{whole.next_recovery_point:020d}.snapshot"
    states = [decode_snapshot((tmp_path / kit / "0" / "t-0" / end).read_bytes()) for kit in
              ("whole", "part")]  # fmt: skip
    assert states[0] == states[1]
    assert states[0].entries


def test_damage_in_the_middle_is_left_to_the_broker(synthetic: Path, tmp_path: Path) -> None:
    folder = crashed_log(tmp_path / "logs", synthetic / CASE / "t-0")
    segments = _segments(folder)

    flip(segments[1], 200)
    closed = made_kit(tmp_path / "logs", tmp_path / "closed")["t-0"]
    flip(segments[1], 200)
    flip(segments[-1], 200)
    active = made_kit(tmp_path / "logs", tmp_path / "active")["t-0"]

    assert (closed.state, active.state) == (KitState.REFUSED, KitState.REFUSED)
    assert "later segments follow, which the broker would remove" in closed.message
    assert "sound batches follow at byte" in active.message


def test_folders_that_a_broker_does_not_serve_are_told_too(synthetic: Path, tmp_path: Path) -> None:
    folder = crashed_log(tmp_path / "logs", synthetic / CASE / "t-0")
    stray, deleted = (f"t-0.{'a' * 32}-{state}" for state in ("stray", "delete"))
    for name in (stray, deleted):
        shutil.copytree(folder, tmp_path / "logs" / name)

    logs = made_kit(tmp_path / "logs", tmp_path / "kit")

    states = {name: log.state for name, log in logs.items()}
    assert states == {
        "t-0": KitState.READY,
        stray: KitState.REFUSED,
        deleted: KitState.LEFT,
    }
    assert "recovers it like any other log" in logs[stray].message


def test_a_segment_that_cannot_be_read_stops_its_log_alone(
    synthetic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed_log(tmp_path / "logs", synthetic / CASE / "t-0")
    shutil.copytree(tmp_path / "logs" / "t-0", tmp_path / "logs" / "u-0")
    planned = plan_kit([str(tmp_path / "logs")], str(tmp_path / "kit"))
    _segments(tmp_path / "logs" / "u-0")[1].unlink()

    made = run_kit(
        kit_options(tmp_path / "kit"), work=planned, read=read_in_threads(2), made_ms=NOW_MS
    )
    logs = {log.log: log for log in made}

    assert logs["t-0"].state == KitState.READY
    assert logs["u-0"].state == KitState.REFUSED
    assert "No such file" in logs["u-0"].message


def test_index_files_below_the_recovery_point_are_left_as_a_broker_leaves_them(
    synthetic: Path, tmp_path: Path
) -> None:
    folder = crashed_log(tmp_path / "logs", synthetic / CASE / "t-0")
    last = int(_segments(folder)[-1].stem)
    (tmp_path / "logs" / RECOVERY_POINT).write_text(f"0\n1\nt 0 {last}\n")

    log = made_kit(tmp_path / "logs", tmp_path / "kit")["t-0"]

    assert len(log.segments) == len(_segments(folder))
    indexes = [file.name for file in log.files if file.name.endswith("index")]
    assert indexes
    assert all(int(name.partition(".")[0]) >= last for name in indexes)


def test_a_log_whose_folder_cannot_be_listed_is_refused_and_the_others_are_made(
    synthetic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("t-0", "u-0"):
        segments = tmp_path / "segments" / name
        shutil.copytree(synthetic / "v2-one-record" / "t-0", segments)
        crashed_log(tmp_path / "logs", segments)
    plain = os.scandir

    def scandir(path: str) -> Any:
        if str(path).endswith("/t-0"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return plain(path)

    monkeypatch.setattr(os, "scandir", scandir)
    logs = made_kit(tmp_path / "logs", tmp_path / "kit")

    assert {name: log.state for name, log in logs.items()} == {"t-0": "refused", "u-0": "ready"}
    assert "its folder cannot be listed: [Errno 13] Permission denied" in logs["t-0"].message


def test_ctrl_c_begins_no_other_segment(
    synthetic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        folder = tmp_path / "logs" / f"t-{number}"
        shutil.copytree(synthetic / CASE / "t-0", folder)
        (folder / PARTITION_METADATA).write_bytes(METADATA)
    work = plan_kit([str(tmp_path / "logs")], str(tmp_path / "kit"))
    begun: list[int] = []

    def scan(*task: object) -> str:
        begun.append(len(begun))
        time.sleep(0.01)
        return "unread"

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafka_segments.verbs.change.recovery.kit.run.scan_segment", scan)
    with pytest.raises(KeyboardInterrupt):
        list(
            run_kit(
                kit_options(tmp_path / "kit"),
                work=work,
                read=read_in_threads(2, interrupt),
                made_ms=NOW_MS,
            )
        )

    assert len(begun) < work.segments / 2


@pytest.mark.parametrize(
    ("segments", "threads", "most"),
    [
        (0, 1, 20_000_000_000),
        (0, 4, 80_000_000_000),
        (8_000, 4, 80_000_000_000),
        (10_000, 64, 80_000_000_000),
        (20_000, 2, 120_000_000_000),
    ],
)
def test_threads_read_what_they_have_read_before_spark_would(
    segments: int, threads: int, most: int
) -> None:
    assert is_quicker_in_threads(most, segments, threads=threads)
    assert not is_quicker_in_threads(most + 1, segments, threads=threads)


@pytest.mark.parametrize(
    ("out", "message"),
    [("logs/kit", "a broker does not start with it there"), ("full", "is not empty")],
)
def test_a_kit_needs_a_place_of_its_own(
    synthetic: Path, tmp_path: Path, out: str, message: str
) -> None:
    crashed_log(tmp_path / "logs", synthetic / CASE / "t-0")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()

    with pytest.raises(UsageError, match=message):
        made_kit(tmp_path / "logs", tmp_path / out)


def test_a_partition_is_no_log_directory(synthetic: Path, tmp_path: Path) -> None:
    crashed_log(tmp_path / "logs", synthetic / CASE / "t-0")

    with pytest.raises(UsageError, match=r"is no log directory: give the one in log\.dirs"):
        made_kit(tmp_path / "logs" / "t-0", tmp_path / "kit")


def test_a_kit_drops_no_silent_producer_unless_it_is_told_after_how_long(
    synthetic: Path, tmp_path: Path
) -> None:
    folder = crashed_log(tmp_path / "logs", synthetic / CASE / "t-0")
    last = int(_segments(folder)[-1].stem)
    silent = ProducerState({7: ProducerEntry(0, NewestBatch(3, 5), NOW_MS - 2_000)})
    (folder / f"{last:020d}.snapshot").write_bytes(encode_snapshot(silent))
    (tmp_path / "logs" / RECOVERY_POINT).write_text(f"0\n1\nt 0 {last}\n")

    def producers(kit: str, *options: str) -> set[int]:
        """Give the producers in the last snapshot of a kit."""
        made = ["kit", "--source", str(tmp_path / "logs"), "--out", str(tmp_path / kit)]
        done = CliRunner().invoke(cli, ["recovery", *made, "--now-ms", str(NOW_MS), *options])
        assert done.exit_code == 0, done.output
        snapshot = max((tmp_path / kit / "0" / "t-0").glob("*.snapshot"))
        return set(decode_snapshot(snapshot.read_bytes()).entries)

    kept = producers("kept")
    dropped = producers("dropped", "--set", "producer_id_expiration_ms=1000")

    assert 7 in kept
    assert dropped == kept - {7}


def test_the_commands_show_the_cut_before_it_is_done(synthetic: Path, tmp_path: Path) -> None:
    crashed_log(tmp_path / "logs", synthetic / CASE / "t-0", torn=bytes(100))
    logs, kit = str(tmp_path / "logs"), str(tmp_path / "kit")

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, ["recovery", *arguments, "--output", "json"])
        return done.exit_code, done.stdout

    made = run("kit", "--source", logs, "--out", kit)
    would = run("apply", kit)
    done = run("apply", kit, "--execute")
    back = run("rollback", kit, "--execute")

    row = json.loads(made[1])
    assert (made[0], row["cut_bytes"], row["cut_records"], row["state"]) == (1, 100, 0, "ready")
    steps = [json.loads(text) for _, text in (would, done, back)]
    assert [status for status, _ in (would, done, back)] == [0, 0, 0]
    assert [step["status"] for step in steps] == ["would be done", "done", "done"]
    assert steps[0]["cut_bytes"] == 100
    assert steps[2]["recovery_point"] == 0
