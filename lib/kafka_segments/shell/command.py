"""``shell``: one warm session, the same verbs without the program's name."""

import sys
from typing import Any

import click

from kafka_segments.console.lines import say
from kafka_segments.console.options import ROOT, ExitStatus, run, verbose_option
from kafka_segments.console.strict_options import Command


@click.command(cls=Command, example="")
@verbose_option
def shell(**options: Any) -> None:
    """Type verbs without the program's name, in one session of Spark that stays warm.

    Tab completes verbs, options and paths, the arrow keys bring back what was typed before. Ctrl-C
    ends a verb, or empties the line; Ctrl-D or `exit` leaves. After each verb its exit status is
    said. Where stdin is no terminal, its lines are run, and the highest status is the shell's own.
    """
    group = click.get_current_context().find_root().command
    run(lambda: _shell(group), verbose=options["verbose"])


def _shell(group: click.Command) -> int:
    from kafka_segments.engine.spark.session import spark_session  # noqa: PLC0415
    from kafka_segments.shell.loop import Shell  # noqa: PLC0415
    from kafka_segments.shell.prompt import lines_of_stdin, lines_typed  # noqa: PLC0415

    if not isinstance(group, click.Group):
        raise TypeError(f"{group.name} is no group of verbs")
    is_typed = sys.stdin.isatty()
    if is_typed:
        say("starting Spark; Ctrl-D leaves, `help` lists the verbs")
    with spark_session("kafka-segments shell", root=ROOT, is_long=True) as spark:
        shell = Shell(group, spark)
        lines = lines_typed(group) if is_typed else lines_of_stdin()
        highest = shell.run(lines)
    is_over = highest == ExitStatus.TERMINATED
    return ExitStatus.DONE if is_typed and not is_over else highest
