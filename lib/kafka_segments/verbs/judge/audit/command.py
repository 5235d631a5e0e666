"""``audit``: compare the index files found beside segments with the rebuilt ones."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from kafka_segments.console.config_options import config_file_options, load_configs
from kafka_segments.console.options import (
    ExitStatus,
    follow_links_option,
    index_size_options,
    kafka_version_option,
    load_settings,
    run_with,
    shared_options,
    source_option,
)
from kafka_segments.console.strict_options import INT, Command
from kafka_segments.console.verb_session import verb_session
from kafka_segments.console.warehouse_access import keeps_nothing
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.kafka.broker_rules.versions import parse_version


@click.command(cls=Command, example="--source /data/kafka-logs")
@source_option
@follow_links_option
@kafka_version_option("The release whose broker would start on these files")
@index_size_options
@config_file_options
@click.option("--cluster", help="Cluster name; default: cluster.id of meta.properties.")
@click.option("--broker-id", type=INT, help="Broker id; default: node.id of meta.properties.")
@partial(shared_options, needs_warehouse=False)
def audit(**options: Any) -> None:
    """Judge every index file beside the segments, and say what a broker makes of it.

    Nothing under the sources is changed. The result is one row a file; with --warehouse the rows
    go to table index_audits, too. A file that is right is no finding, whatever release or setting
    wrote it; --output json and csv print it, too.
    """
    run_with(_audit, options)


def _audit(
    *,
    sources: tuple[str, ...],
    warehouse: str | None,
    now_ms: int,
    output: str,
    dry_run: bool,
    kafka_version: str,
    cluster: str | None,
    broker_id: int | None,
    follow_links: bool,
    conf: Path | None,
    pairs: tuple[str, ...],
    index_interval_bytes: int | None,
    segment_index_bytes: int | None,
    topic_configs: tuple[Path, ...],
    server_properties: Path | None,
    **_: Any,
) -> int:
    from kafka_segments.engine.derived.topic_sizes import TopicSizes  # noqa: PLC0415
    from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions  # noqa: PLC0415
    from kafka_segments.verbs.judge.audit.report import print_audit  # noqa: PLC0415
    from kafka_segments.verbs.judge.audit.run import AuditOptions, run_audit  # noqa: PLC0415

    root = warehouse and absolute_uri(warehouse)
    settings = load_settings(
        conf,
        pairs,
        index_interval_bytes=index_interval_bytes,
        segment_index_bytes=segment_index_bytes,
    )
    configs = load_configs(
        settings,
        topic_configs=topic_configs,
        server_properties=server_properties,
        warehouse=root,
        now_ms=now_ms,
    )
    asked = AuditOptions(
        sources=tuple(map(absolute_uri, sources)),
        recovery=RecoveryOptions(
            index_interval_bytes=settings.index_interval_bytes,
            segment_index_bytes=settings.segment_index_bytes,
        ),
        sizes=TopicSizes(configs),
        version=parse_version(kafka_version),
        now_ms=now_ms,
        cluster=cluster,
        broker_id=broker_id,
        follow_links=follow_links,
    )
    dry_run = keeps_nothing(root, dry_run=dry_run)
    with verb_session("audit", warehouse=root) as verb:
        keep_in = None if dry_run else verb.tables
        audits = run_audit(verb.spark, asked, verb.caches, keep_in=keep_in, tell=verb.work.reads)
        has_findings = not audits.where("is_finding").isEmpty()
        print_audit(audits, output)
    return ExitStatus.FINDINGS if has_findings else ExitStatus.DONE
