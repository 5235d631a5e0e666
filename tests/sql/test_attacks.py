"""Texts that try to reach beyond the views, by what sqlglot and Spark might read differently."""

import re

import pytest

from kafka_segments.engine.tables.catalog import ALL_TABLES
from kafka_segments.errors import UsageError
from kafka_segments.verbs.tell.sql.decide.plan import check_plan
from kafka_segments.verbs.tell.sql.decide.statements import check_names
from kafka_segments.verbs.tell.sql.functions import REACH_OUT, SPARKS_OWN

VIEWS = {"segments", "segments_history", "logs", "runs"}
NBSP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    "text",
    [
        # Spark ends a raw text at the first quote, sqlglot goes on behind a backslash.
        r"SELECT r'\', reflect('java.lang.System', 'exit'), '' FROM segments",
        r"SELECT R'\' FROM secret -- ' FROM segments",
        # Dollars, braces and parameters are texts, templates or variables to one of the two.
        "SELECT $$ , reflect('a', 'b') , $$ FROM segments",
        "SELECT 1 FROM ${env:PATH}",
        "SELECT {{ 1 }} FROM segments",
        "SELECT {% x %} 1",
        "SELECT @@version",
        "SELECT ? FROM segments",
        # Spaces that are none to the other, and letters that look like others.
        f"SELECT{NBSP}*{NBSP}FROM{NBSP}secret",
        "SELECT * FROM \N{CYRILLIC SMALL LETTER DZE}egments",
        "SELECT 1\0 FROM segments",
        # Programs.
        "SELECT TRANSFORM(topic) USING 'touch x' FROM segments",
        "SELECT MAP topic USING 'touch x' FROM segments",
        "FROM segments MAP topic USING 'touch x'",
        "FROM segments REDUCE topic USING 'touch x' AS y",
        "SELECT * FROM (MAP topic USING 'touch x' FROM segments)",
        # Writers.
        "WITH a AS (SELECT 1) DELETE FROM segments",
        "WITH a AS (SELECT 1) MERGE INTO logs USING a ON true WHEN MATCHED THEN DELETE",
        "FROM segments INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT *",
        "SELECT * INTO x FROM segments",
        "EXPLAIN SELECT 1",
        "BEGIN SELECT 1; END",
        "EXECUTE IMMEDIATE 'SELECT 1'",
        "SELECT 1; SELECT 2",
        # Depth.
        "SELECT " + "(" * 20_000,
    ],
)
def test_what_the_two_might_read_differently_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"refused|is no query|cannot be told|no table") as refused:
        check_names(text, VIEWS)

    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM (TABLE secret)",
        "WITH `table` AS (SELECT 1) SELECT * FROM (TABLE secret)",
        "SELECT 1 UNION ALL TABLE secret",
        "FROM segments |> UNION ALL (TABLE secret)",
        "FROM segments |> JOIN secret ON true",
        "FROM segments |> EXCEPT (SELECT * FROM secret)",
        "WITH a AS (SELECT * FROM secret), secret AS (SELECT 1) SELECT * FROM a",
        "WITH a AS (WITH secret AS (SELECT 1) SELECT * FROM secret) SELECT * FROM secret",
        "SELECT * FROM VALUES (1) AS secret, secret AS x",
        "SELECT * FROM segments secret, secret",
        "SELECT * FROM segments s, s.secret",
        "SELECT (FROM secret SELECT 1)",
        "SELECT * FROM segments WHERE EXISTS (FROM secret)",
        "SELECT * FROM segments ORDER BY (SELECT max(x) FROM secret)",
        "SELECT * FROM segments LIMIT (SELECT max(x) FROM secret)",
        "SELECT sum(1) OVER (ORDER BY (SELECT max(x) FROM secret)) FROM segments",
        "SELECT filter(magics, x -> x > (SELECT max(x) FROM secret)) FROM segments",
        "SELECT topic FROM segments GROUP BY topic HAVING (SELECT max(x) FROM secret) > 1",
        "SELECT * FROM segments JOIN LATERAL (SELECT * FROM secret) ON true",
        "VALUES ((SELECT max(x) FROM secret))",
        "DESCRIBE QUERY VALUES ((SELECT max(x) FROM secret))",
        "SELECT * FROM STREAM(segments)",
        "SELECT * FROM STREAM secret",
        "SELECT * FROM default.secret",
        "SELECT * FROM global_temp.secret",
        "SELECT * FROM spark_catalog.default.secret",
        "SELECT * FROM information_schema.tables",
        "SHOW TABLES IN default",
        "SHOW TABLES FROM default LIKE 'x'",
        "SHOW TABLE EXTENDED LIKE 'x'",
        "SHOW CREATE TABLE segments",
        "SHOW PARTITIONS segments",
        "SHOW COLUMNS IN segments IN default",
        "SHOW COLUMNS FROM segments FROM default",
        "SHOW DATABASES",
        "SHOW",
        "DESCRIBE DETAIL segments",
        "DESCRIBE HISTORY segments",
        "DESCRIBE DATABASE default",
        "DESCRIBE segments PARTITION (topic = 'x')",
        "DESCRIBE FUNCTION EXTENDED default.secret",
        "DESCRIBE",
        "DESCRIBE QUERY",
    ],
)
def test_another_table_is_found_wherever_it_hides(text: str) -> None:
    with pytest.raises(UsageError, match=r"refused|is no query|cannot be told|there is no table"):
        check_names(text, VIEWS)


@pytest.mark.parametrize(
    "call",
    [
        "of_somebody(topic)",
        "`of_somebody`(topic)",
        "default.of_somebody(topic)",
        "system.builtin.abs(1)",
        "http_request(topic)",
        "secret('scope', 'key')",
        "ai_query('model', topic)",
        "read_csv('/etc/passwd')",
        "udf(topic)",
        "call_function('reflect', topic)",
        "REFLECT  ('java.lang.Math', 'random')",
        "reflect/* */('java.lang.Math', 'random')",
        "`Try_Reflect`('java.lang.Math', 'random')",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT {} FROM segments",
        "SELECT * FROM segments WHERE {} IS NULL",
        "SELECT transform(magics, x -> {}) FROM segments",
        "WITH of_somebody(a) AS (SELECT 1) SELECT {} FROM of_somebody",
    ],
)
def test_a_function_that_is_none_of_sparks_own_is_refused(call: str, text: str) -> None:
    with pytest.raises(UsageError, match=r"is refused|cannot be told"):
        check_names(text.format(call), VIEWS)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("SELECT 1 -- x\\\n, 2", "SELECT 1      \n, 2"),
        ("SELECT 1 -- x\r, 2", "SELECT 1      , 2"),
        ("SELECT/**/1/* -- */,\t2 --", "SELECT    1        , 2"),
        ("/* a */ SHOW /* b */ TABLES", "        SHOW         TABLES"),
        (
            "SELECT '--', `/* x */`, 1L -/**/- 1 FROM segments",
            "SELECT '--', `/* x */`, 1L -    - 1 FROM segments",
        ),
        ("SELECT /*+ BROADCAST(l) */ 1 FROM logs l", "SELECT /*+ BROADCAST(l) */ 1 FROM logs l"),
    ],
)
def test_spark_is_given_no_comment_and_each_word_stays_at_its_place(text: str, given: str) -> None:
    assert check_names(text, VIEWS).text == given


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("SELECT * FROM segments JOIN LOGS USING (topic)", {"segments", "logs"}),
        ("WITH runs AS (SELECT 1) SELECT * FROM runs", set()),
        ("DESCRIBE EXTENDED segments", {"segments"}),
        ("DESC segments damage.kind", {"segments"}),
        ("SHOW COLUMNS IN logs", {"logs"}),
        ("SHOW SYSTEM FUNCTIONS LIKE 'a*'", set()),
        ("SHOW VIEWS 's*'", None),
    ],
)
def test_the_views_that_it_reads_are_told(text: str, reads: set[str] | None) -> None:
    assert check_names(text, VIEWS).reads == reads


def test_every_column_of_every_table_can_be_named() -> None:
    for table in ALL_TABLES:
        columns = ", ".join(f"t.{name}, {name}" for name in table.schema.fieldNames())
        check_names(f"SELECT {columns} FROM {table.name} t", {table.name})


def test_functions_are_sparks_own_and_reach_for_nothing() -> None:
    assert {"count", "if", "date_add", "int", "explode", "timestamp_millis"} <= SPARKS_OWN
    assert not SPARKS_OWN & (REACH_OUT | {"udf", "expr", "read_files", "identifier"})


PARSED = """== Parsed Logical Plan ==
CTE [a, b]
:  +- 'SubqueryAlias a
:     +- 'UnresolvedRelation [segments], [], false
+- 'Project [{}]
   +- 'UnresolvedRelation [{}], [], false

== Analyzed Logical Plan ==
"""


def test_sparks_own_plan_is_judged_too() -> None:
    check_plan(PARSED.format("*", "A"), VIEWS)
    check_plan(PARSED.format("*", "SEGMENTS"), VIEWS)


@pytest.mark.parametrize(
    ("expression", "relation", "says"),
    [
        ("*", "secret", "secret is refused"),
        ("*", "text, /etc/passwd", "text, /etc/passwd is refused"),
        ("*", "default, segments", "default, segments is refused"),
        ("'reflect(java.lang.Math, random)", "a", "reflect is refused"),
        ("list#1 [] 'UnresolvedTableValuedFunction [read_files], [/x]", "a", "read_files(…) is"),
        ("'ScriptTransformation cat, [key#1]", "a", "scripttransformation is refused"),
        ("'UnresolvedRelation [secret] in a text", "a", "secret is refused"),
    ],
)
def test_what_spark_made_of_it_is_refused(expression: str, relation: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        check_plan(PARSED.format(expression, relation), VIEWS)


def test_without_a_plan_to_judge_nothing_is_run() -> None:
    with pytest.raises(UsageError, match="cannot be told, so it is not run"):
        check_plan("Error occurred during query planning", VIEWS)
