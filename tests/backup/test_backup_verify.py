"""``backup verify``: what a backup misses as of its moment, and nothing that came since."""

import json
import os
import random
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.verbs.copies.backup.decide.ends import (
    MARGIN_MS,
    Moment,
    dated_logs,
    judged_ends,
)
from kafka_segments.verbs.copies.backup.decide.verdicts import missing_logs
from support.logs.log_copies import (
    CLOCK_MS,
    Batch,
    LogCopy,
    base_of,
    compacted,
    drawn_log,
    flipped,
    forked,
    rolled,
    without,
)
from support.logs.log_folders import write_copies
from support.logs.metadata_logs import log_bytes, log_dir, partition, topic
from support.logs.strategies import crc32c
from support.spark.rows_of import rows_of
from support.stores.object_store import ObjectStore
from support.verbs.figures import figures_of

HOUR_MS = 3_600_000
MOMENT = CLOCK_MS + HOUR_MS
PAST = CLOCK_MS
_LOG = "topic string, partition int"


def _verify(*arguments: object) -> tuple[int, dict[str, dict], str]:
    result = CliRunner().invoke(cli, ["backup", "verify", *map(str, arguments), "--output", "json"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return (
        result.exit_code,
        {f"{row['topic']}-{row['partition']}": row for row in rows},
        result.stderr,
    )


def _dated(folder: Path, ms: int) -> None:
    """Let segments be last written at a moment, as a copy that keeps mtimes does."""
    for file in folder.rglob("*.log"):
        os.utime(file, ns=(ms * 1_000_000, ms * 1_000_000))


def _part(copy: LogCopy, until: int) -> LogCopy:
    return LogCopy(copy.segments[:until], copy.log_start, epochs=copy.epochs)


def _until(copy: LogCopy, offset: int) -> LogCopy:
    """Cut a copy off at a batch."""
    segments = [
        (base, [data for data in batches if base_of(data) < offset])
        for base, batches in copy.segments
        if base < offset
    ]
    return LogCopy(segments, copy.log_start, epochs=copy.epochs)


def _stamped(copy: LogCopy, ms: int, *, start: int = 0, by_broker: bool = False) -> LogCopy:
    """Write the batches from an offset on at another time, by a producer's clock or a broker's."""
    time = ms.to_bytes(8, "big", signed=True)

    def stamped(data: bytes) -> bytes:
        if base_of(data) < start:
            return data
        data = data[:22] + bytes([data[22] | 8 * by_broker]) + data[23:27] + time + time + data[43:]
        return data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:]

    segments = [(base, [stamped(data) for data in batches]) for base, batches in copy.segments]
    return LogCopy(segments, copy.log_start, epochs=copy.epochs)


@pytest.mark.long
def test_what_came_since_and_what_retention_took_is_not_missed(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = random.Random(3)
    logs = [drawn_log(rng, keys=300) for _ in range(6)]
    backup, today, other = {}, {}, {}
    for log in logs:
        for copies in (backup, today, other):
            copies[f"t-{len(copies)}"] = rolled(rng, log)
    backup["t-0"] = rolled(rng, logs[0][:40])  # written since
    today["t-1"].segments = today["t-1"].segments[-1:]  # retention, in one copy further
    today["t-2"].log_start = logs[2][30].base  # deleted records
    today["t-3"] = rolled(rng, compacted(logs[3], logs[3][40].base), base=logs[3][0].base)
    today["t-3"].cleaner_offset = logs[3][40].base
    today["t-4"] = rolled(rng, forked(rng, logs[4], 50))  # an unclean election since
    del other["t-4"]
    del backup["t-5"]
    today["t-5"] = other["t-5"] = _stamped(rolled(rng, logs[5]), CLOCK_MS + 24 * HOUR_MS)
    for copies in (today, other):  # within the margin: a follower may have been so late
        copies["t-0"] = _stamped(copies["t-0"], MOMENT - 4 * 60_000, start=logs[0][40].base)
        copies["clock-0"] = _stamped(rolled(rng, logs[0]), MOMENT)
    backup["clock-0"] = _stamped(rolled(rng, logs[0]), MOMENT)
    for name, copies in (("b", backup), ("n1", today), ("n2", other)):
        write_copies(tmp_path / name, copies)
    _dated(tmp_path / "b", MOMENT)

    status, rows, told = _verify(
        *("--backup", tmp_path / "b"),
        *("--against", f"n1={tmp_path}/n1", "--against", f"n2={tmp_path}/n2"),
    )

    assert status == 0, told
    assert {(*row["misses"], row["doubt"]) for row in rows.values()} == {(None,)}
    assert rows["t-0"]["complete_until"] == logs[0][40].base
    assert rows["t-4"]["since"][0].startswith(f"fork from {logs[4][50].base} on")
    assert rows["t-5"]["verdict"] == "made later"
    moment = "2023-11-14 23:13:20.000 UTC"
    assert f"6 of 6 logs are complete in the backup as of {moment}, within 5 minutes" in told


def _lacking(
    rng: random.Random, log: list[Batch], whole: LogCopy
) -> tuple[dict[str, LogCopy], dict[str, LogCopy]]:
    """Give logs of a backup that lacks something of each, and the cluster's."""
    backup = {f"t-{number}": rolled(rng, log) for number in range(6)}
    at = len(backup["t-0"].file(1)) - 1
    backup["t-0"].spoil(1, flipped(backup["t-0"].file(1), at))
    backup["t-1"] = LogCopy([*whole.segments[:1], *whole.segments[2:]], whole.log_start)
    backup["t-2"] = LogCopy(whole.segments[1:], whole.log_start, epochs=whole.epochs)
    backup["t-3"] = _part(whole, 2)
    backup["t-3"].high_watermark = log[-1].last
    today = {f"t-{number}": rolled(rng, log) for number in range(6)}
    for name in ("t-4", "closed-0", "broker-0", "producer-0", "events-0"):
        backup[name], today[name] = _part(whole, 3), rolled(rng, log)
    today["broker-0"] = _stamped(today["broker-0"], CLOCK_MS, by_broker=True)
    backup["broker-0"] = _part(_stamped(whole, CLOCK_MS, by_broker=True), 3)
    today["t-4"] = _stamped(today["t-4"], -1, start=whole.segments[3][0])
    until_now = _stamped(today["producer-0"], MOMENT + HOUR_MS, start=log[-1].base)
    today["producer-0"] = until_now
    backup["clock-0"] = today["clock-0"] = _stamped(whole, MOMENT)
    for name, noting in (("ends-0", backup), ("lost-0", today)):  # both lack what was committed
        backup[name], today[name] = rolled(rng, log), rolled(rng, log)
        noting[name].high_watermark = log[-1].last + 8
    del backup["t-5"]
    return backup, today


@pytest.mark.slow
def test_what_a_backup_lacks_is_told_with_its_offsets(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(4)
    log = drawn_log(rng)
    while True:
        whole = rolled(rng, log)
        if len(whole.segments) > 4:
            break
    backup, today = _lacking(rng, log, whole)
    write_copies(tmp_path / "b", backup)
    _dated(tmp_path / "b", MOMENT + HOUR_MS)  # as when it was uploaded
    write_copies(tmp_path / "n1", today)
    _dated(tmp_path / "n1", MOMENT + HOUR_MS)
    _dated(tmp_path / "n1" / "closed-0", CLOCK_MS + HOUR_MS // 2)
    bases = [base for base, _ in whole.segments]
    given = ("--backup", tmp_path / "b", "--against", f"n1={tmp_path}/n1")

    status, rows, told = _verify(*given, "--warehouse", tmp_path / "wh", "--now-ms", 5)

    found = {name: [miss["kind"] for miss in row["misses"]] for name, row in rows.items()}
    assert status == 1
    assert found == {
        "t-0": ["bit rot"],
        "t-1": ["lost middle"],
        "t-2": ["later start"],
        "t-3": ["behind"],
        "t-4": [],
        "t-5": ["missing log"],
        "closed-0": ["behind"],
        "broker-0": ["behind"],
        "producer-0": ["behind"],
        "events-0": [],
        "clock-0": [],
        "ends-0": ["behind"],
        "lost-0": [],
    }
    assert rows["ends-0"]["complete_until"] == log[-1].last + 1
    assert rows["ends-0"]["misses"][0]["until_offset"] == log[-1].last + 8
    assert "n1 notes the high watermark" in rows["lost-0"]["doubt"]
    assert rows["t-1"]["complete_until"] == bases[1]
    assert rows["t-2"]["misses"][0]["until_offset"] == bases[1]
    assert rows["t-3"]["misses"][0]["until_offset"] == log[-1].last
    assert rows["t-5"]["verdict"] == "missing"
    assert rows["closed-0"]["misses"][0]["detail"].endswith(
        "last written at 2023-11-14 22:43:20 UTC"
    )
    for name in ("broker-0", "producer-0"):
        assert "a batch of 2023-11-14 22:13:20 UTC follows" in rows[name]["misses"][0]["detail"]
    assert {rows[name]["verdict"] for name in ("t-4", "events-0", "lost-0")} == {"not known"}
    assert rows["t-4"]["doubt"].endswith("has no timestamp")
    assert "which may not be when it was written: a replication" in rows["events-0"]["doubt"]
    assert rows["events-0"]["complete_until"] == bases[3]
    assert "1 of 13 logs are complete" in told
    assert "incomplete: 8, missing: 1, not known: 3, made later: 0" in told

    status, again, told = _verify(
        *(*given, "--digests", tmp_path / "wh", "--moment", CLOCK_MS + HOUR_MS)
    )

    assert status == 1
    assert {name: row["verdict"] for name, row in again.items()} == {
        name: row["verdict"] for name, row in rows.items()
    }
    assert "minutes" not in told


@pytest.mark.long
def test_a_backup_in_s3_is_verified_as_one_on_a_disk(
    spark: SparkSession, object_store: ObjectStore, tmp_path: Path
) -> None:
    """Objects are as old as their upload, which is not the moment of the backup."""
    rng = random.Random(5)
    log = drawn_log(rng)
    whole = _stamped(rolled(rng, log), MOMENT, by_broker=True)
    early = _stamped(rolled(rng, log), CLOCK_MS, by_broker=True)
    since = _stamped(early, MOMENT + HOUR_MS, start=log[40].base, by_broker=True)
    today = {"whole-0": whole, "short-0": early, "since-0": since, "hurt-0": early}
    hurt = LogCopy(early.segments, early.log_start, epochs=early.epochs)
    hurt.spoil(0, flipped(early.file(0), 100))
    ends = {"short-0": _until(early, log[50].base), "since-0": _until(early, log[40].base)}
    write_copies(tmp_path / "b", today | ends | {"hurt-0": hurt})
    write_copies(tmp_path / "n1", today)
    _dated(tmp_path / "b", MOMENT)
    object_store.put_folder(tmp_path / "b", "backups/2026-01-31")
    there, against = "s3://backups/2026-01-31", ("--against", f"n1={tmp_path}/n1")

    on_disk = _verify("--backup", tmp_path / "b", *against)
    in_s3 = _verify("--backup", there, *against)

    assert {name: row["verdict"] for name, row in in_s3[1].items()} == {
        **{"whole-0": "complete", "since-0": "complete"},
        **{"short-0": "incomplete", "hurt-0": "incomplete"},
    }
    assert json.loads(json.dumps(in_s3).replace(there, f"{tmp_path}/b")) == list(on_disk)
    assert "2 of 4 logs are complete in the backup as of 2023-11-14 23:13:20.000 UTC" in in_s3[2]


_ENDS = "topic string, partition int, from_offset long, until_offset long, holders array<string>"
_FOUND = "topic string, partition int, written_ms long, timestamp_ms long, is_of_broker boolean"


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("written", "timestamp", "is_of_broker", "is_dated", "noted", "expected"),
    [
        (PAST + 1, PAST, True, False, None, (90, True)),
        (PAST + 1, PAST + 1, True, False, None, None),
        (PAST + 1, PAST, False, True, None, (90, True)),
        (PAST + 1, PAST + 1, False, True, None, None),
        (PAST + 1, PAST, False, False, None, (90, False)),
        (PAST + 1, PAST + 1, False, False, None, None),
        (PAST, PAST + 1, False, False, None, (90, True)),
        (PAST, None, None, False, None, (90, False)),
        (PAST + 1, -1, False, True, None, (90, False)),
        (PAST, -1, False, False, None, (90, True)),
        (PAST + 1, PAST + 1, True, False, 50, None),
        (PAST + 1, PAST + 1, True, False, 51, (51, True)),
        (PAST + 1, PAST, False, False, 60, (60, True)),
        (PAST + 1, PAST, True, False, 60, (90, True)),
    ],
)
@pytest.mark.parametrize("is_given", [False, True])
def test_an_end_is_judged_by_what_follows(
    spark: SparkSession,
    written: int,
    timestamp: int | None,
    is_of_broker: bool | None,
    noted: int | None,
    expected: tuple[int, bool] | None,
    *,
    is_dated: bool,
    is_given: bool,
) -> None:
    """A moment that was given counts to the millisecond, by brokers' clocks alone."""
    log = ("t", 0)
    ends = rows_of(spark, [(*log, 50, 90, ["n1"])], _ENDS)
    marks = rows_of(spark, [(*log, noted)], "topic string, partition int, high_watermark long")
    found = rows_of(spark, [(*log, written, timestamp, is_of_broker)], _FOUND)
    dated = rows_of(spark, [log] * is_dated, "topic string, partition int")
    moment = Moment(PAST if is_given else PAST + MARGIN_MS, is_given)
    if is_given and timestamp == PAST and not is_of_broker:
        expected = (60, True) if noted else (90, False)

    rows = ends.transform(judged_ends(marks, found, dated, moment=moment)).collect()

    assert [(row["until_offset"], row["is_missed"]) for row in rows] == [expected] * bool(expected)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("late_ms", "is_dated", "expected"),
    [
        (0, True, False),
        (20, True, False),
        (90_000, True, False),
        (MARGIN_MS - 1, True, False),
        (MARGIN_MS, True, True),
        (MARGIN_MS, False, False),
        (-1, True, None),
    ],
)
def test_what_a_producer_dated_shortly_before_the_moment_can_have_been_on_its_way(
    spark: SparkSession, late_ms: int, expected: bool | None, *, is_dated: bool
) -> None:
    """The backup of a running broker; null: it was written since."""
    log = ("t", 0)
    ends = rows_of(spark, [(*log, 50, 90, ["n1"])], _ENDS)
    marks = rows_of(spark, [(*log, 50)], "topic string, partition int, high_watermark long")
    found = rows_of(spark, [(*log, PAST + HOUR_MS, PAST - late_ms, False)], _FOUND)
    dated = rows_of(spark, [log] * is_dated, "topic string, partition int")

    rows = ends.transform(judged_ends(marks, found, dated, moment=Moment(PAST, True))).collect()

    assert [row["is_missed"] for row in rows] == [expected] * (expected is not None)
    if expected is False and late_ms < MARGIN_MS:
        assert "can have been on its way for 5 minutes" in rows[0]["detail"]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("is_given", "timestamp", "is_of_broker", "is_noted", "expected"),
    [
        (True, PAST, True, False, "was there"),
        (True, PAST, False, False, "not known"),
        (True, PAST - MARGIN_MS, False, False, "was there"),
        (True, PAST + 1, True, False, None),
        (True, -1, False, False, "not known"),
        (True, -1, False, True, "was there"),
        (True, PAST + 1, False, True, "was there"),
        (False, PAST - MARGIN_MS, True, False, "was there"),
        (False, PAST - MARGIN_MS + 1, True, False, "not known"),
        (False, PAST, False, False, "not known"),
        (False, PAST + 1, True, False, None),
    ],
)
def test_a_log_that_a_backup_lacks_is_judged_by_its_first_batch(
    spark: SparkSession,
    timestamp: int,
    expected: str | None,
    *,
    is_given: bool,
    is_of_broker: bool,
    is_noted: bool,
) -> None:
    log = ("t", 0)
    absent = rows_of(spark, [log], _LOG)
    first = rows_of(
        spark,
        [(*log, 0, timestamp, is_of_broker)],
        f"{_LOG}, offset long, timestamp_ms long, is_of_broker boolean",
    )
    noted = rows_of(spark, [log] * is_noted, _LOG)
    named = rows_of(spark, [], f"{_LOG}, was_there boolean, is_made_later boolean")

    decide = missing_logs(first, noted, named, moment=Moment(PAST, is_given))
    (row,) = absent.transform(decide).collect()

    told = {"was there": row["detail"], "not known": row["doubt"]}
    assert [name for name, why in told.items() if why is not None] == [expected] * bool(expected)


@pytest.mark.slow
def test_what_a_backup_lost_behind_a_fork_is_missed(spark: SparkSession, tmp_path: Path) -> None:
    """One broker has not cut off the records of an older leader yet."""
    rng = random.Random(5)
    log = drawn_log(rng)
    newer = forked(rng, log, 40, more=12)
    write_copies(tmp_path / "b", {"t-0": without(rng, newer, 44, 47), "u-0": rolled(rng, newer)})
    for name, batches in (("n1", newer), ("n2", log)):
        write_copies(tmp_path / name, {topic: rolled(rng, batches) for topic in ("t-0", "u-0")})
    against = [part for name in ("n1", "n2") for part in ("--against", f"{name}={tmp_path}/{name}")]

    status, rows, _ = _verify("--backup", tmp_path / "b", *against)

    assert status == 1
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "t-0": "incomplete",
        "u-0": "complete",
    }
    assert [miss["kind"] for miss in rows["t-0"]["misses"]] == ["lost middle"]
    assert rows["t-0"]["complete_until"] == newer[44].base


@pytest.mark.slow
def test_partitions_of_which_the_cluster_has_no_copy_at_hand_are_not_known(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = drawn_log(random.Random(4), keys=20)
    for name in ("b", "n1"):
        write_copies(tmp_path / name, {"t-0": rolled(random.Random(4), log)})
    records = [topic("t", 1), *(partition(1, number) for number in range(3))]
    log_dir(tmp_path / "n1", {f"{0:020d}.log": log_bytes(records)})

    status, rows, told = _verify("--backup", tmp_path / "b", "--against", f"n1={tmp_path}/n1")

    assert (status, rows["t-0"]["verdict"]) == (1, "complete")
    assert "not known whether the backup holds t-1, t-2: no copy of the cluster's is" in told
    asked = ("backup", "verify", "--backup", tmp_path / "b", "--against", f"n1={tmp_path}/n1")
    read = figures_of(*asked)
    assert read.of("exit_status") == 1
    assert read.of("unknowns") == read.of("findings") != 0
    assert read.of("backup_logs", "t", "complete") == 1
    assert read.of("backup_logs", "t", "missing") is None


@pytest.mark.slow
def test_figures_count_what_a_backup_holds_by_topic(spark: SparkSession, tmp_path: Path) -> None:
    log = drawn_log(random.Random(4), keys=20)
    hostile = 'x"} 1\n\\n\u202e'
    names = ("t-0", "t-1", f"{hostile}-0")
    write_copies(tmp_path / "n1", {name: rolled(random.Random(4), log) for name in names})
    whole = rolled(random.Random(4), log)
    write_copies(tmp_path / "b", {"t-0": whole, f"{hostile}-0": rolled(random.Random(4), log)})
    _dated(tmp_path, MOMENT)
    asked = ("backup", "verify", "--backup", tmp_path / "b", "--against", f"n1={tmp_path}/n1")

    read = figures_of(*asked, "--moment", MOMENT)

    assert (read.exit_code, read.of("exit_status"), read.of("findings")) == (1, 1, 1)
    assert read.of("backup_moment_timestamp_seconds") == MOMENT / 1000
    assert read.of("backup_only_there_logs") == 0
    assert read.of("backup_logs", hostile, "complete") == 1
    verdicts = ("complete", "missing", "incomplete", "not known")
    assert [read.of("backup_logs", "t", verdict) for verdict in verdicts] == [1, 1, 0, 0]


@pytest.mark.usefixtures("few")
def test_producers_clocks_tell_where_the_last_batch_is_as_old_as_its_file(
    spark: SparkSession,
) -> None:
    edges = (PAST - MARGIN_MS, PAST, PAST + MARGIN_MS)
    beyond = (PAST - MARGIN_MS - 1, PAST + MARGIN_MS + 1, -1, -(2**63), 2**63 - 1, None)
    columns = "copy string, topic string, partition int, written_ms long, producer_ms long"
    rows = [("n1", "t", at, PAST, ms) for at, ms in enumerate((*edges, *beyond))]
    rows += [("backup", "u", 0, PAST, PAST)]

    dated = rows_of(spark, rows, columns).transform(partial(dated_logs, backup="backup")).collect()

    assert sorted(row["partition"] for row in dated) == [0, 1, 2]


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    status, _, told = _verify("--backup", tmp_path / "b", "--against", f"backup={tmp_path}/b")

    assert status == 2
    assert "the backup has this name" in told
