"""``recovery apply`` and ``rollback``: put a kit in place, and take it back."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from kafka_segments.console.options import output_option, run_with, verbose_option, with_options
from kafka_segments.console.strict_options import Command
from kafka_segments.files.storage.typed_uris import absolute_uri

_KIT = click.argument("kit", type=click.Path(exists=True, file_okay=False, path_type=Path))
_apply_options = with_options(
    _KIT,
    click.option(
        "--log-dir",
        "log_dirs",
        multiple=True,
        metavar="DIR",
        help="Where the kit's log directories lie now, in its order; default: where it was made.",
    ),
    click.option("--execute", is_flag=True, help="Do it; without it nothing changes."),
    output_option(),
    verbose_option,
)


@click.command(cls=Command, extra=None, example="/srv/kit --execute")
@_apply_options
@click.option(
    "--by-digest",
    is_flag=True,
    help="Read the segments again and compare their sha256; default: size and mtime tell.",
)
def apply(**options: Any) -> None:
    """Put a kit's files in place under a stopped broker, then advance its recovery points.

    Without --execute it only says what it would do. It refuses a log directory whose .lock is held,
    and a log that has changed since the kit was made. Torn tails are cut off and kept in the kit,
    as is every file that is replaced. After a crash at any moment the broker starts as it
    would have without the kit, or sooner; a second run goes on.
    """
    run_with(partial(_apply, is_back=False), options)


@click.command(cls=Command, extra=None, example="/srv/kit --execute")
@_apply_options
def rollback(**options: Any) -> None:
    """Put back what `recovery apply` changed: the recovery points first, then every file.

    A log that its broker has written to since is refused. Run again after a crash, it goes on.
    """
    run_with(partial(_apply, is_back=True), options)


def _apply(
    *,
    is_back: bool,
    kit: Path,
    log_dirs: tuple[str, ...],
    execute: bool,
    output: str,
    by_digest: bool = False,
    **_: Any,
) -> int:
    from kafka_segments.verbs.change.recovery.apply.report import print_apply  # noqa: PLC0415
    from kafka_segments.verbs.change.recovery.apply.run import (  # noqa: PLC0415
        ApplyOptions,
        run_apply,
        run_rollback,
    )

    options = ApplyOptions(
        kit=kit.absolute(),
        execute=execute,
        by_digest=by_digest,
        log_dirs=[absolute_uri(folder) for folder in log_dirs] or None,
    )
    change = run_rollback if is_back else run_apply
    return print_apply(change(options), output)
