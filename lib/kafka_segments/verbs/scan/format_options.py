"""The options of ``build`` that choose an index format, made from the registered formats.

They are made when ``build`` is parsed: other verbs do not wait for the formats' imports.
"""

from dataclasses import Field, fields
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from kafka_segments.console.strict_options import POSITIVE_INT, Command

if TYPE_CHECKING:
    from kafka_segments.kafka.index.formats.index_format import IndexFormat


class BuildCommand(Command):
    """The verb ``build``: its options include those of every index format."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the declared parameters, with those of the index formats behind --in-place."""
        given = super().get_params(ctx)
        place = [param.name for param in given].index("in_place") + 1
        return [*given[:place], *_format_options(), *given[place:]]


@cache  # click takes an option for the same one only if it is the same object
def _format_options() -> tuple[click.Option, ...]:
    from kafka_segments.kafka.index.formats.by_name import FORMATS, KAFKAS_OWN  # noqa: PLC0415

    choice = click.Option(
        ["--index-format"],
        type=click.Choice(list(FORMATS)),
        default=KAFKAS_OWN.name,
        show_default=True,
        help="Format of the index files; the tables hold Kafka's entries in any.",
    )
    return (choice, *(_option(name, field) for name, field in _variants()))


def _variants() -> list[tuple[str, Field[Any]]]:
    """Return the dataclass fields of all formats, each with the name of its format."""
    from kafka_segments.kafka.index.formats.by_name import FORMATS  # noqa: PLC0415

    return [(name, field) for name, made in FORMATS.items() for field in fields(made)]


def _option(name: str, field: Field[Any]) -> click.Option:
    kind = type(field.default)
    return click.Option(
        [f"--{field.name.replace('_', '-')}"],
        type=click.Choice([str(one) for one in kind]) if issubclass(kind, Enum) else POSITIVE_INT,
        default=str(field.default),
        show_default=True,
        help=f"{name}: {field.metadata['help']}",
    )


def chosen_format(options: dict[str, Any]) -> "IndexFormat":
    """Take the format's options out of those of ``build``, and return the format they mean.

    Options of other formats are ignored.
    """
    from kafka_segments.kafka.index.formats.by_name import FORMATS  # noqa: PLC0415

    chosen = options.pop("index_format")
    variant = {}
    for name, field in _variants():
        kind: Any = type(field.default)
        value = kind(options.pop(field.name))
        if name == chosen:
            variant[field.name] = value
    return FORMATS[chosen](**variant)
