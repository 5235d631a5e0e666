"""What ``recovery forecast`` prints."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import chain, groupby
from typing import Any

from kafka_segments.console.lines import print_dicts, say
from kafka_segments.console.not_known import say_not_known
from kafka_segments.console.output import (
    MOST_ROWS_SHOWN,
    cell,
    console,
    duration,
    print_text,
    size_text,
)
from kafka_segments.console.table_form import made_table, or_dash, print_table
from kafka_segments.engine.derived.cluster_names import cluster_in_words
from kafka_segments.kafka.broker_rules.start.cuts import Finding
from kafka_segments.verbs.change.recovery.forecast.decide.forecasts import (
    DirFacts,
    DirForecast,
    LogForecast,
    unread_text,
)
from kafka_segments.verbs.change.recovery.forecast.decide.times import Costs
from kafka_segments.verbs.change.recovery.forecast.report_starts import (
    keys_of,
    lost_by_cuts,
    print_starts,
    print_starts_as_lines,
    start_rows,
)
from kafka_segments.verbs.change.recovery.forecast.run import Forecast

_OF_STARTS: dict[str, Any] = dict.fromkeys(
    ("file", "line", "exception", "lost_offsets", "files", "rule", "source", "step")
)
_READ_BYTES_PER_S = 500_000_000  # that a disk reads and this checks, if it was not measured
_WORK = ("segments", "recovered_segments", "recovered_bytes", "recovered_batches")


def print_forecast(forecast: Forecast, output: str, *, rows: str) -> int:
    """Print a forecast; return how many of its findings call for a person.

    These are segments that are cut, split or refused, and what is not known, as it was not or could
    not be read.
    """
    if output == "table":
        print_starts(forecast.nodes)
        _print_dirs(forecast.rows)
        _print_options(forecast.rows)
        _print_findings(forecast)
    else:
        print_dicts(rows_of(forecast, rows), output)
        print_starts_as_lines(forecast.nodes)
    say(said_of(forecast.costs))
    for node in forecast.nodes:
        for note in node.start.notes:
            (say_not_known if node.start.starts is None else say)(note)
    for line in (*problems_of(forecast), *unread_of(forecast)):
        say_not_known(line)
    return count_findings(forecast)


def count_findings(forecast: Forecast) -> int:
    """Return how many findings call for a person, what was not read included.

    A node whose start is not known, for no finding, counts as one.
    """
    of_starts = sum(
        len(node.start.findings) or node.start.starts is None for node in forecast.nodes
    )
    of_logs = sum(len(log.findings) for _, log in forecast.logs)
    unread = sum(bool(one.unread_bytes) for one in forecast.dirs)
    return len(problems_of(forecast)) + of_starts + of_logs + unread


def problems_of(forecast: Forecast) -> list[str]:
    """Return what could not be read, each with its log directory."""
    return [f"{one.log_dir}: {problem}" for one in forecast.dirs for problem in one.problems]


def unread_of(forecast: Forecast) -> Iterable[str]:
    """Say what was not looked at, and what it would cost to look at it."""
    unread = sum(one.unread_bytes for one in forecast.dirs)
    if unread:
        speed = forecast.costs.read_bytes_per_s or _READ_BYTES_PER_S
        yield f"{unread_text(unread)}, about {duration(round(unread / speed * 1000))}"


def rows_of(forecast: Forecast, rows: str) -> Iterable[dict[str, Any]]:
    """Return the rows of a forecast: its ``options``, ``logs`` or ``findings``."""
    if rows == "logs":
        return (_row_of_log(one, log) for one, log in forecast.logs)
    if rows == "findings":
        cuts = lost_by_cuts(forecast)
        of_recovery = (
            {
                **keys_of(one),
                **finding._asdict(),
                **_OF_STARTS,
                **cuts.get((one.log_dir, finding.folder, finding.base_offset), {}),
            }
            for one, log in forecast.logs
            for finding in log.findings
        )
        return chain(of_recovery, start_rows(forecast))
    return map(asdict, forecast.rows)


def _row_of_log(one: DirFacts, log: LogForecast) -> dict[str, Any]:
    work = log.work._asdict()
    return {
        **keys_of(one),
        "topic": log.topic,
        "partition": log.partition,
        "folder": log.folder,
        "folder_state": log.folder_state,
        "recovery_point": log.recovery_point,
        "first_recovered_offset": log.first_recovered_offset,
        **{name: round(work[name]) for name in _WORK},
        "replayed_bytes": log.replayed_bytes(log.work),
        "missing_indexes": log.missing_indexes,
        "full_indexes": log.full_indexes,
        "left_over_files": log.left_over_files,
        "findings": len(log.findings),
    }


def _print_dirs(rows: Sequence[DirForecast]) -> None:
    """Print what a start finds in each log directory."""
    table = made_table(
        *("log directory", "start", "logs>", "segments>", "recovered>", "bytes>", "batches>"),
        *("no point>", "no index>", "no snapshot>", "lost>"),
    )
    firsts = [next(group) for _, group in groupby(_without_kit(rows), lambda row: row.log_dir)]
    for row in firsts[:MOST_ROWS_SHOWN]:
        table.add_row(
            cell(row.log_dir),
            "clean" if row.is_clean else "unclean",
            str(row.logs),
            str(row.segments),
            str(row.recovered_segments),
            size_text(row.recovered_bytes),
            str(row.recovered_batches),
            str(row.logs_without_recovery_point),
            or_dash(row.missing_indexes),
            or_dash(row.logs_without_snapshot),
            _lost(row),
        )
    print_table(table, len(firsts))
    for row in firsts[:MOST_ROWS_SHOWN]:
        for text in _also(row):
            print_text(f"{row.log_dir}: {text}")


def _lost(row: DirForecast) -> str:
    """Return what a directory loses; where not all was read, it may be more."""
    if not row.lost_bytes:
        return "not known" if row.unread_bytes else "-"
    return f"{'at least ' if row.unread_bytes else ''}{size_text(row.lost_bytes)}"


def _without_kit(rows: Sequence[DirForecast]) -> list[DirForecast]:
    found = [row for row in rows if not row.with_kit]
    return sorted(found, key=lambda row: (row.cluster, row.broker_id, row.log_dir, row.threads))


def _also(row: DirForecast) -> Iterable[str]:
    told = (
        (row.delete_logs, "logs marked -delete: opened, then removed"),
        (row.stray_logs, "logs marked -stray: recovered, and served by nobody"),
        (row.future_logs, "logs marked -future: recovered as well"),
        (row.left_over_files, "files left over from compaction, a split or a deletion"),
        (row.full_indexes, "index files at their full, preallocated size"),
        (row.split_segments, "segments that are split, as offsets do not fit their base offset"),
        (row.refused_segments, "segments with which a broker does not start"),
    )
    return [f"{count} {text}" for count, text in told if count]


def _print_options(rows: Sequence[DirForecast]) -> None:
    """Print how long the start of each broker takes, by threads, with and without a kit."""
    brokers: dict[tuple[str, int, int], dict[bool, list[DirForecast]]] = {}
    for row in rows:
        of_option = brokers.setdefault((row.cluster, row.broker_id, row.threads), {})
        of_option.setdefault(row.with_kit, []).append(row)
    clusters = {cluster for cluster, _, _ in brokers}
    heading = ("cluster",) if len(clusters) > 1 else ()
    table = made_table(
        *heading, "broker", "threads>", "seconds>", "at most>", "with kit>", "at most>"
    )
    for (cluster, broker_id, threads), found in brokers.items():
        cells = []
        for with_kit in (False, True):
            slowest = max(found[with_kit], key=lambda row: row.seconds)
            cells += [_seconds(slowest.seconds), _seconds(slowest.most_seconds)]
        named = (cell(cluster_in_words(cluster)) for _ in heading)
        broker = or_dash(None if broker_id < 0 else broker_id)
        table.add_row(*named, broker, str(threads), *cells)
    console().print()
    print_table(table, len(brokers))


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < 600 else duration(round(seconds * 1000))


def _print_findings(forecast: Forecast) -> None:
    found = [finding for _, log in forecast.logs for finding in log.findings]
    if not found:
        return
    table = made_table(
        *("log", "segment>", "what", "at byte>", "bytes lost>", "records told>"),
        *("segments lost>", "why"),
    )
    for finding in found[:MOST_ROWS_SHOWN]:
        table.add_row(*map(cell, _cells(finding)))
    console().print()
    print_table(table, len(found))


def _cells(finding: Finding) -> tuple[str, ...]:
    return (
        finding.folder,
        str(finding.base_offset),
        finding.consequence,
        str(finding.position),
        str(finding.lost_bytes),
        or_dash(finding.lost_records),
        str(finding.lost_segments),
        finding.message,
    )


def said_of(costs: Costs) -> str:
    """Return in words which costs the seconds are computed from."""
    by = "measured here" if costs.is_calibrated else "assumed, not measured: see --calibrate"
    segment = ", ".join(f"{ms:.1f} by {n}" for n, ms in sorted(costs.segment_ms.items()))
    disk = (
        "files in the page cache"
        if costs.read_bytes_per_s is None
        else f"the disk reads {size_text(costs.read_bytes_per_s)}/s"
    )
    return (
        f"costs {by}: {costs.batch_us:.2f} us a batch, {costs.byte_ns:.2f} ns a byte,"
        f" {costs.file_us:.1f} us a file looked at, ms a recovered segment {segment} threads;"
        f" {costs.cores} cores; {disk}; error {costs.error:.0%}"
    )
