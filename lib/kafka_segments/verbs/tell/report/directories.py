"""What the page says of directories, for each file of rows: a card, a sentence and a table."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kafka_segments.console.output import size_text, utc
from kafka_segments.files.folders.used_disk import full_percent
from kafka_segments.kafka.text.plain_text import node_in_words
from kafka_segments.verbs.find.cleaner.decide import FOR_A_PERSON
from kafka_segments.verbs.find.disk.decide.verdicts import MayGo
from kafka_segments.verbs.find.triage.decide import FULL_PERCENT, Section
from kafka_segments.verbs.tell.report.directory_files import (
    READ,
    STEP,
    VERDICT,
    AnyRow,
    CleanerRow,
    DirectoryAnswer,
    DiskRow,
    FolderRow,
    KindRow,
    RecordsRow,
    TopicRow,
    TriageRow,
)
from kafka_segments.verbs.tell.report.number_texts import count_text, many
from kafka_segments.verbs.tell.report.view import Grid

_MOST_ROWS = 100
_ON_STDERR = "What could not be looked at stands on the command's stderr, not in its rows."


class Card(NamedTuple):
    """A figure at the top of the page, what it counts, and whether somebody must look at it."""

    figure: str
    counts: str
    is_bad: bool


class DirectoryView(NamedTuple):
    """What the page shows of a file; ``steps`` are to be done in their order."""

    heading: str
    card: Card
    says: str
    table: Grid
    steps: Sequence[str] = ()


def directory_views(
    answers: Iterable[DirectoryAnswer], last_run_ms: int | None
) -> list[DirectoryView]:
    """Return what the page shows of each file; ``last_run_ms``: when the tables were built."""
    return [_view(answer, last_run_ms) for answer in answers]


def _view(answer: DirectoryAnswer, last_run_ms: int | None) -> DirectoryView:
    view = _VIEWS[type(answer.rows[0])](answer.rows)
    older = (
        ", before the last build of the tables"
        if last_run_ms is not None and answer.written_ms < last_run_ms
        else ""
    )
    left_out = (
        f" The first {_MOST_ROWS} of {count_text(len(view.table.rows))} rows are shown."
        if len(view.table.rows) > _MOST_ROWS
        else ""
    )
    says = (
        f"From {answer.path}, a file written at {utc(answer.written_ms)} UTC{older}. {view.says}"
        f"{left_out}"
    )
    shown = view.table._replace(rows=view.table.rows[:_MOST_ROWS])
    return view._replace(says=says, table=shown)


def _triage(rows: Sequence[TriageRow]) -> DirectoryView:
    lines = [row for row in rows if row.row not in (VERDICT, STEP)]
    verdicts = [row for row in rows if row.row == VERDICT]
    urgent = [line for line in lines if line.row != Section.ODD or line.step]
    does_not = [row for row in verdicts if row.what != "starts"]
    table = Grid(
        ("part", "place", "what was found", "bytes>"),
        [
            (
                line.row,
                "/".join(filter(None, (line.log_dir, line.place))) or "-",
                line.what,
                _size(line.bytes),
            )
            for line in lines
        ],
    )
    told = [f"{node_in_words(row.cluster, row.broker_id)} {row.what}" for row in verdicts]
    steps = [": ".join(filter(None, (row.step, row.place))) for row in rows if row.row == STEP]
    card = Card(count_text(len(urgent)), "found by triage", bool(urgent or does_not))
    return DirectoryView("Triage", card, f"{'; '.join(told)}.", table, steps)


def _kinds(rows: Sequence[KindRow]) -> DirectoryView:
    used = sum(row.used_bytes for row in rows)
    dirs = len({row.log_dir for row in rows})
    table = Grid(
        ("log directory", "what", "files>", "on disk>", "size>", "when it goes"),
        [
            (
                *(row.log_dir, row.what, count_text(row.files)),
                *(size_text(row.used_bytes), size_text(row.size_bytes), row.goes),
            )
            for row in rows
        ],
    )
    says = f"{size_text(used)} in {dirs} log director{'y' if dirs == 1 else 'ies'}. {_ON_STDERR}"
    card = Card(size_text(used), "in log directories, as du counts", is_bad=False)
    return DirectoryView("What takes the disk", card, says, table)


def _topics(rows: Sequence[TopicRow]) -> DirectoryView:
    written = sum(row.last_day_most_bytes for row in rows)
    table = Grid(
        ("log directory", "topic", "partitions>", "segments>", "on disk>", "last 24 hours>"),
        [
            (
                *(row.log_dir, row.topic, count_text(row.partitions), count_text(row.segments)),
                size_text(row.used_bytes),
                f"{size_text(row.last_day_least_bytes)} to {size_text(row.last_day_most_bytes)}",
            )
            for row in rows
        ],
    )
    card = Card(size_text(written), "at most, written in the 24 hours before it", is_bad=False)
    return DirectoryView("Topics on the disks", card, _ON_STDERR, table)


def _folders(rows: Sequence[FolderRow]) -> DirectoryView:
    waiting = [row for row in rows if row.may_go != MayGo.BY_ITSELF]
    table = Grid(
        ("log directory", "folder", "on disk>", "may it go", "what is known"),
        [(row.log_dir, row.folder, size_text(row.used_bytes), row.may_go, row.why) for row in rows],
    )
    card = Card(count_text(len(waiting)), "unserved, waiting for a person", bool(waiting))
    return DirectoryView("Folders that nobody serves", card, _ON_STDERR, table)


def _disks(rows: Sequence[DiskRow]) -> DirectoryView:
    known = [full for row in rows if (full := _full_percent(row)) is not None]
    most = max(known, default=None)
    runs = {True: "yes", False: "no", None: "not known"}
    table = Grid(
        ("log directory", "its bytes>", "disk>", "free>", "full>", "a broker runs"),
        [
            (
                *(row.log_dir, size_text(row.used_bytes)),
                *(_size(row.disk_bytes), _size(row.disk_free_bytes), _percent(_full_percent(row))),
                runs[row.broker_runs],
            )
            for row in rows
        ],
    )
    is_bad = most is None or most >= FULL_PERCENT or len(known) < len(rows)
    card = Card(_percent(most), "full: the fullest disk that is known", is_bad)
    return DirectoryView("How full the disks are", card, _ON_STDERR, table)


def _full_percent(row: DiskRow) -> int | None:
    if row.disk_used_bytes is None or row.disk_free_bytes is None:
        return None
    return full_percent(row.disk_used_bytes, row.disk_free_bytes)


def _cleaner(rows: Sequence[CleanerRow]) -> DirectoryView:
    waiting = [row for row in rows if row.stand in FOR_A_PERSON]
    ordered = sorted(rows, key=lambda row: (row.stand not in FOR_A_PERSON, -(row.dirty_ratio or 0)))
    table = Grid(
        ("log directory", "log", "stand", "ratio>", "cleanable>", "a pass frees>", "why"),
        [
            (
                *(row.log_dir, row.folder, row.stand),
                "not known" if row.dirty_ratio is None else f"{row.dirty_ratio:.3f}",
                _size(row.cleanable_bytes),
                "-" if row.pass_freed_bytes is None else size_text(row.pass_freed_bytes),
                row.why,
            )
            for row in ordered
        ],
    )
    says = f"{many(len(rows), 'compacted log')}. {_ON_STDERR}"
    card = Card(count_text(len(waiting)), "at the cleaner, waiting for a person", bool(waiting))
    return DirectoryView("The log cleaner", card, says, table)


def _records(rows: Sequence[RecordsRow]) -> DirectoryView:
    unreadable = [row for row in rows if row.row == "unreadable"]
    large = [row for row in rows if row.row == "large batch"]
    read = [row for row in rows if row.row == READ]
    found = sum(row.row == "record" for row in rows)
    table = Grid(
        ("log", "offset>", "what", "seek to>", "bytes>"),
        [
            (
                f"{row.topic}-{row.partition}",
                "-" if row.offset is None else str(row.offset),
                f"{row.why}: {row.reason}" if row.row == "unreadable" else row.row,
                "-" if row.seek_to is None else str(row.seek_to),
                _size(row.size_bytes),
            )
            for row in (*unreadable, *large)
        ],
    )
    records = sum(row.records or 0 for row in read)
    told = f"; found, and not shown here: {many(found, 'record')}" if found else ""
    says = f"{many(records, 'record')} were read in {many(len(read), 'log')}{told}. {_ON_STDERR}"
    card = Card(count_text(len(unreadable)), "unreadable for consumers", bool(unreadable))
    return DirectoryView("Records that consumers cannot read", card, says, table)


def _size(size_bytes: int | None) -> str:
    return "not known" if size_bytes is None else size_text(size_bytes)


def _percent(percent: int | None) -> str:
    return "not known" if percent is None else f"{percent} %"


_VIEWS: dict[type[AnyRow], Callable[[Any], DirectoryView]] = {
    TriageRow: _triage,
    KindRow: _kinds,
    TopicRow: _topics,
    FolderRow: _folders,
    DiskRow: _disks,
    CleanerRow: _cleaner,
    RecordsRow: _records,
}
