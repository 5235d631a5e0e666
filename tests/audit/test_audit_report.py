"""What ``audit`` prints as text: findings that differ by their place alone are one."""

import pytest
from pyspark.sql import SparkSession

from kafka_segments.verbs.judge.audit.report import print_audit

_COLUMNS = "log_dir topic partition base_offset path suffix verdict kind message"
_TYPES = ["string", "string", "int", "bigint", "string", "string", "string", "string", "string"]
SCHEMA = ", ".join(
    [
        *(f"{name} {kind}" for name, kind in zip(_COLUMNS.split(), _TYPES, strict=True)),
        "effect string, consequence string, action string, is_finding boolean",
    ]
)


@pytest.mark.slow
def test_findings_that_differ_by_their_place_alone_are_one_with_a_count(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = ("missing", None, "there is none", "slow_lookups", "read from its start", "put it")
    other = ("stale", "log_grew", "ends early", "slow_lookups", "read far", "put it")
    rows = [
        ("/d", "t", 0, base, f"/d/t-0/{base}.index", ".index", *told, True)
        for base, told in [*((base, missing) for base in range(0, 1020, 10)), (2000, other)]
    ]
    rebuilt = ("never_written", "empty", "0 bytes", "rebuilt_at_start", "the start mends it")
    rows += [
        ("/d", "u", 0, base, f"/d/u-0/{base}.index", ".index", *rebuilt, "nothing", False)
        for base in (0, 10)
    ]
    sound = ("/d", "t", 0, 3000, "/d/t-0/3000.index", ".index", "valid", None, "", "trusted")

    print_audit(
        spark.createDataFrame([*rows, (*sound, "right", "nothing", False)], SCHEMA), "table"
    )

    lines = capsys.readouterr().out.splitlines()
    assert lines[:9] == [
        "102 files, e.g. /d/t-0/0.index: missing",
        "  found: there is none",
        "  consequence: read from its start",
        "  action: put it",
        "/d/t-0/2000.index: stale (log_grew)",
        "  found: ends early",
        "  consequence: read far",
        "  action: put it",
        "note: 2 files, e.g. /d/u-0/0.index: never_written (empty), the start mends it; action:"
        " nothing",
    ]
