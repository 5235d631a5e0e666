"""``build``: scan segments, write index files, merge the tables."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kafka_segments.console.config_options import config_file_options, load_configs
from kafka_segments.console.lines import say
from kafka_segments.console.options import (
    ExitStatus,
    follow_links_option,
    index_size_options,
    kafka_version_option,
    load_settings,
    most_vanished_option,
    run_with,
    shared_options,
    source_option,
)
from kafka_segments.console.strict_options import INT, OUTPUT_FOLDER
from kafka_segments.console.verb_session import verb_session
from kafka_segments.console.warehouse_access import require_writable
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.kafka.broker_rules.versions import parse_version
from kafka_segments.verbs.scan.format_options import BuildCommand, chosen_format

_OLDEST = "2.0"  # since then recovery's bytes have been the same

if TYPE_CHECKING:
    from kafka_segments.verbs.scan.options import BuildOptions


@click.command(
    cls=BuildCommand,
    may_spare_spark=("dry_run",),
    example="--source /data/kafka-logs --warehouse /srv/warehouse --index-dir /srv/indexes",
)
@source_option
@follow_links_option
@click.option(
    "--index-dir",
    type=OUTPUT_FOLDER,
    metavar="URI",
    help="Where index files go; default: no files.",
)
@click.option("--in-place", is_flag=True, help="Write index files beside the segments.")
@click.option(
    "--recovery",
    "mode",
    type=click.Choice(["segment", "loader-unclean", "loader-missing"]),
    default="segment",
    show_default=True,
    help="Each segment on its own, or a whole log as a broker loads it: after an unclean stop, or"
    " with all index files missing. The loads also give .snapshot and leader-epoch-checkpoint.",
)
@index_size_options
@kafka_version_option("Whose recovery the index files are to be of, 2.0 or later")
@config_file_options
@click.option(
    "--check",
    type=click.Choice(["full", "headers", "index"]),
    default="full",
    show_default=True,
    help="Verify checksums; trust them and read headers alone; or trust the index files beside the"
    " segments, and read few batches: a first look, without index files of its own.",
)
@click.option(
    "--digests",
    "has_digests",
    is_flag=True,
    help="Keep digests of offset ranges: `divergence` and `backup verify` need not read again.",
)
@click.option(
    "--record-sizes",
    "has_record_sizes",
    is_flag=True,
    help="Decode each record, too, for column max_record_bytes of `segments`.",
)
@click.option(
    "--set-aside",
    type=OUTPUT_FOLDER,
    metavar="URI",
    help="Where replaced index files are kept; default: _set_aside under --warehouse.",
)
@click.option("--cluster", help="Cluster name; default: cluster.id of meta.properties.")
@click.option("--broker-id", type=INT, help="Broker id; default: node.id of meta.properties.")
@click.option("--full", is_flag=True, help="Read all segments, whatever earlier runs know.")
@click.option(
    "--internals",
    "has_internals",
    is_flag=True,
    help="Read the cluster's own topics into their tables, too: see `internals`.",
)
@most_vanished_option
@shared_options
def build(**options: Any) -> None:
    """Scan segments, write their index files, merge the tables.

    Only segments that are new or changed are read. The result is one row a segment read. Exit
    status 1: damage, files that were not taken, a missing segment, or a source without any.
    """
    run_with(_build, options)


def _build(
    *,
    sources: tuple[str, ...],
    warehouse: str,
    conf: Path | None,
    pairs: tuple[str, ...],
    now_ms: int,
    output: str,
    dry_run: bool,
    topic_configs: tuple[Path, ...],
    server_properties: Path | None,
    index_dir: str | None,
    set_aside: str | None,
    index_interval_bytes: int | None,
    segment_index_bytes: int | None,
    check: str,
    mode: str,
    kafka_version: str,
    has_internals: bool,
    has_digests: bool,
    **options: Any,
) -> int:
    version = parse_version(kafka_version, oldest=_OLDEST)
    if has_internals and dry_run:
        raise UsageError("--internals has no dry run: leave it or --dry-run out")
    settings = load_settings(
        conf,
        pairs,
        index_interval_bytes=index_interval_bytes,
        segment_index_bytes=segment_index_bytes,
    )
    from kafka_segments.engine.derived.topic_sizes import TopicSizes  # noqa: PLC0415
    from kafka_segments.kafka.index.log.loading import RecoveryMode  # noqa: PLC0415
    from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions  # noqa: PLC0415
    from kafka_segments.verbs.scan.options import BuildOptions  # noqa: PLC0415

    root = absolute_uri(warehouse)
    build_options = BuildOptions(
        sources=tuple(map(absolute_uri, sources)),
        recovery=RecoveryOptions(
            index_interval_bytes=settings.index_interval_bytes,
            segment_index_bytes=settings.segment_index_bytes,
            check_crc=check != "headers",
            digest_bits=_digest_bits() if has_digests else 0,
        ),
        mode=RecoveryMode(mode),
        producer_id_expiration_ms=settings.producer_id_expiration_ms,
        now_ms=now_ms,
        kafka_version=version,
        index_format=chosen_format(options),
        index_dir=None if index_dir is None else absolute_uri(index_dir),
        set_aside=None if set_aside is None else absolute_uri(set_aside),
        is_first_look=check == "index",
        **options,
    )
    build_options.check_target("--warehouse", root)
    build_options, marks = _mended(root, build_options, dry_run=dry_run)
    configs = load_configs(
        settings,
        topic_configs=topic_configs,
        server_properties=server_properties,
        warehouse=root,
        now_ms=now_ms,
    )
    build_options = replace(build_options, sizes=TopicSizes(configs))
    done = _planned(root, build_options) if dry_run else None
    if done is None:
        done = _built(
            root, build_options, output, marks, dry_run=dry_run, has_internals=has_internals
        )
    return ExitStatus.FINDINGS if marks else done


def _digest_bits() -> int:
    from kafka_segments.kafka.index.segment.offset_ranges import RANGE_BITS  # noqa: PLC0415

    return RANGE_BITS


def _planned(warehouse: str, options: "BuildOptions") -> int | None:
    """Say without Spark what would be built; None: only Spark can tell."""
    from kafka_segments.verbs.scan.dry_run import plan_without_spark  # noqa: PLC0415
    from kafka_segments.verbs.scan.report import print_build  # noqa: PLC0415

    planned = plan_without_spark(warehouse, options)
    if planned is None:
        return None
    print_build(planned, options, warehouse, dry_run=True)
    return ExitStatus.FINDINGS if planned.findings else ExitStatus.DONE


def _mended(
    warehouse: str, options: "BuildOptions", *, dry_run: bool
) -> "tuple[BuildOptions, Collection[str]]":
    """Make broken tables whole; return the options, and the marks that say to read all again."""
    from kafka_segments.files.storage.read_again import marks_of  # noqa: PLC0415
    from kafka_segments.verbs.scan.mending import READS_ALL_AGAIN, mend_tables  # noqa: PLC0415

    marks = marks_of(warehouse, options.sources)
    if not dry_run:
        require_writable(warehouse)
        marks |= mend_tables(warehouse)
    for why in marks.values():
        say(f"{why}; {READS_ALL_AGAIN}")
    return replace(options, full=options.full or bool(marks), makes_anew=bool(marks)), marks.keys()


def _built(
    root: str,
    options: "BuildOptions",
    output: str,
    marks: Collection[str],
    *,
    dry_run: bool,
    has_internals: bool,
) -> int:
    from kafka_segments.files.storage.read_again import marks_of, note_read_again  # noqa: PLC0415
    from kafka_segments.verbs.scan.report import print_build  # noqa: PLC0415
    from kafka_segments.verbs.scan.report_segments import print_segments  # noqa: PLC0415
    from kafka_segments.verbs.scan.run import run_build  # noqa: PLC0415

    with verb_session("build", warehouse=root) as verb:
        warehouse = verb.warehouse
        done = run_build(
            warehouse, options, verb.work.reads, tell_read=verb.work.has_read, dry_run=dry_run
        )
        if not dry_run:
            note_read_again(root, marks, options.sources)
            meanwhile = marks_of(root, options.sources)
            done = done.with_taken_back(list(meanwhile.values()))
            print_segments(warehouse, done, output)
        print_build(done, options, root, dry_run=dry_run)
        found = done.findings
        if has_internals:
            from kafka_segments.verbs.scan.internal_topics import read_internal_topics  # noqa: PLC0415

            found += read_internal_topics(warehouse, options)
    return ExitStatus.FINDINGS if found else ExitStatus.DONE
