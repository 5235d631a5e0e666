"""What dbt is told of the tables, by conf/dbt, is what the published schemas say."""

import re
import runpy
from pathlib import Path
from typing import Any

import yaml

from kafka_segments.engine.tables import catalog
from kafka_segments.engine.tables.catalog import Table

PROJECT = Path(__file__).resolve().parents[2] / "conf" / "dbt"


def _described() -> dict[str, Any]:
    lines = runpy.run_path(str(PROJECT / "sources.py"))["sources"]()
    (source,) = yaml.safe_load("\n".join(lines))["sources"]
    assert source["name"] == "kafka_segments"
    return {table["name"]: table for table in source["tables"]}


def test_each_table_is_described_with_its_place_and_its_columns() -> None:
    described = _described()
    for table in (table for table in vars(catalog).values() if isinstance(table, Table)):
        told = described[table.name]
        assert told["config"]["meta"] == {
            "plugin": "delta",
            "delta_table_path": f"{{{{ env_var('WAREHOUSE') }}}}/{table.name}",
        }
        comments = {column.name: column.metadata["comment"] for column in table.schema}
        assert {one["name"]: one["description"] for one in told["columns"]} == comments


def test_models_ask_for_tables_that_there_are() -> None:
    described, asked = _described(), set()
    for model in (PROJECT / "models").glob("*.sql"):
        asked |= set(re.findall(r"source\('kafka_segments', '(\w+)'\)", model.read_text("utf-8")))
    assert asked == {"segments", "quarantined_segments"} <= described.keys()
