"""What ``build`` says of itself on stderr; it needs no Spark."""

from collections.abc import Iterator

from kafka_segments.console.grouping import alike, counted, without_numbers
from kafka_segments.console.lines import say
from kafka_segments.engine.sources.missing import no_segments
from kafka_segments.kafka.index.formats.by_name import KAFKAS_OWN
from kafka_segments.kafka.index.segment.recovery_options import HEADERS
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.summary import BuildSummary


def _not_taken(done: BuildSummary) -> Iterator[str]:
    """Yield lines about damage and other files: those to look at, and those any broker leaves."""
    damaged = done.segments_damaged - done.segments_open
    unrecognized = done.files_unrecognized - done.files_left_over - done.files_passed_over
    if damaged:
        yield f"{damaged} damaged segments: column damage of table segments"
    if done.segments_forbidden:
        yield (
            f"{done.segments_forbidden} segments not read for want of permission, e.g."
            f" {done.forbidden_why}"
        )
    if done.segments_open:
        yield (
            f"{done.segments_open} segments end as a running broker leaves them, torn or"
            " preallocated: no finding, column damage has them"
        )
    yield from done.unread.lines("; column problem of tables log_dirs and logs has all")
    if unrecognized:
        yield f"{unrecognized} files or folders not taken: table unrecognized_files"
    if done.files_left_over:
        yield (
            f"{done.files_left_over} files left over, which a broker resolves at its start: no"
            " finding, table unrecognized_files has them"
        )
    if done.files_passed_over:
        yield (
            f"{done.files_passed_over} files that are none of Kafka's, which a broker passes over:"
            " no finding, table unrecognized_files has them"
        )


def _missing(done: BuildSummary) -> Iterator[str]:
    """Yield lines about segments and logs that are missing."""
    for missing in alike(done.missing, lambda one: without_numbers(one.found)):
        path, found, named_by = missing[0]
        names_all = f"; {named_by}" if len(missing) > 1 else ""
        first = f"{path}: {found}; put it back from a backup or another replica{names_all}"
        yield counted(len(missing), first)


def _would_write(options: BuildOptions, warehouse: str) -> Iterator[str]:
    if options.in_place:
        yield "would write index files beside the segments"
    elif options.index_dir is not None:
        yield f"would write index files below {options.index_dir}, format {options.index_format}"
    yield f"would write the tables of {warehouse}"


def print_build(
    done: BuildSummary, options: BuildOptions, warehouse: str, *, dry_run: bool
) -> None:
    """Print on stderr, in a few lines, what a build did and where its files are."""
    verb = "would read" if dry_run else "read"
    if dry_run and options.is_first_look:
        verb = "would take a first look at"
    steps = ", ".join(f"{step} {spent:.1f}" for step, spent in done.seconds_by_step.items())
    lines = [
        f"{verb} {done.segments_scanned} of {done.segments_found} segments"
        f" ({done.bytes_scanned} bytes), {done.segments_unchanged} unchanged,"
        f" {done.segments_vanished} vanished, in {done.seconds:.1f} s"
        + (f" ({steps})" if steps else "")
    ]
    if done.segments_looked_at or done.segments_doubted:
        lines.append(
            f"{done.segments_looked_at} of them by a first look, {done.segments_doubted} as a whole"
            " because it was not enough: columns checked, checked_why of table segments"
        )
    if options.check == HEADERS and done.segments_scanned and not dry_run:
        lines.append(
            "their checksums were not verified, as --check headers says: whether their records are"
            " sound is not known"
        )
    lines += (
        f"{why}, while this build ran: run it again, it then reads all of its segments"
        for why in done.taken_back
    )
    lines += map(no_segments, done.empty_sources)
    lines += _missing(done)
    lines += _not_taken(done)
    if not dry_run:
        if options.writes_indexes:
            lines.append(f"index files: {options.index_dir or 'beside the segments'}")
            if options.index_format != KAFKAS_OWN:
                note = options.index_format.note
                lines.append(f"their format: {options.index_format}{note and f', {note}'}")
        lines.append(f"tables: {warehouse}")
    elif done.segments_scanned:
        lines += _would_write(options, warehouse)
    for line in lines:
        say(line)
