"""The report: its figures by Spark, its page as text and in a browser."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from kafka_segments.console.not_known import noting
from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.tables.catalog import (
    INTERNAL_RECORDS,
    LOG_DIRS,
    LOGS,
    METADATA_BROKERS,
    METADATA_CONFIGS,
    METADATA_PARTITIONS,
    METADATA_PROBLEMS,
    RETENTION_DECISIONS,
    RUNS,
    SEGMENTS,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.release import __version__
from kafka_segments.verbs.change.recovery.forecast.decide.times import Costs
from kafka_segments.verbs.find.triage.decide import Section
from kafka_segments.verbs.tell.report.copies import CopyFacts
from kafka_segments.verbs.tell.report.crash import Crash, crashes_of
from kafka_segments.verbs.tell.report.directory_files import DirectoryAnswer, TriageRow
from kafka_segments.verbs.tell.report.forecast import forecast_disk
from kafka_segments.verbs.tell.report.report import print_report, render_report
from kafka_segments.verbs.tell.report.run import ReportData, ReportLimits, ReportOptions, run_report
from kafka_segments.verbs.tell.report.view import log_dirs, topics_over_time
from support.spark.filled_tables import fill

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000
EVIL = "/data/<script>alert(1)</script>&\"'\u202e\x9b"
LIMITS = ReportLimits(
    lanes=3, detailed_lanes=1, spans_of_detailed_lane=4, spans_of_other_lanes=6, rows=2
)
DAMAGE = {"kind": "corrupt_batch", "position": 7, "message": "</script><b>checksum"}


def _segment(topic: str, base_offset: int, **given: Any) -> dict[str, Any]:
    largest = given.get("largest_timestamp_ms", NOW_MS - DAY_MS)
    return {
        "log_dir": EVIL,
        "topic": topic,
        "base_offset": base_offset,
        "size_bytes": 1000,
        "valid_bytes": 4096,
        "last_modified_ms": NOW_MS - 10 * DAY_MS,
        "min_timestamp_ms": largest,
        "max_timestamp_ms": largest,
        "largest_timestamp_ms": largest,
        "largest_timestamp_source": "record",
        "index_entries": 1,
        "time_index_entries": 0,
        "scanned_at": datetime.fromtimestamp(NOW_MS / 1000, UTC),
        **given,
    }


MANY = [_segment("many", n, largest_timestamp_ms=NOW_MS - (8 - n) * DAY_MS) for n in range(9)]
SEGMENT_ROWS = [
    *MANY,
    _segment("absurd", 0, largest_timestamp_ms=2**63 - 1, min_timestamp_ms=0),
    _segment("absurd", 5, largest_timestamp_ms=5, min_timestamp_ms=-(2**63)),
    _segment(
        "untimed",
        0,
        min_timestamp_ms=-1,
        max_timestamp_ms=-1,
        largest_timestamp_source="last_modified",
        largest_timestamp_ms=NOW_MS - 10 * DAY_MS,
        damage=DAMAGE,
        index_entries=None,
    ),
    _segment("tiny", 0, size_bytes=1),
    _segment("tiny", 9, vanished_at=datetime.fromtimestamp(NOW_MS / 1000 - 43_200, UTC)),
]


def _decision(
    segment: dict[str, Any], *, expires: int, goes: int, blocked_by: int | None = None
) -> Any:
    kept = ("log_dir", "topic", "base_offset", "size_bytes")
    return {
        **{name: segment[name] for name in kept},
        "decision": "keep",
        "expires_at_ms": expires,
        "frees_disk_at_ms": goes,
        "blocked_by_base_offset": blocked_by,
        "run_id": "last",
        "decided_at": datetime.fromtimestamp(NOW_MS / 1000, UTC),
    }


YEARS_AGO = datetime(2020, 1, 1, tzinfo=UTC)
DECISIONS = [
    {**_decision(MANY[0], expires=0, goes=0), "run_id": "old", "decided_at": YEARS_AGO},
    _decision(MANY[0], expires=NOW_MS - 1, goes=NOW_MS),
    _decision(MANY[1], expires=NOW_MS + 2 * DAY_MS, goes=NOW_MS + 2 * DAY_MS),
    _decision(MANY[2], expires=NOW_MS - 1, goes=NOW_MS + 2 * DAY_MS, blocked_by=1),
    _decision(MANY[8], expires=NOW_MS + 3 * DAY_MS, goes=NOW_MS + 3 * DAY_MS),
    _decision(SEGMENT_ROWS[-1], expires=NOW_MS - 1, goes=NOW_MS, blocked_by=0),  # it has vanished
]


def _partition(
    topic: str, partition: int, leader: int, isr: list[int], **held: Any
) -> dict[str, Any]:
    replicas = {"replicas": [1, 2, 3], "isr": isr, "leader": leader, "cluster": "c"}
    return {"topic": topic, "partition": partition, **replicas, "from_ms": NOW_MS - 5, **held}


def _config(kind: str, resource: str, value: str, **held: Any) -> dict[str, Any]:
    named = {"resource_type": kind, "resource_name": resource, "name": "min.insync.replicas"}
    return {"cluster": "c", **named, "value": value, "from_ms": NOW_MS - 30 * DAY_MS, **held}


GONE = {"until_offset": 7, "until_ms": NOW_MS - 5}
METADATA = {
    METADATA_PARTITIONS: [
        _partition("absurd", 0, -1, [2], from_offset=7),
        _partition("absurd", 0, 1, [1, 2, 3], from_offset=5, **GONE),
        _partition("absurd", 1, 1, [1, 2, 3]),
        _partition("many", 0, 2, [2, 3]),
        _partition("many", 1, 3, [3]),
    ],
    METADATA_CONFIGS: [
        _config("topic", "absurd", "<b>", from_offset=7, **{"from_ms": NOW_MS - 5}),
        _config("topic", "absurd", "3", from_offset=5, **GONE),
        _config("topic", "many", "1"),
        _config("broker", "", "2"),
        _config("broker", "1", "9"),
    ],
    METADATA_BROKERS: [
        {"cluster": "c", "node_id": 1, "is_fenced": False},
        {"cluster": "c", "node_id": 2, "is_fenced": True},
        {"cluster": "c", "node_id": 3, "is_fenced": True, **GONE},
    ],
}
NOTED = [
    {"log_dir": EVIL, "topic": topic, "path": f"/{topic}-0", "folder_state": "live", **point}
    for topic, point in (("many", {"recovery_point": 7}), ("tiny", {}))
]
COORDINATOR = {"topic": "__transaction_state", "file": "0.log", "offset": 0}


@pytest.mark.usefixtures("few")
def test_a_warehouse_without_segments_or_decisions_gives_a_page(
    spark: SparkSession, tmp_path: Path
) -> None:
    for table in (SEGMENTS, RUNS):
        fill(Warehouse(spark, str(tmp_path)), table, [])

    empty = run_report(Warehouse(spark, str(tmp_path)), ReportOptions(NOW_MS, LIMITS))

    assert (empty.totals["segments"], empty.lanes, empty.forecast) == (0, [], None)
    assert empty.cluster is None
    assert "run <code>kafka-segments retention</code>" in render_report(empty)


@pytest.mark.usefixtures("few")
def test_the_page_and_stderr_say_what_the_metadata_lacks(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lacks = {"cluster": "c<1>", "number": 0, "at_offset": 7, "problem": "not known: <b>"}
    for table, rows in {SEGMENTS: [], RUNS: [], METADATA_PROBLEMS: [lacks]}.items():
        fill(Warehouse(spark, str(tmp_path)), table, rows)

    with noting() as told:
        page = render_report(
            run_report(Warehouse(spark, str(tmp_path)), ReportOptions(NOW_MS, LIMITS))
        )

    line = "cluster c<1>: not known: <b>"
    assert (told, capsys.readouterr().err.splitlines()) == ([line], [line])
    assert "<li>cluster c&lt;1&gt;: not known: &lt;b&gt;</li>" in page
    card = (
        '<li class="bad"><a href="#h-lacks"><b>1</b> gap in what is known of the metadata</a></li>'
    )
    assert card in page


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("checked", ["full", "headers", "index"])
def test_no_damage_is_only_said_of_what_was_read(
    spark: SparkSession, tmp_path: Path, checked: str
) -> None:
    counted = {"batch_count": None if checked == "index" else 1, "checked": checked}
    row = {**SEGMENT_ROWS[0], "next_offset": 9, **counted, "damage": None}
    for table, rows in {SEGMENTS: [row], RUNS: []}.items():
        fill(Warehouse(spark, str(tmp_path)), table, rows)

    page = render_report(run_report(Warehouse(spark, str(tmp_path)), ReportOptions(NOW_MS, LIMITS)))

    is_known = checked == "full"
    assert ("No segment is damaged." in page) == is_known
    assert ("Whether 1 segment of 1 is sound is not known" in page) != is_known
    assert ("<b>1</b> of which it is not known whether they are sound" in page) != is_known


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_forecast_begins_at_the_page_s_moment(spark: SparkSession, tmp_path: Path) -> None:
    for table, rows in {SEGMENTS: SEGMENT_ROWS, RETENTION_DECISIONS: DECISIONS, RUNS: []}.items():
        fill(Warehouse(spark, str(tmp_path)), table, rows)
    at_ms = NOW_MS + 2 * DAY_MS + DAY_MS // 2

    later = run_report(Warehouse(spark, str(tmp_path)), ReportOptions(at_ms, LIMITS)).forecast

    assert later is not None
    assert later.freed_bytes[:3] == [3000, 1000, 0]
    assert (later.decided_at_ms, later.blocked_bytes) == (NOW_MS, 1000)


@pytest.fixture(scope="module")
def data(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    root = str(tmp_path_factory.mktemp("report") / "wh")
    warehouse = Warehouse(spark, root)
    fill(warehouse, SEGMENTS, SEGMENT_ROWS)
    fill(warehouse, RETENTION_DECISIONS, DECISIONS)
    fill(warehouse, RUNS, [])
    fill(warehouse, LOG_DIRS, [{"log_dir": EVIL, "was_clean_shutdown": True}])
    fill(warehouse, LOGS, NOTED)
    for table, rows in METADATA.items():
        fill(warehouse, table, rows)
    fill(warehouse, INTERNAL_RECORDS, [COORDINATOR])
    with few_rows(spark):
        return run_report(Warehouse(spark, root), ReportOptions(NOW_MS, LIMITS))


@pytest.mark.long
def test_of_many_rows_the_figures_are_the_same(spark: SparkSession, data: ReportData) -> None:
    assert run_report(Warehouse(spark, data.warehouse), ReportOptions(NOW_MS, LIMITS)) == data


def test_totals_count_what_is_there(data: ReportData) -> None:
    assert data.totals.asDict() == {
        "logs": 4,
        "segments": 13,
        "size_bytes": 12_001,
        "damaged": 1,
        "unverified": 0,
        "in_future": 1,
        "by_mtime": 1,
    }
    assert data.last_run_ms is None


def test_the_largest_logs_have_lanes_with_as_many_spans_as_fit(data: ReportData) -> None:
    spans = [(span["lane"], span["base_offset"], span["segments"]) for span in data.spans]
    kinds = [span["kind"] for span in data.spans]

    assert [lane["topic"] for lane in data.lanes] == ["many", "absurd", "untimed"]
    assert spans == [(0, 0, 3), (0, 3, 2), (0, 5, 2), (0, 7, 2), (1, 0, 1), (1, 5, 1), (2, 0, 1)]
    assert kinds == ["sound"] * 4 + ["in_future", "sound", "damaged"]


def test_spans_stay_on_the_calendar(data: ReportData) -> None:
    ends = {
        (span["lane"], span["base_offset"]): (span["start_ms"], span["end_ms"])
        for span in data.spans
    }

    assert ends[1, 0] == (0, 253_402_300_799_999)
    assert ends[1, 5] == (5, 5)
    assert ends[2, 0] == (NOW_MS - 10 * DAY_MS, NOW_MS - 10 * DAY_MS)


def test_disk_ends_at_what_is_there_after_what_vanished(data: ReportData) -> None:
    assert len(data.history_bytes) == LIMITS.history_bins
    assert data.history_bytes[-1] == data.totals["size_bytes"]
    assert data.history_bytes[-30:] == [12_001] * 14 + [11_001] * 15 + [12_001]
    assert data.history_from_ms == NOW_MS - 10 * DAY_MS


def test_damage_and_odd_timestamps_are_counted_and_sampled(data: ReportData) -> None:
    assert [tuple(row) for row in data.damage_kinds] == [("corrupt_batch", 1, 1000)]
    assert [row["message"] for row in data.damaged] == [DAMAGE["message"]]
    assert {row["kind"]: row["segments"] for row in data.oddity_kinds} == {
        "in the future": 1,
        "older than Kafka 0.8 (2012)": 1,
        "before the segment that precedes it": 1,
        "no timestamps: mtime": 1,
    }
    assert len(data.odd) == LIMITS.rows


def test_density_counts_segments_with_entries(data: ReportData) -> None:
    assert [tuple(row) for row in data.offset_index_density] == [(48, 12)]
    assert data.time_index_density == []


def test_the_forecast_follows_the_last_decisions(data: ReportData) -> None:
    forecast = data.forecast
    assert forecast is not None
    disk = forecast_disk(data)

    assert forecast.freed_bytes[:4] == [1000, 0, 2000, 1000]
    assert sum(forecast.freed_bytes) == 4000
    assert (forecast.blocked_segments, forecast.blocked_bytes) == (1, 1000)
    assert [row["blocked_by_base_offset"] for row in forecast.blocked] == [1]
    assert forecast.inflow == [(3 * DAY_MS, 1000 / 7), (6 * DAY_MS - 1, 1000 / 7)]
    assert disk.quiet[:5] == [12_001, 11_001, 11_001, 9_001, 8_001]
    assert disk.steady[-1] == pytest.approx(8_001 + 9000 / 7)
    assert (disk.times[0], disk.times[-1]) == (NOW_MS, NOW_MS + 90 * DAY_MS)


def test_the_cluster_says_who_leads_and_what_is_ill(data: ReportData) -> None:
    cluster = data.cluster
    assert cluster is not None
    assert cluster.totals is not None

    assert cluster.totals.asDict() == {
        **{"partitions": 4, "offline": 1, "under_min_isr": 1, "under_replicated": 3},
        **{"with_offline_replica": 4, "last_ms": NOW_MS - 5},
    }
    assert [tuple(row) for row in cluster.leaders] == [
        ("c", 1, False, 1, 4, 4),
        ("c", 2, True, 1, 0, 4),
        ("c", 3, None, 1, 0, 4),
    ]
    ill = [(row["topic"], row["partition"], row["min_isr"]) for row in cluster.ill]
    assert ill == [("absurd", 0, 2), ("many", 0, 1)]
    assert cluster.transactions == []


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_the_page_tells_open_transactions_and_no_command_where_their_coordinator_was_not_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    opened = {"has_epoch": 1, "epoch": 0, "timestamp_ms": NOW_MS - 5}
    segment = _segment(
        "orders",
        0,
        cluster="c<1>",
        next_offset=9,
        batch_count=9,
        producers=[{"producer_id": producer, **opened} for producer in (7, 8)],
        transaction_steps=[
            {"kind": 1, "producer_id": producer, "offset": offset, "position": position}
            for producer, offset, position in ((7, 5, 96), (8, 6, 196))
        ],
    )
    value = {"producerId": 7, "producerEpoch": 0, "transactionStatus": 1}
    said = {
        **{**COORDINATOR, "cluster": "c<1>", "kind": "TransactionLog"},
        "key_json": json.dumps({"transactionalId": "<i>"}),
    }
    records = [
        {**said, "is_tombstone": False, "value_json": json.dumps(value)},
        {**said, "offset": 1, "row": 1, "is_tombstone": True},
    ]
    tables = {SEGMENTS: [segment], LOGS: [], RUNS: [], INTERNAL_RECORDS: records}
    for table, rows in tables.items():
        fill(Warehouse(spark, str(tmp_path)), table, rows)

    page = render_report(run_report(Warehouse(spark, str(tmp_path)), ReportOptions(NOW_MS, LIMITS)))

    part = page[page.index('id="h-transactions"') :]
    rows = [
        [re.sub("<[^>]*>", "", cell) for cell in re.findall("<td.*?</td>", row)]
        for row in re.findall('<tr role="row"><td.*?</tr>', part[: part.index("</section>")])
    ]
    held = (("4", "3.9 KiB"), ("3", "3.8 KiB"))
    assert rows == [
        [
            *("c&lt;1&gt;", "orders-0", "not known", name, producer, "-"),
            *(*held[number], "not known", "-"),
        ]
        for number, (name, producer) in enumerate((("&lt;i&gt;, forgotten", "7"), ("-", "8")))
    ]


def test_the_page_tells_what_changed_lately(data: ReportData) -> None:
    cluster = data.cluster
    assert cluster is not None
    page = render_report(data)

    changes = [(row["name"], row["before"], row["after"], row["of"]) for row in cluster.changes]
    assert changes == [
        ("topic absurd min.insync.replicas", "3", "<b>", 6),
        ("absurd-0", "1", "none", 6),
    ]
    assert re.search(
        'data-name="cluster"[^>]*>c</td><td role="cell" data-name="broker" class="n">1', page
    )
    for text in ("Who leads", "not registered", "&lt;b&gt;", "No transaction is open."):
        assert text in page
    assert "in the last 7 days: 6 changes" in page


def test_a_crash_costs_each_broker_what_lies_behind_its_recovery_points(data: ReportData) -> None:
    (crash,) = data.crashes
    page = render_report(data)

    assert (crash.logs, crash.segments) == (2, 10)
    assert (crash.recovered_segments, crash.recovered_bytes) == (3, 2001)
    assert 0 < crash.with_kit < crash.seconds[1] < crash.seconds[0]
    assert "would read 2.0 KiB in 3 segments again before it serves" in page
    assert '<h2 id="h-crash">' not in render_report(replace(data, crashes=[]))
    unnamed = render_report(replace(data, crashes=[replace(crash, broker_id=-1)]))
    assert "broker -1" not in unnamed
    assert "again before it serves: about" in unnamed


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_broker_with_segments_that_were_only_looked_at_is_left_out_and_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    looked_at = {"next_offset": 7, "batch_count": None}
    brokers = {4: {"next_offset": 7, "batch_count": 1}, 5: looked_at}
    segments = [_segment("many", 0, broker_id=broker, **of) for broker, of in brokers.items()]
    fill(warehouse, SEGMENTS, segments)
    fill(warehouse, RUNS, [])
    fill(warehouse, LOG_DIRS, [{"log_dir": EVIL, "broker_id": broker} for broker in brokers])
    fill(warehouse, LOGS, [{**NOTED[0], "broker_id": broker} for broker in brokers])

    data = run_report(Warehouse(spark, str(tmp_path)), ReportOptions(NOW_MS, LIMITS))
    page = render_report(data)
    only = render_report(replace(data, crashes=[]))

    assert [crash.broker_id for crash in data.crashes] == [4]
    assert data.looked_at == 1
    for shown in (page, only):
        assert "Left out: broker 5, as segments of theirs are known by a first look alone" in shown
    assert "A broker that died now" in page
    assert "A broker that died now" not in only


def test_logs_of_a_directory_are_shared_out_beside_the_largest_one() -> None:
    def of(segments: int, recovered_bytes: int) -> Row:
        names = ("segments", "recovered_segments", "recovered_bytes", "recovered_batches")
        return Row(**dict(zip(names, (segments, segments, recovered_bytes, 0), strict=True)))

    def crash(largest: Row, logs: int) -> Crash:
        keys = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "logs": logs}
        sums = {"work": of(400, 10**10), "kit_work": of(logs, 0), "largest": largest}
        (found,) = crashes_of([Row(**keys, **sums)])
        return found

    even, uneven = crash(of(4, 10**8), 100), crash(of(390, 9 * 10**9), 100)

    assert even.recovered_segments == uneven.recovered_segments == 400
    # for each segment all files of its log are looked at: 390 segments in one log
    looked_at = Costs().file_us * 1e-6 * 3.5 * 390**2
    assert uneven.seconds[0] - even.seconds[0] == pytest.approx(looked_at, rel=0.02)
    assert uneven.seconds[1] > 1.3 * even.seconds[1]
    assert even.with_kit == uneven.with_kit < even.seconds[1]


def test_a_log_directory_says_what_it_holds_and_what_goes_now(data: ReportData) -> None:
    held, forecast = log_dirs(data), data.forecast
    assert forecast is not None
    (row,) = held.table.rows
    assert row[2:] == (EVIL, "4", "13", "11.7 KiB", "1", "0", "1000 bytes", "9")
    assert held.says.startswith(f"1 log directory of 1 broker. {EVIL} of broker 0 holds 100 % of")

    none_decided = replace(data, forecast=replace(forecast, by_dir=[]))
    assert log_dirs(none_decided).table.rows[0][-2:] == ("not known", "13")
    assert len(log_dirs(replace(data, forecast=None)).table.rows[0]) == 8


def test_a_topic_is_told_by_age_and_what_has_no_time_is_not_known(data: ReportData) -> None:
    assert topics_over_time(data).rows == [
        ("many", "1000 bytes", "0 bytes", "5.9 KiB", "2.0 KiB", "0 bytes", "0 bytes"),
        ("absurd", *["0 bytes"] * 4, "1000 bytes", "1000 bytes"),
        ("untimed", *["0 bytes"] * 5, "1000 bytes"),
    ]


def test_contents_and_cards_lead_to_sections_and_damage_is_the_first(data: ReportData) -> None:
    def led_and_there(page: str) -> tuple[list[str], list[str], list[str]]:
        cards, _, contents = page.partition('<nav aria-label="Contents">')
        contents, _, body = contents.partition("</nav>")
        of_cards, of_contents = (re.findall(r'href="#([^"]+)"', part) for part in (cards, contents))
        return of_cards, of_contents, re.findall(r'<h2 id="([^"]+)"', body)

    cards, contents, there = led_and_there(render_report(data))
    assert contents == there and len(set(there)) == len(there)
    assert set(cards) <= set(there)
    assert cards[0] == there[0] == "h-damage"

    sound = replace(
        data, totals=Row(**{**data.totals.asDict(), "damaged": 0}), damaged=[], damage_kinds=[]
    )
    cards, contents, there = led_and_there(render_report(sound))
    assert contents == there
    assert "h-damage" in cards[1:] and "h-damage" in there[1:]
    assert f"Made by kafka-segments {__version__}." in render_report(sound)


def test_names_are_text_and_nothing_is_loaded(data: ReportData) -> None:
    page = render_report(data)
    without_scripts = re.sub(r"<script[ >].*?</script>", "", page, flags=re.DOTALL)
    shown = json.loads(page.partition('id="data">')[2].partition("</script>")[0])

    assert page.count("<script") == 2
    assert "alert(1)" in without_scripts
    assert "<script" not in without_scripts
    assert not re.search(r"(src|action)=|href=\"(?!#)|url\((?!#)|@import", without_scripts)
    assert "default-src 'none'" in page
    assert shown["places"] == [f"- / 0 / {EVIL[:-2]}\\u202e\\x9b"]
    assert not {"\u202e", "\x9b"} & {*page}


def test_the_page_of_few_segments_is_small(data: ReportData) -> None:
    assert len(render_report(data)) < 100_000


def test_all_figures_are_of_one_moment_which_the_page_says(data: ReportData) -> None:
    page = render_report(data)

    assert "All figures are of <b>2023-11-14 22:13:20 UTC</b>" in page
    assert "by the settings\nthat retention had at 2023-11-14 22:13:20" in page


def test_each_chart_has_its_values_as_text(data: ReportData) -> None:
    page = render_report(data)
    lines = re.findall(r'<svg role="img" aria-label="([^"]+)"', page)
    bars = re.findall(r'<table id="(\w+)" class="bars', page)

    assert [said.partition(":")[0] for said in lines] == [
        "Bytes on disk over time",
        "Segments by bytes of log per index entry",
    ]
    assert "11.7 KiB now." in lines[0]
    assert bars == ["damage", "topics", "blocked", "oddities"]
    assert page.count("<details") == 10
    for value in ("8.8 KiB, 1 partition", "1 segment, 1000 bytes", ">from 4.0 KiB<"):
        assert value in page


def test_a_scale_that_one_huge_value_makes_logarithmic_is_said(data: ReportData) -> None:
    huge = replace(data, history_bytes=[1000] * 299 + [10**12])

    assert "logarithmic" not in render_report(data)
    assert "One value is far larger than most: the axis upwards is logarithmic." in (
        render_report(huge)
    )


def compared_copies(partitions: int) -> CopyFacts:
    """Give a comparison of three copies, of which one has bit rot in every seventh partition."""
    logs = [
        Row(
            topic="t",
            partition=number,
            is_finding=number % 7 == 0,
            held=["a", "b", "c"],
            differing=[Row(copy="b", is_finding=True, kind="bit rot")] * (number % 7 == 0),
        )
        for number in range(partitions)
    ]
    finding = Row(
        **{"topic": "t", "partition": 0, "row": 0, "kind": "bit rot", "copies": ["b"]},
        **{"right_copies": ["a", "c"], "from_offset": 5, "until_offset": 9, "detail": EVIL},
    )
    return CopyFacts(0, partitions, logs, [finding], len(logs[::7]))


def test_the_map_of_copies_names_what_differs_as_text(data: ReportData) -> None:
    without = render_report(data)
    page = render_report(replace(data, copies=compared_copies(10_000)))

    assert "Where copies differ" not in without
    assert 'role="img" aria-label="a: 10,000 equal"' in page
    assert 'role="img" aria-label="b: 8,571 equal, 1,429 different: look at it"' in page
    assert "<title>t-7: bit rot</title>" in page
    assert "<summary>The maps as a list, by copy and difference</summary>" in page
    assert '<td role="cell" data-name="which">t: 0, 7, 14, ' in page
    assert "The first 1 of 1,429 findings as a table" in page
    assert "<script>" not in page.partition("Where copies differ")[2].partition("</section>")[0]
    assert len(page) - len(without) < 200_000


def test_what_verbs_on_directories_printed_is_a_card_and_a_section(data: ReportData) -> None:
    keys = {"cluster": "c", "broker_id": 1, "log_dir": EVIL, "place": "<i>", "bytes": None}
    rows = [
        TriageRow(row="verdict", what="does not start", step="", **keys),
        TriageRow(row=Section.STOPS, what="<b>", step="<u>", **keys),
        TriageRow(row="step", what="step 1", step="<u>", **keys),
    ]

    page = render_report(replace(data, directories=[DirectoryAnswer("/rows.json", NOW_MS, rows)]))

    assert '<li class="bad"><a href="#h-directories-1"><b>1</b> found by triage</a></li>' in page
    part = page.partition('<h2 id="h-directories-1">Triage</h2>')[2].partition("</section>")[0]
    assert "broker 1 of cluster c does not start." in part
    assert ">not known</td>" in part
    assert "<li>&lt;u&gt;: &lt;i&gt;</li>" in part
    assert "h-directories" not in render_report(data)


@pytest.mark.parametrize(
    ("output", "printed"),
    [
        pytest.param("table", "{page} ({size} bytes)\n", id="for a person"),
        pytest.param("json", '{{"page": "{page}", "size_bytes": {size}}}\n', id="a line of JSON"),
        pytest.param("csv", "page,size_bytes\n{page},{size}\n", id="CSV"),
    ],
)
def test_where_the_page_is_comes_in_the_form_asked_for(
    data: ReportData, output: str, printed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"

    print_report(data, str(page), output)

    assert capsys.readouterr().out == printed.format(page=page, size=page.stat().st_size)
