"""Tables for a person: whose cluster a row is of, and names as plain text."""

from typing import cast

import pytest
from pyspark.sql import DataFrame, Row

from kafka_segments.console.tables import cluster_column, print_result


class _Rows:
    """Rows in place of a DataFrame."""

    def __init__(self, *rows: Row) -> None:
        self._rows = rows

    def take(self, count: int) -> list[Row]:
        return [*self._rows[:count]]


def _printed(*rows: Row) -> None:
    found = cast("DataFrame", _Rows(*rows))
    print_result(found, "table", names=("group",), cells=lambda row: (row["group_id"],))


def test_a_table_of_several_clusters_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    _printed(Row(cluster="a\x1b", group_id="g"), Row(cluster="", group_id="g"))

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["cluster", "group"], [r"a\x1b", "g"], ["(no", "name)", "g"]]


def test_a_table_of_one_cluster_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    _printed(Row(cluster="a", group_id="[b]g\r[/b]"), Row(cluster="a", group_id="h"))

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["group"], [r"[b]g\r[/b]"], ["h"]]


def test_rows_without_a_cluster_have_no_column() -> None:
    assert cluster_column([Row(topic="t"), Row(topic="u")])[0] == ()
