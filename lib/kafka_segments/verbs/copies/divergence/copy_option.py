"""The option that names copies."""

from collections.abc import Callable, Iterable
from typing import Any

import click

from kafka_segments.console.early import refusal, require_source
from kafka_segments.errors import SourceError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.files.storage.uris import without_secrets

Options = Callable[..., Any]


class _NamedCopy(click.ParamType[tuple[str, str]]):
    """NAME=URI."""

    name = "copy"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split a name from its URI, and refuse a folder that cannot be listed."""
        if isinstance(value, tuple):
            return value
        name, equals, uri = value.partition("=")
        if not (name and equals and uri) or "/" in name:
            self.fail(
                f"{without_secrets(value)!r}: NAME=URI expected, as in broker-1=/data/logs",
                param,
                ctx,
            )
        try:
            require_source(uri)
        except SourceError as error:
            raise refusal(error) from None
        return name, uri


def absolute_copies(copies: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return named copies with absolute URIs."""
    return tuple((name, absolute_uri(uri)) for name, uri in copies)


def named_copies(option: str, what: str) -> Callable[[Options], Options]:
    """Make an option that takes copies by name; ``what`` begins its help."""
    return click.option(
        option,
        "copies",
        type=_NamedCopy(),
        multiple=True,
        required=True,
        metavar="NAME=URI",
        help=f"{what}: a log directory, a folder of several, or one partition's folder;"
        " repeatable, also with the same name.",
    )


copy_option = named_copies("--copy", "A copy and where it lies")
