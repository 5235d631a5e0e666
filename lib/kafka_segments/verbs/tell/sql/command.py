"""``sql``: one query over a warehouse's tables, for a quick look."""

import logging
from typing import Any

import click

from kafka_segments.console.early import ANY_TABLE
from kafka_segments.console.lines import say
from kafka_segments.console.options import (
    ExitStatus,
    clock,
    output_option,
    run,
    verbose_option,
)
from kafka_segments.console.strict_options import MOMENT_MS, Command, complete_folder
from kafka_segments.console.verb_session import verb_session
from kafka_segments.files.storage.typed_uris import absolute_uri


@click.command(
    cls=Command,
    reads=(ANY_TABLE,),
    example="'SELECT topic, count(*) FROM segments GROUP BY 1' --warehouse /srv/warehouse",
)
@click.argument("query")
@click.option(
    "--warehouse",
    required=True,
    metavar="URI",
    shell_complete=complete_folder,
    help="Root of the Delta tables.",
)
@click.option(
    "--now-ms",
    type=MOMENT_MS,
    default=clock,
    metavar="MS",
    help="What now_ms in the query stands for, in ms since 1970; default: the clock.",
)
@output_option()
@verbose_option
def sql(**options: Any) -> None:
    """Run one query over the warehouse's tables, and no others; nothing is changed.

    SHOW TABLES lists them, DESCRIBE <table> their columns. Columns of ms since 1970 have a
    TIMESTAMP column beside them (largest_timestamp_ms, largest_timestamp; from_ms, from_at).
    segments holds the present ones, segments_history vanished ones too. internal_current holds
    the last record of each key of __consumer_offsets, __transaction_state, __share_group_state;
    internal_problems tells of which partitions of these that is not known, and why.
    """
    run(lambda: _sql(**options), verbose=options["verbose"])


def _sql(*, query: str, warehouse: str, now_ms: int, output: str, verbose: bool) -> int:
    from kafka_segments.verbs.tell.sql.report import print_sql  # noqa: PLC0415
    from kafka_segments.verbs.tell.sql.run import (  # noqa: PLC0415
        SqlOptions,
        confined,
        read_as_texts,
        refuse_early,
        run_sql,
    )

    if not verbose:
        logging.getLogger("sqlglot").disabled = True  # it says what it takes for a command
    root, asked = absolute_uri(warehouse), SqlOptions(query, now_ms)
    statement = refuse_early(root, asked)
    with verb_session("sql", warehouse=root, runs_any_query=True) as verb:
        rows = run_sql(verb.warehouse, asked)
        for name in read_as_texts(verb.spark, statement):
            say(f'"{name}" is a text in this query, as Spark reads it: column {name} has no quotes')
        with confined(verb.spark):
            print_sql(rows, output)
    return ExitStatus.DONE
