"""What a broker's start does at a state of a file, and what an exception costs.

How a broker fails: an ``IOException`` at a file of a log directory costs this directory, and the
broker, if it is the only one or has the metadata log; any other exception ends the broker, in
whichever directory it is thrown.

Source: LogDirFailureChannel, LogManager.loadLogs (4.3.1).
"""

from enum import StrEnum
from typing import NamedTuple


class Effect(StrEnum):
    """What a start does; the first two are of the broker and of a directory, the rest of a log.

    ``ENDS`` the broker ends. ``WITHOUT`` it goes on without the directory. ``STRAY`` the log is
    renamed -stray, and nobody serves it. ``EMPTY`` an empty log is made in its place. ``DELETED``
    files go. ``CUT`` bytes at an end go. ``UNSEEN`` records stay on the disk and are not served.
    ``BACK`` deleted records are served again. ``UNCLEANED`` nothing is compacted any more.
    ``FORGOTTEN`` aborted or open transactions are not told to consumers, or the cluster's last
    changes are not known to the broker. ``NOT_KNOWN`` it could not be read, or what follows is not
    known.
    """

    ENDS = "the broker ends"
    WITHOUT = "goes on without the directory"
    STRAY = "renamed -stray"
    EMPTY = "an empty log in its place"
    DELETED = "deleted"
    CUT = "cut"
    UNSEEN = "not served"
    BACK = "brought back"
    FORGOTTEN = "forgotten"
    UNCLEANED = "compacted no more"
    NOT_KNOWN = "not known"


class StartRule(NamedTuple):
    """A row of the table.

    Attributes:
        file: The file or folder by its name in Kafka.
        state: The state that is meant.
        effect: What the start does; None: as ``effect_at`` says of ``exception``.
        exception: The class that is thrown, without its package; empty: none.
        source: The class of Kafka that reads it.
        step: What to do before the start.
    """

    file: str
    state: str
    effect: Effect | None
    exception: str
    source: str
    step: str


IO_EXCEPTIONS = frozenset(
    {
        "IOException",
        "MalformedInputException",
        "NoSuchFileException",
        "FileSystemException",
        "FileNotFoundException",
        "AccessDeniedException",
        "KafkaStorageException",
    }
)
"""Exceptions that cost a directory alone."""


def effect_at(exception: str, *, is_needed: bool) -> Effect:
    """Say what an exception at a file of a log directory costs.

    ``is_needed``: the directory has the metadata log, or is the only one.
    """
    is_alone = exception in IO_EXCEPTIONS and not is_needed
    return Effect.WITHOUT if is_alone else Effect.ENDS
