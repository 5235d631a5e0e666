"""Two fields of one name, which a JSON object cannot hold, are refused in every form."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import ArrayType, IntegerType, MapType, StringType, StructType

from kafka_segments.errors import UsageError
from kafka_segments.verbs.tell.sql.report import print_sql

TWICE = StructType().add("a", IntegerType()).add("a", IntegerType())


@pytest.mark.parametrize("output", ["json", "csv", "table"])
@pytest.mark.parametrize("kind", [TWICE, ArrayType(TWICE), MapType(StringType(), TWICE)])
def test_fields_of_one_name_are_refused(kind: Any, output: str) -> None:
    rows: Any = SimpleNamespace(schema=StructType().add("s", kind), columns=["s"])

    with pytest.raises(UsageError, match="two fields of a struct are named a, and a JSON object"):
        print_sql(rows, output)


def test_columns_of_one_name_are_refused_as_json() -> None:
    rows: Any = SimpleNamespace(schema=TWICE, columns=["a", "a"])

    with pytest.raises(UsageError, match="two columns are named a, and a JSON object has one"):
        print_sql(rows, "json")
