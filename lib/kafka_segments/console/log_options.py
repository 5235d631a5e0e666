"""Options of the verbs that ask logs about times: search, lag, latency, failover, restore."""

from collections.abc import Callable
from typing import Any

import click

from kafka_segments.console.options import (
    kafka_version_option,
    now_ms_option,
    output_option,
    verbose_option,
    with_options,
)
from kafka_segments.console.strict_options import INT, POSITIVE_INT, complete_folder
from kafka_segments.kafka.broker_rules.versions import OLDEST_SEARCHED

RESET_OFFSETS = "reset-offsets"
of_release = with_options(
    kafka_version_option(f"Whose ListOffsets answers, {OLDEST_SEARCHED} or later"),
    click.option(
        "--max-decompressed-message-bytes",
        "most_record_bytes",
        type=POSITIVE_INT,
        metavar="BYTES",
        help="The topics' setting of this name, by which 4.2.2 and 4.4 refuse lookups in compressed"
        " batches; default: by the metadata in the tables, else no limit, as Kafka's.",
    ),
)
"""The options that say how brokers look a time up in a batch."""


def log_options(*forms: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options that name the logs and the form of the answer.

    ``forms`` are allowed for ``--output`` besides table, json and csv.
    """
    options: list[Callable[..., Any]] = [
        click.option(
            "--warehouse",
            required=True,
            metavar="URI",
            shell_complete=complete_folder,
            help="Root of the tables of `build`.",
        ),
        click.option("--topic", "topics", multiple=True, help="Only this topic; repeatable."),
        click.option(
            "--partition", "partitions", type=INT, multiple=True, help="Only this; repeatable."
        ),
        click.option("--cluster", help="Only this cluster's logs."),
        click.option("--broker-id", type=INT, help="Only this broker's logs."),
        now_ms_option,
        output_option(*forms),
        verbose_option,
    ]
    return with_options(*options)
