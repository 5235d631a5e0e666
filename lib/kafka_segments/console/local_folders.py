"""The folders of this machine that a verb is given by their names alone."""

from collections.abc import Sequence

import click

from kafka_segments.console.early import require_source
from kafka_segments.console.strict_options import complete_folder
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri

folders_argument = click.argument(
    "folders", nargs=-1, metavar="DIR…", shell_complete=complete_folder
)
"""Log directories, or folders of several; as --source, which the other verbs have."""


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
