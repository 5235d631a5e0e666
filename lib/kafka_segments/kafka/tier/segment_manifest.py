"""The manifest of a segment in Aiven's tiered storage: JSON, uploaded after the other objects.

Every value is checked for its type and bounds before it is used, also in
``remoteLogSegmentMetadata``, which the plugin writes and never reads.

Source: io.aiven.kafka.tieredstorage.manifest: SegmentManifestV1, SegmentIndexesV1,
KafkaTypeSerdeModule.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_segments.errors import CorruptTextError
from kafka_segments.kafka.text.checkpoints import EpochStart
from kafka_segments.kafka.text.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
from kafka_segments.kafka.tier.chunk_index import ChunkIndex, parse_chunk_sizes

MOST_MANIFEST_BYTES = 32 * 1024 * 1024
_VERSION = "1"
_INT32, _INT64 = 2**31 - 1, 2**63 - 1
_MOST_EPOCHS = 1_000_000
_PARTS = {
    "offset": OFFSET_INDEX_SUFFIX,
    "timestamp": TIME_INDEX_SUFFIX,
    "producerSnapshot": ".snapshot",
    "leaderEpoch": "leader-epoch-checkpoint",
    "transaction": TXN_INDEX_SUFFIX,
}


class IndexPart(NamedTuple):
    """The position and size in bytes of one index in the object that holds all of a segment's."""

    position: int
    size: int


class RemoteSegment(NamedTuple):
    """A segment as the broker described it at the upload; ``end_offset`` is its last offset.

    Source: RemoteLogSegmentMetadata.
    """

    topic: str
    topic_id: str
    partition: int
    segment_id: str
    start_offset: int
    end_offset: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    leader_epochs: list[EpochStart]
    broker_id: int = -1


@dataclass(frozen=True)
class SegmentManifest:
    """The checked values of a manifest.

    ``parts`` is keyed by the suffix that the file would have on a broker's disk.
    """

    chunks: ChunkIndex
    is_compressed: bool
    is_encrypted: bool
    parts: dict[str, IndexPart] = field(default_factory=dict)
    segment: RemoteSegment | None = None


def parse_manifest(name: str, data: bytes) -> SegmentManifest:
    """Return the values of the manifest in object ``name``.

    Raises:
        CorruptTextError: it is not a manifest, its version is unknown, or a value is impossible.
    """
    try:
        top = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise CorruptTextError(name, f"no JSON: {str(error)[:200]}") from None
    reader = _Reader(name)
    found = reader.object(top, "the manifest")
    version = found.get("version")
    if version != _VERSION:
        reason = f"manifest version {str(version)[:40]}, only {_VERSION} is known"
        raise CorruptTextError(name, reason)
    remote = found.get("remoteLogSegmentMetadata")
    return SegmentManifest(
        chunks=reader.chunks(reader.child(found, "chunkIndex")),
        is_compressed=reader.boolean(found, "compression"),
        is_encrypted=found.get("encryption") is not None,
        parts=reader.parts(reader.child(found, "segmentIndexes")),
        segment=None if remote is None else reader.segment(reader.object(remote, "metadata")),
    )


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


class _Reader:
    """Reads values from JSON objects and refuses those of a wrong type or size."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, key: str, found: object, expected: str) -> CorruptTextError:
        return CorruptTextError(self._name, f"{key} is {str(found)[:80]}, {expected} expected")

    def object(self, value: object, key: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._refuse(key, value, "an object")
        return value

    def child(self, found: dict[str, Any], key: str) -> dict[str, Any]:
        return self.object(found.get(key), key)

    def integer(
        self, found: dict[str, Any], key: str, *, least: int = 0, most: int = _INT32
    ) -> int:
        value = found.get(key)
        if type(value) is not int or not least <= value <= most:
            raise self._refuse(key, value, f"a whole number from {least} to {most}")
        return value

    def boolean(self, found: dict[str, Any], key: str) -> bool:
        value = found.get(key)
        if type(value) is not bool:
            raise self._refuse(key, value, "true or false")
        return value

    def text(self, found: dict[str, Any], key: str) -> str:
        value = found.get(key)
        if not isinstance(value, str) or not value.isascii() or not value:
            raise self._refuse(key, value, "a name")
        return value

    def chunks(self, found: dict[str, Any]) -> ChunkIndex:
        chunk_bytes = self.integer(found, "originalChunkSize", least=1)
        log_bytes = self.integer(found, "originalFileSize")
        read: dict[object, Callable[[dict[str, Any]], ChunkIndex]] = {
            "fixed": lambda found: ChunkIndex(
                chunk_bytes,
                log_bytes,
                self.integer(found, "transformedChunkSize"),
                self.integer(found, "finalTransformedChunkSize"),
            ),
            "variable": lambda found: ChunkIndex(
                chunk_bytes,
                log_bytes,
                stored_sizes=parse_chunk_sizes(self.text(found, "transformedChunks")),
            ),
        }
        kind = found.get("type")
        if not isinstance(kind, str) or kind not in read:
            raise self._refuse("chunkIndex.type", kind, "fixed or variable")
        chunks = read[kind](found)
        if chunks.stored_sizes is not None and len(chunks.stored_sizes) != chunks.count:
            sizes = len(chunks.stored_sizes)
            raise self._refuse("transformedChunks", f"of {sizes} chunks", f"{chunks.count} of them")
        return chunks

    def parts(self, found: dict[str, Any]) -> dict[str, IndexPart]:
        parts = {}
        for key, suffix in _PARTS.items():
            if found.get(key) is None and key == "transaction":
                continue
            part = self.child(found, key)
            parts[suffix] = IndexPart(self.integer(part, "position"), self.integer(part, "size"))
        return parts

    def segment(self, found: dict[str, Any]) -> RemoteSegment:
        ids = self.child(found, "remoteLogSegmentId")
        log = self.child(ids, "topicIdPartition")
        partition = self.child(log, "topicPartition")
        return RemoteSegment(
            topic=self.text(partition, "topic"),
            topic_id=self.text(log, "topicId"),
            partition=self.integer(partition, "partition"),
            segment_id=self.text(ids, "id"),
            start_offset=self.integer(found, "startOffset", most=_INT64),
            end_offset=self.integer(found, "endOffset", most=_INT64 - 1),
            max_timestamp_ms=self.integer(found, "maxTimestampMs", least=-1, most=_INT64),
            event_timestamp_ms=self.integer(found, "eventTimestampMs", least=-1, most=_INT64),
            leader_epochs=self._epochs(self.child(found, "segmentLeaderEpochs")),
            broker_id=self.integer(found, "brokerId", least=-1) if "brokerId" in found else -1,
        )

    def _epochs(self, found: dict[str, Any]) -> list[EpochStart]:
        if len(found) > _MOST_EPOCHS:
            raise self._refuse("segmentLeaderEpochs", f"of {len(found)} epochs", "fewer")
        epochs = []
        for key in found:
            if not (key.isascii() and key.isdecimal() and len(key) < 11 and int(key) <= _INT32):
                raise self._refuse("segmentLeaderEpochs", key, "an epoch")
            epochs.append(EpochStart(int(key), self.integer(found, key, most=_INT64)))
        return sorted(epochs)
