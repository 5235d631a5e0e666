"""Verbs that ask the tables answer the same whether they take them for few rows or for many."""

from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.engine.choose import few_rows, has_few_rows
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.text.moments import LATEST, MAX_TIMESTAMP
from kafka_segments.settings import Settings
from kafka_segments.verbs.copies.backup.run import BACKUP, run_backup
from kafka_segments.verbs.copies.divergence.options import CopyOptions
from kafka_segments.verbs.find.search.log_tables import LogChoice
from kafka_segments.verbs.find.search.run import SearchOptions, run_search
from kafka_segments.verbs.judge.audit.run import AuditOptions, run_audit
from kafka_segments.verbs.judge.retention.decide.rules import RetentionRules
from kafka_segments.verbs.judge.retention.run import RetentionOptions, run_explain, run_retention
from kafka_segments.verbs.judge.retention.run_plan import run_plan
from kafka_segments.verbs.judge.roll.decide.rules import RollRules
from kafka_segments.verbs.judge.roll.run import RollOptions, run_roll
from support.spark.ready_builds import ReadyBuild

_NOW_MS = 1_795_000_000_000
_MOMENTS = (("T", 1_700_000_000_050), ("LATEST", LATEST), ("MAX_TIMESTAMP", MAX_TIMESTAMP))


def _answers(
    spark: SparkSession, built: ReadyBuild, cluster: Path, caches: ExitStack
) -> dict[str, tuple[list[str], list[str]]]:
    """Return the columns and the rows of each verb, without what is drawn for a run.

    Nor do they have how much a search reads: what one process reads for two answers counts once.
    """
    tables = Warehouse(spark, str(built.warehouse))
    configs = TopicConfigs.load(Settings.load(None, ()))
    retention = RetentionOptions(configs, RetentionRules.of("4.3"), _NOW_MS)
    roll = RollOptions(configs, RollRules(), _NOW_MS)
    search = SearchOptions(LogChoice(), (4, 3), _MOMENTS)
    audit = AuditOptions((str(built.logs),), RecoveryOptions(), (4, 3), _NOW_MS)
    disks = ((BACKUP, "node-1"), ("now", "node-2"))
    copies = tuple((name, str(cluster / "disks" / node)) for name, node in disks)
    verify = CopyOptions(copies, _NOW_MS, anchor=BACKUP)
    all_of_it = RetentionOptions(
        TopicConfigs.load(Settings.load(None, ("retention_ms=1",))),
        RetentionRules.of("4.3"),
        _NOW_MS,
    )
    found = {
        "plan": run_plan(tables, all_of_it, has_digests=True, dry_run=True)[1],
        "backup": run_backup(spark, verify, caches, moment_ms=_NOW_MS).rows,
        "retention": run_retention(tables, retention, dry_run=True),
        "explain": run_explain(tables, retention, topic="ct-two-partitions", partition=0),
        "roll": run_roll(tables, roll, dry_run=True),
        "search": run_search(tables, search, caches),
        "audit": run_audit(spark, audit, caches),
    }
    return {verb: (rows.columns, _texts(rows)) for verb, rows in found.items()}


def _texts(rows: DataFrame) -> list[str]:
    return sorted(repr(row) for row in rows.drop("run_id", "plan_id", "bytes_read").collect())


@pytest.mark.long
def test_they_answer_the_same(
    spark: SparkSession, broker_build: ReadyBuild, cluster: Path, caches: ExitStack
) -> None:
    found: list[dict[str, Any]] = []
    for taken in (nullcontext(), few_rows(spark)):
        with taken:
            found.append(_answers(spark, broker_build, cluster, caches))
            assert has_few_rows(spark) == (len(found) == 2)

    assert all(rows for _, rows in found[0].values())
    assert found[1] == found[0]
