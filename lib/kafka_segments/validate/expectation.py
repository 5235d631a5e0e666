"""The expectation behind every check: bounds on a column, pages that name the failing rows."""

from typing import Any

from great_expectations.expectations.core.expect_column_values_to_be_between import (
    ExpectColumnValuesToBeBetween,
)
from great_expectations.render.components import CollapseContent, RenderedTableContent
from great_expectations.render.renderer.renderer import renderer


class ExpectMeasureWithinBounds(ExpectColumnValuesToBeBetween):
    """As the built-in one; Data Docs list examples with their keys, not values alone."""

    @classmethod
    @renderer(renderer_type="renderer.diagnostic.unexpected_table")
    def _diagnostic_unexpected_table_renderer(
        cls, configuration: Any = None, result: Any = None, runtime_configuration: Any = None
    ) -> list[RenderedTableContent | CollapseContent] | None:
        rows = (result.result or {}).get("partial_unexpected_index_list") if result else None
        if not rows:
            return None
        return [
            RenderedTableContent(
                content_block_type="table",
                header_row=list(rows[0]),
                table=[list(map(str, row.values())) for row in rows],
                styling={"body": {"classes": ["table-bordered", "table-sm", "mt-3"]}},
            )
        ]
