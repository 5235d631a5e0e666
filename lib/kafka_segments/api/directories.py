"""What lies in a broker's directories on this machine: without tables, and without a session."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from kafka_segments.api.arguments import FilePath, names, one_of, path, refuse_below_one
from kafka_segments.console.local_folders import local_folders
from kafka_segments.console.options import clock
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.verbs.find.cleaner import report as cleaner_report
from kafka_segments.verbs.find.cleaner.configs import parse_changes, read_properties
from kafka_segments.verbs.find.cleaner.decide import Check
from kafka_segments.verbs.find.cleaner.run import CleanerOptions, run_cleaner
from kafka_segments.verbs.find.disk import report as disk_report
from kafka_segments.verbs.find.disk.report_growth import blocked_rows, growth_rows, notes_of
from kafka_segments.verbs.find.disk.run import DiskOptions, DiskUse, run_disk
from kafka_segments.verbs.find.records import report as records_report
from kafka_segments.verbs.find.records.decide import Query
from kafka_segments.verbs.find.records.run import RecordsOptions, run_records
from kafka_segments.verbs.find.triage import report as triage_report
from kafka_segments.verbs.find.triage.run import TriageOptions, run_triage


class Triage(NamedTuple):
    """The lines of `triage`, as dictionaries.

    Attributes:
        rows: The verdict of each node, what was found, and the steps, in their order.
        has_findings: The command would have exit status 1.
    """

    rows: list[dict[str, Any]]
    has_findings: bool


class DiskAccount(NamedTuple):
    """The rows of `disk`, as dictionaries.

    Attributes:
        kinds: Bytes by what they are.
        topics: Bytes by topic, and what was written lately.
        folders: Those that nobody serves, and whether they may go.
        disks: A row for each log directory: how full its disk is, whether a broker runs.
        not_known: What could not be looked at, and why.
        has_findings: The command would have exit status 1.
        growth: What each topic got by day, by tables; None: no tables were asked.
        blocked: What retention keeps because of older segments, by tables; None: no tables were
            asked, or `retention` has not decided.
        notes: What the tables do not have yet.
    """

    kinds: list[dict[str, Any]]
    topics: list[dict[str, Any]]
    folders: list[dict[str, Any]]
    disks: list[dict[str, Any]]
    not_known: list[str]
    has_findings: bool
    growth: list[dict[str, Any]] | None = None
    blocked: list[dict[str, Any]] | None = None
    notes: tuple[str, ...] = ()


class CleanerStands(NamedTuple):
    """The rows of `cleaner`, as dictionaries.

    Attributes:
        logs: A row for each compacted log: where it stands, and why.
        not_known: What is not known besides, and why.
        has_findings: The command would have exit status 1.
    """

    logs: list[dict[str, Any]]
    not_known: list[str]
    has_findings: bool


class FoundRecords(NamedTuple):
    """The rows of `records`, as dictionaries.

    Attributes:
        rows: Records that were asked for, or the largest batches of topics and producers; and what
            a consumer cannot read.
        read: A row for each log: which offsets and how many records were read. Without findings, an
            answer without a record proves that these files have none.
        not_read: Files and folders that could not be read, and why.
        more: How many records that were found are not among the rows.
        has_findings: The command would have exit status 1.
    """

    rows: list[dict[str, Any]]
    read: list[dict[str, Any]]
    not_read: list[str]
    more: int
    has_findings: bool


def triage(
    *folders: FilePath,
    check: str = "tails",
    follow_links: bool = False,
    now_ms: int | None = None,
) -> Triage:
    """Say what is wrong with a broker's directories, and what to do.

    Args:
        folders: all log directories of a node, or the folder above them.
        check: what is read: tails, or full for every segment that a start reads.
        follow_links: symbolic links are followed to what lies below the folders.
        now_ms: the moment, in ms since 1970; by default the clock's.

    Raises:
        UsageError: no folder, one that is not of this machine, or a value that is none.
        SourceError: a folder has no log directory below, or cannot be listed.
    """
    one_of("check", check, "tails", "full")
    named = local_folders("triage", [str(folder) for folder in folders])
    options = TriageOptions(named, _moment(now_ms), check == "full", follow_links)
    nodes = run_triage(options)
    rows = list(chain.from_iterable(map(triage_report.rows_of, nodes)))
    return Triage(rows, triage_report.count_findings(nodes) > 0)


def disk(*folders: FilePath, now_ms: int | None = None) -> DiskAccount:
    """Account for the bytes of log directories.

    Args:
        folders: log directories, or folders of several.
        now_ms: the moment, in ms since 1970; by default the clock's.

    Raises:
        UsageError: no folder, or one that is not of this machine.
        SourceError: a folder cannot be listed.
    """
    return account_of(run_disk(disk_options(folders, _moment(now_ms))))


def disk_options(folders: Iterable[FilePath], now_ms: int) -> DiskOptions:
    """Return what `disk` is asked.

    Raises:
        UsageError: no folder, or one that is not of this machine.
    """
    return DiskOptions(local_folders("disk", [str(folder) for folder in folders]), now_ms)


def account_of(use: DiskUse) -> DiskAccount:
    """Return an account in the rows of the command."""
    kinds, topics, judged, disks = (
        list(disk_report.rows_of(use, rows)) for rows in ("kinds", "topics", "folders", "disks")
    )
    not_known = disk_report.not_known_of(use)
    has_findings = disk_report.count_findings(use) > 0
    found = DiskAccount(kinds, topics, judged, disks, not_known, has_findings)
    grown = use.of_tables
    if grown is None:
        return found
    return found._replace(
        growth=list(growth_rows(grown)),
        blocked=None if grown.decided_ms is None else list(blocked_rows(grown)),
        notes=tuple(notes_of(use, grown)),
    )


def cleaner(
    *folders: FilePath,
    server_properties: FilePath | None = None,
    what_if: Mapping[str, object] | None = None,
    check: str = "headers",
    now_ms: int | None = None,
) -> CleanerStands:
    """Say of each compacted log where it stands with the log cleaner, and why.

    Args:
        folders: all log directories of a node, or the folder above them.
        server_properties: the broker's, for what the metadata log does not set.
        what_if: settings as if all topics had them, by Kafka's keys.
        check: what is read: headers, or sample, records for what a pass would free.
        now_ms: the moment, in ms since 1970; by default the clock's.

    Raises:
        UsageError: no folder, one that is not of this machine, or a setting or check that is none.
        SourceError: a folder has no log directory below, or cannot be listed.
    """
    one_of("check", check, *map(str, Check))
    named = local_folders("cleaner", [str(folder) for folder in folders])
    file = path(server_properties)
    nodes = run_cleaner(
        CleanerOptions(
            named,
            _moment(now_ms),
            {} if file is None else read_properties(file),
            parse_changes([f"{key}={value}" for key, value in (what_if or {}).items()]),
            check=Check(check),
        )
    )
    logs = list(chain.from_iterable(map(cleaner_report.rows_of, nodes)))
    not_known = [line for node in nodes for line in node.not_known]
    return CleanerStands(logs, not_known, cleaner_report.count_findings(nodes) > 0)


def records(
    *folders: FilePath,
    topics: str | Sequence[str] = (),
    key: bytes | str | None = None,
    header: str | None = None,
    header_value: bytes | str | None = None,
    offsets: tuple[int, int] | None = None,
    times_ms: tuple[int, int] | None = None,
    values: str = "text",
    most: int = 1000,
    largest: int = 10,
    follow_links: bool = False,
) -> FoundRecords:
    """List the batches that a consumer cannot read, or find records; all that is given has to fit.

    Args:
        folders: log directories, of this machine or a store, or folders of several.
        topics: of these topics alone; none: of all.
        key: the whole key.
        header: the name of a header.
        header_value: its value; None: any.
        offsets: the first and the last offset.
        times_ms: the least and the greatest timestamp, in ms since 1970.
        values: how keys and values are given: text, hex or json.
        most: how many records are given at most.
        largest: of how many topics and producers the largest batch is given, where no record is
            asked for.
        follow_links: symbolic links are followed to what lies below the folders.

    Raises:
        UsageError: no folder, a topic that is in none of them, or a value that is none.
        SourceError: a folder cannot be listed.
    """
    one_of("values", values, "text", "hex", "json")
    refuse_below_one("most", most)
    refuse_below_one("largest", largest)
    if not folders:
        raise UsageError("records needs a folder")
    if header is None and header_value is not None:
        raise UsageError("header_value needs a header")
    query = Query(_bytes(key), header, _bytes(header_value))
    if offsets is not None:
        query = replace(query, low_offset=offsets[0], high_offset=offsets[1])
    if times_ms is not None:
        query = replace(query, low_timestamp=times_ms[0], high_timestamp=times_ms[1])
    sources = tuple(absolute_uri(str(folder)) for folder in folders)
    options = RecordsOptions(
        sources,
        query,
        names(topics),
        most=most,
        most_large=largest,
        follow_links=follow_links,
    )
    found = records_report.rows_of(
        run_records(options), records_report.RecordsForm(values, most, not query.is_any)
    )
    has_findings = bool(found.not_read) or any(row["row"] == "unreadable" for row in found.rows)
    return FoundRecords(*found, has_findings)


def _bytes(text: bytes | str | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


def _moment(now_ms: int | None) -> int:
    return clock() if now_ms is None else now_ms
