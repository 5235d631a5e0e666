"""What ``disk`` prints."""

from collections.abc import Iterator, Sequence
from typing import Any

from kafka_segments.console.lines import print_dicts, say
from kafka_segments.console.not_known import say_not_known
from kafka_segments.console.output import cell, console, duration, print_text, size_text
from kafka_segments.console.prometheus import PROMETHEUS, give_figures
from kafka_segments.console.table_form import made_table, show_table
from kafka_segments.files.storage.folder_lock import LockState
from kafka_segments.files.storage.local_folder import as_text
from kafka_segments.verbs.find.disk.decide.accounts import Account, TopicUse
from kafka_segments.verbs.find.disk.decide.growth import DAY_MS, SPANS_MS, Growth, full_in_ms
from kafka_segments.verbs.find.disk.decide.kinds import GOES
from kafka_segments.verbs.find.disk.decide.verdicts import MayGo
from kafka_segments.verbs.find.disk.judged_folders import JudgedFolder
from kafka_segments.verbs.find.disk.report_figures import figures_of
from kafka_segments.verbs.find.disk.report_growth import (
    blocked_rows,
    growth_rows,
    notes_of,
    print_growth,
    unknown_growth,
)
from kafka_segments.verbs.find.disk.run import DirUse, DiskUse

_MOST_TOPICS = 20
_SPANS = ("last_hour", "last_day")
_OF_TABLES = {"growth": growth_rows, "blocked": blocked_rows}
_FAR_MS = 90 * DAY_MS  # a disk that is full later is no worry of today


def print_disk(use: DiskUse, output: str, *, rows: str) -> int:
    """Print the account; return how much of it is for a person, what is not known included."""
    if output == "table":
        for one in use.dirs:
            if _is_printed(use, one):
                _print_dir(use, one)
        if len(use.dirs) > 1:
            print_text(f"together {size_text(use.used_bytes)}, as du counts them")
    elif output != PROMETHEUS:
        print_dicts(rows_of(use, rows), output)
    for line in not_known_of(use):
        say_not_known(line)
    undecided = _say_notes(use, "blocked" if output == PROMETHEUS else rows)
    found = count_findings(use) + undecided
    if output == PROMETHEUS:
        unknowns = len(not_known_of(use)) + undecided
        give_figures(figures_of(use), findings=found, unknowns=unknowns)
    return found


def _is_printed(use: DiskUse, one: DirUse) -> bool:
    """Tell whether a table has a folder: not one that merely has log directories below it."""
    is_judged = any(each.folder.log_dir == one.log_dir for each in use.folders)
    return is_judged or len(use.dirs) == 1 or not use.has_only_folders(as_text(one.log_dir))


def _say_notes(use: DiskUse, rows: str) -> int:
    """Say what the tables do not have yet; return 1 where that was asked for."""
    grown = use.of_tables
    if grown is None:
        return 0
    for line in notes_of(use, grown):
        say(line)
    return int(rows == "blocked" and grown.decided_ms is None)


def count_findings(use: DiskUse) -> int:
    """Return how much of an account is for a person, what is not known included."""
    waiting = sum(one.verdict.may_go != MayGo.BY_ITSELF for one in use.folders)
    return len(not_known_of(use)) + waiting


def rows_of(use: DiskUse, rows: str) -> Iterator[dict[str, Any]]:
    """Return the rows of an account, by their name: ``kinds``, ``topics`` and so on.

    ``growth`` and ``blocked`` are those of tables, where they were asked.
    """
    if use.of_tables is not None and rows in _OF_TABLES:
        return _OF_TABLES[rows](use.of_tables)
    if rows == "topics":
        return map(_topic_row, use.topics)
    if rows == "folders":
        return map(_folder_row, use.folders)
    if rows == "disks":
        return (_dir_row(use, one) for one in use.dirs)
    return map(_account_row, use.accounts)


def not_known_of(use: DiskUse) -> list[str]:
    """Return in lines what could not be looked at."""
    lines = [*(f"not looked at: {problem}" for problem in use.problems), *use.unknown]
    lines += [] if use.of_tables is None else unknown_growth(use.of_tables)
    for one in use.dirs:
        if one.space is None:
            lines.append(f"{as_text(one.log_dir)}: how full its disk is, is not known")
        if one.lock.is_held is None:
            lines.append(
                f"{as_text(one.log_dir)}: whether a broker runs, is not known: {one.lock.reason}"
            )
    return lines


def _account_row(one: Account) -> dict[str, Any]:
    return {
        "log_dir": one.log_dir,
        "what": one.what.value,
        "files": one.files,
        "used_bytes": one.used_bytes,
        "size_bytes": one.size_bytes,
        "shared_bytes": one.shared_bytes,
        "oldest_ms": one.oldest_ms,
        "goes": GOES[one.what],
    }


def _topic_row(one: TopicUse) -> dict[str, Any]:
    row = {
        "log_dir": one.log_dir,
        "topic": one.topic,
        "partitions": one.partitions,
        "segments": one.segments,
        "used_bytes": one.used_bytes,
    }
    return {**row, **_growth_row(one.growth)}


def _growth_row(growth: Sequence[Growth]) -> dict[str, int]:
    return {
        f"{span}_{end}_bytes": getattr(one, f"{end}_bytes")
        for span, one in zip(_SPANS, growth, strict=True)
        for end in ("least", "most")
    }


def _folder_row(one: JudgedFolder) -> dict[str, Any]:
    partition = one.folder.partition
    return {
        "log_dir": as_text(one.folder.log_dir),
        "folder": as_text(one.folder.name),
        "topic": None if partition is None else as_text(partition.topic),
        "partition": None if partition is None else partition.partition,
        "used_bytes": one.folder.used_bytes,
        "may_go": one.verdict.may_go.value,
        "why": one.verdict.why,
    }


def _dir_row(use: DiskUse, one: DirUse) -> dict[str, Any]:
    space = one.space
    return {
        "log_dir": as_text(one.log_dir),
        "used_bytes": use.used_of(as_text(one.log_dir)),
        "disk_bytes": None if space is None else space.total_bytes,
        "disk_used_bytes": None if space is None else space.used_bytes,
        "disk_free_bytes": None if space is None else space.free_bytes,
        "broker_runs": one.lock.is_held,
        "broker_pid": one.lock.pid,
        **_growth_row(use.growth_of(one)),
    }


def _print_dir(use: DiskUse, one: DirUse) -> None:
    log_dir = as_text(one.log_dir)
    print_text(f"{log_dir}: {size_text(use.used_of(log_dir))}{_disk_told(use, one)}")
    print_text(f"  {lock_text(one.lock)}")
    for line in growth_lines(use, one):
        print_text(f"  {line}")
    table = made_table(
        "what", "files>", "on disk>", "size>", "also named elsewhere>", "when it goes"
    )
    for account in use.accounts:
        if account.log_dir == log_dir:
            shared = size_text(account.shared_bytes) if account.shared_bytes else "-"
            table.add_row(
                cell(account.what),
                str(account.files),
                size_text(account.used_bytes),
                size_text(account.size_bytes) if account.size_bytes else "-",
                shared,
                cell(GOES[account.what]),
            )
    console().print()
    show_table(table)
    _print_topics([topic for topic in use.topics if topic.log_dir == log_dir])
    _print_folders([each for each in use.folders if each.folder.log_dir == one.log_dir])
    if use.of_tables is not None:
        print_growth(use, one, use.of_tables)
    console().print()


def _print_topics(topics: Sequence[TopicUse]) -> None:
    if not topics:
        return
    table = made_table(
        "topic", "partitions>", "segments>", "on disk>", "last hour>", "last 24 hours>"
    )
    for topic in topics[:_MOST_TOPICS]:
        table.add_row(
            cell(topic.topic),
            str(topic.partitions),
            str(topic.segments),
            size_text(topic.used_bytes),
            *map(_range, topic.growth),
        )
    console().print()
    show_table(table)
    more = topics[_MOST_TOPICS:]
    if more:
        size = size_text(sum(topic.used_bytes for topic in more))
        print_text(f"and {len(more)} more topics with {size}: --output json --rows topics")


def _print_folders(folders: Sequence[JudgedFolder]) -> None:
    if not folders:
        return
    table = made_table("folder", "on disk>", "may it go", "what is known")
    for one in folders[:_MOST_TOPICS]:
        table.add_row(
            cell(as_text(one.folder.name)),
            ("" if one.folder.is_whole else "at least ") + size_text(one.folder.used_bytes),
            cell(one.verdict.may_go),
            cell(one.verdict.why),
        )
    console().print()
    show_table(table)
    more = folders[_MOST_TOPICS:]
    if more:
        size = size_text(sum(one.folder.used_bytes for one in more))
        print_text(f"and {len(more)} more folders with {size}: --output json --rows folders")


def _disk_told(use: DiskUse, one: DirUse) -> str:
    """Say how full the disk is, and what on it is not of these log directories."""
    if one.space is None:
        return ""
    space = one.space
    same = [each for each in use.dirs if each.space and each.space.device == space.device]
    others = space.used_bytes - sum(use.used_of(as_text(each.log_dir)) for each in same)
    told = (
        f" on a disk of {size_text(space.total_bytes)}, {space.full_percent} % full,"
        f" {size_text(space.free_bytes)} free"
    )
    if others > 0:
        told += f"; {size_text(others)} are of other folders, or of removed files still open"
    return told


def lock_text(lock: LockState) -> str:
    """Say whether a broker runs on a log directory."""
    if lock.is_held is None:
        return f"not known whether a broker runs: {lock.reason}"
    if not lock.is_held:
        return "no broker of this machine runs on it"
    by = "a process elsewhere" if lock.pid is None else f"process {lock.pid}"
    return f"a broker runs on it: {by} holds its lock, so the figures are of a moment"


def growth_lines(use: DiskUse, one: DirUse) -> Iterator[str]:
    """Say how much was written lately, and when the disk is full at that pace."""
    if one.space is None:
        return
    for span, name, growth in zip(SPANS_MS, ("hour", "24 hours"), use.growth_of(one), strict=True):
        soonest, latest = full_in_ms(one.space.free_bytes, growth, span_ms=span)
        if soonest is None or soonest > _FAR_MS:
            continue
        until = f"in {duration(soonest)}" if latest is None else _between(soonest, latest)
        at_soonest = " at the soonest" if latest is None else ""
        written = (
            f"the last {name} wrote {_range(growth)} that are still here, by the times of files"
        )
        when = f"; at that pace, with nothing deleted, the disk is full {until}{at_soonest}"
        yield written + when if one.space.free_bytes else written


def _between(soonest: int | None, latest: int | None) -> str:
    first, last = duration(soonest), duration(latest)
    return f"in {first}" if first == last else f"in {first} to {last}"


def _range(growth: Growth) -> str:
    if not growth.most_bytes:
        return "-"
    least, most = size_text(growth.least_bytes), size_text(growth.most_bytes)
    return most if least == most else f"{least} to {most}"
