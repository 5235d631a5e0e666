"""The folders of this machine that a verb is given by their names alone."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from kafka_segments.console.early import require_source
from kafka_segments.console.options import (
    now_ms_option,
    optional_source_option,
    output_option,
    verbose_option,
    with_options,
)
from kafka_segments.console.strict_options import complete_folder
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.kafka.text.names import parse_partition_folder
from kafka_segments.kafka.text.plain_text import first_of

_MOST_NAMED = 5
_folders_argument = click.argument(
    "folders", nargs=-1, metavar="DIR…", shell_complete=complete_folder
)


def directory_options(
    *own: Callable[..., Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what adds the options of a verb that needs directories alone; ``own``: its own ones.

    Log directories, or folders of several, are named as they are, or as --source, as for others.
    """
    return with_options(
        _folders_argument,
        optional_source_option,
        *own,
        now_ms_option,
        output_option(),
        verbose_option,
    )


def local_folders(verb: str, named: Sequence[str]) -> tuple[str, ...]:
    """Return folders of this machine as absolute paths.

    Raises:
        UsageError: none is named, one is named twice, lies in a store, or cannot be listed.
    """
    from kafka_segments.files.storage.stores import store_of  # noqa: PLC0415

    if not named:
        raise UsageError(f"{verb} needs a folder: `kafka-segments {verb} /data/kafka-logs`")
    found = tuple(map(absolute_uri, named))
    for path in found:
        if not store_of(path).is_local:
            raise UsageError(f"{path}: {verb} looks at the disks of this machine")
        require_source(path)
        if found.count(path) > 1:
            raise UsageError(f"{path} is named {found.count(path)} times: once is enough")
    return found


def nearest_names(name: str, names: Iterable[str], *, unread: Sequence[str] = ()) -> str:
    """Return in words which names are there: those nearest to one, else the first.

    ``unread``: what could not be looked at, where it may be all the same.
    """
    there = sorted(set(names))
    close = difflib.get_close_matches(name, there, _MOST_NAMED)
    told = f"there are: {first_of(there, _MOST_NAMED)}" if there else "there is none"
    if close:
        told = f"nearest: {', '.join(close)}"
    return f"{told}; not looked at: {first_of(unread, 1)}" if unread else told


def log_name(option: str, text: str) -> tuple[str, int]:
    """Return the topic and the partition of a log's name.

    Raises:
        UsageError: it is none.
    """
    folder = parse_partition_folder(text)
    if folder is None:
        raise UsageError(f"{option} {text}: topic-partition expected, such as orders-0")
    return folder.topic, folder.partition
