"""The form of a verb's help: its options by what they are for, and a command that can be typed."""

from collections.abc import Iterable

import click

_INDENT = "  "
_FROM = "What is looked at"
_ASKED = "What is asked"
_OUTPUT = "What comes out"
_GROUP_OF = {
    **dict.fromkeys(
        (
            *("--source", "--copy", "--mirror", "--backup", "--against", "--metadata", "--log-dir"),
            *("--warehouse", "--to-warehouse", "--history", "--follow-links", "--cluster"),
            *("--to-cluster", "--broker-id", "--topic-configs", "--server-properties", "--conf"),
            *("--set", "--remote-offsets", "--kafka-version", "--directories", "--topic-ids"),
        ),
        _FROM,
    ),
    **dict.fromkeys(
        (
            *("--out", "--index-dir", "--in-place", "--set-aside", "--stage-dir", "--docs-dir"),
            *("--rows", "--output", "--schema", "--execute", "--dry-run", "--verbose", "--quiet"),
            "--log-format",
            "--help",
        ),
        _OUTPUT,
    ),
}
"""The group of an option; what is not named here says what is asked."""


def write_options(
    params: Iterable[click.Parameter], ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    """Write the options of a verb in groups."""
    groups: dict[str, list[tuple[str, str]]] = {_FROM: [], _ASKED: [], _OUTPUT: []}
    for param in params:
        record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if record is not None:
            flag = max(param.opts, key=len)
            groups[_GROUP_OF.get(flag, _ASKED)].append(record)
    for name, records in groups.items():
        if records:
            with formatter.section(name):
                formatter.write_dl(records)


def write_example(example: str, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write a command that can be typed, on a line for each option where one does not hold it."""
    line = f"{ctx.command_path} {example}".rstrip()
    if len(_INDENT + line) > formatter.width:
        line = line.replace(" --", f" \\\n{_INDENT * 2}--")
    with formatter.section("Example"):
        formatter.write(f"{_INDENT}{line}\n")
