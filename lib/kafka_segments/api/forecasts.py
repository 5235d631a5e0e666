"""What a start of brokers does, from their disks: without tables, and without a session."""

from typing import Any, NamedTuple

from kafka_segments.api.arguments import FilePath, one_of, path
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.verbs.change.recovery.forecast.decide.times import THREADS
from kafka_segments.verbs.change.recovery.forecast.report import (
    count_findings,
    problems_of,
    rows_of,
    unread_of,
)
from kafka_segments.verbs.change.recovery.forecast.run import ForecastOptions, run_forecast


class StartForecast(NamedTuple):
    """What a start does, in the rows of `recovery forecast`, as dictionaries.

    Attributes:
        options: A row for each log directory, number of threads, with and without a kit; ``starts``
            is None where it is not known whether the broker starts.
        logs: A row for each log.
        findings: A row for each state that costs something, or is not known.
        problems: What could not be read, and why.
        notes: What was not looked at, and what goes because it was asked for.
        has_findings: The command would have exit status 1.
    """

    options: list[dict[str, Any]]
    logs: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    problems: list[str]
    notes: list[str]
    has_findings: bool


def forecast(
    *sources: FilePath,
    broker_threads: int | None = None,
    broker_cores: int | None = None,
    check: str = "tails",
    killed: bool = False,
    cold: bool = False,
    calibrate: FilePath | None = None,
    cluster: str | None = None,
    broker_id: int | None = None,
    follow_links: bool = False,
) -> StartForecast:
    """Say what a start does with log directories, and how long it takes.

    Args:
        sources: log directories of nodes, or folders that hold them.
        broker_threads: num.recovery.threads.per.data.dir; by default 1 to 32 side by side.
        broker_cores: of the broker's machine; by default those of this one.
        check: what is read: tails, or full for every segment that is recovered.
        killed: as if no stop had been clean.
        cold: with nothing in the page cache.
        calibrate: a folder of the disk in which recovery's costs are measured.
        cluster: the cluster's name; by default the one in meta.properties.
        broker_id: the broker's id; by default the one in meta.properties.
        follow_links: symbolic links are followed to what lies below the sources.

    Raises:
        UsageError: no source, or a value that is none.
        SourceError: a source has no log directory below, or cannot be listed.
    """
    if not sources:
        raise UsageError("forecast needs a source, such as '/data/kafka-logs'")
    one_of("check", check, "tails", "full")
    for name, number in (("broker_threads", broker_threads), ("broker_cores", broker_cores)):
        if number is not None and number < 1:
            raise UsageError(f"{name} is {number}: 1 or more expected")
    options = ForecastOptions(
        threads=THREADS if broker_threads is None else (broker_threads,),
        sources=tuple(absolute_uri(str(source)) for source in sources),
        is_full=check == "full",
        is_killed=killed,
        is_cold=cold,
        calibrates_in=path(calibrate),
        cluster=cluster,
        broker_id=broker_id,
        follow_links=follow_links,
        **({} if broker_cores is None else {"cores": broker_cores}),
    )
    found = run_forecast(options)
    return StartForecast(
        list(rows_of(found, "options")),
        list(rows_of(found, "logs")),
        list(rows_of(found, "findings")),
        problems_of(found),
        [*(note for node in found.nodes for note in node.start.notes), *unread_of(found)],
        count_findings(found) > 0,
    )
