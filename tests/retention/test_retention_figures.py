"""``retention --output prometheus``: what goes and stays of each topic, where that is known."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.console.not_known import noting
from kafka_segments.console.prometheus import text_format
from kafka_segments.verbs.judge.retention.report import print_not_decided
from kafka_segments.verbs.judge.retention.report_figures import figures_of, topics_of
from support.spark.ready_builds import LentBuild
from support.spark.rows_of import rows_of
from support.verbs import figures
from support.verbs.figures import read_figures

pytestmark = pytest.mark.usefixtures("few")

COLUMNS = (
    "cluster string, broker_id int, topic string, decision string, reason_code string,"
    " size_bytes long"
)
NOW_MS = 4_000_000_000_000
HOSTILE = ('t"} 1\nx', "\\n", "\u202et")


def _read(spark: SparkSession, *rows: tuple) -> dict[str, dict[tuple[str, ...], float | None]]:
    return read_figures(text_format(figures_of(topics_of(rows_of(spark, rows, COLUMNS)))))


def test_segments_and_bytes_are_counted_by_topic_and_broker(spark: SparkSession) -> None:
    read = _read(
        spark,
        ("c", 1, "t", "delete", "retention_ms", 10),
        ("c", 1, "t", "keep", "not_expired", 7),
        ("c", 1, "t", "keep", "no_limit", 5),
        ("c", -1, "t", "keep", "no_limit", 5),
    )

    assert read["retention_bytes"] == {
        ("1", "c", "delete", "t"): 10,
        ("1", "c", "keep", "t"): 12,
        ("", "c", "delete", "t"): 0,
        ("", "c", "keep", "t"): 5,
    }
    assert read["retention_segments"]["1", "c", "keep", "t"] == 2
    assert set(read["retention_unsure_segments"].values()) == {0}


@pytest.mark.parametrize("code", ["unreadable", "high_watermark_unknown", "upload_unknown"])
def test_of_a_topic_with_a_segment_that_is_not_known_nothing_is_told(
    spark: SparkSession, code: str
) -> None:
    read = _read(
        spark,
        ("c", 1, "t", "delete", "retention_ms", 10),
        ("c", 1, "t", "keep", code, 7),
        ("c", 1, "u", "keep", "no_limit", 5),
    )

    of_t = {value for labels, value in read["retention_bytes"].items() if "t" in labels}
    assert of_t == {None}
    assert read["retention_unsure_segments"] == {("1", "c", "t"): 1, ("1", "c", "u"): 0}
    assert read["retention_bytes"]["1", "c", "keep", "u"] == 5


def test_segments_that_stay_as_something_is_not_known_are_told(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = (
        "log_dir string, topic string, partition int, base_offset long, reason_code string,"
        " reason string"
    )
    rows = [
        ("/b", "t", 0, 7, "unreadable", "its log cannot be read"),
        ("/a", "t", 1, 9, "unreadable", "its log cannot be read"),
        ("/a", "u", 0, 0, "high_watermark_unknown", "the high watermark is not known"),
        ("/a", "u", 0, 5, "no_limit", "kept for ever"),
    ]

    with noting() as told:
        unsure = print_not_decided(rows_of(spark, rows, columns))

    stays = "stays, whether it goes is not known"
    assert (unsure, told) == (3, [])  # the figures have them: nothing counts twice
    assert capsys.readouterr().err.splitlines() == [
        f"u-0 segment 0 in /a {stays}: the high watermark is not known",
        f"2 such, e.g. t-1 segment 9 in /a {stays}: its log cannot be read",
    ]


def test_hostile_names_are_labels(spark: SparkSession) -> None:
    read = _read(spark, *(("c", 1, name, "keep", "no_limit", 1) for name in HOSTILE))

    assert {labels[-1] for labels in read["retention_bytes"]} == set(HOSTILE)


@pytest.mark.slow
def test_the_verb_prints_them_with_the_age_of_its_tables(
    spark: SparkSession, lent_build: LentBuild, tmp_path: Path
) -> None:
    warehouse = lent_build.lend(tmp_path / "wh").warehouse
    asked = ("retention", "--warehouse", warehouse, "--set", "retention_ms=-1", "--now-ms", NOW_MS)

    read = figures.figures_of(*asked)

    assert read.exit_code == read.of("exit_status")
    assert (read.of("tables_age_seconds") or 0) > 0
    assert read.of("retention_segments", "ct-two-partitions", "delete") == 0
    words = [*map(str, asked), "--what-if", "retention_ms=1", "--output", "prometheus"]
    refused = CliRunner().invoke(cli, words)
    assert refused.exit_code == 2
    assert "leave --what-if out" in refused.stderr
    assert read_figures(refused.stdout)["exit_status"] == {(str(warehouse), "retention decide"): 2}


@pytest.mark.slow
def test_segments_that_stay_as_something_is_not_known_count_once(
    spark: SparkSession, lent_build: LentBuild, tmp_path: Path
) -> None:
    warehouse = lent_build.lend(tmp_path / "wh").warehouse
    uploads = ("--set", "remote_storage_enable=true", "--set", "retention_ms=1")

    read = figures.figures_of("retention", "--warehouse", warehouse, *uploads, "--now-ms", NOW_MS)

    unsure = sum(value or 0 for value in read.values["retention_unsure_segments"].values())
    assert unsure > 1
    assert (read.exit_code, read.of("findings"), read.of("unknowns")) == (1, unsure, unsure)
    assert "whether it goes is not known" in read.stderr
