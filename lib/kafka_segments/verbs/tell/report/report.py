"""What ``report`` writes: one HTML page with its data, its style and its script."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined

from kafka_segments.console.lines import print_line
from kafka_segments.console.output import print_records, size_text, utc
from kafka_segments.files.storage.files import place
from kafka_segments.files.storage.publishing import publish_page
from kafka_segments.kafka.text.plain_text import plain
from kafka_segments.release import __version__
from kafka_segments.verbs.tell.report import view
from kafka_segments.verbs.tell.report.cluster import CHANGES_DAYS
from kafka_segments.verbs.tell.report.copies import KINDS, copy_maps
from kafka_segments.verbs.tell.report.directories import directory_views
from kafka_segments.verbs.tell.report.number_texts import count_text, many
from kafka_segments.verbs.tell.report.run import ReportData
from kafka_segments.verbs.tell.report.timeline_json import timeline_of_page


@dataclass(frozen=True)
class WrittenPage:
    """A page that was written: its URI and its size."""

    page: str
    size_bytes: int


def print_report(data: ReportData, target: str, output: str = "table") -> None:
    """Write the page to a URI, replacing one that is there, and print where it is."""
    page = render_report(data).encode("utf-8")
    publish_page(place(target), page)
    if output == "table":
        print_line(f"{target} ({len(page)} bytes)")
    else:
        list(print_records([WrittenPage(target, len(page))], WrittenPage, output, str))


def render_report(data: ReportData) -> str:
    """Return the page; names of topics and folders are text in it, whatever they hold."""
    environment = Environment(
        loader=FunctionLoader(_text),
        autoescape=True,
        finalize=_plain,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"utc": utc, "size": size_text, "count": count_text, "many": many}
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment.get_template("report.html.jinja").render(
        contents=[],  # the page adds each heading
        version=__version__,
        data=data,
        lanes=timeline_of_page(data),
        view=view,
        cluster_days=CHANGES_DAYS,
        copy_maps=copy_maps,
        copy_kinds=KINDS,
        directories=directory_views(data.directories, data.last_run_ms),
        style=_text("report.css"),
        script=_text("report.js"),
    )


def _plain(value: object) -> object:
    """Return a name without marks that hide it or turn the text around it; HTML stays as it is."""
    return plain(value) if type(value) is str else value


@cache
def _text(name: str) -> str:
    return files("kafka_segments.verbs.tell.report").joinpath(name).read_text("utf-8")
