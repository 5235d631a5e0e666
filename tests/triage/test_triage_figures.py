"""``triage --output prometheus``: figures of sound, damaged and half-read nodes."""

import shutil
from pathlib import Path

import pytest

from kafka_segments.files.folders import used_disk
from support.verbs.figures import Figures, figures_of

LOST = ("triage_start_loses_bytes", "triage_start_loses_records", "triage_start_loses_offsets")


def _found(read: Figures) -> dict[str, float | None]:
    sections = ("stops", "loses", "unknown", "slow", "odd")
    return {section: read.of("triage_findings", section) for section in sections}


def _cut_log(node: Path) -> None:
    segment = max(node.glob("b/orders-?/*.log"), key=lambda path: path.stat().st_size)
    segment.write_bytes(segment.read_bytes()[:-7])


def test_a_sound_node_starts_and_loses_nothing(node: Path) -> None:
    read = figures_of("triage", node, "--now-ms", 1_800_000_000_000)

    assert (read.exit_code, read.of("exit_status"), read.of("findings")) == (0, 0, 0)
    assert read.of("answer_timestamp_seconds") == 1_800_000_000
    assert (read.of("triage_starts"), read.of("triage_running")) == (1, 0)
    assert {**_found(read), "odd": 0} == dict.fromkeys(_found(read), 0)
    assert [read.of(name) for name in LOST] == [0, 0, 0]
    assert read.of("triage_segments") == len([*node.glob("*/*-?/*.log")])
    assert "tables_age_seconds" not in read.values


def test_what_a_start_cuts_off_is_counted(node: Path) -> None:
    _cut_log(node)

    read = figures_of("triage", node, "--check", "full")

    assert (read.exit_code, read.of("exit_status"), read.of("triage_starts")) == (1, 1, 1)
    assert read.of("triage_findings", "loses") == 1
    assert read.of("findings") == 1
    assert (read.of("triage_start_loses_bytes") or 0) > 0


def test_what_lies_behind_a_stop_is_not_known(node: Path) -> None:
    (node / "b" / "meta.properties").unlink()
    (node / "a" / "meta.properties").write_text("x\n")

    read = figures_of("triage", node)

    assert read.of("exit_status") == 1
    for name in LOST:
        assert set(read.values[name].values()) == {None}


def test_of_logs_alone_nothing_is_told_of_a_start(node: Path, tmp_path: Path) -> None:
    log = next(node.glob("b/orders-?"))
    shutil.copytree(log, tmp_path / "copies" / log.name)

    read = figures_of("triage", tmp_path / "copies")

    assert (read.of("exit_status"), read.of("triage_starts")) == (1, None)
    assert read.of("unknowns")
    assert 0 not in {_found(read)[section] for section in ("stops", "loses", "odd")}
    assert [read.of(name) for name in LOST] == [None] * 3


def test_where_a_folder_cannot_be_listed_no_size_is_told(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir, log = used_disk.os.scandir, str(next(node.glob("b/orders-?")))

    def refuse(place: str) -> object:
        if str(place) == log:
            raise PermissionError(13, "Permission denied", str(place))
        return scandir(place)

    monkeypatch.setattr(used_disk.os, "scandir", refuse)

    read = figures_of("triage", node)

    assert read.of("exit_status") == 1
    assert read.of("triage_findings", "unknown")
    assert [read.of(name) for name in (*LOST, "triage_segments")] == [None] * 4
