"""What ``backup verify`` prints."""

from pyspark.sql import Row
from pyspark.sql import functions as F

from kafka_segments.console.grouping import counted
from kafka_segments.console.lines import say
from kafka_segments.console.prometheus import PROMETHEUS, give_figures
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import alike_rows, print_result, without_numbers
from kafka_segments.kafka.text.moments import moment_text
from kafka_segments.verbs.copies.backup.decide.ends import MARGIN_MS
from kafka_segments.verbs.copies.backup.decide.verdicts import BackupVerdict
from kafka_segments.verbs.copies.backup.report_figures import figures_of
from kafka_segments.verbs.copies.backup.run import Verified
from kafka_segments.verbs.copies.divergence.report import read_text

_NAMES = ("log", "backup", "complete until>", "what it misses", "since then")
_MISSES_SHOWN = 3


def print_backup(verified: Verified, output: str) -> int:
    """Print a row for each log; return how many the backup does not hold completely.

    A table leaves out complete logs, unless the cluster has changed them since, and has one row
    for logs that miss the same, with a count and the first.
    """
    if output == PROMETHEUS:
        unknown = verified.verdicts.get(BackupVerdict.UNKNOWN, 0)
        give_figures(figures_of(verified), findings=verified.findings, unknowns=unknown)
    else:
        _print_rows(verified, output)
    counts, moment = verified.verdicts, verified.moment
    margin = "" if moment.is_given else f", within {MARGIN_MS // 60_000} minutes"
    there = sum(counts.values()) - counts.get(BackupVerdict.MADE_LATER, 0)
    say(
        f"{counts.get(BackupVerdict.COMPLETE, 0)} of {there} logs are complete in the backup as of"
        f" {moment_text(moment.ms)}{margin}; incomplete: {counts.get(BackupVerdict.INCOMPLETE, 0)},"
        f" missing: {counts.get(BackupVerdict.MISSING, 0)}, not known:"
        f" {counts.get(BackupVerdict.UNKNOWN, 0)}, made later:"
        f" {counts.get(BackupVerdict.MADE_LATER, 0)}, only in the backup: {verified.only_there};"
        f" {read_text(verified.compared)}"
    )
    return verified.findings


def _print_rows(verified: Verified, output: str) -> None:
    rows = verified.rows.orderBy("topic", "partition")
    if output == "table":
        is_quiet = F.col("verdict").isin(BackupVerdict.COMPLETE, BackupVerdict.MADE_LATER)
        rows = verified.rows.where(~is_quiet | (F.size("since") > 0))
        words = ("verdict", without_numbers(F.to_json("misses")), without_numbers(F.col("doubt")))
        in_order = (F.size("misses") == 0, F.col("topic"), F.col("partition"))
        rows = alike_rows(rows, *words, "since", order=in_order)
    if output != "table" or not rows.isEmpty():
        print_result(rows, output, names=_NAMES, cells=_cells)


def _cells(row: Row) -> tuple[str, ...]:
    misses = row["misses"]
    words = [_miss(miss) for miss in misses[:_MISSES_SHOWN]]
    if len(misses) > len(words):
        words.append(f"{len(misses) - len(words)} more")
    if row["doubt"] is not None:
        words.append(f"not known: {row['doubt']}")
    return (
        counted(row["alike"], f"{row['topic']}-{row['partition']}"),
        row["verdict"],
        or_dash(row["complete_until"]),
        "; ".join(words) or "-",
        "; ".join(row["since"]) or "-",
    )


def _miss(miss: Row) -> str:
    if miss["from_offset"] is None:
        return str(miss["detail"])
    return f"{miss['kind']} {miss['from_offset']} to {miss['until_offset']}: {miss['detail']}"
