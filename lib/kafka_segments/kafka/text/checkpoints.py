"""The text files that a broker keeps beside its segments.

A checkpoint has the version ``0`` in line 1, the number of entries in line 2, then one entry a
line, whose fields white space separates. An empty file has no entries. Sources: CheckpointFile,
OffsetCheckpointFile, LeaderEpochCheckpointFile, PartitionMetadataReadBuffer, MetaProperties.
"""

import base64
import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import javaproperties

from kafka_segments.errors import CorruptTextError

RECOVERY_POINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET = "log-start-offset-checkpoint"
HIGH_WATERMARK = "replication-offset-checkpoint"
CLEANER_OFFSET = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
BOOTSTRAP = "bootstrap.checkpoint"
OF_LOG_DIR = frozenset(
    {
        RECOVERY_POINT,
        LOG_START_OFFSET,
        HIGH_WATERMARK,
        CLEANER_OFFSET,
        META_PROPERTIES,
        CLEAN_SHUTDOWN,
        LOCK,
        BOOTSTRAP,
    }
)
"""The names of the files that a broker keeps in a log directory, beside its logs."""
_T = TypeVar("_T")
_LINE_END = re.compile(r"\r\n|\n|\r")
_WHITE_SPACE = re.compile(r"\s+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?0*\d{1,19}")  # Java takes the digits of any script
_BASE64_URL = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_UUID_CHARACTERS, _PADDED_UUID = 22, 24
_TOO_MANY = 2**28  # Kafka makes a list of so many entries at once: no heap holds it


class PartitionOffset(NamedTuple):
    """One line of an offset checkpoint."""

    topic: str
    partition: int
    offset: int


class EpochStart(NamedTuple):
    """One line of the leader epoch checkpoint: the epoch and its first offset."""

    epoch: int
    start_offset: int


class MetaProperties(NamedTuple):
    """What ``meta.properties`` says of a log directory; None where it says nothing."""

    version: int | None
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def java_lines(text: str) -> list[str]:
    r"""Split a text as ``BufferedReader.readLine`` does: at \n, \r and \r\n alone."""
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def _fields(line: str) -> list[str]:
    """Split a line as Java's ``Pattern.split`` does: empty fields at its end do not count."""
    fields = _WHITE_SPACE.split(line)
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return fields


def _rows(name: str, text: str, parse: Callable[[int, list[str]], _T], fields: int) -> list[_T]:
    """Read a checkpoint, one entry after another: the first that is wrong is what Kafka meets."""
    lines = java_lines(text)
    if not lines:
        return []
    if _number(lines[0], bits=32) != 0:
        version = f"{len(text)} zero bytes" if not text.strip("\0") else repr(lines[0])
        raise CorruptTextError(name, f"version is {version}, 0 expected (line 1)", 1)
    if len(lines) == 1:
        return []
    count = _integer(name, lines[1], 2, bits=32, exception="IOException")
    found = lines[2:]
    wrong_count = f"{len(found)} entries, line 2 says {count}"
    if count < 0:
        raise CorruptTextError(name, wrong_count, 2, "IllegalArgumentException")
    if count >= _TOO_MANY:
        raise CorruptTextError(name, wrong_count, 2, "OutOfMemoryError")
    rows = []
    for number, line in enumerate(found, start=3):
        row = _fields(line)
        if len(row) != fields:
            reason = f"{len(row)} fields, {fields} expected (line {number})"
            raise CorruptTextError(name, reason, number)
        rows.append(parse(number, row))
    if len(rows) != count:
        raise CorruptTextError(name, wrong_count, 2)
    return rows


def _number(text: str, *, bits: int) -> int | None:
    """Read a decimal as Java does: no white space, no ``_``; None: it is none that fits."""
    value = int(text) if _DECIMAL.fullmatch(text) else 2**bits
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _integer(
    name: str, text: str, place: str | int, *, bits: int, exception: str = "NumberFormatException"
) -> int:
    value = _number(text, bits=bits)
    if value is None:
        line = place if isinstance(place, int) else None
        where = f"line {place}" if isinstance(place, int) else place
        raise CorruptTextError(name, f"{text!r} is no int{bits} ({where})", line, exception)
    return value


def parse_offset_checkpoint(name: str, text: str) -> list[PartitionOffset]:
    """Read recovery points, log start offsets, high watermarks or cleaner offsets.

    Raises:
        CorruptTextError: the text is not a checkpoint; Kafka would not read it either.
    """

    def parse(line: int, row: list[str]) -> PartitionOffset:
        topic, partition, offset = row
        number = _integer(name, partition, line, bits=32)
        return PartitionOffset(topic, number, _integer(name, offset, line, bits=64))

    return _rows(name, text, parse, 3)


def parse_leader_epochs(text: str) -> list[EpochStart]:
    """Read ``leader-epoch-checkpoint``.

    Raises:
        CorruptTextError: the text is not a checkpoint; Kafka would not read it either.
    """

    def parse(line: int, row: list[str]) -> EpochStart:
        epoch = _integer(LEADER_EPOCHS, row[0], line, bits=32)
        return EpochStart(epoch, _integer(LEADER_EPOCHS, row[1], line, bits=64))

    rows = _rows(LEADER_EPOCHS, text, parse, 2)
    for line, row in enumerate(rows, start=3):
        if row.epoch < 0 or row.start_offset < 0:
            reason = f"epoch {row.epoch} from offset {row.start_offset} on (line {line})"
            raise CorruptTextError(LEADER_EPOCHS, reason, line, "IllegalArgumentException")
    return rows


def parse_partition_metadata(text: str) -> str:
    """Read the topic id, 22 characters of URL-safe base64, from ``partition.metadata``.

    Raises:
        CorruptTextError: ``version: 0`` or ``topic_id`` is missing, or the id is none.
    """
    lines = java_lines(text)
    version = _second_field(lines, 0)
    number = _number(version, bits=32)
    if number is None or number < 0:
        raise CorruptTextError(PARTITION_METADATA, f"{_EXPECTED_METADATA} (line 1)", 1)
    topic_id = _second_field(lines, 1)
    try:
        found = decode_uuid(topic_id)
    except ValueError as error:
        reason = f"{topic_id!r} is no topic id: {error} (line 2)"
        raise CorruptTextError(PARTITION_METADATA, reason, 2, "IllegalArgumentException") from None
    if not any(found):
        raise CorruptTextError(PARTITION_METADATA, "a topic id of zeros (line 2)", 2)
    return encode_uuid(found)


_EXPECTED_METADATA = "version 0 and a topic_id expected"


def _second_field(lines: list[str], at: int) -> str:
    if at >= len(lines):
        reason = f"{_EXPECTED_METADATA}, there is no line {at + 1}"
        raise CorruptTextError(PARTITION_METADATA, reason, at + 1, "NullPointerException")
    fields = _fields(lines[at])
    if len(fields) != 2:
        raise CorruptTextError(PARTITION_METADATA, f"{_EXPECTED_METADATA} (line {at + 1})", at + 1)
    return fields[1]


def decode_uuid(text: str) -> bytes:
    """Read an id as Kafka writes it: 16 bytes in URL-safe base64, padded or not.

    Raises:
        ValueError: it is none. Source: Uuid.fromString, Base64.getUrlDecoder.
    """
    bare = text.removesuffix("==") if len(text) == _PADDED_UUID else text
    if not _BASE64_URL.fullmatch(bare) or len(bare) != _UUID_CHARACTERS:
        raise ValueError(f"{_UUID_CHARACTERS} characters of URL-safe base64 expected")
    return base64.urlsafe_b64decode(bare + "==")


def encode_uuid(data: bytes) -> str:
    """Write the 16 bytes of an id as Kafka does."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def java_properties(text: str) -> dict[str, str]:
    """Read Java properties; ``text`` is the file's bytes as Latin-1.

    Raises:
        CorruptTextError: an escape of a character is broken.
    """
    try:
        found: dict[str, str] = javaproperties.loads(text)
    except javaproperties.InvalidUEscapeError as error:
        raise CorruptTextError(
            META_PROPERTIES, str(error), None, "IllegalArgumentException"
        ) from None
    return found


def parse_meta_properties(text: str) -> MetaProperties:
    """Read ``meta.properties`` of version 0 (broker.id) or 1 (node.id), given as Latin-1.

    Whether a broker takes it is another question: ``broker_rules.start_files``.

    Raises:
        CorruptTextError: the text is not Java properties, or an id is not a number.
    """
    properties = java_properties(text)
    version, node = (
        properties.get("version"),
        properties.get("node.id", properties.get("broker.id")),
    )
    return MetaProperties(
        version=None if version is None else _integer(META_PROPERTIES, version, "version", bits=32),
        cluster_id=properties.get("cluster.id"),
        node_id=None if node is None else _integer(META_PROPERTIES, node, "node.id", bits=32),
        directory_id=properties.get("directory.id"),
    )
