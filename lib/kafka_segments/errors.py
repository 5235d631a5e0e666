"""Errors of this package. A command turns one into a line on stderr and an exit status."""


class KafkaSegmentsError(Exception):
    """Base of every error of this package."""


class TerminatedError(KeyboardInterrupt):
    """SIGTERM came: the verb ends as at Ctrl-C, wherever it is."""


OUTAGE = "it does not answer for now, run this again"
"""How the reason of an outage ends: it is kept in rows, as text."""


class OutageError(KafkaSegmentsError):
    """A store or file system that does not answer for now."""

    def __init__(self, uri: str, reason: str) -> None:
        super().__init__(uri, reason)
        self.uri = uri
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.uri}: {self.reason}; {OUTAGE}"


class UsageError(KafkaSegmentsError):
    """Options, settings or files that a command cannot work with."""


class BrokenTableError(UsageError):
    """A table of a warehouse is not whole on its disk; the message has the file and the step."""


class SparkEndedError(KafkaSegmentsError):
    """Spark's JVM ended before the command did, or did not start.

    ``is_understood``: why is known, and starting it again would end alike.
    """

    def __init__(self, what: str, to_do: str, *, is_understood: bool = False) -> None:
        super().__init__(what, to_do)
        self.what = what
        self.to_do = to_do
        self.is_understood = is_understood

    def __str__(self) -> str:
        return f"{self.what}: {self.to_do}"


class SourceError(UsageError):
    """A source that cannot be listed completely."""

    def __init__(self, uri: str, reason: str) -> None:
        super().__init__(uri, reason)  # args hold all of it, so the error survives pickling
        self.uri = uri
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot list {self.uri}: {self.reason}"


class NoFolderError(SourceError):
    """A source that does not exist."""


def is_answerless(error: BaseException) -> bool:
    """Tell whether an error is an outage: who asked did nothing wrong, and is to ask again."""
    if isinstance(error, SourceError):
        return error.reason.endswith(OUTAGE)
    return isinstance(error, OutageError)


class VanishedError(UsageError):
    """So much of what the tables know below a source is gone that it may not be mounted."""

    def __init__(self, uri: str, lost: int, known: int, what: str, most_percent: int) -> None:
        super().__init__(uri, lost, known, what, most_percent)
        self.uri = uri
        self.lost = lost
        self.known = known
        self.what = what
        self.most_percent = most_percent

    def __str__(self) -> str:
        return (
            f"{self.uri}: {self.lost} of {self.known} {self.what} that the tables know there have"
            f" vanished, with all of their logs: more than {self.most_percent} %. Is the disk"
            " mounted, and is it the right folder? Nothing was changed; --most-vanished 100 goes on"
            " where they were deleted"
        )


class FileChangedError(KafkaSegmentsError):
    """A file that became shorter while it was read."""

    def __init__(self, position: int, expected_bytes: int) -> None:
        super().__init__(position, expected_bytes)
        self.position = position
        self.expected_bytes = expected_bytes

    def __str__(self) -> str:
        return f"the file ends at byte {self.position}, it had {self.expected_bytes} when opened"


class FileReplacedError(FileChangedError):
    """A file that was replaced by another one while it was read."""

    def __str__(self) -> str:
        return (
            f"it was replaced while it was read: {self.expected_bytes} bytes when opened,"
            f" {self.position} at the end"
        )


class OtherFileError(KafkaSegmentsError):
    """A file that is no longer the one of which the tables tell: it lacks a batch that they know.

    A log that only grew has all of them.
    """

    def __init__(
        self, position: int, what: str, found: int, expected: int, *, is_most: bool = False
    ) -> None:
        super().__init__(position, what, found, expected)
        self.position = position
        self.what = what
        self.found = found
        self.expected = expected
        self.is_most = is_most

    def __str__(self) -> str:
        most = "at most " if self.is_most else ""
        return (
            f"it is another file than the tables tell of: the batch at byte {self.position} has"
            f" {self.what} {self.found}, {most}{self.expected} expected"
        )


class UnreadableObjectError(KafkaSegmentsError, OSError):
    """An object of tiered storage whose log cannot be read; the text says why."""


class CorruptIndexError(KafkaSegmentsError):
    """An index file that fails Kafka's sanity check."""


class CorruptTextError(KafkaSegmentsError):
    """A checkpoint or properties file that cannot be parsed.

    Attributes:
        line: The line that is wrong, from 1 on; None: no single one.
        exception: The class that a broker throws at it, without its package.
    """

    def __init__(
        self, name: str, reason: str, line: int | None = None, exception: str = "IOException"
    ) -> None:
        super().__init__(name, reason, line, exception)
        self.name = name
        self.reason = reason
        self.line = line
        self.exception = exception

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


class CorruptMessageError(KafkaSegmentsError):
    """Bytes that are not a message of the layout that they should have."""

    def __init__(self, field: str, reason: str, position: int) -> None:
        super().__init__(field, reason, position)
        self.field = field
        self.reason = reason
        self.position = position

    def __str__(self) -> str:
        return f"{self.field} {self.reason} (at byte {self.position})"


class OffsetOverflowError(KafkaSegmentsError):
    """An offset that is too far from its segment's base offset for an index entry."""

    def __init__(self, offset: int, base_offset: int) -> None:
        super().__init__(offset, base_offset)
        self.offset = offset
        self.base_offset = base_offset

    def __str__(self) -> str:
        return (
            f"offset {self.offset} does not fit base offset {self.base_offset}:"
            " an index entry holds 0 to 2147483647 above it"
        )


class OffsetGoesBackError(KafkaSegmentsError):
    """An offset that is not above that of the last entry of the index."""

    def __init__(self, offset: int, last_offset: int) -> None:
        super().__init__(offset, last_offset)
        self.offset = offset
        self.last_offset = last_offset

    def __str__(self) -> str:
        return f"offset {self.offset} after offset {self.last_offset}: entries must rise"


class OffsetNotFoundError(KafkaSegmentsError):
    """An offset that is asked for and that a log does not hold."""

    def __init__(self, target: int, reason: str) -> None:
        super().__init__(target, reason)
        self.target = target
        self.reason = reason

    def __str__(self) -> str:
        return f"offset not found: {self.target} {self.reason}"


class InvalidTransactionError(KafkaSegmentsError):
    """A batch whose transaction makes a broker refuse its log."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(position, reason)
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class UnreadableBatchError(KafkaSegmentsError):
    """A batch that recovery keeps, but at which Kafka throws when it reads it again."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(position, reason)
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        return f"batch at byte {self.position}: {self.reason}"


class SetAsideError(KafkaSegmentsError):
    """A log or file that is left alone, because it is not as it was planned or noted."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class NoSpaceError(KafkaSegmentsError):
    """A file system with too little room for what is to be written."""

    def __init__(self, path: object, needed_bytes: int, free_bytes: int) -> None:
        super().__init__(path, needed_bytes, free_bytes)
        self.path = path
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.needed_bytes} bytes are to be written to its file system,"
            f" {self.free_bytes} are free: nothing is written, make room for"
            f" {self.needed_bytes - self.free_bytes} more"
        )
