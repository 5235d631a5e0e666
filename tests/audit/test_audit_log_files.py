"""Files of a partition's folder that belong to no segment: orphans, snapshots, epochs."""

from pathlib import Path

import pytest

from kafka_segments.kafka.broker_rules.start.epochs import LogAtStart
from kafka_segments.verbs.judge.audit.decide.log_files import (
    LogFile,
    is_judged_whole,
    judge_log_files,
    orphans,
)

V4_3, V0_10 = (4, 3), (0, 10, 2)
EPOCHS = "leader-epoch-checkpoint"


def judge_log_file(name: str, data: bytes, version: tuple[int, ...]) -> LogFile:
    return next(judge_log_files({name: data}, LogAtStart(), version))


def test_an_index_file_without_its_segment_is_an_orphan() -> None:
    names = {
        f"{0:020d}.log",
        f"{0:020d}.index",
        f"{7:020d}.index",
        f"{9:020d}.txnindex",
        f"{9:020d}.time.index",
        "notes.index",
    }

    found = orphans(names, V4_3)

    assert [(file.name, file.base_offset) for file in found] == [
        (f"{7:020d}.index", 7),
        (f"{9:020d}.txnindex", 9),
    ]
    assert found[0].judgement.message == f"there is no {7:020d}.log"
    assert found[0].consequence.text == "Kafka 4.3 deletes it at start"


def test_index_files_named_with_an_id_belong_to_the_segment_of_that_id() -> None:
    segment, other = "tqimKeZwStOEOwRzT3L5oQ", "adh9f8BMS4anaUnD8KWfWg"
    names = {f"{7:020d}-{segment}{suffix}" for suffix in (".log", ".index")}

    found = orphans(names | {f"{7:020d}-{other}.index"}, V4_3)

    assert [(file.name, file.base_offset) for file in found] == [(f"{7:020d}-{other}.index", 7)]


def test_snapshots_and_epochs_of_a_broker_are_sound(broker: Path) -> None:
    files = [
        file for file in (broker / "rebuilt" / "txn-0").iterdir() if is_judged_whole(file.name)
    ]

    verdicts = {
        judge_log_file(file.name, file.read_bytes(), V4_3).judgement.verdict for file in files
    }

    assert len(files) == 7
    assert verdicts == {"valid"}


def test_a_spoiled_snapshot_is_corrupt(broker: Path) -> None:
    file = broker / "rebuilt" / "txn-0" / f"{10:020d}.snapshot"
    data = file.read_bytes()
    flipped = data[:20] + bytes([data[20] ^ 1]) + data[21:]
    spoiled = {
        "checksum is": flipped,
        "9 bytes, a snapshot has 10 or more": data[:9],
        "version is 2, 1 expected": b"\0\2" + data[2:],
        "checksum": data[:-1],
    }

    for reason, spoilt in spoiled.items():
        found = judge_log_file(file.name, spoilt, V4_3)
        assert found.judgement.verdict == "corrupt"
        assert reason in found.judgement.message
        assert found.consequence.effect == "deleted_at_start"


@pytest.mark.parametrize(
    ("text", "reason", "effect"),
    [
        ("1\n0\n", "version is '1', 0 expected", "fails_to_start"),
        ("0\n2\n3 1000\n", "1 entries, line 2 says 2", "fails_to_start"),
        (
            "0\n2\n5 1000\n3 1006\n",
            "epoch 3 at offset 1006 follows epoch 5 at 1000",
            "loses_epochs",
        ),
        (
            "0\n2\n3 1000\n5 1000\n",
            "epoch 5 at offset 1000 follows epoch 3 at 1000",
            "loses_epochs",
        ),
    ],
)
def test_epochs_that_cannot_be_read_or_go_back(text: str, reason: str, effect: str) -> None:
    found = judge_log_file(EPOCHS, text.encode(), V4_3)

    assert (found.judgement.verdict, found.base_offset) == ("corrupt", None)
    assert reason in found.judgement.message
    assert found.consequence.effect == effect


def test_releases_without_such_files_ignore_them() -> None:
    assert judge_log_file(EPOCHS, b"nonsense", V0_10).consequence.effect == "ignored"
    assert judge_log_file(f"{1:020d}.snapshot", b"", V0_10).consequence.effect == "ignored"
