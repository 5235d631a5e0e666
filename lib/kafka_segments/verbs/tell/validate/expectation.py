"""The expectation behind every check: bounds on a column of which Spark counted what fails."""

from typing import Any

import pandas as pd
from great_expectations.core.metric_function_types import SummarizationMetricNameSuffixes as Suffix
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.expectations.core.expect_column_values_to_be_between import (
    ExpectColumnValuesToBeBetween,
)
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.metrics.column_aggregate_metric_provider import (
    ColumnAggregateMetricProvider,
    column_aggregate_value,
)
from great_expectations.render.components import CollapseContent, RenderedTableContent
from great_expectations.render.renderer.renderer import renderer
from great_expectations.validator.metric_configuration import MetricConfiguration
from great_expectations.validator.validator import ValidationDependencies

from kafka_segments.verbs.tell.validate.results import CheckCounts

_COUNTS = "column.check_counts"


class ColumnCheckCounts(ColumnAggregateMetricProvider):
    """What was counted of a column: the one cell that it has in a batch."""

    metric_name = _COUNTS

    @column_aggregate_value(engine=PandasExecutionEngine)
    def _pandas(cls, column: "pd.Series[Any]", **_: Any) -> CheckCounts:  # noqa: N805
        counts: CheckCounts = column.iloc[0]
        return counts


class ExpectMeasureWithinBounds(ExpectColumnValuesToBeBetween):
    """As the built-in one, of counts instead of rows.

    The batch has one row. Its cell in the column is a ``CheckCounts``, which takes the place of
    what the library would have counted itself. Data Docs list examples with their keys, not
    values alone.
    """

    def get_validation_dependencies(
        self,
        execution_engine: Any = None,
        runtime_configuration: dict[str, Any] | None = None,
        **_: Any,
    ) -> ValidationDependencies:
        """Ask for the counts alone."""
        found = BatchExpectation.get_validation_dependencies(
            self, execution_engine=execution_engine, runtime_configuration=runtime_configuration
        )
        counts = MetricConfiguration(_COUNTS, metric_domain_kwargs={"column": self.column})
        found.set_metric_configuration(_COUNTS, counts)
        return found

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: Any = None,
    ) -> Any:
        """Judge as the built-in one does, by the metrics that the counts stand for."""
        counts: CheckCounts = metrics[_COUNTS]
        metric, nulls = self.map_metric, counts.checked_rows - counts.measured_rows
        values = [example[self.column] for example in counts.examples]
        counted = {
            "table.row_count": counts.checked_rows,
            f"column_values.nonnull.{Suffix.UNEXPECTED_COUNT.value}": nulls,
            f"{metric}.{Suffix.UNEXPECTED_COUNT.value}": counts.failed_rows,
            f"{metric}.{Suffix.UNEXPECTED_VALUES.value}": values,
            f"{metric}.{Suffix.UNEXPECTED_INDEX_LIST.value}": counts.examples,
        }
        return super()._validate(counted, runtime_configuration, execution_engine)

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
