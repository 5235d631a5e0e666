"""What ``recovery forecast`` prints."""

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from rich.markup import escape

from kafka_segments.console.output import MOST_ROWS_SHOWN, console, duration, size_text
from kafka_segments.console.tables import made_table, or_dash, print_table
from kafka_segments.recovery.decide.cuts import Finding
from kafka_segments.recovery.decide.forecasts import DirFacts, DirForecast, LogForecast
from kafka_segments.recovery.decide.times import Costs
from kafka_segments.recovery.run_forecast import Forecast

_WORK = ("segments", "recovered_segments", "recovered_bytes", "recovered_batches")


def print_forecast(forecast: Forecast, output: str, *, rows: str) -> int:
    """Print a forecast; return how many of its findings call for a person.

    These are segments that are cut, split or refused, and what could not be read.
    """
    if output == "table":
        _print_dirs(forecast.rows)
        _print_options(forecast.rows)
        _print_findings(forecast)
    else:
        _print_rows(_rows(forecast, rows), output)
    sys.stderr.write(said_of(forecast.costs))
    problems = [(one.log_dir, problem) for one in forecast.dirs for problem in one.problems]
    for log_dir, problem in problems:
        sys.stderr.write(f"{log_dir}: {problem}\n")
    return len(problems) + sum(len(log.findings) for _, log in forecast.logs)


def _rows(forecast: Forecast, rows: str) -> Iterable[dict[str, Any]]:
    if rows == "logs":
        return (_row_of_log(one, log) for one, log in forecast.logs)
    if rows == "findings":
        return (
            {**_keys(one), **finding._asdict()}
            for one, log in forecast.logs
            for finding in log.findings
        )
    return map(asdict, forecast.rows)


def _keys(one: DirFacts) -> dict[str, Any]:
    return {"cluster": one.cluster, "broker_id": one.broker_id, "log_dir": one.log_dir}


def _row_of_log(one: DirFacts, log: LogForecast) -> dict[str, Any]:
    work = log.work._asdict()
    return {
        **_keys(one),
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


def _print_rows(rows: Iterable[Mapping[str, Any]], output: str) -> None:
    writer = None
    for row in rows:
        if output == "json":
            sys.stdout.write(json.dumps(row) + "\n")
            continue
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)


def _print_dirs(rows: Sequence[DirForecast]) -> None:
    """Print what a start finds in each log directory."""
    table = made_table(
        *("log directory", "start", "logs>", "segments>", "recovered>", "bytes>", "batches>"),
        *("no point>", "no index>", "no snapshot>", "lost>"),
    )
    firsts = [next(group) for _, group in groupby(_without_kit(rows), lambda row: row.log_dir)]
    for row in firsts[:MOST_ROWS_SHOWN]:
        table.add_row(
            escape(row.log_dir),
            "clean" if row.is_clean else "unclean",
            str(row.logs),
            str(row.segments),
            str(row.recovered_segments),
            size_text(row.recovered_bytes),
            str(row.recovered_batches),
            str(row.logs_without_recovery_point),
            or_dash(row.missing_indexes),
            or_dash(row.logs_without_snapshot),
            size_text(row.lost_bytes) if row.lost_bytes else "-",
        )
    print_table(table, len(firsts))
    for row in firsts[:MOST_ROWS_SHOWN]:
        for text in _also(row):
            console().print(escape(f"{row.log_dir}: {text}"))


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
    table = made_table("broker", "threads>", "seconds>", "at most>", "with kit>", "at most>")
    brokers: dict[tuple[str, int, int], dict[bool, list[DirForecast]]] = {}
    for row in rows:
        of_option = brokers.setdefault((row.cluster, row.broker_id, row.threads), {})
        of_option.setdefault(row.with_kit, []).append(row)
    for (_, broker_id, threads), found in brokers.items():
        cells = []
        for with_kit in (False, True):
            slowest = max(found[with_kit], key=lambda row: row.seconds)
            cells += [_seconds(slowest.seconds), _seconds(slowest.most_seconds)]
        table.add_row(or_dash(None if broker_id < 0 else broker_id), str(threads), *cells)
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
        table.add_row(*map(escape, _cells(finding)))
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
        f" {costs.cores} cores; {disk}; error {costs.error:.0%}\n"
    )
