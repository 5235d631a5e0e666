"""The cookbook's queries give what the page shows; views and queries over the same warehouse.

``REWRITE_COOKBOOK=1`` puts the output of this run into the page.
"""

import os
import re
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.derived.views import register_views, with_timestamps
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import UsageError
from kafka_segments.verbs.tell.sql import run as queries
from kafka_segments.verbs.tell.sql.decide.statements import Statement
from kafka_segments.verbs.tell.sql.report import print_sql
from kafka_segments.verbs.tell.sql.run import SqlOptions, read_as_texts, refuse_early, run_sql
from support.house.cookbook import NOW_MS, PAGE, Question, questions

PAGE_TEXT = PAGE.read_text("utf-8")


@pytest.fixture(scope="module")
def warehouse(cookbook_warehouse: Path) -> str:
    return str(cookbook_warehouse)


@pytest.fixture(scope="module")
def views(spark: SparkSession, warehouse: str) -> list[str]:
    return register_views(Warehouse(spark, warehouse))


def _answer(
    spark: SparkSession, warehouse: str, query: str, capsys: pytest.CaptureFixture[str]
) -> str:
    print_sql(run_sql(Warehouse(spark, warehouse), SqlOptions(query, NOW_MS)), "table")
    return "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())


def test_the_page_has_ten_questions() -> None:
    assert len(questions(PAGE_TEXT)) == PAGE_TEXT.count("```sql") == 10


@pytest.mark.parametrize("question", questions(PAGE_TEXT), ids=lambda asked: asked.title)
def test_a_query_gives_the_output_that_the_page_shows(
    question: Question, spark: SparkSession, warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = _answer(spark, warehouse, question.query, capsys)
    if "REWRITE_COOKBOOK" in os.environ:
        old = f"{question.query}```\n\n```\n{question.output}```\n"
        new = f"{question.query}```\n\n```\n{answer}```\n"
        PAGE.write_text(PAGE.read_text("utf-8").replace(old, new), "utf-8")
        return
    assert answer == question.output


@pytest.mark.parametrize("question", questions(PAGE_TEXT)[::3], ids=lambda asked: asked.title)
def test_over_small_tables_that_are_read_at_once_it_gives_the_same(
    question: Question, spark: SparkSession, warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with few_rows(spark, runs_any_query=True):
        print_sql(run_sql(Warehouse(spark, warehouse), SqlOptions(question.query, NOW_MS)), "table")

    answer = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
    assert answer == question.output


def test_vanished_segments_are_in_the_history_alone(spark: SparkSession, views: list[str]) -> None:
    count = "SELECT count(*) FROM {} WHERE topic = 'ct-out-of-order' AND base_offset = 1574"

    assert {"segments", "segments_history", "time_index", "runs"} <= set(views)
    assert spark.sql(count.format("segments")).first() == (0,)
    assert spark.sql(count.format("segments_history")).first() == (1,)


def test_columns_of_moments_get_a_timestamp_beside_them_with_a_comment(
    spark: SparkSession, warehouse: str
) -> None:
    asked = SqlOptions("DESCRIBE time_index", 0)
    described = {
        row["col_name"]: (row["data_type"], row["comment"])
        for row in run_sql(Warehouse(spark, warehouse), asked).collect()
    }

    assert described["timestamp"][0] == "timestamp"
    assert described["timestamp"][1].startswith("timestamp_ms as a timestamp; null where")


def test_a_moment_that_no_calendar_has_is_null(spark: SparkSession) -> None:
    moments = [0, 1, -1, -(2**63), 253_402_300_799_999, 253_402_300_800_000, 2**63 - 1, None]
    rows = spark.createDataFrame([(ms,) for ms in moments], "expires_at_ms long")

    shown = with_timestamps(rows).selectExpr("cast(expires_at AS string)").collect()

    assert [row[0] for row in shown] == [
        "1970-01-01 00:00:00",
        "1970-01-01 00:00:00.001",
        None,
        None,
        "9999-12-31 23:59:59.999",
        None,
        None,
        None,
    ]


def test_durations_and_columns_that_are_no_ms_stay_alone(spark: SparkSession) -> None:
    rows = spark.sql("SELECT 1L AS retention_ms, 1L AS segment_ms, 'x' AS timestamp_ms")

    assert with_timestamps(rows).columns == rows.columns


@pytest.mark.usefixtures("views")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("DROP VIEW segments", "Drop is no query"),
        ("WITH a AS (SELECT 1) INSERT INTO runs SELECT * FROM a", "Insert is no query"),
        ("FROM runs INSERT INTO runs SELECT *", "is no query"),
        ("DELETE FROM segments", "Delete is no query"),
        ("VACUUM segments", "VACUUM is no query"),
        ("SET a = 1", "Set is no query"),
        ("CACHE TABLE segments", "Cache is no query"),
        ("EXECUTE IMMEDIATE 'DROP VIEW segments'", "is no query"),
        ("BEGIN DROP VIEW segments; END", "which tables this reads cannot be told"),
        ("SELECT 1; DROP VIEW segments", "a text of 2 statements is no query"),
        ("SELECT transform(run_id) USING 'touch x' FROM runs", "USING a program is refused"),
        ("SELECT (SELECT reflect('java.lang.System', 'exit', 0))", "reflect is refused"),
        ("SELECT 1 WHERE '' < try_reflect('java.lang.System', 'nanoTime')", "try_reflect is"),
        ("SELECT * FROM text.`/etc/passwd`", "text.`/etc/passwd` is refused: a query reads the"),
        ("ADD JAR '/x.jar'", "ADD JAR is no query"),
        ("CREATE TABLE x USING text LOCATION '/etc'", "is no query"),
        ("SELEC 1", "cannot be told, so it is not run; write it plainer: Invalid expression"),
        ("SELECT topic FROM segments WHERE (", "plainer: an expression is missing. Line 1, Col"),
        ("", "empty statement"),
        ("SELECT nope FROM segments", "with name `nope` cannot be resolved"),
        ("SELECT * FROM nope", "there is no table or view `nope`; there are: log_dirs, logs,"),
    ],
)
def test_what_is_no_query_is_refused_in_one_line(
    spark: SparkSession, warehouse: str, text: str, says: str
) -> None:
    with pytest.raises(UsageError) as refused:
        run_sql(Warehouse(spark, warehouse), SqlOptions(text, 0))

    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert spark.catalog.tableExists("segments")


@pytest.mark.usefixtures("views")
@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT 1/0", r"\[DIVIDE_BY_ZERO\] Division by zero\. .*; line 1, position 8"),
        (
            "-- n\nSELECT topic,\n /**/ CAST(topic AS INT) AS n FROM segments",
            r"\[CAST_INVALID_INPUT\] The value '.*' of the type \"STRING\" .*; line 3, position 7",
        ),
        (
            "SELECT (SELECT topic FROM segments)",
            r"\[SCALAR_SUBQUERY_TOO_MANY_ROWS\] .*; line 1, position 8",
        ),
        ("SELECT raise_error('no topic') FROM segments", r"\[USER_RAISED_EXCEPTION\] no topic .*"),
    ],
)
def test_values_that_do_not_fit_are_told_in_one_line_with_their_place(
    spark: SparkSession, warehouse: str, text: str, says: str, output: str
) -> None:
    with pytest.raises(UsageError) as refused:
        rows = run_sql(Warehouse(spark, warehouse), SqlOptions(text, 0))
        with queries.confined(spark):
            print_sql(rows, output)

    assert re.fullmatch(says, str(refused.value))
    assert "ansi" not in str(refused.value)


@pytest.mark.usefixtures("views")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT * FROM text.`{file}`", "there is no table or view `text`"),
        ("SELECT * FROM delta.`{table}`", "there is no table or view `delta`"),
        ("DESCRIBE delta.`{table}`", "there is no table or view `delta`"),
        ("SELECT * FROM table_changes_by_path('{table}', 0)", "is refused"),
        ("SELECT * FROM of_the_cluster", "is refused: a query reads the warehouse's tables"),
        ("SELECT (SELECT reflect('java.lang.Math', 'random'))", "reflect is refused"),
        ("SELECT try_reflect('java.lang.Math', 'random')", "try_reflect is refused"),
        ("SELECT 1 FROM ${{env:PATH}}", "Syntax error"),
    ],
)
def test_spark_itself_reads_no_file_either(
    spark: SparkSession,
    warehouse: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    says: str,
) -> None:
    """What the text's own check might let through, Spark's parser taking it for another thing."""
    (tmp_path / "secret").write_text("secret")
    is_query = not text.startswith("DESCRIBE")
    unchecked = partial(Statement, reads=frozenset(), is_query=is_query)
    monkeypatch.setattr(queries, "check_names", lambda asked, _: unchecked(asked))
    on_files = spark.conf.get("spark.sql.runSQLOnFiles")
    if "of_the_cluster" in text:
        spark.range(1).write.saveAsTable("of_the_cluster", path=str(tmp_path / "table"))

    try:
        with pytest.raises(UsageError) as refused:
            asked = text.format(file=tmp_path / "secret", table=f"{warehouse}/segments")
            run_sql(Warehouse(spark, warehouse), SqlOptions(asked, 0))
    finally:
        spark.sql("DROP TABLE IF EXISTS of_the_cluster")

    assert says in str(refused.value)
    assert spark.conf.get("spark.sql.runSQLOnFiles") == on_files == "true"


def test_tables_and_columns_can_be_listed(spark: SparkSession, warehouse: str) -> None:
    found = run_sql(Warehouse(spark, warehouse), SqlOptions("SHOW TABLES;", 0))

    assert "segments" in [row["tableName"] for row in found.collect()]


def test_a_warehouse_without_tables_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no tables: run `kafka-segments build`"):
        register_views(Warehouse(spark, str(tmp_path)))


def test_output_of_queries_holds_what_python_cannot(
    spark: SparkSession, warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    query = (
        "SELECT 1 AS a, TIMESTAMP '+100000-01-01' AS a, named_struct('x', array(1), 'y', null)"
        " AS s, concat('e', char(27), '[31m') AS e, TIMESTAMP '2026-01-31 14:00:00.123456' AS t,"
        " TIMESTAMP_NTZ '2026-01-31 14:00:00.12' AS local, X'00ff0a' AS b, null AS n, '' AS none"
    )

    print_sql(run_sql(Warehouse(spark, warehouse), SqlOptions(query, 0)), "csv")
    as_csv = capsys.readouterr().out
    with pytest.raises(UsageError, match="two columns are named a, and a JSON object has one"):
        print_sql(run_sql(Warehouse(spark, warehouse), SqlOptions(query, 0)), "json")
    renamed = query.replace("1 AS a", "1 AS first")
    print_sql(run_sql(Warehouse(spark, warehouse), SqlOptions(renamed, 0)), "json")
    as_json = capsys.readouterr().out
    as_table = _answer(spark, warehouse, query, capsys)

    assert as_csv == (
        'a,a,s,e,t,local,b,n,none\n1,+100000-01-01 00:00:00,"{""x"":[1],""y"":null}",e\x1b[31m,'
        '2026-01-31 14:00:00.123456,2026-01-31 14:00:00.12,AP8K,,""\n'
    )
    assert '"a":"+100000-01-01T00:00:00.000000Z"' in as_json
    assert '"t":"2026-01-31T14:00:00.123456Z","local":"2026-01-31T14:00:00.120000"' in as_json
    assert '"b":"AP8K","n":null,"none":""' in as_json
    assert r"e\x1b[31m" in as_table


def test_a_column_in_double_quotes_is_told(spark: SparkSession, warehouse: str) -> None:
    for query, told in (
        ("SELECT 1 FROM segments WHERE \"Topic\" = 'a' AND \"other\" = 'b'", ["Topic"]),
        ('SELECT 1 FROM segments WHERE damage.kind = "topic"', []),
        ("SELECT * FROM (VALUES ('topic')) AS v (name) WHERE \"topic\" = 'a'", []),
    ):
        asked = SqlOptions(query, 0)
        run_sql(Warehouse(spark, warehouse), asked)

        assert read_as_texts(spark, refuse_early(warehouse, asked)) == told


def test_a_row_too_wide_for_a_line_is_shown_a_value_a_line(
    spark: SparkSession, warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = _answer(spark, warehouse, f"SELECT 1 AS n, '{'x' * 200}' AS wide", capsys)

    assert answer == f"-- row 1\nn     1\nwide  {'x' * 200}\n"
