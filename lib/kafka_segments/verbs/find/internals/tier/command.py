"""``internals tier``: compare what the cluster announced of tiered storage with its objects."""

from pathlib import Path
from typing import Any

import click

from kafka_segments.console.as_built import tell_records
from kafka_segments.console.early import require_tables
from kafka_segments.console.options import (
    ExitStatus,
    follow_links_option,
    now_ms_option,
    output_option,
    run_with,
    verbose_option,
)
from kafka_segments.console.strict_options import INT, LOCAL_OUTPUT_FILE, Command, complete_folder
from kafka_segments.console.verb_session import verb_session
from kafka_segments.console.warehouse_access import keeps_nothing
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri

GRACE_MS = 3_600_000
CHECKS = ("names", "manifests", "headers")


@click.command(cls=Command, example="--warehouse /srv/warehouse")
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="URI",
    shell_complete=complete_folder,
    help="A folder of the tier; repeatable. Without it no objects are looked at.",
)
@click.option(
    "--warehouse",
    required=True,
    metavar="URI",
    shell_complete=complete_folder,
    help="Root of the tables of `internals read`, and of `build` for the local logs.",
)
@click.option("--topic", "topics", multiple=True, help="Only this topic; repeatable.")
@click.option("--cluster", help="Only this cluster's segments; needed where there are several.")
@click.option(
    "--check",
    type=click.Choice(CHECKS),
    default="manifests",
    show_default=True,
    help="How far objects are read: names and sizes, the manifests of Aiven's plugin too, or the"
    " headers of all batches besides.",
)
@click.option(
    "--grace-ms",
    type=INT,
    default=GRACE_MS,
    show_default=True,
    help="A copy or deletion that began less than this ago may still be under way.",
)
@click.option(
    "--not-copied", is_flag=True, help="Print the local offsets that no copy has that is served."
)
@click.option(
    "--rebuild",
    type=LOCAL_OUTPUT_FILE,
    metavar="FILE",
    help="Write records, as lines of JSON, that announce the segments that no record claims. FILE"
    " must not exist; nothing is sent to Kafka.",
)
@click.option(
    "--metadata-partitions",
    type=click.IntRange(1, 2**31 - 1),
    metavar="N",
    help="With --rebuild: partitions of __remote_log_metadata; default: as the tables say.",
)
@follow_links_option
@click.option("--dry-run", is_flag=True, help="Write neither table nor FILE.")
@now_ms_option
@output_option()
@verbose_option
def tier(**options: Any) -> None:
    """Compare what the cluster announced of remote segments with the objects of the tier.

    The last update in __remote_log_metadata gives a segment its state. Findings are orphans, copies
    and deletions that never finished, segments that are announced and missing, objects that
    contradict the records, and copies by deposed leaders. The rows go to table remote_segments.
    Exit status 1: there are findings.
    """
    run_with(_tier, options)


def _tier(
    *,
    sources: tuple[str, ...],
    warehouse: str,
    topics: tuple[str, ...],
    cluster: str | None,
    check: str,
    grace_ms: int,
    not_copied: bool,
    rebuild: Path | None,
    metadata_partitions: int | None,
    follow_links: bool,
    dry_run: bool,
    now_ms: int,
    output: str,
    **_: Any,
) -> int:
    _refuse(sources, rebuild, not_copied=not_copied)
    if rebuild is None:  # lost records are rebuilt without any
        require_tables(warehouse, ("internal_records",))
    from kafka_segments.kafka.messages.records import REMOTE_LOG_TOPIC  # noqa: PLC0415
    from kafka_segments.verbs.find.internals.tier.decide.objects import rebuildable  # noqa: PLC0415
    from kafka_segments.verbs.find.internals.tier.report import (  # noqa: PLC0415
        print_gaps,
        print_rebuilt,
        print_tier,
    )
    from kafka_segments.verbs.find.internals.tier.run import (  # noqa: PLC0415
        TierOptions,
        offsets_not_copied,
        partitions_of_topic,
        run_tier,
        write_rebuilt,
    )

    root = absolute_uri(warehouse)
    asked = TierOptions(
        sources=tuple(map(absolute_uri, sources)),
        check=check,
        now_ms=now_ms,
        grace_ms=grace_ms,
        topics=topics,
        cluster=cluster,
        follow_links=follow_links,
        is_dry=rebuild is not None or keeps_nothing(root, dry_run=dry_run),
    )
    with verb_session("internals tier", warehouse=root) as verb:
        if rebuild is not None and metadata_partitions is None:
            metadata_partitions = partitions_of_topic(verb.warehouse)
        found = run_tier(verb.warehouse, asked, verb.caches, needs_records=rebuild is None)
        if rebuild is not None:
            segments = found.objects.transform(rebuildable)
            if not dry_run:
                write_rebuilt(segments, rebuild, partitions=metadata_partitions or 1)
            findings = print_rebuilt(found.objects, segments, output)
        elif not_copied:
            findings = print_gaps(offsets_not_copied(found), output)
        else:
            findings = print_tier(found, output)
        if rebuild is None:
            tell_records(verb.warehouse, REMOTE_LOG_TOPIC, now_ms=now_ms, cluster=cluster)
    return ExitStatus.FINDINGS if findings else ExitStatus.DONE


def _refuse(sources: tuple[str, ...], rebuild: Path | None, *, not_copied: bool) -> None:
    if rebuild is None:
        return
    if not sources:
        raise UsageError("--rebuild makes records of the tier's objects: name its --source")
    if not_copied:
        raise UsageError("--rebuild and --not-copied print different things: leave one out")
    if rebuild.exists():
        raise UsageError(f"--rebuild {rebuild}: the file is there already; name another")
