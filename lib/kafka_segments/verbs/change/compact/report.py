"""What ``compact`` prints."""

from collections import Counter

from kafka_segments.console.lines import print_csv, print_json, say
from kafka_segments.console.output import cell
from kafka_segments.console.table_form import made_table, show_table
from kafka_segments.files.changes.kept_files import Undone
from kafka_segments.verbs.change.compact.folder_compactor import CompactedFile
from kafka_segments.verbs.change.compact.run import CompactSummary

_COLUMNS = ("path", "action", "bytes_before", "bytes_after")


def print_compact(summary: CompactSummary, output: str) -> None:
    """Print files by action, and tables; as JSON lines or CSV every file that was changed."""
    if output == "json":
        for change in summary.changes:
            print_json(_row(change))
    elif output == "csv":
        print_csv(_COLUMNS)
        for change in summary.changes:
            print_csv(_row(change).values())
    else:
        _print_table(summary)


def _row(change: CompactedFile) -> dict[str, str | int]:
    return {name: getattr(change, name) for name in _COLUMNS}


def _print_table(summary: CompactSummary) -> None:
    table = made_table("what", "files>", "to>", "bytes>", "to>", "saved>")
    files: Counter[str] = Counter()
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for change in summary.changes:
        files[change.action] += 1
        before[change.action] += change.bytes_before
        after[change.action] += change.bytes_after
    for action in sorted(files):
        sizes = (before[action], after[action], before[action] - after[action])
        table.add_row(cell(f"index files: {action}"), str(files[action]), "", *map(str, sizes))
    for done in summary.tables:
        counts = (done.files_before, done.files_after, done.bytes_before, done.bytes_after)
        saved = done.bytes_before - done.bytes_after
        table.add_row(cell(f"table {done.table}"), *map(str, counts), str(saved))
    if table.row_count:
        show_table(table)


def print_summary(done: CompactSummary, set_aside: str, *, dry_run: bool) -> None:
    """Say on stderr what was done, and how to undo it."""
    saved = sum(change.bytes_before - change.bytes_after for change in done.changes)
    verb = "would change" if dry_run else "changed"
    lines = [f"{verb} {len(done.changes)} index files, {saved} bytes saved"]
    if done.changes and not dry_run:
        lines.append(f"kept in {set_aside}/{done.run_id}; to put back: --undo {done.run_id}")
    if done.stale_builds:
        lines.append(f"{len(done.stale_builds)} folders left by builds that died")
    if done.unfinished:
        lines.append(f"{len(done.unfinished)} unfinished files of runs that died")
    lines.extend(
        f"{path}: left to the broker, which completes it at start" for path in done.waiting
    )
    lines.extend(f"not done: {problem}" for problem in done.problems)
    lines.extend(
        f"{why}: run `build` of each source again, it reads all of its segments"
        for why in done.taken_back
    )
    if dry_run:
        lines.append("tables are left out of a dry run")
    for line in lines:
        say(line)


def print_undone(result: Undone) -> None:
    """Say on stderr what an undo put back."""
    lines = [f"put back {result.restored} files"]
    lines.extend(result.left)
    for line in lines:
        say(line)
