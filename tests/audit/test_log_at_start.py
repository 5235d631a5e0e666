"""What becomes of leader epochs and producer snapshots: what audit says, and Kafka's loader."""

import random
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.kafka.broker_rules.versions import parse_version
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.wire.crc import crc32c
from kafka_segments.verbs.judge.audit.tasks import AuditScope
from kafka_segments.verbs.judge.audit.tasks_folders import audit_folder
from support.kafka.kafka_referee import Referee
from support.logs.strategies import v2_batch

EPOCHS = "leader-epoch-checkpoint"
BASES, END = (0, 10, 20), 30
_HISTORY = "0\n2\n3 0\n5 15\n"
_COUNT = struct.pack(">i", 0)
SNAPSHOT = struct.pack(">hI", 1, crc32c(_COUNT)) + _COUNT


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of three segments, each batch of one record, of epochs 3 and, from 15 on, 5."""
    folder = tmp_path / "ours" / "t-0"
    folder.mkdir(parents=True)
    for base in BASES:
        batches = (
            v2_batch(offset, [(1000 + offset, None, b"v")], leader_epoch=3 if offset < 15 else 5)
            for offset in range(base, base + 10)
        )
        (folder / f"{base:020d}.log").write_bytes(b"".join(batches))
        for suffix in (".index", ".timeindex"):
            (folder / f"{base:020d}{suffix}").touch()
    (folder / EPOCHS).write_text(_HISTORY)
    return folder


def _said(
    log: Path, *, is_clean: bool = True, recovery_point: int = 0, log_start: int = 0
) -> dict[str, dict[str, Any]]:
    row = {
        **dict.fromkeys(("cluster", "broker_id", "topic", "partition")),
        "log_dir": str(log.parent),
        "source": str(log.parent),
        "relative_path": log.name,
        "is_clean": is_clean,
        "recovery_point": recovery_point,
        "log_start_offset": log_start,
    }
    scope = AuditScope(RecoveryOptions(), parse_version("4.3"))
    return {Path(found["path"]).name: found for found in audit_folder(row, scope)}


def _loaded(referee: Referee, log: Path, **start: Any) -> Path:
    """Let Kafka load a copy of the log; gives the copy."""
    copy = log.parent.parent / "kafkas" / log.name
    shutil.copytree(log, copy)
    referee.load_log(copy, **start)
    return copy


@pytest.mark.parametrize(
    ("text", "verdict", "effect", "left"),
    [
        (_HISTORY, ("valid", None), "trusted", _HISTORY),
        ("0\n3\n3 0\n5 15\n6 30\n", ("valid", None), "trusted", _HISTORY),
        ("0\n3\n3 0\n5 15\n6 31\n", ("stale", "beyond_log"), "loses_epochs", _HISTORY),
        ("0\n2\n3 0\n6 1000\n", ("stale", "beyond_log"), "loses_epochs", "0\n1\n3 0\n"),
        ("", ("never_written", "empty"), "loses_epochs", ""),
        ("0\n0\n", ("never_written", "empty"), "loses_epochs", "0\n0\n"),
        (None, ("missing", None), "loses_epochs", ""),
    ],
)
def test_epochs_are_those_that_kafka_goes_on_with(
    log: Path,
    referee: Referee,
    text: str | None,
    verdict: tuple[str, str | None],
    effect: str,
    left: str,
) -> None:
    (log / EPOCHS).unlink()
    if text is not None:
        (log / EPOCHS).write_text(text)

    row = _said(log)[EPOCHS]

    assert ((row["verdict"], row["kind"]), row["effect"]) == (verdict, effect)
    assert row["is_finding"] == (effect != "trusted")
    assert (_loaded(referee, log, is_clean=True) / EPOCHS).read_text() == left


@pytest.mark.parametrize(
    ("recovery_point", "effect", "left"),
    [
        (0, "rebuilt_at_start", _HISTORY),
        (10, "loses_epochs", "0\n2\n3 10\n5 15\n"),
        (25, "loses_epochs", "0\n1\n5 20\n"),
        (99, "loses_epochs", "0\n1\n5 20\n"),
    ],
)
def test_epochs_of_recovered_segments_come_back(
    log: Path, referee: Referee, recovery_point: int, effect: str, left: str
) -> None:
    (log / EPOCHS).unlink()

    row = _said(log, is_clean=False, recovery_point=recovery_point)[EPOCHS]

    assert row["effect"] == effect
    if recovery_point != 99:  # a recovery point behind the end recovers nothing in the loader
        copy = _loaded(referee, log, is_clean=False, recovery_point=recovery_point)
        assert (copy / EPOCHS).read_text() == left


def test_batches_without_epochs_need_none(log: Path) -> None:
    for base in BASES:
        batch = v2_batch(base, [(1000, None, b"v")])
        (log / f"{base:020d}.log").write_bytes(batch)
    (log / EPOCHS).unlink()

    assert EPOCHS not in _said(log)
    (log / EPOCHS).touch()
    assert not _said(log)[EPOCHS]["is_finding"]


def test_drawn_snapshots_go_as_kafka_lets_them_go(
    log: Path, referee: Referee, seed: int, tmp_path: Path
) -> None:
    rng = random.Random(f"{seed} snapshots")
    for number in range(60):
        drawn = tmp_path / str(number) / "ours" / "t-0"
        shutil.copytree(log, drawn)
        offsets = rng.sample([0, 3, 10, 12, 15, 20, 24, 29, 30, 31, 50], rng.randint(1, 5))
        for offset in offsets:
            (drawn / f"{offset:020d}.snapshot").write_bytes(SNAPSHOT)
        start: dict[str, Any] = {"is_clean": rng.random() < 0.6}
        if not start["is_clean"]:
            start["recovery_point"] = rng.choice([0, 9, 10, 15, 20, 25])
        log_start = rng.choice([0, 0, 12, 24])

        rows = _said(drawn, **start, log_start=log_start)
        copy = _loaded(referee, drawn, **start, log_start_offset=log_start)

        for offset in offsets:
            row = rows[f"{offset:020d}.snapshot"]
            is_left = (copy / f"{offset:020d}.snapshot").exists()
            told = f"{number}: {offset} of {sorted(offsets)}, {start}, from {log_start}: {row}"
            if row["effect"] != "rebuilt_at_start":
                assert is_left == (row["effect"] == "trusted") or offset == END, told
            assert row["is_finding"] == (row["verdict"] == "stale"), told


def test_a_spoiled_snapshot_is_deleted_where_no_newer_one_is_right(
    log: Path, referee: Referee
) -> None:
    for offset, data in ((10, b"spoilt"), (20, SNAPSHOT), (END, b"spoilt")):
        (log / f"{offset:020d}.snapshot").write_bytes(data)

    rows = _said(log)
    copy = _loaded(referee, log, is_clean=True)

    effects = [rows[f"{offset:020d}.snapshot"]["effect"] for offset in (10, 20, END)]
    assert effects == ["never_read", "trusted", "deleted_at_start"]
    assert (copy / f"{10:020d}.snapshot").read_bytes() == b"spoilt"
    assert (copy / f"{END:020d}.snapshot").read_bytes() == SNAPSHOT  # written anew at the end
