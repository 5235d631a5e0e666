"""`recovery forecast` on a node's directories with one thing spoilt: what a 4.3.1 broker does then.

The verdicts are those that brokers and Kafka's own classes gave for the same states.
"""

import json
import os
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafka_segments.cli import cli
from kafka_segments.errors import SourceError
from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.node import log_dirs, start_reader
from kafka_segments.files.node.log_dirs import find_log_dirs
from kafka_segments.files.segments.segment_ends import read_segment_end
from kafka_segments.files.storage.files import Place
from kafka_segments.files.storage.local_folder import FileEntry

NODE = Path("cluster/disks/node-1")
LOG = "careful-2"  # in directory a, which has the metadata log, too
IN_B = "orders-3"


def _forecast(folder: Path, *words: str) -> Result:
    line = ["recovery", "forecast", "--source", str(folder), "--broker-threads", "1", *words]
    return CliRunner().invoke(cli, line)


def _row(folder: Path, name: str = "a") -> dict:
    done = _forecast(folder, "--output", "json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    row = next(row for row in rows if row["log_dir"] == str(folder / name))
    return {**row, "status": done.exit_code}


def _in_b(node: Path) -> Path:
    """Return a partition's folder in directory b."""
    return next(
        path for path in sorted((node / "b").iterdir()) if (path / "partition.metadata").is_file()
    )


def test_a_killed_node_is_sound(node: Path) -> None:
    row = _row(node)

    assert (row["status"], row["starts"], row["is_served"]) == (0, True, True)
    assert (row["start_problem"], row["without"], row["drops"]) == (None, [], [])


def _nuls(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _put(text: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.write_text(text)

    return change


def _without_line(word: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        lines = [line for line in path.read_text().splitlines() if word not in line]
        path.write_text("\n".join(lines) + "\n")

    return change


def _folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


ENDS, WITHOUT = False, True


@pytest.mark.parametrize(
    ("file", "change", "starts", "exception"),
    [
        ("b/meta.properties", Path.unlink, ENDS, "RuntimeException"),
        ("b/meta.properties", _nuls, ENDS, "RuntimeException"),
        ("b/meta.properties", _without_line("version"), ENDS, "RuntimeException"),
        ("b/meta.properties", _without_line("cluster.id"), WITHOUT, "RuntimeException"),
        ("b/meta.properties", _folder, WITHOUT, "IOException"),
        ("a/meta.properties", _without_line("node.id"), ENDS, "RuntimeException"),
        ("a/bootstrap.checkpoint", _nuls, ENDS, "CorruptRecordException"),
        ("a/bootstrap.checkpoint", _put(""), ENDS, "RuntimeException"),
        ("a/__cluster_metadata-0/quorum-state", _put(""), ENDS, "EOFException"),
        ("a/__cluster_metadata-0/quorum-state", _put('{"leaderId":1,'), ENDS, "JsonEOFException"),
        ("b/recovery-point-offset-checkpoint", _nuls, WITHOUT, "IOException"),
        ("b/log-start-offset-checkpoint", _put("9\n0\n"), WITHOUT, "IOException"),
        ("a/log-start-offset-checkpoint", _nuls, ENDS, "IOException"),
        ("b/replication-offset-checkpoint", _put("0\n2\nt 0 5\n"), WITHOUT, "IOException"),
        ("b/cleaner-offset-checkpoint", _put("0\n1\nt 0\n"), WITHOUT, "IOException"),
        ("b/{log}/leader-epoch-checkpoint", _nuls, WITHOUT, "IOException"),
        ("b/{log}/leader-epoch-checkpoint", _put("0\n1\n0\x01 3\n"), ENDS, "NumberFormatException"),
        ("b/{log}/leader-epoch-checkpoint", _put("0\n1\n-1 3\n"), ENDS, "IllegalArgumentException"),
        ("b/{log}/partition.metadata", _put(""), ENDS, "NullPointerException"),
        (
            "b/{log}/partition.metadata",
            _put("version: 0\ntopic_id: x"),
            ENDS,
            "IllegalArgumentException",
        ),
        ("b/{log}/app.log", _put("x"), ENDS, "NumberFormatException"),
        ("b/{log}/abc.index", _put("x"), ENDS, "NumberFormatException"),
        ("b/lost+found", _folder, ENDS, "KafkaException"),
        ("b/plain-0.stray", _folder, ENDS, "KafkaException"),
    ],
)
def test_what_a_spoilt_file_costs(
    node: Path, file: str, change: Callable[[Path], None], starts: bool, exception: str
) -> None:
    path = node / file.format(log=_in_b(node).name)
    change(path)

    row = _row(node, "b" if file.startswith("b") else "a")

    assert (row["status"], row["starts"]) == (1, starts), row["start_problem"]
    assert exception in row["start_problem"]
    assert path.name in row["start_problem"]
    assert row["without"] == ([str(node / "b")] if starts else [])
    assert not row["is_served"]


@pytest.mark.parametrize(
    "change",
    [
        lambda node, log: _append(node / "b/meta.properties", b"# gepr\xfcft\n"),
        lambda node, log: (node / "b/recovery-point-offset-checkpoint").write_text(""),
        lambda node, log: (node / "b/replication-offset-checkpoint").unlink(),
        lambda node, log: (log / "leader-epoch-checkpoint").write_text(""),
        lambda node, log: (node / "b/.kafka_cleanshutdown").mkdir(),
        lambda node, log: (node / "b/notes.txt").write_text("x"),
        lambda node, log: (node / "b/plain-9").write_text("x"),
        lambda node, log: (log / "00000000000000000999.log.deleted").write_text("x"),
    ],
    ids=["latin-1", "points", "watermarks", "epochs", "marker", "file", "like a log", "deleted"],
)
def test_what_a_broker_reads_over_is_no_finding(
    node: Path, change: Callable[[Path, Path], object]
) -> None:
    change(node, _in_b(node))

    row = _row(node, "b")

    assert (row["status"], row["starts"], row["drops"]) == (0, True, [])


def _append(path: Path, data: bytes) -> None:
    path.write_bytes(path.read_bytes() + data)


def test_a_log_without_its_topic_id_goes_stray_with_what_it_holds(node: Path) -> None:
    log = _in_b(node)
    (log / "partition.metadata").unlink()

    row = _row(node, "b")
    told = _forecast(node).stdout.replace("\n", "")

    assert (row["status"], row["starts"]) == (1, True)
    assert [log.name in drop and "renamed -stray" in drop for drop in row["drops"]] == [True]
    assert "before the start: write partition.metadata anew" in told


def test_a_partition_in_two_folders_ends_the_broker(node: Path) -> None:
    log = _in_b(node)
    topic, _, partition = log.name.rpartition("-")
    shutil.copytree(log, node / "b" / f"{topic}-0{partition}")

    row = _row(node, "b")

    assert (row["starts"], "IllegalStateException" in row["start_problem"]) == (False, True)


def test_an_unknown_topic_and_a_missing_folder_are_told(node: Path) -> None:
    log = _in_b(node)
    log.rename(log.with_name("flat-7"))

    drops = _row(node, "b")["drops"] + _row(node, "a")["drops"]

    assert any("flat-7" in drop and "renamed -stray" in drop for drop in drops)
    assert _row(node)["status"] == 1


def test_a_start_beyond_the_end_deletes_every_segment(node: Path) -> None:
    log = max(
        (p for p in (node / "b").iterdir() if p.is_dir()),
        key=lambda p: sum(f.stat().st_size for f in p.glob("*.log")),
    )
    topic, _, partition = log.name.rpartition("-")
    (node / "b/log-start-offset-checkpoint").write_text(f"0\n1\n{topic} {partition} 999999\n")

    row = _row(node, "b")

    assert (row["status"], row["starts"]) == (1, True)
    assert any(f"{name.name}" in row["drops"][0] for name in log.glob("*.log"))


def test_zeros_under_a_clean_marker_end_the_broker_once(node: Path) -> None:
    log = max(_in_b(node).glob("*.log"))
    (node / "b/.kafka_cleanshutdown").touch()
    log.with_suffix(".index").touch()
    os.truncate(log, log.stat().st_size + 4096)

    clean, killed = (
        _row(node, "b"),
        json.loads(_forecast(node, "--killed", "--output", "json").stdout.splitlines()[0]),
    )

    assert (clean["starts"], log.name in clean["start_problem"]) == (False, True)
    assert killed["starts"] is True


def test_a_directory_that_was_not_given_is_not_known(node: Path) -> None:
    shutil.rmtree(node / "b")

    row = _row(node)

    assert (row["status"], row["starts"]) == (1, None)
    assert "directories were not read" in row["not_known"][0]


@pytest.mark.parametrize(
    ("entries", "is_told"),
    [
        ((1_700_000_000_000, 4), False),
        ((1_700_000_000_000, 4, 0, 0), True),
        ((0, 0, 0, 0), True),
        ((0, 0), False),  # of a record of 1970
    ],
)
def test_a_time_index_that_ends_in_zeros_is_told_where_it_is_trusted(
    node: Path, entries: tuple[int, ...], is_told: bool
) -> None:
    (node / "b/.kafka_cleanshutdown").touch()
    log = node / "b/orders-0"
    (first,) = log.glob("*.log")
    first.with_suffix(".index").touch()  # else it is recovered
    index = first.with_suffix(".timeindex")
    index.write_bytes(struct.pack(">" + "qi" * (len(entries) // 2), *entries))

    row = _row(node, "b")

    told = [line for line in row["drops"] if "its last entry is zero" in line]
    assert [f"{log}/{index.name}" in line for line in told] == [True] * is_told
    assert row["starts"]


def test_a_directory_of_another_cluster_is_taken_for_another_brokers_and_told(node: Path) -> None:
    shutil.rmtree(node / "a/__cluster_metadata-0")
    meta = node / "b/meta.properties"
    meta.write_text(re.sub("cluster.id=.*", "cluster.id=another", meta.read_text()))

    rows = {name: _row(node, name) for name in ("a", "b")}

    for name, other in (("a", "b"), ("b", "a")):
        (told,) = (line for line in rows[name]["not_known"] if "cluster.id is another" in line)
        assert told.startswith(f"{node / other}: node.id is ")


def test_a_link_is_named_with_where_it_leads(node: Path, tmp_path: Path) -> None:
    (node / "b").rename(tmp_path / "disk")
    (node / "b").symlink_to(tmp_path / "disk")

    done = _forecast(node)

    assert done.exit_code == 1
    assert f"{node}/b: a link out of the source, to {tmp_path}/disk" in done.stderr
    assert "--follow-links" in done.stderr


def test_a_link_out_of_the_sources_is_read_where_it_leads_to_a_source(
    node: Path, tmp_path: Path
) -> None:
    (node / "b").rename(tmp_path / "disk")
    (node / "b").symlink_to(tmp_path / "disk")
    log = _in_b(node)
    log.rename(tmp_path / log.name)
    log.symlink_to(tmp_path / log.name)
    disks = ("--source", str(tmp_path / "disk"), "--source", str(tmp_path / log.name))

    alone = _forecast(node, "--follow-links")
    named = _forecast(node, *disks, "--follow-links")

    assert alone.exit_code == 1
    assert f"{node}/b: a link out of the sources, to {tmp_path}/disk: not followed" in alone.stderr
    assert named.exit_code == 0, named.stderr


def test_partitions_of_one_directory_that_are_sources_are_all_read(node: Path) -> None:
    one, two = sorted((node / "b").glob("orders-*"))[:2]

    found = find_log_dirs([str(one), str(two)])

    assert [[log.folder for log in of_dir.logs] for of_dir in found] == [[one.name, two.name]]


def test_a_link_in_the_place_of_a_partition_is_no_missing_folder(
    node: Path, tmp_path: Path
) -> None:
    log = _in_b(node)
    log.rename(tmp_path / log.name)
    log.symlink_to(tmp_path / log.name)

    row = _row(node, "b")

    assert (row["status"], row["starts"], row["drops"]) == (1, None, [])
    assert f"a link out of the source, to {tmp_path / log.name}" in row["not_known"][0]


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
def test_a_folder_in_the_place_of_an_index_costs_its_directory(node: Path, suffix: str) -> None:
    index = max(_in_b(node).glob("*.log")).with_suffix(suffix)
    _folder(index)

    row = _row(node, "b")

    assert (row["starts"], row["without"]) == (True, [str(node / "b")])
    assert index.name in row["start_problem"]


def test_a_link_in_the_place_of_a_segment_is_not_known_and_no_missing_one(
    node: Path, tmp_path: Path
) -> None:
    log = max(_in_b(node).glob("*.log"))
    log.rename(tmp_path / log.name)
    log.symlink_to(tmp_path / log.name)

    row = _row(node, "b")

    assert (row["status"], row["starts"], row["drops"]) == (1, None, [])
    assert f"{log.name}: a link out of the source, to {tmp_path / log.name}" in row["not_known"][0]


@pytest.mark.parametrize(
    "name", ["leader-epoch-checkpoint", "partition.metadata", "00000000000000000000.log"]
)
def test_a_pipe_in_the_place_of_a_file_of_a_log_is_not_known(node: Path, name: str) -> None:
    file = _in_b(node) / name
    file.unlink()
    os.mkfifo(file)

    row = _row(node, "b")

    assert (row["status"], row["starts"], row["drops"]) == (1, None, [])
    assert f"{name}: a pipe, a socket or a device, no file" in row["not_known"][0]


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata"])
def test_a_link_in_the_place_of_what_is_kept_of_a_log_is_not_known_and_no_missing_one(
    node: Path, tmp_path: Path, name: str
) -> None:
    file = _in_b(node) / name
    file.rename(tmp_path / name)
    file.symlink_to(tmp_path / name)

    row = _row(node, "b")

    assert (row["status"], row["starts"], row["drops"]) == (1, None, [])
    assert f"{name}: a link out of the source, to {tmp_path / name}" in row["not_known"][0]


@pytest.mark.parametrize("name", ["quorum-state", "partition.metadata", "leader-epoch-checkpoint"])
def test_a_pipe_in_the_place_of_a_file_of_the_metadata_log_is_not_known(
    node: Path, name: str
) -> None:
    file = node / "a" / "__cluster_metadata-0" / name
    file.unlink()
    os.mkfifo(file)

    row = _row(node)

    assert (row["status"], row["starts"], row["start_problem"]) == (1, None, None)
    assert f"{name}: a pipe, a socket or a device, no file" in row["not_known"][0]


def test_a_pipe_in_the_place_of_meta_properties_is_no_missing_one(node: Path) -> None:
    file = node / "b" / "meta.properties"
    file.unlink()
    os.mkfifo(file)

    row = _row(node, "b")

    assert (row["status"], row["starts"], row["start_problem"]) == (1, None, None)
    assert "meta.properties: a pipe, a socket or a device, no file" in row["not_known"][0]


def test_a_log_that_cannot_be_listed_is_not_known_and_no_folder_goes_for_it(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _in_b(node)

    def refuse(source: str, relative_path: str, **more: Any) -> list[FileEntry]:
        if relative_path == found.name:
            raise SourceError(f"{source}/{relative_path}", "Permission denied")
        return entries_of(source, relative_path, **more)

    shutil.copytree(found, node / "a" / f"{found.name}.{'a' * 32}-delete")
    monkeypatch.setattr(log_dirs, "entries_of", refuse)
    row, done = _row(node, "b"), CliRunner().invoke(cli, ["triage", str(node)])

    assert (row["status"], row["starts"], row["drops"]) == (1, None, [])
    assert f"{found.name}: Permission denied" in row["not_known"][0]
    assert "not known whether it starts" in done.output
    assert done.output.count("Permission denied") == 1


def test_a_folder_of_which_something_cannot_be_read_is_no_missing_one(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _in_b(node)

    def refuse(folder: Place, base: int, files: Any, **more: Any) -> Any:
        if folder.path.endswith(found.name):
            raise PermissionError(13, "Permission denied", folder.path)
        return read_segment_end(folder, base, files, **more)

    monkeypatch.setattr(start_reader, "read_segment_end", refuse)
    unread = CliRunner().invoke(cli, ["triage", str(node)])
    monkeypatch.undo()
    (found / "partition.metadata").write_text("no topic id")
    spoilt = CliRunner().invoke(cli, ["triage", str(node)])

    assert unread.exit_code == spoilt.exit_code == 1
    assert "Permission denied" in unread.output
    assert "version 0 and a topic_id expected" in spoilt.output
    assert "is in no directory" not in unread.output + spoilt.output


def test_a_bootstrap_checkpoint_that_we_may_not_read_does_not_end_the_broker(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: Place, *, check_crc: bool) -> None:
        raise PermissionError(13, "Permission denied", file.path)

    monkeypatch.setattr(start_reader, "read_kraft_file", refuse)

    row = _row(node)

    assert (row["status"], row["starts"], row["start_problem"]) == (1, None, None)
    assert "bootstrap.checkpoint: [Errno 13] Permission denied" in row["not_known"][0]


def test_a_segment_named_above_the_greatest_offset_ends_the_broker(node: Path) -> None:
    (_in_b(node) / f"{'9' * 20}.log").touch()

    row = _row(node, "b")

    assert row["starts"] is False
    assert "NumberFormatException" in row["start_problem"]
