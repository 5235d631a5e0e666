"""Audit's verdicts on index files made the way each class of them comes to be."""

import os
import random
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.errors import UsageError
from kafka_segments.files.node.transaction_files import read_transaction_files
from kafka_segments.files.storage.files import place
from kafka_segments.kafka.broker_rules.versions import parse_version
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.judge.audit.tasks import AuditScope, SegmentAuditor
from kafka_segments.verbs.judge.audit.tasks_folders import audit_folder
from kafka_segments.verbs.judge.audit.tasks_transactions import judge_log_transactions
from kafka_segments.verbs.scan.scanner import Scanned
from support.kafka.kafka_referee import Referee, RefereeError
from support.logs.looks_compared import assert_not_denied
from support.logs.strategies import example_e1, gzip_wrapper, v1_message, v2_batch

Rows = dict[str, dict[str, Any]]
FULL_INDEX, FULL_TIME_INDEX = 10_485_760, 10_485_756
LOOKS: list[Scanned] = []
LOG, SECOND = f"{0:020d}.log", f"{1581:020d}.log"
TIME_OF_FIRST = f"{0:020d}.timeindex"
INDEX, TIME_INDEX, TXN_INDEX = ".index", ".timeindex", ".txnindex"


@pytest.fixture
def segment(broker: Path, tmp_path: Path) -> Path:
    """The .log of a broker's segment with the index files that it rebuilt: 86 entries each."""
    return _copied(broker, tmp_path / "t-0", "ct-none-0")


@pytest.fixture
def two_segments(broker: Path, tmp_path: Path) -> Path:
    """The folder of a partition of two segments, as its broker stopped."""
    folder = tmp_path / "t-0"
    for part in ("logs", "rebuilt"):
        shutil.copytree(broker / part / "ct-two-partitions-0", folder, dirs_exist_ok=True)
    return folder


def _copied(broker: Path, folder: Path, partition: str) -> Path:
    folder.mkdir()
    shutil.copy(broker / "logs" / partition / LOG, folder)
    for suffix in (INDEX, TIME_INDEX):
        rebuilt = (broker / "rebuilt" / partition / LOG).with_suffix(suffix)
        shutil.copy(rebuilt, folder)
    return folder / LOG


def _copy(log: Path, name: str) -> Path:
    """Copy a segment with its folder, for a broker to change."""
    shutil.copytree(log.parent, log.parent.with_name(name), symlinks=True)
    return log.parent.with_name(name) / log.name


def _audit(
    log: Path,
    *,
    version: str = "4.3",
    is_active: bool = False,
    is_clean: bool = True,
    is_recovered: bool = False,
    index_interval_bytes: int = 4096,
    segment_index_bytes: int = 10_485_760,
    source: Path | None = None,
    follow_into: tuple[str, ...] = (),
) -> Rows:
    scope = AuditScope(
        RecoveryOptions(
            index_interval_bytes=index_interval_bytes, segment_index_bytes=segment_index_bytes
        ),
        parse_version(version),
        follow_into,
    )
    asked = {
        "cluster": "",
        "broker_id": 1,
        "log_dir": str(log.parent.parent),
        "topic": "t",
        "partition": 0,
        "source": str(log.parent.parent if source is None else source),
        "relative_path": log.parent.name if source is None else "",
        "name": log.name,
        "base_offset": int(log.name[:20]),
        "is_active": is_active,
        "is_clean": is_clean,
        "is_recovered": is_recovered,
    }
    rows = list(SegmentAuditor(scope).audit(asked))
    looked = assert_not_denied(log, is_active=is_active, interval_bytes=index_interval_bytes)
    LOOKS.append(looked)
    unfolded = [row for row in rows if "unfolded" in row]
    judged = [row for row in rows if "unfolded" not in row]
    judged += judge_log_transactions(unfolded, scope.version)
    found = {row["suffix"]: row for row in judged}
    if not follow_into and {row["verdict"] for row in found.values()} == {"identical"}:
        assert looked.doubt is None or "messages in the format of" in looked.doubt
    return found


@pytest.fixture(autouse=True)
def looks() -> list[Scanned]:
    """First looks at the segments that a test audits: none may be denied by reading it all."""
    LOOKS.clear()
    return LOOKS


def _verdicts(rows: Rows) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
    index, time_index = rows[INDEX], rows[TIME_INDEX]
    return (index["verdict"], index["kind"]), (time_index["verdict"], time_index["kind"])


def _change(log: Path, suffix: str, data: bytes | None) -> None:
    file = log.with_suffix(suffix)
    if data is None:
        file.unlink()
    else:
        file.write_bytes(data)


def _bytes(log: Path, suffix: str) -> bytes:
    return log.with_suffix(suffix).read_bytes()


def test_what_kafka_rebuilt_is_identical(segment: Path) -> None:
    rows = _audit(segment)

    assert _verdicts(rows) == (("identical", None), ("identical", None))
    assert {row["effect"] for row in rows.values()} == {"trusted"}
    assert not any(row["is_finding"] for row in rows.values())


# -- files that are as right as the rebuilt ones ------------------------------------------------


def test_an_index_grown_over_restarts_is_shifted(
    segment: Path, referee: Referee, tmp_path: Path
) -> None:
    referee.append(segment, tmp_path / "grown-0", restarts=[10, 41, 60])

    rows = _audit(tmp_path / "grown-0" / LOG)

    assert _verdicts(rows) == (("valid", "shifted"), ("valid", "shifted"))
    assert "rebuilt (offset" in rows[INDEX]["message"]
    assert not rows[INDEX]["is_finding"]


def test_the_brokers_restarted_partitions_are_shifted(broker: Path, tmp_path: Path) -> None:
    partition = tmp_path / "ct-none-0"
    shutil.copytree(broker / "restarted" / "logs" / partition.name, partition)
    shutil.copytree(broker / "restarted" / "append" / partition.name, partition, dirs_exist_ok=True)

    verdicts = {log.name: _verdicts(_audit(log)) for log in sorted(partition.glob("*.log"))}

    assert verdicts.pop(f"{3148:020d}.log") == (("valid", "shifted"), ("valid", "shifted"))
    assert set(verdicts.values()) == {(("identical", None), ("identical", None))}


@pytest.mark.parametrize("set_batches", [2, 3, 10])
def test_one_entry_an_append_of_many_batches_is_sparser(
    segment: Path, referee: Referee, tmp_path: Path, set_batches: int
) -> None:
    referee.append_sets(segment, tmp_path / "sets-0", set_batches=set_batches)

    rows = _audit(tmp_path / "sets-0" / LOG)

    assert _verdicts(rows) == (("valid", "sparser"), ("valid", "sparser"))
    assert rows[INDEX]["entries"] < rows[INDEX]["rebuilt_entries"]
    assert "KAFKA-806" in rows[INDEX]["message"]


def test_another_interval_is_named(segment: Path, referee: Referee, tmp_path: Path) -> None:
    for interval in (0, 1024, 100_000):
        log = tmp_path / f"interval-{interval}" / LOG
        referee.append(segment, log.parent, index_interval_bytes=interval)

        rows = _audit(log)

        if (rows[INDEX]["verdict"], interval) != ("identical", 0):
            assert _verdicts(rows) == (("valid", "other_interval"), ("valid", "other_interval"))
            least, _, most = (
                rows[INDEX]["message"]
                .partition(" from ")[2]
                .partition(" gives")[0]
                .partition(" to ")
            )
            assert int(least) <= interval <= int(most)


def test_first_offsets_are_those_of_releases_up_to_1_1(
    segment: Path, referee: Referee, tmp_path: Path
) -> None:
    referee.append_sets(segment, tmp_path / "first-0", first_offsets=True)

    rows = _audit(tmp_path / "first-0" / LOG, version="1.1")

    assert _verdicts(rows) == (("valid", "first_offset"), ("identical", None))
    assert "0.8 to 1.1" in rows[INDEX]["message"]


def test_first_offsets_of_wrappers_are_taken_too(referee: Referee, tmp_path: Path) -> None:
    wrappers = [
        gzip_wrapper(
            [v1_message(delta, 1000 + first, None, os.urandom(900)) for delta in range(3)],
            offset=first + 2,
            timestamp=1000 + first,
        )
        for first in range(0, 60, 3)
    ]
    (tmp_path / LOG).write_bytes(b"".join(wrappers))
    referee.append_sets(tmp_path / LOG, tmp_path / "first-0", first_offsets=True)

    rows = _audit(tmp_path / "first-0" / LOG, version="0.10.2.1")

    assert _verdicts(rows) == (("valid", "first_offset"), ("identical", None))


def test_the_records_own_offset_is_that_of_leaders_up_to_3_6(
    broker: Path, referee: Referee, tmp_path: Path
) -> None:
    log = broker / "logs" / "ct-out-of-order-0" / LOG
    referee.append_sets(log, tmp_path / "exact-0", record_offsets=True)

    rows = _audit(tmp_path / "exact-0" / LOG, version="3.6")

    assert _verdicts(rows) == (("identical", None), ("valid", "offset_of_max_timestamp"))
    assert "3.6 and older" in rows[TIME_INDEX]["message"]


@pytest.mark.slow
def test_whatever_a_sound_broker_wrote_is_valid(
    referee: Referee, tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    for number in range(24):
        folder = referee.generate(
            tmp_path / f"{number}", seed + number, ("v2", "mixed")[number % 2]
        )
        for log in sorted(folder.glob("*.log")):
            target = tmp_path / f"{number}" / log.stem / log.name
            interval = draw.choice([0, 500, 4096])
            if draw.random() < 0.5:
                referee.append(
                    log,
                    target.parent,
                    restarts=draw.sample(range(1, 500), 3),
                    index_interval_bytes=interval,
                )
            else:
                referee.append_sets(
                    log,
                    target.parent,
                    set_batches=draw.randint(1, 20),
                    first_offsets=draw.random() < 0.3,
                    record_offsets=draw.random() < 0.3,
                    index_interval_bytes=interval,
                )
            rows = _audit(target)
            for row in (rows[INDEX], rows[TIME_INDEX]):
                assert row["verdict"] in ("identical", "valid") or row["kind"] == "empty", row
        shutil.rmtree(tmp_path / f"{number}")


# -- zeros --------------------------------------------------------------------------------------


def test_a_killed_brokers_active_segment_is_preallocated(
    segment: Path, referee: Referee, tmp_path: Path
) -> None:
    log = tmp_path / "killed-0" / LOG
    referee.append(segment, log.parent, closed=False)
    assert log.with_suffix(INDEX).stat().st_size == FULL_INDEX

    rows = _audit(log, is_active=True, is_clean=False, is_recovered=True)

    assert _verdicts(rows) == (("padded", "preallocated"), ("padded", "preallocated"))
    assert not any(row["is_finding"] for row in rows.values())
    assert "running broker" in rows[INDEX]["message"]


@pytest.mark.parametrize(
    ("version", "index_effect", "time_index_effect"),
    [
        ("4.3", "slow_lookups", "deletes_data"),
        ("2.3", "slow_lookups", "deletes_data"),
        ("2.2.1", "rebuilt_at_start", "rebuilt_at_start"),
        ("1.1", "rebuilt_at_start", "rebuilt_at_start"),
        ("0.10.0.1", "rebuilt_at_start", "ignored"),
        ("0.8.2.2", "fails_to_start", "ignored"),
    ],
)
def test_zeros_that_were_never_trimmed(
    segment: Path, version: str, index_effect: str, time_index_effect: str
) -> None:
    _change(segment, INDEX, _bytes(segment, INDEX) + bytes(800))
    _change(segment, TIME_INDEX, _bytes(segment, TIME_INDEX) + bytes(1200))

    rows = _audit(segment, version=version)

    assert _verdicts(rows) == (("padded", "trailing_zeros"), ("padded", "trailing_zeros"))
    assert (rows[INDEX]["effect"], rows[TIME_INDEX]["effect"]) == (index_effect, time_index_effect)


def test_a_padded_time_index_puts_the_largest_timestamp_to_1970(
    segment: Path, referee: Referee
) -> None:
    _change(segment, TIME_INDEX, _bytes(segment, TIME_INDEX).ljust(FULL_TIME_INDEX, b"\0"))
    rows, active = _audit(segment), _audit(segment, is_active=True)

    loaded = referee.load(segment)

    assert rows[TIME_INDEX]["effect"] == "deletes_data"
    assert loaded["largestTimestamp"] == 0
    assert active[TIME_INDEX]["effect"] == "deletes_data"
    assert "counts as full" in active[TIME_INDEX]["consequence"]
    assert "counts as full" not in rows[TIME_INDEX]["consequence"]


@pytest.mark.parametrize("zeros", [800, 8 * 1024 + 8, FULL_INDEX])
@pytest.mark.parametrize("kept", [0, 86])
def test_lookups_in_a_padded_offset_index_are_right_and_slow(
    segment: Path, referee: Referee, zeros: int, kept: int
) -> None:
    offsets = range(0, 1582, 5)
    ends = referee.load(_copy(segment, "sound"))["nextOffset"]
    before = referee.lookup(segment.parent, 0, offsets=offsets)["offsets"]
    _change(segment, INDEX, (_bytes(segment, INDEX)[: 8 * kept] + bytes(zeros))[:FULL_INDEX])
    rows, active = _audit(segment), _audit(segment, is_active=True)

    answers = referee.lookup(segment.parent, 0, offsets=offsets)

    assert answers["offset_index_sanity"] is None
    assert answers["offsets"] != before
    for found, right in zip(answers["offsets"], before, strict=True):
        assert found in ([0, 0], right)  # the segment's first byte: all lies behind it
    assert referee.load(segment)["nextOffset"] == ends
    assert rows[INDEX]["effect"] == active[INDEX]["effect"] == "slow_lookups"
    assert rows[INDEX]["is_finding"]
    is_full = (86 * 8 if kept else 0) + zeros >= FULL_INDEX
    assert ("counts as full" in active[INDEX]["consequence"]) == is_full
    assert "counts as full" not in rows[INDEX]["consequence"]


@pytest.mark.parametrize("size", [12, FULL_TIME_INDEX])
def test_a_time_index_that_was_never_written(segment: Path, referee: Referee, size: int) -> None:
    _change(segment, TIME_INDEX, bytes(size))

    for version in ("0.10.1.0", "1.1", "4.3"):
        rows = _audit(segment, version=version)
        assert rows[TIME_INDEX]["verdict"] == "never_written"
        assert rows[TIME_INDEX]["effect"] == "deletes_data"
    assert referee.load(segment)["largestTimestamp"] == 0


def test_zeros_of_a_segment_too_small_for_entries_are_not_identical(tmp_path: Path) -> None:
    log = tmp_path / "t-0" / LOG
    log.parent.mkdir()
    log.write_bytes(v2_batch(0, [(-1, None, b"a")]))
    _change(log, INDEX, bytes(80))
    _change(log, TIME_INDEX, bytes(120))

    closed, running = _audit(log), _audit(log, is_active=True, is_clean=False, is_recovered=True)

    assert _verdicts(closed) == (("never_written", "all_zero"), ("never_written", "all_zero"))
    assert _verdicts(running) == (("padded", "preallocated"), ("padded", "preallocated"))


def test_a_time_index_of_0_bytes_falls_back_to_mtime(segment: Path, referee: Referee) -> None:
    _change(segment, TIME_INDEX, b"")
    _change(segment, INDEX, b"")
    os.utime(segment, (1_600_000_000, 1_600_000_000))

    rows = _audit(segment)

    assert _verdicts(rows) == (("never_written", "empty"), ("never_written", "empty"))
    assert rows[TIME_INDEX]["effect"] == "falls_back_to_mtime"
    assert (rows[INDEX]["effect"], rows[INDEX]["is_finding"]) == ("trusted", False)
    assert referee.load(segment)["largestTimestamp"] == 1_600_000_000_000


# -- files of another state of the log ----------------------------------------------------------


def test_entries_beyond_the_log_are_stale_and_move_its_end_back(
    segment: Path, referee: Referee
) -> None:
    _change(segment, INDEX, _bytes(segment, INDEX) + struct.pack(">ii", 5000, 1_040_000))
    rows, active = _audit(segment), _audit(segment, is_active=True)

    loaded = referee.load(segment)

    assert (rows[INDEX]["verdict"], rows[INDEX]["kind"]) == ("stale", "beyond_log")
    assert rows[INDEX]["message"].startswith("entry 86: offset 5000 at byte 1040000")
    assert rows[INDEX]["effect"] == "wrong_lookups"
    assert active[INDEX]["effect"] == "log_end_moves_back"
    assert loaded["nextOffset"] == 0


def test_indexes_of_a_log_that_was_cut_are_stale(segment: Path) -> None:
    with segment.open("r+b") as log:
        log.truncate(400_000)

    rows = _audit(segment)

    assert _verdicts(rows) == (("stale", "beyond_log"), ("stale", "beyond_log"))
    assert "copy the .log first" in rows[INDEX]["action"]


def test_indexes_of_a_log_that_grew_are_stale(segment: Path, referee: Referee) -> None:
    _change(segment, INDEX, _bytes(segment, INDEX)[: 8 * 20])
    _change(segment, TIME_INDEX, _bytes(segment, TIME_INDEX)[: 12 * 20])

    rows = _audit(segment)

    assert _verdicts(rows) == (("stale", "log_grew"), ("stale", "not_closed"))
    assert (rows[INDEX]["effect"], rows[TIME_INDEX]["effect"]) == ("slow_lookups", "expires_early")
    last = struct.unpack(">q", _bytes(segment, TIME_INDEX)[-12:-4])[0]
    assert referee.load(segment)["largestTimestamp"] == last


# -- files that are not there, or broken --------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "version", "effects"),
    [
        (INDEX, "4.3", ("rebuilt_at_start", "rebuilt_at_start")),
        (INDEX, "0.10.0.0", ("rebuilt_at_start", "ignored")),
        (TIME_INDEX, "4.3", ("trusted", "falls_back_to_mtime")),
        (TIME_INDEX, "0.10.2.0", ("trusted", "falls_back_to_mtime")),
        (TIME_INDEX, "0.10.1.1", ("trusted", "falls_back_to_mtime")),
        (TIME_INDEX, "0.9.0.1", ("trusted", "ignored")),
    ],
)
def test_a_missing_file(segment: Path, suffix: str, version: str, effects: tuple[str, str]) -> None:
    _change(segment, suffix, None)

    rows = _audit(segment, version=version)

    assert rows[suffix]["verdict"] == "missing"
    assert (rows[INDEX]["effect"], rows[TIME_INDEX]["effect"]) == effects
    is_normal = rows[suffix]["effect"] in ("ignored", "rebuilt_at_start")
    assert rows[suffix]["is_finding"] == (not is_normal)


def test_every_flipped_bit_is_found(segment: Path, looks: list[Scanned]) -> None:
    sound = {suffix: _bytes(segment, suffix) for suffix in (INDEX, TIME_INDEX)}
    for suffix, data in sound.items():
        for bit in range(3, 8 * len(data), 8 * 61 + 5):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            _change(segment, suffix, bytes(flipped))

            row = _audit(segment)[suffix]

            assert row["verdict"] in ("corrupt", "stale"), (suffix, bit, row)
            assert row["is_finding"]
            assert row["message"].startswith("entry "), row
        _change(segment, suffix, data)
    taken = [look for look in looks if look.checked == "index"]
    assert len(taken) == 6, len(looks)  # where the bit lies in no entry that a look uses


@pytest.mark.parametrize("version", ["4.3", "2.2"])
def test_a_length_that_is_no_multiple(segment: Path, version: str, referee: Referee) -> None:
    for suffix in (INDEX, TIME_INDEX):
        _change(segment, suffix, _bytes(segment, suffix) + b"\0\0\1")

    rows = _audit(segment, version=version)

    assert _verdicts(rows) == (("corrupt", "length"), ("corrupt", "length"))
    expected = ("slow_lookups", "wrong_times") if version == "4.3" else ("rebuilt_at_start",) * 2
    assert (rows[INDEX]["effect"], rows[TIME_INDEX]["effect"]) == expected
    assert referee.load(segment)["sanity"] is None


def test_the_indexes_of_another_partition_are_corrupt_or_stale(broker: Path, segment: Path) -> None:
    for suffix in (INDEX, TIME_INDEX):
        shutil.copy((broker / "rebuilt" / "lat-none-0" / LOG).with_suffix(suffix), segment.parent)

    rows = _audit(segment)

    assert rows[INDEX]["verdict"] == rows[TIME_INDEX]["verdict"] == "corrupt"


def test_after_an_unclean_stop_all_is_rebuilt(segment: Path) -> None:
    _change(segment, TIME_INDEX, bytes(1200))

    rows = _audit(segment, is_clean=False, is_recovered=True)

    assert rows[TIME_INDEX]["effect"] == rows[INDEX]["effect"] == "rebuilt_at_start"
    assert (rows[INDEX]["is_finding"], rows[TIME_INDEX]["is_finding"]) == (False, False)
    assert rows[TIME_INDEX]["action"] == "nothing"


def test_a_log_that_no_broker_loads_leaves_files_unjudged(synthetic: Path, tmp_path: Path) -> None:
    shutil.copytree(synthetic / "v2-offset-overflow" / "t-0", tmp_path / "t-0")
    for log in (tmp_path / "t-0").glob("*.log"):
        _change(log, INDEX, bytes(8))
        _change(log, TIME_INDEX, b"")

    rows = [_audit(log) for log in (tmp_path / "t-0").glob("*.log")]

    assert any(row[INDEX]["verdict"] == "unjudged" for row in rows)
    assert all(row[INDEX]["is_finding"] for row in rows)


def test_an_unreadable_log_and_an_unreadable_index(tmp_path: Path) -> None:
    base, log_bytes = example_e1()
    log = tmp_path / "t-0" / f"{base:020d}.log"
    log.parent.mkdir()
    log.with_suffix(INDEX).mkdir()
    os.mkfifo(log.with_suffix(TXN_INDEX))
    log.with_suffix(TIME_INDEX).write_bytes(b"")

    rows = _audit(log)
    assert (rows[INDEX]["kind"], rows[TXN_INDEX]["kind"]) == ("folder", "special")
    assert rows[TIME_INDEX]["verdict"] == "unjudged"

    log.write_bytes(log_bytes)
    rows = _audit(log, index_interval_bytes=200)
    assert (rows[INDEX]["kind"], rows[TXN_INDEX]["kind"]) == ("folder", "special")
    assert rows[TIME_INDEX]["verdict"] == "never_written"


# -- paths that are no plain files --------------------------------------------------------------


def _make_folder(path: Path) -> None:
    path.mkdir()


def _make_pipe(path: Path) -> None:
    os.mkfifo(path)


def _link_to_nothing(path: Path) -> None:
    path.symlink_to("../elsewhere")


def _link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("is_active", [True, False])
@pytest.mark.parametrize("suffix", [INDEX, TIME_INDEX, TXN_INDEX])
@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (_make_folder, "folder"),
        (_make_pipe, "special"),
        (_link_to_nothing, "dangling_link"),
        (_link_to_itself, "endless_link"),
    ],
)
def test_a_broker_does_with_what_is_no_file_as_we_say(
    two_segments: Path,
    referee: Referee,
    make: Callable[[Path], None],
    kind: str,
    suffix: str,
    is_active: bool,
    is_clean: bool,
) -> None:
    log = two_segments / (SECOND if is_active else LOG)
    odd, elsewhere = log.with_suffix(suffix), two_segments.parent / "elsewhere"
    odd.unlink(missing_ok=True)
    make(odd)

    row = _audit(log, is_active=is_active, is_clean=is_clean, is_recovered=not is_clean)[suffix]

    assert (row["verdict"], row["kind"], row["is_finding"]) == ("corrupt", kind, True)
    load = partial(referee.load_log, two_segments, is_clean=is_clean)
    if row["effect"] == "fails_to_start":
        with pytest.raises(RefereeError, match=r"IOException|FileSystem|FileNotFound|NullPointer"):
            load()
        return
    assert load()["log_end_offset"] == 1748
    expected = "fails_when_read" if kind in ("folder", "special") else "writes_elsewhere"
    assert row["effect"] == expected
    is_made_there = kind == "dangling_link" and suffix != TXN_INDEX  # there are no transactions
    assert elsewhere.exists() == is_made_there


@pytest.mark.parametrize("version", ["2.2", "0.10.0"])
def test_older_releases_open_all_files_that_they_know_at_start(segment: Path, version: str) -> None:
    for suffix in (INDEX, TIME_INDEX):
        segment.with_suffix(suffix).unlink()
        segment.with_suffix(suffix).mkdir()

    rows = _audit(segment, version=version)

    assert rows[INDEX]["effect"] == "fails_to_start"
    assert rows[TIME_INDEX]["effect"] == ("ignored" if version == "0.10.0" else "fails_to_start")


def test_a_link_is_named_and_only_followed_when_asked(segment: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "moved"
    moved.parent.mkdir()
    segment.with_suffix(TIME_INDEX).rename(moved)
    segment.with_suffix(TIME_INDEX).symlink_to(moved)
    source = segment.parent

    left = _audit(segment, source=source)
    alone = _audit(segment, source=source, follow_into=(str(source),))
    followed = _audit(segment, source=source, follow_into=(str(source), str(moved.parent)))

    row = left[TIME_INDEX]
    assert (row["verdict"], row["kind"], row["effect"]) == ("unjudged", "link", "writes_elsewhere")
    assert row["message"].startswith(f"a link out of the source, to {moved}: not followed")
    assert (left[INDEX]["verdict"], left[INDEX]["message"]) == (
        "identical",
        "the bytes that recovery writes",
    )
    assert alone[TIME_INDEX]["message"] == (
        f"a link out of the sources, to {moved}: not followed; give that as a source, too"
    )
    row = followed[TIME_INDEX]
    assert (row["verdict"], row["effect"]) == ("identical", "trusted")
    assert row["message"] == f"a link to {moved}: the bytes that recovery writes"


def test_a_dangling_time_index_is_made_where_the_link_leads(
    two_segments: Path, referee: Referee
) -> None:
    odd, outside = two_segments / TIME_OF_FIRST, two_segments.parent / "outside"
    odd.unlink()
    odd.symlink_to(outside)

    row = _audit(two_segments / LOG)[TIME_INDEX]
    referee.load_log(two_segments, is_clean=True)

    assert str(outside) in row["message"]
    assert row["consequence"].startswith("taken for missing: it is made anew where the link leads")
    assert outside.read_bytes() == b""


@pytest.mark.parametrize(
    ("name", "make", "effect"),
    [
        (LOG, _make_folder, "not_loaded"),
        (LOG, _make_pipe, "not_loaded"),
        (LOG, _link_to_nothing, "not_loaded"),
        ("leader-epoch-checkpoint", _make_folder, "fails_to_start"),
        ("leader-epoch-checkpoint", _link_to_itself, "fails_to_start"),
        ("leader-epoch-checkpoint", _link_to_nothing, "fails_to_start"),
        (f"{1581:020d}.snapshot", _make_folder, "log_end_moves_back"),
        (f"{1581:020d}.snapshot", _link_to_itself, "log_end_moves_back"),
        (f"{1581:020d}.snapshot", _link_to_nothing, "writes_elsewhere"),
    ],
)
def test_other_files_of_a_log_that_are_none(
    two_segments: Path, referee: Referee, name: str, make: Callable[[Path], None], effect: str
) -> None:
    (two_segments / name).unlink()
    make(two_segments / name)

    rows = {Path(row["path"]).name: row for row in _folder_rows(two_segments)}

    assert (rows[name]["verdict"], rows[name]["effect"]) == ("corrupt", effect)
    assert rows[name]["is_finding"]
    is_clean = effect != "log_end_moves_back"
    if effect == "fails_to_start":
        with pytest.raises(RefereeError, match="KafkaStorageException"):
            referee.load_log(two_segments, is_clean=is_clean)
        return
    loaded = referee.load_log(two_segments, is_clean=is_clean)
    assert loaded["base_offsets"] == ([1581] if effect == "not_loaded" else loaded["base_offsets"])
    assert loaded["log_end_offset"] == (0 if effect == "log_end_moves_back" else 1748)
    if name == LOG:  # of what is there in some way nothing is an orphan
        is_orphan = {row["suffix"] for row in rows.values() if row["verdict"] == "orphan"}
        assert is_orphan == ({INDEX, TIME_INDEX} if make is _link_to_nothing else set())
        assert (two_segments / LOG).with_suffix(INDEX).exists() == (not is_orphan)


def _folder_rows(folder: Path) -> list[dict[str, Any]]:
    columns = ("cluster", "broker_id", "topic", "partition")
    log = {
        **dict.fromkeys(columns),
        "log_dir": str(folder.parent),
        "source": str(folder.parent),
        "relative_path": folder.name,
        "is_clean": True,
        "recovery_point": None,
        "log_start_offset": None,
    }
    return list(audit_folder(log, AuditScope(RecoveryOptions(), parse_version("4.3"))))


@pytest.mark.parametrize(("suffix", "width"), [(INDEX, 8), (TIME_INDEX, 12)])
def test_an_active_index_longer_than_its_topic_allows_ends_the_broker(
    segment: Path, referee: Referee, suffix: str, width: int
) -> None:
    size = segment.with_suffix(suffix).stat().st_size
    other = TIME_INDEX if suffix == INDEX else INDEX
    segment.with_suffix(other).write_bytes(segment.with_suffix(other).read_bytes()[:width])

    for most in (size, size - 1):
        copy = _copy(segment, f"most-{most}")
        row = _audit(segment, is_active=True, segment_index_bytes=most)[suffix]
        assert row["verdict"] == "identical"
        assert (row["effect"] == "fails_to_start") == (most < size) == row["is_finding"]
        assert _audit(segment, segment_index_bytes=most)[suffix]["effect"] == "trusted"
        if most < size:
            assert "the broker ends at start" in row["consequence"]
            with pytest.raises(RefereeError, match="IllegalArgumentException"):
                referee.load_log(copy.parent, is_clean=True, segment_index_bytes=most)
        else:
            referee.load_log(copy.parent, is_clean=True, segment_index_bytes=most)


# -- .txnindex ----------------------------------------------------------------------------------


@pytest.fixture
def transactions(broker: Path, tmp_path: Path) -> Path:
    """A segment of a broker's with 45 aborted transactions."""
    log = tmp_path / "txn-0" / f"{10:020d}.log"
    log.parent.mkdir()
    shutil.copy(broker / "logs" / "txn-0" / log.name, log)
    for suffix in (INDEX, TIME_INDEX, TXN_INDEX):
        shutil.copy((broker / "rebuilt" / "txn-0" / log.name).with_suffix(suffix), log.parent)
    return log


def test_a_transaction_index_is_held_against_the_markers(transactions: Path) -> None:
    row = _audit(transactions)[TXN_INDEX]

    assert (row["verdict"], row["entries"], row["effect"]) == ("valid", 45, "trusted")
    assert row["rebuilt_entries"] == 45
    assert "began before what is left" in row["message"]


def test_an_aborted_transaction_without_an_entry_is_found(transactions: Path) -> None:
    data = _bytes(transactions, TXN_INDEX)

    _change(transactions, TXN_INDEX, data[: -34 * 3])
    short = _audit(transactions)[TXN_INDEX]
    _change(transactions, TXN_INDEX, data[34:])
    lacking = _audit(transactions)[TXN_INDEX]
    _change(transactions, TXN_INDEX, None)
    missing = _audit(transactions)[TXN_INDEX]

    assert (short["verdict"], short["kind"]) == ("stale", "log_grew")
    assert (lacking["verdict"], lacking["kind"]) == ("corrupt", "untrue")
    assert "aborted, but without an entry: producer" in lacking["message"]
    assert (missing["verdict"], missing["rebuilt_entries"]) == ("missing", 45)
    assert {row["effect"] for row in (short, lacking, missing)} == {"wrong_lookups"}


@pytest.mark.parametrize(
    ("entry", "field", "value", "kind"),
    [
        (3, "last", 11, "out_of_order"),
        (44, "last", 9_999_999, "beyond_log"),
        (44, "producer", 4711, "untrue"),
        (2, "version", 7, "bad_content"),
    ],
)
def test_a_wrong_transaction_is_named(
    transactions: Path, entry: int, field: str, value: int, kind: str
) -> None:
    data = bytearray(_bytes(transactions, TXN_INDEX))
    at, form = {"version": (0, ">h"), "producer": (2, ">q"), "last": (18, ">q")}[field]
    struct.pack_into(form, data, 34 * entry + at, value)
    _change(transactions, TXN_INDEX, bytes(data))

    row = _audit(transactions)[TXN_INDEX]

    assert (row["kind"], row["is_finding"]) == (kind, True)
    assert row["message"].startswith(f"entry {entry}")


def test_a_transaction_below_the_base_offset_makes_the_segment_be_recovered(
    transactions: Path, referee: Referee
) -> None:
    data = bytearray(_bytes(transactions, TXN_INDEX))
    struct.pack_into(">qq", data, 10, 1, 5)
    _change(transactions, TXN_INDEX, bytes(data))

    rows = _audit(transactions)

    assert {row["effect"] for row in rows.values()} == {"rebuilt_at_start"}
    assert "CorruptIndexException" in referee.load(transactions)["sanity"]


@pytest.mark.parametrize(
    ("version", "below", "ends", "ends_from_4_4"),
    [
        (258, False, True, True),
        (1, False, False, True),  # of which earlier releases read the first byte alone
        (-1, False, False, True),
        (258, True, False, False),  # an entry before has the segment recovered
    ],
)
def test_a_version_that_the_release_does_not_know_ends_the_start(
    transactions: Path,
    referee: Referee,
    version: int,
    below: bool,
    ends: bool,
    ends_from_4_4: bool,
) -> None:
    data = bytearray(_bytes(transactions, TXN_INDEX))
    struct.pack_into(">h", data, 34, version)
    if below:
        struct.pack_into(">qq", data, 10, 1, 5)
    _change(transactions, TXN_INDEX, bytes(data))
    files = {file.name: file.stat().st_size for file in transactions.parent.iterdir()}

    rows = [
        _audit(transactions, version=release, is_clean=not is_hard, is_recovered=is_hard)[TXN_INDEX]
        for release, is_hard in (("4.3", False), ("4.3", True), ("4.4", False))
    ]
    facts = referee.load(transactions)
    found = read_transaction_files(place(str(transactions.parent)), (10,), files)
    (transactions.parent / f"{10:020d}{INDEX}").unlink()
    without_index = _audit(transactions, version="4.4")[TXN_INDEX]

    told = [row["effect"] == "fails_to_start" for row in rows]
    assert told == [ends, ends, ends_from_4_4]
    assert (10 in found and found[10].is_refused_version) == ends
    assert without_index["effect"] == "rebuilt_at_start"
    assert (facts["sanity"] == "org.apache.kafka.common.KafkaException") == ends


# -- releases -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "4", "4.x", "4.3.1.0.0", "four", "4..3"])
def test_a_release_must_be_one(text: str) -> None:
    with pytest.raises(UsageError, match=r"a release such as 4\.3"):
        parse_version(text)
