"""What ``disk`` prints of tables: what grew by topic and day, what older segments keep."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from kafka_segments.console.output import cell, console, duration, print_text, size_text, utc
from kafka_segments.console.table_form import made_table, show_table
from kafka_segments.files.storage.local_folder import as_text
from kafka_segments.verbs.find.disk.decide.accounts import DAYS, BlockedLog, TableGrowth
from kafka_segments.verbs.find.disk.decide.growth import DAY_MS, Growth, full_in_ms
from kafka_segments.verbs.find.disk.run import DirUse, DiskUse

_MOST = 20
_FAR, _FAR_MS = "more than 10 years", 3650 * DAY_MS


def growth_rows(grown: TableGrowth) -> Iterator[dict[str, Any]]:
    """Return a row for each topic and day on which it got something."""
    return (one._asdict() for one in grown.days)


def blocked_rows(grown: TableGrowth) -> Iterator[dict[str, Any]]:
    """Return a row for each log and segment behind which it keeps what has expired."""
    return ({**one._asdict(), "decided_at_ms": grown.decided_ms} for one in grown.blocked)


def unknown_growth(grown: TableGrowth) -> list[str]:
    """Return in lines of which log directories the tables do not tell, and why."""
    return [
        f"not known: what {as_text(log_dir)} grew by, and when its disk is full, by the tables of"
        f" {grown.warehouse}: {why}"
        for log_dir, why in grown.unknown.items()
    ]


def notes_of(use: DiskUse, grown: TableGrowth) -> Iterator[str]:
    """Say what is younger than the tables, and what they do not have yet."""
    for one in use.dirs:
        built_ms = grown.built_ms.get(one.log_dir)
        if built_ms is None or one.newest_ms is None or one.newest_ms - built_ms <= DAY_MS:
            continue
        yield (
            f"{as_text(one.log_dir)}: segments were written up to"
            f" {duration(one.newest_ms - built_ms)} after its last build, which the tables do not"
            " have: run `kafka-segments build`"
        )
    if grown.built_ms and grown.decided_ms is None:
        yield (
            "what retention keeps because of older segments is not known: run `kafka-segments"
            f" retention --warehouse {grown.warehouse}`"
        )


def print_growth(use: DiskUse, one: DirUse, grown: TableGrowth) -> None:
    """Print what the tables say of a log directory."""
    if one.log_dir not in grown.built_ms:
        return
    console().print()
    built, until = grown.built_ms[one.log_dir], grown.day_starts()[-1] + DAY_MS
    print_text(
        f"by the tables, as of the build of {utc(built)} UTC, in the {DAYS} whole days (UTC) before"
        f" {utc(until)[:10]}:"
    )
    for line in full_disk_lines(use, one, grown):
        print_text(f"  {line}")
    _print_days(one, grown)
    _print_blocked([each for each in grown.blocked if each.log_dir == one.log_dir], grown)


def full_disk_lines(use: DiskUse, one: DirUse, grown: TableGrowth) -> Iterator[str]:
    """Say when the disk is full at the pace of these days, and how far that may be wrong."""
    by_file = sum(each.by_file_bytes for each in grown.days if each.log_dir == one.log_dir)
    if by_file:
        yield (
            f"{size_text(by_file)} of what is here is dated by the times of files: no record tells"
            " the day"
        )
    on_disk = use.on_disk_of(one)
    if one.space is None or on_disk & grown.unknown.keys():
        return
    by_day = grown.bytes_by_day(on_disk)
    if not any(by_day):
        yield "nothing that is still here was written, so they do not tell when the disk is full"
        return
    free, week = one.space.free_bytes, Growth(sum(by_day), sum(by_day))
    bounds = full_in_ms(free, Growth(min(by_day), max(by_day)), span_ms=DAY_MS)
    mean, _ = full_in_ms(free, week, span_ms=DAYS * DAY_MS)
    written = f"{size_text(min(by_day))} to {size_text(max(by_day))} a day that are still here"
    when = f": the disk is full in {_between(*bounds)}, {_span(mean)} at the mean pace"
    yield f"{written}{when}, with nothing deleted" if free else written


def _between(soonest: int | None, latest: int | None) -> str:
    until = " or never" if latest is None else f" to {_span(latest)}"
    return f"{_span(soonest)}{until}"


def _span(ms: int | None) -> str:
    return _FAR if ms is not None and ms > _FAR_MS else duration(ms)


def _print_days(one: DirUse, grown: TableGrowth) -> None:
    by_topic: Mapping[str, dict[int, int]] = defaultdict(dict)
    for each in grown.days:
        if each.log_dir == one.log_dir:
            by_topic[each.topic][each.day_ms] = each.written_bytes
    if not by_topic:
        return
    starts = grown.day_starts()
    table = made_table("topic", *(f"{utc(start)[5:10]}>" for start in starts), "together>")
    topics = sorted(by_topic, key=lambda topic: (-sum(by_topic[topic].values()), topic))
    for topic in topics[:_MOST]:
        days = [by_topic[topic].get(start, 0) for start in starts]
        sizes = (size_text(size) if size else "-" for size in days)
        table.add_row(cell(topic), *sizes, size_text(sum(days)))
    console().print()
    show_table(table)
    if len(topics) > _MOST:
        more = size_text(sum(sum(by_topic[topic].values()) for topic in topics[_MOST:]))
        print_text(
            f"and {len(topics) - _MOST} more topics with {more}: --output json --rows growth"
        )


def _print_blocked(blocked: list[BlockedLog], grown: TableGrowth) -> None:
    if not blocked:
        return
    table = made_table("expired, and kept", "segments>", "size>", "by the older segment")
    for one in blocked[:_MOST]:
        table.add_row(
            cell(f"{one.topic}-{one.partition}"),
            str(one.segments),
            size_text(one.size_bytes),
            cell(f"{one.blocked_by_base_offset:020d}"),
        )
    console().print()
    show_table(table)
    print_text(f"as `retention` decided at {utc(grown.decided_ms)} UTC")
    if len(blocked) > _MOST:
        print_text(f"and {len(blocked) - _MOST} more: --output json --rows blocked")
