"""A log staged: what goes over, what is made, a kill at every step."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_segments.errors import NoSpaceError, SetAsideError
from kafka_segments.files.changes import free_space
from kafka_segments.files.changes.free_space import check_space
from kafka_segments.files.storage.durable_files import TEMPORARY, free_bytes
from kafka_segments.kafka.index.formats.kip33_index import WithoutTimestamps
from kafka_segments.verbs.change.migrate.decide.actions import SegmentAction
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules
from kafka_segments.verbs.change.migrate.staged_log import StagedLog, log_state, put_in_place
from support.verbs import killed_staging
from support.verbs.killed_staging import planned, stage

MTIME_NS = 1_400_000_000_123_456_789


def _log(case: Path, tmp_path: Path) -> StagedLog:
    folder = tmp_path / "logs" / "t-0"
    folder.mkdir(parents=True)
    for log in (case / "t-0").glob("*.log"):
        shutil.copy(log, folder)
        os.utime(folder / log.name, ns=(5, MTIME_NS))
    return StagedLog(folder, tmp_path / "logs.migration" / "p")


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.long)])
def test_a_kill_at_any_step_of_staging_changes_nothing_and_a_second_run_finishes(
    synthetic: Path, tmp_path: Path, every: int
) -> None:
    log = _log(synthetic / "v0-v1-v2-multi-segment", tmp_path)
    for path in sorted(log.folder.glob("*.log"))[2:]:
        path.unlink()

    done = subprocess.run(
        [sys.executable, killed_staging.__file__, str(every), log.folder, log.root],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


@pytest.mark.parametrize(
    "case", ["v0-multi-segment", "v1-gzip-createtime", "v2-txn-interleaved-multi-segment"]
)
def test_a_staged_log_has_the_files_that_a_load_without_any_leaves(
    synthetic: Path, tmp_path: Path, case: str
) -> None:
    log = _log(synthetic / case, tmp_path)

    stage(log, planned(log))

    expected = synthetic / case / "expected" / "segment"
    staged = {file.name: file.read_bytes() for file in log.other.iterdir()}
    for file in expected.rglob("*index"):
        assert staged[file.name] == file.read_bytes(), file.name
    assert "leader-epoch-checkpoint" in staged
    assert any(name.endswith(".snapshot") for name in staged)
    assert {file.stat().st_mtime_ns for file in log.other.glob("*.log")} == {MTIME_NS}


def test_closed_logs_are_the_same_file_and_what_a_broker_writes_to_is_a_copy(
    synthetic: Path, tmp_path: Path
) -> None:
    log = _log(synthetic / "v0-multi-segment", tmp_path)
    (log.folder / "partition.metadata").write_text("version: 0\ntopic_id: x\n")
    (log.folder / "leader-epoch-checkpoint").write_text("0\n1\n3 0\n")
    segments = planned(log)

    stage(log, segments)

    same = {file.name for file in log.folder.iterdir() if file.samefile(log.other / file.name)}
    assert same == {segment.path.name for segment in segments[:-1]}
    for name in ("partition.metadata", "leader-epoch-checkpoint"):
        assert (log.other / name).read_bytes() == (log.folder / name).read_bytes()


def test_a_closed_segment_without_timestamps_gets_kip_33s_entry_where_asked(
    synthetic: Path, tmp_path: Path
) -> None:
    log = _log(synthetic / "v0-multi-segment", tmp_path)
    segments = planned(log)
    bases = [segment.base_offset for segment in segments]

    stage(log, segments, MigrationRules(without_timestamps=WithoutTimestamps.MTIME_NEXT))

    entries = [(log.other / f"{base:020d}.timeindex").read_bytes() for base in bases]
    ms = (MTIME_NS // 1_000_000).to_bytes(8, "big")
    for base, following, entry in zip(bases, bases[1:], entries, strict=False):
        assert entry == ms + (following - base).to_bytes(4, "big")
    assert entries[-1] == b""


def test_a_segment_that_keeps_its_files_writes_none(synthetic: Path, tmp_path: Path) -> None:
    log = _log(synthetic / "v1-none-createtime", tmp_path)
    index = log.folder / planned(log)[0].path.with_suffix(".index").name
    index.write_bytes(b"12345678")

    stage(log, planned(log, SegmentAction.KEEP))

    assert (log.other / index.name).read_bytes() == b"12345678"
    assert not list(log.other.glob("*.timeindex"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "folder").mkdir(), "no plain file"),
        (lambda folder: (folder / f"{999:020d}.log").touch(), "was not there when its log was"),
        (
            lambda folder: os.utime(min(folder.glob("*.log")), ns=(5, 5)),
            "when it was planned: plan",
        ),
        (lambda folder: min(folder.glob("*.log")).unlink(), "it is gone since it was planned"),
    ],
)
def test_a_log_that_is_not_as_planned_is_refused(synthetic, tmp_path, change, message):
    log = _log(synthetic / "v0-multi-segment", tmp_path)
    segments = planned(log)
    change(log.folder)

    with pytest.raises(SetAsideError, match=message):
        stage(log, segments)

    assert not log_state(log).is_staged


def test_a_log_that_a_broker_would_not_load_is_refused(synthetic: Path, tmp_path: Path) -> None:
    log = _log(synthetic / "v2-offsets-go-back", tmp_path)

    with pytest.raises(SetAsideError, match="its log is left alone"):
        stage(log, planned(log, SegmentAction.KEEP))


@pytest.mark.parametrize("step", range(4))
def test_a_full_disk_names_the_file_and_what_it_needs_and_leaves_no_temporary_file(
    synthetic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    log = _log(synthetic / "v0-multi-segment", tmp_path)
    kinds = (".log", ".index", ".json", ".snapshot")
    segments = planned(log, SegmentAction.CONVERT)
    synced = os.fsync

    def full(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        if f"{kinds[step]}." in name and name.endswith(TEMPORARY):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        synced(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            OSError, match=r": \d+( of \d+)? bytes were written, \d+ are free"
        ) as refused:
            stage(log, segments)

    assert refused.value.errno == errno.ENOSPC
    assert str(log.root) in str(refused.value.filename)
    assert str(refused.value.filename).endswith(kinds[step])
    assert [file for file in log.root.rglob("*") if "tmp" in file.name] == []
    stage(log, segments)
    assert log_state(log).message == "staged"


def test_room_is_asked_for_by_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = free_bytes(tmp_path / "not" / "there")
    roots = {str(tmp_path / name / "p"): size for name, size in (("a", 10), ("b", 30))}
    check_space(roots)
    monkeypatch.setattr(free_space, "free_bytes", lambda _: 35)

    with pytest.raises(NoSpaceError, match=r"/b/p: 40 bytes are to be .* 35 are free: .* 5 more"):
        check_space(roots)

    assert free > 35


def test_staging_again_after_the_swap_changes_nothing(synthetic: Path, tmp_path: Path) -> None:
    log = _log(synthetic / "v0-multi-segment", tmp_path)
    segments = planned(log)
    stage(log, segments)
    manifest = json.loads(log.manifest.read_text())
    put_in_place(log)

    stage(log, segments)

    assert json.loads(log.manifest.read_text()) == manifest
    assert log_state(log).message == "migrated"
