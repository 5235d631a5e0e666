"""Queries name the warehouse's tables and nothing else, told without Spark."""

import pytest

from kafka_segments.errors import UsageError
from kafka_segments.verbs.tell.sql.decide.statements import Statement, check_names

VIEWS = {"segments", "segments_history", "logs"}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM SEGMENTS s JOIN `logs` USING (topic)",
        "SELECT s.damage.kind, e.epoch FROM segments s LATERAL VIEW explode(leader_epochs) t AS e",
        "SELECT * FROM logs, LATERAL explode(leader_epochs) e",
        "SELECT * FROM logs, LATERAL (SELECT 1 FROM segments s WHERE s.topic = logs.topic)",
        "SELECT inline(leader_epochs), filter(magics, x -> x > 1) FROM segments",
        "SELECT 'text.`/etc/passwd`' AS text FROM segments -- csv.`/etc/passwd`",
        "SELECT /*+ BROADCAST(l) */ * FROM segments JOIN logs l ON l.topic = segments.topic",
        "WITH A AS (SELECT * FROM segments), b AS (SELECT * FROM a) SELECT * FROM a, b",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t",
        "WITH segments AS (SELECT * FROM segments_history) SELECT * FROM segments",
        "SELECT * FROM segments PIVOT (count(1) FOR topic IN ('a')) TABLESAMPLE (5 ROWS)",
        "FROM segments |> WHERE topic = 'x' |> SELECT topic",
        "SELECT now_ms, session.now_ms FROM segments",
        "VALUES (1), (2)",
        "SELECT * FROM range(10)",
        "SHOW TABLES",
        "SHOW FUNCTIONS LIKE 'm*'",
        "SHOW COLUMNS IN segments",
        "DESCRIBE EXTENDED segments",
        "DESC TABLE EXTENDED segments topic",
        "DESCRIBE FUNCTION max",
        "DESCRIBE QUERY WITH a AS (SELECT 1) SELECT * FROM a",
        "DESC SELECT * FROM logs",
    ],
)
def test_the_tables_of_the_warehouse_may_be_named(text: str) -> None:
    check_names(text, VIEWS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM {}",
        "FROM {} SELECT *",
        "SELECT * FROM segments s JOIN {} x ON true",
        "SELECT * FROM (segments JOIN {})",
        "SELECT * FROM (SELECT * FROM {}) x",
        "SELECT (SELECT max(value) FROM {})",
        "SELECT 1 FROM segments WHERE topic IN (SELECT value FROM {})",
        "SELECT * FROM segments, LATERAL (SELECT * FROM {})",
        "SELECT 1 UNION ALL (SELECT value FROM {} LIMIT 1)",
        "WITH a AS (WITH b AS (SELECT * FROM {}) SELECT * FROM b) SELECT * FROM a",
        "WITH text AS (SELECT 1), delta AS (SELECT 1) SELECT * FROM {}",
        "SELECT * FROM range((SELECT count(*) FROM {}))",
        "SELECT /*+ BROADCAST(x) */ * FROM {} x",
        "FROM segments |> JOIN {} ON true",
        "DESCRIBE {}",
        "DESC QUERY SELECT * FROM {}",
        "DESC FROM {} SELECT *",
        "SHOW COLUMNS IN {}",
    ],
)
@pytest.mark.parametrize(
    "file",
    ["text.`/etc/passwd`", "`csv` . `/x`", "delta./**/`/x@v1`", "kafka_segments.`/x`", "a.b.c"],
)
def test_a_file_or_another_database_is_refused_wherever_it_stands(text: str, file: str) -> None:
    with pytest.raises(UsageError, match="is refused: a query reads the tables of the warehouse"):
        check_names(text.format(file), VIEWS)


@pytest.mark.parametrize(
    "call",
    [
        "read_files('/etc/passwd')",
        "table_changes_by_path('/x', 0)",
        "table_changes('segments', 0)",
        "identifier('text.`/etc/passwd`')",
        "IDENTIFIER('te' || 'xt.`/x`')",
        "python_worker_logs()",
        "some_function(TABLE(segments))",
    ],
)
@pytest.mark.parametrize("text", ["SELECT * FROM {}", "SELECT * FROM segments, LATERAL {}"])
def test_functions_that_read_by_path_are_refused(call: str, text: str) -> None:
    with pytest.raises(UsageError, match="is refused"):
        check_names(text.format(call), VIEWS)


@pytest.mark.parametrize(
    "call",
    [
        "reflect('java.lang.System', 'exit', 0)",
        "`java_method`('java.lang.System', 'exit', 0)",
        "system.builtin.try_reflect('java.lang.System', 'exit', 0)",
        "from_avro(topic, '', map('avroSchemaUrl', '/x'))",
        "from_protobuf(topic, 'a', '/x')",
        "from_xml(topic, 'a int', map('rowValidationXSDPath', '/x'))",
    ],
)
def test_functions_that_reach_out_are_refused(call: str) -> None:
    with pytest.raises(UsageError, match=r"(reflect|java_method|from_\w+) is refused"):
        check_names(f"SELECT 1 FROM segments WHERE {call} IS NULL", VIEWS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM secret",
        "WITH secret AS (SELECT * FROM secret) SELECT * FROM secret",
        "SELECT * FROM secret WHERE EXISTS (WITH secret AS (SELECT 1) SELECT 1 FROM secret)",
        "WITH a AS (WITH secret AS (SELECT 1) SELECT 1) SELECT * FROM secret",
        "DESCRIBE secret",
        "SHOW COLUMNS FROM secret",
    ],
)
def test_another_table_is_refused_though_a_name_of_its_own_is_the_same(text: str) -> None:
    with pytest.raises(UsageError, match="there is no table or view `secret`; there are: logs, "):
        check_names(text, VIEWS)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("INSERT INTO segments SELECT 1", "Insert is no query"),
        ("FROM segments INSERT INTO logs SELECT *", "cannot be told|is no query"),
        ("TABLE text.`/etc/passwd`", "cannot be told, so it is not run; write it plainer"),
        ("SELECT 1; SELECT 2", "cannot be told|is no query"),
    ],
)
def test_what_cannot_be_read_as_one_query_is_not_run(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        check_names(text, VIEWS)

    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "given", "reads", "is_query"),
    [
        (" SELECT topic FROM logs ; ", "SELECT topic FROM logs", {"logs"}, True),
        ("VALUES (1)", "VALUES (1)", set(), True),
        ("DESCRIBE logs", "DESCRIBE logs", {"logs"}, False),
        ("SHOW COLUMNS IN segments", "SHOW COLUMNS IN segments", {"segments"}, False),
        ("SHOW TABLES", "SHOW TABLES", None, False),
        ("SHOW VIEWS LIKE 'l*'", "SHOW VIEWS LIKE 'l*'", None, False),
        ("SHOW USER FUNCTIONS", "SHOW USER FUNCTIONS", set(), False),
        ("SHOW ALL FUNCTIONS LIKE 'm*'", "SHOW ALL FUNCTIONS LIKE 'm*'", set(), False),
    ],
)
def test_a_statement_is_given_with_the_views_that_it_reads(
    text: str, given: str, reads: set[str] | None, is_query: bool
) -> None:
    expected = Statement(given, None if reads is None else frozenset(reads), is_query)

    assert check_names(text, VIEWS) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SHOW",
        "SHOW CREATE TABLE segments",
        "SHOW PARTITIONS segments",
        "SHOW TABLES IN other",
        "SHOW ALL TABLES",
        "SHOW FUNCTIONS FUNCTIONS",
    ],
)
def test_what_else_may_be_shown_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"^{text.upper()} is no query"):
        check_names(text, VIEWS)


def test_a_function_of_another_schema_is_refused_by_whatever_name() -> None:
    with pytest.raises(UsageError, match=r"max.* is refused: it is no function of Spark's"):
        check_names("SELECT other.max(topic) FROM segments", VIEWS)


@pytest.mark.parametrize("asked", ["HISTORY segments", "DETAIL logs", "SCHEMA default"])
def test_what_delta_describes_besides_is_no_query(asked: str) -> None:
    with pytest.raises(UsageError, match=f"DESCRIBE {asked.split(maxsplit=1)[0]} is no query: "):
        check_names(f"DESCRIBE {asked}", VIEWS)


@pytest.mark.parametrize(
    ("query", "quoted"),
    [
        ("SELECT 1 FROM segments WHERE \"topic\" = 'a'", {"topic"}),
        ('SELECT "topic" AS t, max("size") FROM segments GROUP BY "topic"', {"topic", "size"}),
        (
            "SELECT 1 FROM segments WHERE a = 'b' AND (\"topic\" IN ('c') OR \"d\" > 1)",
            {"topic", "d"},
        ),
        ('SELECT 1 FROM segments WHERE kind = "topic" AND x IN ("topic")', set()),
        ("SELECT 1 FROM segments WHERE 'topic' = 'a'", set()),
    ],
)
def test_texts_in_double_quotes_that_stand_for_columns(query: str, quoted: set[str]) -> None:
    assert check_names(query, VIEWS).quoted == quoted
