"""Every expectation, broken by one cluster's data and by no other's."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from markupsafe import escape
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.frames.local_rows import arrow_schema
from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.engine.tables.schemas import newest_versions, schema
from kafka_segments.verbs.tell.validate.checkpoint import run_checkpoint
from kafka_segments.verbs.tell.validate.decide.checks import KEYS_UNIQUE, Severity
from kafka_segments.verbs.tell.validate.decide.failures import count_failures
from kafka_segments.verbs.tell.validate.decide.measure_others import measure_log_dirs, measure_logs
from kafka_segments.verbs.tell.validate.decide.measure_segments import measure_segments
from kafka_segments.verbs.tell.validate.decide.suites import SUITES
from kafka_segments.verbs.tell.validate.page import render_validation
from kafka_segments.verbs.tell.validate.report import row_text
from kafka_segments.verbs.tell.validate.results import CheckCounts, CheckResult
from kafka_segments.verbs.tell.validate.run import ValidateOptions, Validation, run_validate

NOW_MS = 1_800_000_000_000
LATER_MS = NOW_MS + 7_200_000
MOST_QUERIES = 12
LAST_QUERIES = 300
MOMENT = datetime(2027, 1, 15, tzinfo=UTC)
Rows = dict[str, list[dict[str, Any]]]


def _sound(case: str) -> Rows:
    """Give the tables of a cluster with one log of two segments, in which all is well."""
    log = {
        "cluster": case,
        "broker_id": 1,
        "log_dir": f"/data/{case}",
        "topic": "orders",
        "partition": 0,
    }
    segments = [
        _segment(log, base, at) for base, at in ((0, NOW_MS - 2_000), (100, NOW_MS - 1_000))
    ]
    keys = [{key: segment[key] for key in SEGMENT_KEYS} for segment in segments]
    return {
        "segments": segments,
        "offset_index": [
            {**key, "offset": key["base_offset"] + offset, "position": position}
            for key in keys
            for offset, position in ((30, 4_000), (60, 8_000))
        ],
        "time_index": [
            {
                **key,
                "timestamp_ms": segment["max_timestamp_ms"] - ago,
                "offset": segment["next_offset"] - back,
            }
            for key, segment in zip(keys, segments, strict=True)
            for ago, back in ((500, 50), (0, 1))
        ],
        "logs": [
            {
                **log,
                "path": f"/data/{case}/orders-0",
                "folder_state": "live",
                "high_watermark": 200,
                "leader_epochs": [
                    {"epoch": 0, "start_offset": 0},
                    {"epoch": 2, "start_offset": 90},
                ],
                "run_id": case,
            }
        ],
        "log_dirs": [
            {
                **{key: log[key] for key in tables.LOG_DIRS.keys},
                "was_clean_shutdown": True,
                "has_lock_file": False,
                "run_id": case,
            }
        ],
        "metadata_problems": [{"cluster": case, "number": 0, "problem": "it ends"}],
        "unrecognized_files": [
            {
                "cluster": case,
                "broker_id": 1,
                "path": f"/data/{case}/x",
                "reason": "?",
                "run_id": case,
            }
        ],
        "runs": [_run(case, 0), _run(case, 1)],
        "retention_decisions": [
            {
                **key,
                "decision": "keep",
                "size_bytes": 10_000,
                "reason": "young",
                "run_id": "r",
                "decided_at": MOMENT,
            }
            for key in keys
        ],
        "roll_decisions": [
            {
                **keys[1],
                "decision": "roll",
                "rule": "segment_ms",
                "rules": ["segment_ms"],
                "clock_source": "first-batch",
                "reason": "older than segment.ms",
                "run_id": "o",
                "decided_at": MOMENT,
            }
        ],
        "migration_inventory": [
            {
                **keys[0],
                "path": f"/data/{case}/orders-0/0.log",
                "size_bytes": 10_000,
                "is_active": False,
                "run_id": "m",
                "decided_at": MOMENT,
            }
        ],
        "migration_obstacles": [
            {
                **log,
                "code": "time_index_missing",
                "count": 1,
                "is_blocking": False,
                "run_id": "m",
                "decided_at": MOMENT,
            }
        ],
        "migration_plans": [
            {
                **key,
                "plan_id": "m",
                "path": f"/data/{case}/orders-0/{number}.log",
                "root": f"/data/{case}.migration/m",
                "next_base_offset": following,
                "mtime_ns": 1,
                "log_start_offset": 0,
                "action": action,
                "is_migrated": True,
                "reason": "it has messages v0 or v1",
                "size_bytes": 10_000,
                "expected_bytes": expected,
                "hazards": [],
                "rules": "{}",
                "planned_at": MOMENT,
            }
            for number, (key, action, expected, following) in enumerate(
                zip(keys, ("convert", "indexes"), (9_000, 10_000), (100, None), strict=True)
            )
        ],
        "migration_proofs": [
            {
                **key,
                "plan_id": "m",
                **dict.fromkeys(("record_count", "migrated_record_count"), 100),
                **dict.fromkeys(("digest", "migrated_digest"), "ab"),
                "run_id": "v",
                "verified_at": MOMENT,
            }
            for key in keys
        ],
        "migration_events": [
            {
                **log,
                "plan_id": "m",
                "folder": f"/data/{case}/orders-0",
                "root": f"/data/{case}.migration/m",
                "segment_count": 2,
                "size_bytes": 20_000,
                "sequence": sequence,
                "step": step,
                "status": "done",
                "message": "",
                "run_id": step,
                "at": MOMENT,
            }
            for sequence, step in enumerate(("stage", "verify", "apply"))
        ],
        "retention_plans": [
            {
                **keys[0],
                "plan_id": "p",
                "path": f"/data/{case}/orders-0/0.log",
                "rule": "retention_ms",
                "size_bytes": 10_000,
                "files": [],
                "decided_at": MOMENT,
            }
        ],
        "internal_records": [
            {
                **log,
                "topic": "__consumer_offsets",
                "file": "0.log",
                "row": 0,
                "is_snapshot": False,
                "base_offset": 0,
            }
        ],
        "internal_files": [
            {
                **log,
                "topic": "__consumer_offsets",
                "file": "0.log",
                **dict.fromkeys(("is_snapshot", "is_active", "is_torn"), False),
                **dict.fromkeys(("base_offset", "size_bytes", "rows", "records"), 0),
                **dict.fromkeys(("tombstones", "unknown", "unreadable", "records_version"), 0),
            }
        ],
        **_metadata(case),
        "remote_segments": [
            {
                **{"cluster": case, "topic": "orders", "partition": 0, "segment_id": "x"},
                **{"refused_updates": 0, "findings": [], "checked_ms": NOW_MS},
            }
        ],
        "divergences": [
            {
                "topic": f"/data/{case}",
                **dict.fromkeys(("kind", "detail"), "x"),
                **dict.fromkeys(("partition", "row"), 0),
                "is_finding": True,
                "from_offset": 0,
                "until_offset": 1,
                "copies": ["a"],
                "right_copies": [],
                "run_id": "a",
                "decided_at": MOMENT,
            }
        ],
        "offset_ranges": [
            {
                "path": f"/data/{case}/orders-0/0.log",
                "topic": "orders",
                **dict.fromkeys(("partition", "base_offset", "size_bytes", "mtime_ns"), 0),
                "checked": "full",
                "run_id": "a",
                "read_at": MOMENT,
            }
        ],
        "index_audits": [
            {
                **keys[0],
                "path": f"/data/{case}/orders-0/0.index",
                **dict.fromkeys(("suffix", "verdict", "message", "effect"), "x"),
                **dict.fromkeys(("consequence", "action", "kafka_version"), "x"),
                "is_finding": False,
                "run_id": "a",
                "decided_at": MOMENT,
            }
        ],
    }


def _metadata(case: str) -> Rows:
    """Give two rows of each metadata table, the second from where the first ended."""
    held = [
        {"from_offset": 0, "from_ms": NOW_MS, "until_offset": 5, "until_ms": NOW_MS},
        {"from_offset": 5, "from_ms": NOW_MS},
    ]
    values: dict[str, dict[str, Any]] = {
        "metadata_topics": {"topic": "orders", "topic_id": "x"},
        "metadata_partitions": {"topic": "orders", "topic_id": "x", "partition": 0, "leader": 1},
        "metadata_configs": {"resource_type": "topic", "resource_name": "orders", "name": "n"},
        "metadata_brokers": {"node_id": 1},
        "metadata_features": {"name": "metadata.version", "level": 1},
        "metadata_entries": {"kind": "acl", "name": "x", "value": "{}"},
    }
    return {
        table: [{"cluster": case, "is_from_snapshot": False, **row, **time} for time in held]
        for table, row in values.items()
    }


def _segment(log: dict[str, Any], base: int, at: int) -> dict[str, Any]:
    return {
        **log,
        "base_offset": base,
        "path": f"{log['log_dir']}/orders-0/{base:020d}.log",
        "size_bytes": 10_000,
        "last_modified_ms": at + 1,
        "valid_bytes": 10_000,
        "truncated_bytes": 0,
        "next_offset": base + 100,
        "batch_count": 10,
        "record_count": 100,
        "first_batch_timestamp_ms": at,
        "min_timestamp_ms": at - 900,
        "max_timestamp_ms": at,
        "offset_of_max_timestamp": base + 99,
        "largest_timestamp_ms": at,
        "largest_timestamp_source": "record",
        "is_active": base > 0,
        "index_entries": 2,
        "time_index_entries": 2,
        "index_format": "kafka",
        "checked": "full",
        "scanned_at": MOMENT,
        "run_id": f"{log['cluster']}-1",
    }


def _run(case: str, number: int) -> dict[str, Any]:
    counts = ("segments_vanished", "segments_damaged", "files_unrecognized", "bytes_scanned")
    return {
        "run_id": f"{case}-{number}",
        "command": "build",
        "sources": [f"/data/{case}"],
        "options": "{}",
        "version": "1",
        "started_at": MOMENT.replace(day=15 + number),
        "finished_at": MOMENT.replace(day=15 + number, hour=1),
        "segments_found": 2,
        "segments_scanned": 2,
        "segments_unchanged": 0,
        **dict.fromkeys(counts, 0),
    }


BROKEN: dict[str, tuple[str, int, dict[str, Any]]] = {
    # expectation: table, row, what that row has instead
    "segments.offsets_do_not_overlap": ("segments", 0, {"next_offset": 101, "record_count": 99}),
    "segments.offsets_have_no_hole": ("segments", 0, {"next_offset": 100, "record_count": 99}),
    "segments.sizes_add_up": ("segments", 0, {"size_bytes": 10_001}),
    "segments.counts_not_negative": ("segments", 1, {"record_count": -1}),
    "segments.span_fits": ("segments", 1, {"next_offset": 100 + 2**31 + 1}),
    "segments.records_fit_the_span": ("segments", 1, {"record_count": 101}),
    "segments.emptiness_agrees": ("segments", 1, {"batch_count": 0}),
    "segments.timestamps_in_order": ("segments", 1, {"min_timestamp_ms": NOW_MS}),
    "segments.offset_of_max_timestamp_within": ("segments", 1, {"offset_of_max_timestamp": 99}),
    "segments.largest_timestamp_follows": ("segments", 1, {"largest_timestamp_ms": 5}),
    "segments.no_damage": (
        "segments",
        1,
        {"damage": {"kind": "bad_crc", "position": 5, "message": "CRC-32C differs"}},
    ),
    "segments.checksums_verified": ("segments", 1, {"checked": "headers"}),
    "offset_index.entries_rise": ("offset_index", 3, {"position": 3_999}),
    "offset_index.entries_within_segment": ("offset_index", 3, {"position": 10_000}),
    "time_index.entries_rise": ("time_index", 3, {"offset": 149}),
    "time_index.entries_within_segment": ("time_index", 2, {"offset": 99}),
    "logs.log_files_readable": ("logs", 0, {"problem": "cannot be read"}),
    "logs.epochs_rise": (
        "logs",
        0,
        {"leader_epochs": [{"epoch": 2, "start_offset": 0}, {"epoch": 1, "start_offset": 90}]},
    ),
    "logs.log_reaches_high_watermark": ("logs", 0, {"high_watermark": 201}),
    "logs.log_reaches_its_start": ("logs", 0, {"log_start_offset": 201}),
    "log_dirs.dir_files_readable": ("log_dirs", 0, {"problem": "cannot be read"}),
    "runs.run_counts_add_up": ("runs", 0, {"segments_unchanged": 1}),
    "runs.run_ends_after_start": ("runs", 0, {"finished_at": MOMENT.replace(day=1)}),
    "runs.segments_do_not_drift": ("runs", 0, {"segments_found": 5, "segments_scanned": 5}),
    "runs.damage_does_not_drift": ("runs", 1, {"segments_damaged": 1}),
    "migration_plans.log_moves_as_a_whole": ("migration_plans", 0, {"is_migrated": False}),
    "migration_plans.kept_segments_keep_their_size": (
        "migration_plans",
        1,
        {"expected_bytes": 9_999},
    ),
    "migration_plans.plan_has_every_segment": ("migration_plans", 0, {"next_base_offset": 101}),
    "migration_proofs.proven_records_are_equal": ("migration_proofs", 0, {"migrated_digest": "cd"}),
    "migration_proofs.segments_are_proven": ("migration_proofs", 0, {"problem": "they differ"}),
    "migration_proofs.proofs_are_planned": ("migration_proofs", 1, {"base_offset": 101}),
    "migration_events.applied_after_verified": ("migration_events", 1, {"step": "stage"}),
    "migration_events.last_step_is_done": ("migration_events", 2, {"status": "refused"}),
    "internal_records.internal_records_readable": ("internal_records", 0, {"problem": "cut off"}),
    **{
        f"{table.name}.rows_follow_one_another": (table.name, 0, {"until_offset": 6})
        for table in tables.METADATA_TABLES
    },
    "roll_decisions.decision_has_its_rule": ("roll_decisions", 0, {"rule": None}),
    "retention_decisions.decision_has_its_rule": (
        "retention_decisions",
        0,
        {"rule": "retention_ms"},
    ),
}
DOUBLED = {
    "offset_index.entry_keys_unique": "offset_index",
    "time_index.entry_keys_unique": "time_index",
    **{
        f"{suite.table}.{KEYS_UNIQUE}": suite.table
        for suite in SUITES
        if not suite.has_measured_keys
    },
}
WHOLE = (
    "segments.segment_keys_unique",
    "segments.timestamps_not_in_the_future",
    "segments.timestamps_do_not_regress",
    "segments.retention_by_record_time",
    "offset_index.entries_match_segment",
    "offset_index.entries_have_a_segment",
    "time_index.entries_match_segment",
    "time_index.entries_have_a_segment",
    "time_index.last_entry_is_the_greatest",
    "runs.every_file_is_a_row",
)
CASES = (*BROKEN, *DOUBLED, *WHOLE)


def _broken(case: str) -> Rows:
    rows = _sound(case)
    if case in BROKEN:
        table, row, values = BROKEN[case]
        rows[table][row].update(values)
    elif case in DOUBLED:
        rows[DOUBLED[case]].append(rows[DOUBLED[case]][-1])
    else:
        _break_more(case, rows)
    if case == "segments.offsets_have_no_hole":
        rows["segments"][0].update(next_offset=99, offset_of_max_timestamp=98)
        for entry in rows["time_index"][:2]:
            entry["offset"] -= 1
    return rows


def _break_more(case: str, rows: Rows) -> None:
    """Break what only rows of two tables that agree can break alone."""
    segments, times = rows["segments"], rows["time_index"]
    orphan = {"base_offset": 200, "offset": 230}
    if case == "segments.segment_keys_unique":
        segments.append(segments[-1])
        for run in rows["runs"]:
            run.update(segments_found=3, segments_scanned=3)
    elif case == "segments.timestamps_not_in_the_future":
        segments[1].update(dict.fromkeys(("max_timestamp_ms", "largest_timestamp_ms"), LATER_MS))
        times[3]["timestamp_ms"] = LATER_MS
    elif case == "segments.timestamps_do_not_regress":
        early = dict.fromkeys(("max_timestamp_ms", "largest_timestamp_ms"), NOW_MS - 5_000)
        segments[1].update(**early, min_timestamp_ms=NOW_MS - 9_000)
        times[2]["timestamp_ms"], times[3]["timestamp_ms"] = NOW_MS - 5_001, NOW_MS - 5_000
    elif case == "segments.retention_by_record_time":
        none = dict.fromkeys(("max_timestamp_ms", "min_timestamp_ms"), -1)
        mtime = {"largest_timestamp_ms": segments[1]["last_modified_ms"], "time_index_entries": 0}
        segments[1].update(**none, **mtime, largest_timestamp_source="last_modified")
        del times[2:]
    elif case.endswith("entries_match_segment"):
        del rows[case.partition(".")[0]][2]
    elif case.endswith("entries_have_a_segment"):
        table = case.partition(".")[0]
        rows[table].append({**rows[table][-1], **orphan})
    elif case == "time_index.last_entry_is_the_greatest":
        times[3]["timestamp_ms"] -= 1
    elif case == "runs.every_file_is_a_row":
        for run in rows["runs"]:
            run.update(segments_found=3, segments_scanned=3)


def _save(root: Warehouse, name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows past the table's own constraints: they would refuse what is to be found."""
    fields = schema(f"{name}.v{newest_versions()[name]}")
    nullable = fields.fromJson(
        json.loads(fields.json().replace('"nullable":false', '"nullable":true'))
    )
    values = pa.Table.from_pylist(rows, schema=arrow_schema(nullable))
    write_deltalake(root.uri(Table(name, 1, ())), values)


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse with a cluster for every expectation, which its rows break, and a sound one."""
    root = Warehouse(spark, str(tmp_path_factory.mktemp("validate")))
    _save_clusters(root, [_sound("sound"), *map(_broken, CASES)])
    return root


def _save_clusters(root: Warehouse, clusters: list[Rows]) -> None:
    for name in clusters[0]:
        _save(root, name, [row for cluster in clusters for row in cluster[name]])


@pytest.fixture(scope="module")
def validation(root: Warehouse) -> Validation:
    """One run over all of them."""
    return _validate(root)


def _validate(root: Warehouse) -> Validation:
    """Validate as the command does."""
    with few_rows(root.spark):
        return run_validate(root, ValidateOptions(NOW_MS))


def _clusters(validation: Validation, case: str) -> set[str]:
    """Name the clusters whose rows fail an expectation."""
    table, _, check = case.partition(".")
    (result,) = [one for one in validation.results if (one.table, one.check) == (table, check)]
    return {_cluster(row) for row in result.examples}


def _cluster(row: dict[str, Any]) -> str:
    if "cluster" in row:
        return str(row["cluster"])
    return str(row.get("path") or row.get("sources_text") or row["topic"]).split("/")[2]


class Validated(NamedTuple):
    """A warehouse of few clusters, and what was found in it."""

    root: Warehouse
    validation: Validation


@pytest.fixture(scope="module")
def overlapping(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Validated:
    """One sound cluster, and one of which segments overlap, in the tables that need to be there."""
    root = Warehouse(spark, str(tmp_path_factory.mktemp("overlapping")))
    clusters = _sound("sound"), _broken("segments.offsets_do_not_overlap")
    names = [table.name for table in (*tables.SEGMENT_DATA, tables.LOGS)]
    _save_clusters(root, [{name: rows[name] for name in names} for rows in clusters])
    return Validated(root, _validate(root))


@pytest.mark.slow
def test_a_second_validation_writes_the_same_segments_no_second_time(
    overlapping: Validated,
) -> None:
    root, validation = overlapping
    version = root.version(tables.QUARANTINED_SEGMENTS)

    again = _validate(root)

    assert again.quarantined == validation.quarantined > 0
    assert root.version(tables.QUARANTINED_SEGMENTS) == version


@pytest.mark.parametrize("case", CASES)
def test_an_expectation_fails_for_the_data_that_breaks_it_alone(
    validation: Validation, case: str
) -> None:
    failed = {
        f"{result.table}.{result.check}"
        for result in validation.results
        if case in _clusters(validation, f"{result.table}.{result.check}")
    }

    assert failed == {case}


def test_every_expectation_has_such_data(validation: Validation) -> None:
    asked = {f"{result.table}.{result.check}" for result in validation.results}

    assert asked == set(CASES)
    assert not any("sound" in _clusters(validation, case) for case in asked)


def test_segments_that_fail_a_fatal_expectation_are_not_published(
    validation: Validation, root: Warehouse
) -> None:
    fatal = {
        f"{result.table}.{result.check}"
        for result in validation.results
        if result.severity is Severity.FATAL
        and result.table in ("segments", "offset_index", "time_index")
    }

    with few_rows(root.spark):
        set_aside = root.read(tables.QUARANTINED_SEGMENTS).collect()
        published = root.read_published(tables.SEGMENTS).groupBy("cluster").count().collect()

    assert {name for row in set_aside for name in row["expectations"]} == fatal
    assert {row["cluster"] for row in set_aside} == fatal
    whole = {row["cluster"] for row in published if row["count"] == 2}
    assert whole == {"sound", *CASES} - fatal
    assert validation.quarantined == len(set_aside)


def test_results_are_a_table_and_pages_that_name_the_failing_rows(
    validation: Validation, root: Warehouse
) -> None:
    with few_rows(root.spark):
        kept = root.read(tables.VALIDATION_RESULTS).where("NOT is_success").collect()
    assert validation.docs_folder is not None
    index = Path(validation.docs_folder) / "index.html"
    pages = [path.read_text("utf-8") for path in index.parent.rglob("validations/**/*.html")]

    assert {row["run_id"] for row in kept} == {validation.run_id}
    assert {f"{row['table_name']}.{row['expectation']}" for row in kept} == set(CASES)
    assert "overlap_offsets" in index.read_text("utf-8") + "".join(pages)
    assert any("segments.offsets_do_not_overlap" in page for page in pages)


def test_a_page_that_needs_no_network_names_every_failing_row(validation: Validation) -> None:
    page = render_validation(validation, "<b>wh</b>", NOW_MS)

    assert "&lt;b&gt;wh&lt;/b&gt;" in page
    assert not any(text in page for text in ("<script", "http:", "https:"))
    for result in validation.results:
        assert f"<td>{result.table}</td><td>{result.check}</td>" in page
        assert result.examples
        assert all(str(escape(row_text(example))) in page for example in result.examples)


@pytest.mark.long
def test_a_validation_of_many_rows_is_few_queries_and_says_the_same(
    spark: SparkSession, validation: Validation, root: Warehouse
) -> None:
    begun, version = _last_query(spark), root.version(tables.QUARANTINED_SEGMENTS)

    again = run_validate(Warehouse(spark, root.root), ValidateOptions(NOW_MS))

    assert 0 < len(list(_queries_after(spark, begun))) < MOST_QUERIES
    assert list(map(_counted, again.results)) == list(map(_counted, validation.results))
    assert again.quarantined == validation.quarantined
    assert root.version(tables.QUARANTINED_SEGMENTS) == version


def _queries(spark: SparkSession) -> Iterator[Any]:
    """Give the last queries; Spark forgets those before them."""
    known = spark._jsparkSession.sharedState().statusStore()
    count = known.executionsCount()
    found = known.executionsList(max(0, count - LAST_QUERIES), LAST_QUERIES)
    return (found.apply(number) for number in range(found.size()))


def _last_query(spark: SparkSession) -> int:
    return max((query.executionId() for query in _queries(spark)), default=-1)


def _queries_after(spark: SparkSession, begun: int) -> Iterator[str]:
    """Give what each of our queries is; Delta has some of its own for each snapshot that is new."""
    for query in _queries(spark):
        said = query.description()
        if query.executionId() > begun and "Delta" not in said:
            yield said


def _counted(result: CheckResult) -> tuple[object, ...]:
    return result.table, result.check, result.checked_rows, result.failed_rows


def test_a_table_without_rows_fails_no_expectation(spark: SparkSession) -> None:
    suite = next(suite for suite in SUITES if suite.table == tables.LOG_DIRS.name)
    nothing = spark.createDataFrame([], schema("log_dirs.v1"))

    (row,) = nothing.transform(measure_log_dirs).transform(count_failures(suite)).collect()
    counts = [CheckCounts(row["checked_rows"], *counted) for counted in row["checks"]]
    results = run_checkpoint({suite.table: counts}, [suite], docs_folder=None)

    assert counts == [CheckCounts(0, 0, 0, [])] * 2
    assert {(result.checked_rows, result.failed_rows) for result in results} == {(0, 0)}


ENDS = (-(2**63), -1, 0, 2**63 - 1)


def test_no_offset_or_timestamp_of_one_row_ends_a_validation(spark: SparkSession) -> None:
    """Every pair of ends of 64 bits, in the columns that are subtracted from each other."""
    key = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "topic": "t"}
    segments, logs = [], []
    for number, (one, other) in enumerate(product(ENDS, ENDS)):
        log = {**key, "partition": number}
        logs.append({**log, "high_watermark": one, "log_start_offset": one})
        for base, times in ((0, (one, other)), (max(one, 0), (other, one))):
            moments = {"min_timestamp_ms": times[0], "max_timestamp_ms": times[1]}
            sizes = {"record_count": 1, "size_bytes": 1, "valid_bytes": 1, "truncated_bytes": 0}
            segments.append({**log, "base_offset": base, "next_offset": other, **moments, **sizes})

    def rows(name: str, found: list[dict[str, Any]]) -> DataFrame:
        fields = schema(name)
        columns = StructType([StructField(field.name, field.dataType) for field in fields])
        values = [tuple(map(row.get, fields.fieldNames())) for row in found]
        return spark.createDataFrame(values, columns).coalesce(1)

    of_segments, of_logs = rows("segments.v2", segments), rows("logs.v1", logs)
    measured = of_segments.transform(measure_segments(of_logs, now_ms=2**40)).collect()
    of_the_end = {
        row["partition"]: row["missing_to_high_watermark"]
        for row in of_logs.transform(measure_logs(of_segments)).collect()
    }

    assert len(measured) == len(segments)
    assert of_the_end[3] == -(2**63)  # -2**63 less 2**63 - 1
    assert of_the_end[12] == 2**63 - 1  # and the other way round
    assert {row["span_offsets"] for row in measured} >= {-(2**63), 0, 2**63 - 1}
