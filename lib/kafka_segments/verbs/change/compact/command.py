"""``compact``: trim, thin and clean index files and tables."""

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kafka_segments.console.early import ANY_TABLE, require_tables
from kafka_segments.console.options import (
    BUILT_TABLES,
    ExitStatus,
    load_settings,
    run_with,
    shared_options,
)
from kafka_segments.console.strict_options import INT, OUTPUT_FOLDER, POSITIVE_INT, Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.console.warehouse_access import require_writable
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.files.storage.uris import join_uri

if TYPE_CHECKING:
    from kafka_segments.verbs.change.compact.run import CompactOptions, UndoOptions

_RUN_ID = re.compile(r"[0-9a-f]{32}")


@click.command(
    cls=Command, may_spare_spark=("undo",), example="--warehouse /srv/warehouse --dry-run"
)
@click.option("--index-dir", metavar="DIR", help="Index files that builds of the warehouse wrote.")
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="DIR",
    help="A log directory whose index files lie beside the segments; needs --in-place.",
)
@click.option("--in-place", is_flag=True, help="Change files under --source.")
@click.option(
    "--index-interval-bytes",
    type=POSITIVE_INT,
    metavar="BYTES",
    help="Thin entries to more than this apart; default: thin none.",
)
@click.option(
    "--set-aside",
    type=OUTPUT_FOLDER,
    metavar="DIR",
    help="Where changed and removed files are kept; default: _set_aside under --warehouse.",
)
@click.option("--no-tables", is_flag=True, help="Leave the tables as they are.")
@click.option(
    "--vacuum-hours",
    type=INT,
    default=168,
    show_default=True,
    metavar="HOURS",
    help="Files that tables have not needed for so long go; 168 at least.",
)
@click.option("--undo", metavar="RUN_ID", help="Put back the index files that a run changed.")
@partial(shared_options, warehouse=BUILT_TABLES)
def compact(**options: Any) -> None:
    """Trim, thin and clean index files; OPTIMIZE and VACUUM the tables.

    Index files: preallocated zeros are cut off, repeated entries dropped, files without a segment
    and what compaction or deletion left over removed. All that is kept for --undo.
    """
    run_with(_compact, options)


def _compact(
    *,
    warehouse: str,
    undo: str | None,
    conf: Path | None,
    pairs: tuple[str, ...],
    output: str,
    **given: Any,
) -> int:
    load_settings(conf, pairs)  # none is used; what cannot be read is refused
    if not given["sources"] and undo is None:
        require_tables(warehouse, (ANY_TABLE,))
    from kafka_segments.verbs.change.compact import report  # noqa: PLC0415
    from kafka_segments.verbs.change.compact.run import UndoOptions, run_compact  # noqa: PLC0415

    root, set_aside = absolute_uri(warehouse), given.pop("set_aside")
    kept_in = absolute_uri(set_aside) if set_aside else join_uri(root, "_set_aside")
    options = _options(set_aside=kept_in, **given)
    if undo is not None:
        return _undo(UndoOptions(root, kept_in, undo))
    if not options.dry_run:
        require_writable(root)
    with verb_session("compact", warehouse=root, reads_all=True, rewrites_all=True) as verb:
        done = run_compact(verb.warehouse, options)
        report.print_compact(done, output)
        report.print_summary(done, kept_in, dry_run=options.dry_run)
    found = done.problems or done.waiting or done.taken_back
    return ExitStatus.FINDINGS if found else ExitStatus.DONE


def _options(
    *,
    index_dir: str | None,
    sources: tuple[str, ...],
    in_place: bool,
    index_interval_bytes: int | None,
    set_aside: str,
    no_tables: bool,
    vacuum_hours: int,
    now_ms: int,
    dry_run: bool,
    **_: Any,
) -> "CompactOptions":
    from kafka_segments.verbs.change.compact.run import CompactOptions  # noqa: PLC0415

    if sources and not (in_place or dry_run):
        raise UsageError("--source: its files are changed only with --in-place")
    return CompactOptions(
        now_ms=now_ms,
        index_dir=None if index_dir is None else absolute_uri(index_dir),
        sources=tuple(map(absolute_uri, sources)),
        index_interval_bytes=index_interval_bytes,
        set_aside=set_aside,
        compacts_tables=not no_tables,
        vacuum_hours=vacuum_hours,
        dry_run=dry_run,
    )


def _undo(options: "UndoOptions") -> int:
    from kafka_segments.verbs.change.compact import report  # noqa: PLC0415
    from kafka_segments.verbs.change.compact.run import run_undo  # noqa: PLC0415

    if not _RUN_ID.fullmatch(options.run_id):
        raise UsageError(
            f"--undo {options.run_id}: 32 hex digits expected, as compact printed them"
        )
    result = run_undo(options)
    report.print_undone(result)
    return ExitStatus.FINDINGS if result.left else ExitStatus.DONE
