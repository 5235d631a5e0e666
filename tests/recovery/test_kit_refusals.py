"""Logs that a kit leaves to the broker as something else than a torn tail is in their segments."""

import json
from pathlib import Path

import pytest

from kafka_segments.console.options import ExitStatus
from kafka_segments.errors import UsageError
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.text.checkpoints import HIGH_WATERMARK, LOG_START_OFFSET, RECOVERY_POINT
from kafka_segments.verbs.change.recovery.kit.listing import plan_kit
from kafka_segments.verbs.change.recovery.kit.report import print_kit
from kafka_segments.verbs.change.recovery.kit_manifest import KitState
from support.verbs.recovery_kits import crashed_log, made_kit

REFUSED = {
    "v2-offsets-go-back": "offset 2 after offset 616",
    "v2-offsets-go-back-small": "offsets go back",
    "v2-offset-overflow": "does not fit base offset 1000",
    "v2-index-full": "index is full",
    "v1-tail-partial": "it has messages v0 or v1, whose torn tails are not told from damage",
    "multi-segment-corrupt-middle": "later segments follow, which the broker would remove",
    "corrupt-crc-middle": "sound batches follow at byte",
}


def _recovery(case: Path) -> RecoveryOptions:
    settings = json.loads((case / "case.json").read_text())["config"]
    return RecoveryOptions(
        is_load=True,
        index_interval_bytes=settings["index.interval.bytes"],
        segment_index_bytes=settings["segment.index.bytes"],
    )


@pytest.mark.parametrize(("case", "message"), REFUSED.items())
def test_more_than_a_torn_tail_is_refused_and_said(
    synthetic: Path, tmp_path: Path, case: str, message: str
) -> None:
    crashed_log(tmp_path / "logs", synthetic / case / "t-0")

    log = made_kit(tmp_path / "logs", tmp_path / "kit", _recovery(synthetic / case))["t-0"]

    assert log.state == KitState.REFUSED
    assert message in log.message
    assert (log.files, log.cut) == ((), None)
    assert log.next_recovery_point == log.recovery_point


def test_a_log_that_ends_below_its_start_is_refused(synthetic: Path, tmp_path: Path) -> None:
    crashed_log(tmp_path / "logs", synthetic / "v2-one-record" / "t-0")
    (tmp_path / "logs" / LOG_START_OFFSET).write_text("0\n1\nt 0 1000000\n")

    log = made_kit(tmp_path / "logs", tmp_path / "kit")["t-0"]

    assert log.state == KitState.REFUSED
    assert "below its log start offset 1000000: a broker removes all of its segments" in log.message


@pytest.mark.parametrize(
    ("name", "status"),
    [
        (RECOVERY_POINT, ExitStatus.FINDINGS),
        (LOG_START_OFFSET, ExitStatus.FINDINGS),
        (HIGH_WATERMARK, ExitStatus.DONE),
    ],
)
def test_what_a_kit_goes_by_and_could_not_read_is_told(
    synthetic: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    status: ExitStatus,
) -> None:
    crashed_log(tmp_path / "logs", synthetic / "v2-one-record" / "t-0")
    (tmp_path / "logs" / name).write_text("0\n9\nt 0 0\n")

    work = plan_kit([str(tmp_path / "logs")], str(tmp_path / "kit"))

    assert print_kit([], work, "table", by="this test") == status
    told = f"{tmp_path}/logs: {name}: 1 entries, line 2 says 9"
    assert (told in capsys.readouterr().err) == (status == ExitStatus.FINDINGS)


def test_zeros_behind_old_messages_are_a_torn_tail(synthetic: Path, tmp_path: Path) -> None:
    crashed_log(tmp_path / "logs", synthetic / "v1-none-createtime" / "t-0", torn=bytes(4096))

    log = made_kit(tmp_path / "logs", tmp_path / "kit")["t-0"]

    assert log.state == KitState.READY
    assert log.cut is not None
    assert (log.cut.size_bytes, log.cut.records) == (4096, 0)


def test_a_link_in_the_place_of_a_log_is_named_and_left_to_its_broker(
    synthetic: Path, tmp_path: Path
) -> None:
    crashed_log(tmp_path / "logs", synthetic / "v2-one-record" / "t-0")
    moved = crashed_log(tmp_path / "disk", synthetic / "v2-one-record" / "t-0")
    (tmp_path / "logs" / "linked-0").symlink_to(moved)

    log = made_kit(tmp_path / "logs", tmp_path / "kit")["linked-0"]

    assert log.state == KitState.REFUSED
    assert log.message == (
        f"a link out of the source, to {moved}: not followed: its broker recovers it, without the"
        " kit"
    )


def test_a_link_that_may_be_a_log_directory_is_refused_with_where_it_leads(
    synthetic: Path, tmp_path: Path
) -> None:
    crashed_log(tmp_path / "kafka" / "1", synthetic / "v2-one-record" / "t-0")
    crashed_log(tmp_path / "disk", synthetic / "v2-one-record" / "t-0")
    (tmp_path / "kafka" / "2").symlink_to(tmp_path / "disk")

    with pytest.raises(UsageError, match=f"kafka/2: a link out of the source, to {tmp_path}/disk"):
        made_kit(tmp_path / "kafka", tmp_path / "kit")
