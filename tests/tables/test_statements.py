"""The SQL of the tables, read by another parser: names and texts are data wherever they stand."""

import pytest
import sqlglot
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType
from sqlglot import exp

from kafka_segments.engine.tables import catalog
from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.statements import (
    _type,
    create_statement,
    delta_table,
    merge_statement,
    sql_text,
)

TABLES = [table for table in vars(catalog).values() if isinstance(table, Table)]
HOSTILE = "/a `b` 'c' \\ {d}; -- e"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))
def test_a_table_is_made_with_what_is_published(table: Table) -> None:
    made = sqlglot.parse_one(create_statement(table, "/w/t"), dialect="databricks")

    columns = made.this.expressions
    assert [column.name for column in columns] == table.schema.fieldNames()
    for field, column in zip(table.schema, columns, strict=True):
        kinds = {type(each.kind) for each in column.constraints}
        assert (exp.NotNullColumnConstraint in kinds) is not field.nullable
        assert exp.CommentColumnConstraint in kinds
    properties = {
        each.this.this if isinstance(each.this, exp.Literal) else each.name: each.text("value")
        for each in made.find_all(exp.Property)
        if type(each) is exp.Property
    }
    assert properties.items() >= table.properties().items()


def test_names_and_texts_are_quoted() -> None:
    assert delta_table(HOSTILE) == "delta.`/a ``b`` 'c' \\ {d}; -- e`"
    assert sql_text(HOSTILE) == "'/a `b` \\'c\\' \\\\ {d}; -- e'"


def test_nested_types_keep_their_comments() -> None:
    inner = StructType(
        [
            StructField("a", LongType(), nullable=False, metadata={"comment": "it's"}),
            StructField("b c", MapType(StringType(), ArrayType(LongType()))),
        ]
    )

    assert _type(ArrayType(inner)) == (
        "ARRAY<STRUCT<`a`: BIGINT NOT NULL COMMENT 'it\\'s', `b c`: MAP<STRING, ARRAY<BIGINT>>>>"
    )


@pytest.mark.parametrize("deleted", [None, "is_gone"])
@pytest.mark.parametrize("only_in", [None, "t.topic IN ('a', 'b')"])
def test_a_merge_updates_inserts_and_deletes_by_key(
    only_in: str | None, deleted: str | None
) -> None:
    table = catalog.TIME_INDEX
    text = merge_statement(table, "/w/t", "rows", only_in=only_in, deleted=deleted)

    merge = sqlglot.parse_one(text, dialect="databricks")

    assert isinstance(merge, exp.Merge)
    whens = [when.args["then"] for when in merge.args["whens"].expressions]
    kinds = [each.name if isinstance(each, exp.Var) else type(each).__name__ for each in whens]
    assert kinds == ["Update", "Insert"] if deleted is None else ["DELETE", "Update", "Insert"]
    on = merge.args["on"].sql("databricks")
    assert all(f"t.`{key}` = s.`{key}`" in on for key in table.keys)
    assert (only_in is not None) == ("IN ('a', 'b')" in on)
