"""The last run of a table is the one that committed last, whatever moment it decided for."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.tables.catalog import DIVERGENCES
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.last_run import of_last_run
from support.spark.filled_tables import fill

EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2033, 1, 1, tzinfo=UTC)


def _row(run_id: str, decided_at: datetime) -> dict[str, object]:
    return {
        **{"topic": "t", "partition": 0, "row": 0, "kind": "equal", "is_finding": False},
        **{"copies": [], "right_copies": ["a", "b"], "detail": "", "held_by": None},
        **dict.fromkeys(("from_offset", "until_offset", "epoch")),
        **{"run_id": run_id, "decided_at": decided_at},
    }


def _last(tables: Warehouse) -> list[str]:
    rows = of_last_run(tables, DIVERGENCES, tables.read(DIVERGENCES))
    return [row["run_id"] for row in rows.collect()]


@pytest.mark.usefixtures("few")
def test_a_run_for_a_moment_of_the_future_is_not_the_last_one_for_ever(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Warehouse(spark, str(tmp_path))
    fill(tables, DIVERGENCES, [_row("of-2033", LATE)])
    fill(tables, DIVERGENCES, [_row("of-today", EARLY)])

    assert _last(tables) == ["of-today"]
    tables.optimize(DIVERGENCES)
    assert _last(tables) == ["of-today"]  # files that are joined are not written anew


@pytest.mark.usefixtures("few")
def test_where_the_log_does_not_tell_the_greatest_moment_counts(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Warehouse(spark, str(tmp_path))
    fill(tables, DIVERGENCES, [_row("of-2033", LATE), _row("of-today", EARLY)])

    assert _last(tables) == ["of-2033"]
