"""The steps before a start, taken: the start then does what the step says, and no more."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_segments.files.segments.segment_ends import read_segment_end
from kafka_segments.files.storage.files import place
from kafka_segments.kafka.broker_rules.limits import MOST_SEGMENT_BYTES
from kafka_segments.kafka.broker_rules.start.node import NodeStart
from kafka_segments.kafka.broker_rules.start.rules import RULES
from kafka_segments.kafka.index.log.producer_state import ProducerState
from kafka_segments.kafka.index.log.snapshots import encode_snapshot
from kafka_segments.kafka.text.names import file_name
from kafka_segments.verbs.change.recovery.forecast.report import rows_of
from kafka_segments.verbs.change.recovery.forecast.run import ForecastOptions, run_forecast
from support.kafka.kafka_referee import Referee, RefereeError
from support.model.plain_decoder import positions

IN_B, OF_TWO_SEGMENTS = "orders-0", "__share_group_state-1"
ZEROS = 4096
Act = Callable[[Path], object]


def _last(log: Path, suffix: str = ".log") -> Path:
    return max(log.glob("*.log")).with_suffix(suffix)


def _zeros(log: Path) -> None:
    os.truncate(_last(log), _last(log).stat().st_size + ZEROS)


def _torn(log: Path) -> None:
    with _last(log).open("ab") as file:
        file.write(_last(log).read_bytes()[:70])


def _far_entry(log: Path) -> None:
    _last(log, ".index").write_bytes(bytes.fromhex("0000000f000fffff"))


def _too_large(log: Path) -> None:
    os.truncate(_last(log, ".index"), 10_485_768)


def _zero_times(log: Path) -> None:
    _last(log, ".timeindex").write_bytes(bytes(24))


def _start(node: Path) -> NodeStart:
    (found,) = run_forecast(ForecastOptions(threads=(1,), sources=(str(node),))).nodes
    return found.start


@pytest.fixture
def clean(node: Path) -> Path:
    """The node as after a clean stop: markers, index files, and a snapshot at each log's end."""
    for folder in "ab":
        (node / folder / ".kafka_cleanshutdown").touch()
    for log in node.glob("*/*/*.log"):
        log.with_suffix(".index").touch()
    for log in {file.parent for file in node.glob("*/*/*.log")}:
        sizes = {file.name: file.stat().st_size for file in log.iterdir()}
        last = max(log.glob("*.log"))
        end = read_segment_end(place(str(log)), int(last.stem), sizes)
        (log / file_name(end.next_offset or 0, ".snapshot")).write_bytes(
            encode_snapshot(ProducerState())
        )
    return node


SPOILT_ENDS: dict[str, Act] = {
    "unreadable-end": _zeros,
    "torn-end": _torn,
    "end-moved-back": _far_entry,
    "index-too-large": _too_large,
    "time-index-zeros": _zero_times,
}


@pytest.mark.parametrize("rule", SPOILT_ENDS)
def test_without_its_index_the_segment_alone_is_recovered(
    clean: Path, referee: Referee, rule: str
) -> None:
    log = clean / "b" / IN_B
    sound_bytes = _last(log).read_bytes()
    SPOILT_ENDS[rule](log)
    before = _start(clean)
    _last(log, ".index").unlink()

    after = _start(clean)
    loaded = referee.load_log(log, is_clean=True)

    assert rule in {finding.rule for finding in before.findings}
    assert "move the segment's .index away" in RULES[rule].step
    assert after.starts
    assert {finding.place for finding in after.findings} <= {f"{IN_B}/{_last(log).name}"}
    assert sum(finding.size_bytes or 0 for finding in after.findings) <= ZEROS
    assert _last(log).read_bytes() == sound_bytes
    assert loaded["base_offsets"][-1] == int(_last(log).stem)


@pytest.mark.parametrize("suffix", [".log", ".log.swap"])
def test_a_segment_of_more_than_2_gib_is_cut_to_its_batches(
    clean: Path, referee: Referee, suffix: str
) -> None:
    log = _last(clean / "b" / IN_B)
    sound_bytes = log.read_bytes()
    large = log.rename(log.with_suffix(suffix))
    os.truncate(large, MOST_SEGMENT_BYTES + 1)
    before = _start(clean)

    with pytest.raises(RefereeError, match="larger than the maximum allowed segment size"):
        referee.load_log(log.parent, is_clean=True)
    os.truncate(large, len(sound_bytes))
    after = _start(clean)

    assert before.starts is False
    assert before.problem is not None
    assert before.problem.rule == "segment-too-large"
    assert before.problem.place == f"{IN_B}/{large.name}"
    assert after.starts


def test_without_recovery_points_a_bad_batch_cuts_the_log_wherever_it_lies(
    clean: Path,
) -> None:
    (clean / "b/.kafka_cleanshutdown").unlink()
    first = min((clean / "b" / OF_TWO_SEGMENTS).glob("*.log"))
    data = bytearray(first.read_bytes())
    data[100] ^= 0xFF
    first.write_bytes(data)
    kept = _start(clean)
    (clean / "b/recovery-point-offset-checkpoint").unlink()

    after = _start(clean)

    assert "cut at a bad batch wherever it lies" in RULES["recovery-point"].step
    assert kept.findings == ()
    cuts = [finding for finding in after.findings if finding.rule == "recovery-cut"]
    assert [finding.place for finding in cuts] == [f"{OF_TWO_SEGMENTS}/{first.name}"]


def test_where_pages_were_never_written_the_high_watermark_tells_what_is_lost(clean: Path) -> None:
    """The index leads behind the cut, into zeros, and headers name one of the records that go."""
    (clean / "b/.kafka_cleanshutdown").unlink()
    log = _last(clean / "b" / IN_B)
    data = log.read_bytes()
    *_, first, _, third, _ = (begin for begin, _ in positions(data))
    log.write_bytes(data[: first + 70].ljust(len(data), b"\0"))
    kept = int.from_bytes(data[first : first + 8], "big")
    _last(clean / "b" / IN_B, ".index").write_bytes(_entry(log, third))
    noted = (clean / "b/replication-offset-checkpoint").read_text().splitlines()
    (high_watermark,) = (int(line.split()[2]) for line in noted if line.startswith("orders 0 "))

    forecast = run_forecast(ForecastOptions(threads=(1,), sources=(str(clean),)))
    ((cut,),) = (
        [found for found in node.start.findings if found.rule == "recovery-cut"]
        for node in forecast.nodes
    )
    (row,) = [row for row in rows_of(forecast, "findings") if row["consequence"] == "cut"]

    assert (row["lost_offsets"], row["lost_records"]) == (cut.offsets, cut.records)
    assert cut.offsets == high_watermark - kept > 1
    assert cut.records is None, "markers are among them"


def _entry(log: Path, position: int) -> bytes:
    """Give an entry of an offset index that leads to a position."""
    return (int(log.stem) + 10**6).to_bytes(4, "big") + position.to_bytes(4, "big")
