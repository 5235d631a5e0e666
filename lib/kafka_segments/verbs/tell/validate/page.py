"""The page of ``validate``: every expectation with its failing rows, readable without a network."""

from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from kafka_segments.console.output import utc
from kafka_segments.verbs.tell.validate.decide.checks import Severity
from kafka_segments.verbs.tell.validate.report import row_text
from kafka_segments.verbs.tell.validate.run import Validation

PAGE = "results.html"


def render_validation(validation: Validation, warehouse: str, now_ms: int) -> str:
    """Write the page; every name in it is text, whatever it holds."""
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"utc": utc, "row": row_text}
    folder, order = files("kafka_segments.verbs.tell.validate"), list(Severity)
    results = sorted(
        validation.results,
        key=lambda result: (not result.failed_rows, order.index(result.severity)),
    )
    failed = {
        severity: sum(one.failed_rows > 0 for one in results if one.severity is severity)
        for severity in order
    }
    template = folder.joinpath("validation.html.jinja").read_text("utf-8")
    return environment.from_string(template).render(
        validation=validation,
        warehouse=warehouse,
        now_ms=now_ms,
        results=results,
        failed=failed,
        style=files("kafka_segments.verbs.tell.report").joinpath("report.css").read_text("utf-8"),
    )
