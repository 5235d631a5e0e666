"""Names of objects of tiered storage.

Aiven's plugin names them ``<prefix><topic>-<topic id>/<partition>/<offset>-<segment id>.<suffix>``.
An id has 22 characters of url-safe base64 and may begin with a dash, so its length says where it
begins.

Source: io.aiven.kafka.tieredstorage.ObjectKeyFactory; RemoteLogSegmentFileset for names with ids
below ``<topic>-<partition>``.
"""

import re
from base64 import urlsafe_b64encode
from typing import NamedTuple

from kafka_segments.kafka.text.names import parse_segment_name

LOG, INDEXES, MANIFEST = ".log", ".indexes", ".rsm-manifest"
TIERED_SUFFIXES = (LOG, INDEXES, MANIFEST)
_ID = r"[A-Za-z0-9_-]{22}"
_OBJECT = re.compile(rf"([0-9]{{20}})-({_ID})(\.[a-z-]+)", re.ASCII)
_WITH_UUID = re.compile(
    r"([0-9]{20})-(?:[A-Za-z0-9_-]{22}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.log", re.ASCII
)
_OF_ANY_PLUGIN = re.compile(
    rf"([0-9]{{20}})-({_ID}|[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})(\.[A-Za-z_-]+)",
    re.ASCII,
)
_TOPIC_FOLDER = re.compile(rf"(.+)-({_ID})", re.ASCII | re.DOTALL)
_PARTITION = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_UUID_CHARACTERS = 36
_MAX_INT64 = 2**63 - 1
_MAX_INT32 = 2**31 - 1


class TieredFolder(NamedTuple):
    """A partition's folder in Aiven's layout; ``topic`` may begin with the end of a prefix."""

    topic: str
    topic_id: str
    partition: int


class TieredName(NamedTuple):
    """The name of a segment's object in Aiven's layout; ``suffix`` includes its dot."""

    base_offset: int
    segment_id: str
    suffix: str

    @property
    def stem(self) -> str:
        """The part of the name that all objects of the segment share."""
        return f"{self.base_offset:020d}-{self.segment_id}"


def parse_tiered_folder(topic_folder: str, partition_folder: str) -> TieredFolder | None:
    """Return what two folder names say: ``<topic>-<topic id>`` and ``<partition>``; else None."""
    topic = _TOPIC_FOLDER.fullmatch(topic_folder)
    if topic is None or _PARTITION.fullmatch(partition_folder) is None:
        return None
    partition = int(partition_folder)
    return TieredFolder(topic[1], topic[2], partition) if partition <= _MAX_INT32 else None


def parse_tiered_name(name: str) -> TieredName | None:
    """Return what the name of an object says; None if it does not belong to a segment."""
    match = _OBJECT.fullmatch(name)
    if match is None or int(match[1]) > _MAX_INT64:
        return None
    return TieredName(int(match[1]), match[2], match[3])


def tiered_folder_of(path: str) -> TieredFolder | None:
    """Return the partition that a folder's path or URI ends with; None if it does not."""
    parts = path.rstrip("/").rsplit("/", 2)
    return parse_tiered_folder(parts[-2], parts[-1]) if len(parts) > 1 else None


def tiered_log_of(path: str) -> TieredName | None:
    """Return the name of a log in Aiven's layout; None if the path is that of another file."""
    folder, _, name = path.rpartition("/")
    parsed = parse_tiered_name(name)
    if parsed is None or parsed.suffix != LOG or tiered_folder_of(folder) is None:
        return None
    return parsed


def parse_name_with_id(name: str) -> int | None:
    """Return the base offset in ``<20 digits>.log`` or ``<20 digits>-<uuid>.log``, else None."""
    match = _WITH_UUID.fullmatch(name)
    if match is None:
        return parse_segment_name(name)
    return int(match[1]) if int(match[1]) <= _MAX_INT64 else None


def parse_object_name(name: str) -> TieredName | None:
    """Return what the name of an object says whose segment id may also be written as a UUID.

    The id is then in Kafka's form, 22 characters. None: the name has no id.
    """
    match = _OF_ANY_PLUGIN.fullmatch(name)
    if match is None or int(match[1]) > _MAX_INT64:
        return None
    segment_id = match[2]
    if len(segment_id) == _UUID_CHARACTERS:
        number = bytes.fromhex(segment_id.replace("-", ""))
        segment_id = urlsafe_b64encode(number).decode("ascii").rstrip("=")
    return TieredName(int(match[1]), segment_id, match[3])
