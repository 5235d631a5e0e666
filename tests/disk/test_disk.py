"""``disk``: the account of a node's directories, as it is typed and read."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafka_segments.cli import cli
from kafka_segments.files.storage.folder_lock import lock_state

B0 = "00000000000000000000"
HEX = "0123456789abcdef0123456789abcdef"
HOLDS = (
    "import fcntl,sys;f=open(sys.argv[1],'w');fcntl.lockf(f,fcntl.LOCK_EX);print(1,flush=1);input()"
)


def _disk(*words: object) -> Result:
    return CliRunner().invoke(cli, ["disk", *map(str, words)])


def _rows(*words: object) -> list[dict[str, Any]]:
    done = _disk(*words, "--output", "json")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _du(folder: Path) -> int:
    done = subprocess.run(["du", "-s", "-B1", folder], capture_output=True, check=True, text=True)
    return int(done.stdout.split()[0])


def _log(node: Path) -> Path:
    return sorted((node / "b").glob("*-?"))[0]


def test_a_sound_node_is_accounted_for_to_the_byte(node: Path) -> None:
    done, rows = _disk(node), _rows(node)

    assert done.exit_code == 0, done.output
    assert sum(row["used_bytes"] for row in rows) == _du(node)
    whole = {row["log_dir"]: 0 for row in rows}
    for row in rows:
        whole[row["log_dir"]] += row["used_bytes"]
    assert whole[f"{node}/b"] == _du(node / "b")
    assert {row["what"] for row in rows} == {
        "segments",
        "index files",
        "producers' snapshots",
        "snapshots of the metadata log",
        "checkpoints",
        "folders themselves",
    }


def test_topics_and_disks_have_the_same_bytes(node: Path) -> None:
    topics, disks = _rows(node, "--rows", "topics"), _rows(node, "--rows", "disks")

    of_logs = [path for path in node.glob("*/*-[0-9]") if path.is_dir()]
    assert sum(row["used_bytes"] for row in topics) == sum(map(_du, of_logs))
    assert sum(row["used_bytes"] for row in disks) == _du(node)
    assert all(row["disk_free_bytes"] > 0 and row["broker_runs"] is False for row in disks)


def test_what_was_written_lately_is_by_the_times_of_segments(node: Path) -> None:
    for path in node.rglob("*.log"):
        os.utime(path, (1_000_000, 1_000_000))
    log = _log(node)
    segments = sorted(log.glob("*.log"))
    os.utime(segments[-1], (2_000_000, 2_000_000))

    (row,) = (
        row
        for row in _rows(node, "--rows", "topics", "--now-ms", 2_000_000_000 + 60_000)
        if row["last_hour_most_bytes"]
    )

    assert row["topic"] == log.name.rpartition("-")[0]
    assert row["last_hour_most_bytes"] == segments[-1].stat().st_size
    assert row["last_hour_least_bytes"] == 0


def test_a_folder_that_waits_for_a_person_is_judged_by_evidence(node: Path) -> None:
    log = _log(node)
    stray = log.with_name(f"{log.name}.{HEX}-stray")
    shutil.copytree(log, stray)

    (row,) = _rows(node, "--rows", "folders")

    assert (row["folder"], row["may_go"]) == (stray.name, "not known")
    assert f"{log} has its offsets" in row["why"]
    done = _disk(node)
    assert done.exit_code == 1
    assert "folders marked -stray" in done.output


def test_a_log_of_a_deleted_topic_is_told(node: Path) -> None:
    metadata = _log(node) / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: QUJDREVGR0hJSktMTU5PUA")

    (row,) = _rows(node, "--rows", "folders")

    assert row["may_go"] == "no topic of its id"
    assert "no topic has id QUJDREVGR0hJSktMTU5PUA in the metadata log" in row["why"]


def test_by_a_metadata_log_that_is_older_than_a_log_no_folder_is_known(node: Path) -> None:
    log = _log(node)
    metadata = log / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: QUJDREVGR0hJSktMTU5PUA")
    other = next(one for one in node.glob("b/*/leader-epoch-checkpoint") if one.parent != log)
    other.write_text("0\n2\n0 0\n7 1\n")

    rows = {row["folder"]: row for row in _rows(node, "--rows", "folders")}

    assert rows[log.name]["may_go"] == "not known"
    assert f"{other.parent.name} has leader epoch 7" in rows[log.name]["why"]
    assert "its last records are missing" in _disk(node).output


def test_without_a_metadata_log_no_folder_is_known_and_other_copies_are_evidence(
    node: Path,
) -> None:
    log = _log(node)
    stray = log.with_name(f"{log.name}.{HEX}-stray")
    shutil.copytree(log, stray)

    rows = {row["folder"]: row for row in _rows(node / "b", "--rows", "folders")}

    assert rows.keys() == {path.parent.name for path in node.glob("b/*/partition.metadata")}
    assert {row["may_go"] for row in rows.values()} == {"not known"}
    assert all("no metadata log" in row["why"] for row in rows.values())
    assert f"{stray} has its offsets" in rows[log.name]["why"]
    assert _disk(node / "b").exit_code == 1


def test_a_metadata_log_that_cannot_be_read_is_not_known(node: Path) -> None:
    checkpoint = max((node / "a" / "__cluster_metadata-0").glob("*.checkpoint"))
    data = bytearray(checkpoint.read_bytes())
    data[70] ^= 1
    checkpoint.write_bytes(data)

    done = _disk(node)

    assert done.exit_code == 1
    assert "which folders are of topics that there are, is not known" in done.output


def test_what_a_killed_broker_left_is_named(node: Path) -> None:
    log = _log(node)
    (log / f"{B0}.log.deleted").write_bytes(b"x" * 5000)
    (log / f"{B0}.log.cleaned").write_bytes(b"x")
    (log / f"{B0}.timeindex").write_bytes(bytes(10_485_756))
    (log / f"{99:020d}.log").write_bytes(b"")
    shutil.copytree(log, log.with_name(f"gone-0.{HEX}-delete"))
    (node / "b" / "server.log").write_text("x")

    rows = {row["what"]: row for row in _rows(node) if row["log_dir"] == f"{node}/b"}

    assert rows["files marked .deleted"]["used_bytes"] == 8192
    assert rows["files marked .cleaned"]["files"] == 1
    assert rows["index files at their full size"]["size_bytes"] == 10_485_756
    assert rows["folders marked -delete"]["files"] == len(list(log.iterdir()))
    assert rows["not Kafka's"]["files"] == 1
    assert sum(row["used_bytes"] for row in rows.values()) == _du(node / "b")


def test_a_broker_that_runs_is_told_and_its_lock_left_alone(node: Path) -> None:
    lock = node / "b" / ".lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as broker:
        assert broker.stdout is not None
        assert broker.stdin is not None
        broker.stdout.readline()
        held, done = lock_state(str(node / "b")), _disk(node / "b")
        broker.stdin.close()

    assert (held.is_held, held.pid) == (True, broker.pid)
    assert f"a broker runs on it: process {broker.pid} holds its lock" in done.output
    assert lock_state(str(node / "b")).is_held is False
    assert lock_state(str(node / "a")).is_held is False


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "disk needs a folder"),
        (("s3://bucket/logs",), "disk looks at the disks of this machine"),
        (("/nowhere/logs",), "/nowhere/logs"),
        (("{node}", "{node}"), "is named 2 times"),
        (("{node}", "--source", "{node}"), "is named 2 times"),
    ],
)
def test_what_is_no_folder_of_this_machine_is_refused(
    node: Path, words: tuple[str, ...], told: str
) -> None:
    done = _disk(*(word.format(node=node) for word in words))

    assert done.exit_code == 2
    assert told in done.output
    assert len(done.output.splitlines()) == 1


def test_csv_has_the_same_rows(node: Path) -> None:
    done = _disk(node, "--output", "csv")

    header, *lines = done.stdout.splitlines()
    assert header.split(",")[:3] == ["log_dir", "what", "files"]
    assert len(lines) == len(_rows(node))


def test_a_lone_folder_with_an_empty_log_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()

    done = _disk(tmp_path)

    assert done.exit_code == 1
    assert "orders-0" in done.stdout.partition("may it go")[2]


def test_of_a_folder_that_could_not_be_listed_it_is_not_told_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, scandir = tmp_path / "a" / "t-0", os.scandir
    log.mkdir(parents=True)
    (log / f"{B0}.log").write_bytes(b"nine bytes")
    (tmp_path / "a" / "recovery-point-offset-checkpoint").write_text("0\n0\n")

    def refuse(path: str) -> Any:
        if str(path) == str(log):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)

    done, (row,) = _disk(tmp_path / "a"), _rows(tmp_path / "a", "--rows", "folders")

    assert done.exit_code == 1
    assert row["why"] == "not all that lies in it could be looked at; where it ends is not known"
    assert "at least " in done.stdout
