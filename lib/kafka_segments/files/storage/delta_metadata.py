"""A Delta table's metadata by its log, without Spark; and a commit that changes the metadata.

Source: delta-io/delta PROTOCOL.md, Change Metadata, Protocol Evolution, Delta Log Entries.
"""

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from deltalake.table import ProtocolVersions
from pyarrow import fs

from kafka_segments.errors import UsageError
from kafka_segments.files.storage.delta_rows import open_table
from kafka_segments.files.storage.durable_files import write_durably
from kafka_segments.files.storage.files import Place, place
from kafka_segments.files.storage.folder_lock import commit_lock
from kafka_segments.files.storage.publishing import publish
from kafka_segments.files.storage.uris import join_uri

# A change of the metadata alone keeps what these ask of a writer.
_KNOWN_FEATURES = {
    *("appendOnly", "invariants", "checkConstraints", "changeDataFeed"),
    *("clustering", "domainMetadata"),
    # Of these a commit without data asks nothing.
    *("deletionVectors", "rowTracking", "v2Checkpoint", "vacuumProtocolCheck"),
    *("allowColumnDefaults", "typeWidening"),
}
_LAST_WITHOUT_FEATURES = 4


class TableMetadata(NamedTuple):
    """What the log of a table says of it: ``metaData`` and ``protocol`` as of ``version``."""

    version: int
    metadata: dict[str, Any]
    protocol: dict[str, Any]

    @property
    def schema(self) -> str:
        """The schema as JSON."""
        return str(self.metadata["schemaString"])

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the table; constraints are among them."""
        return dict(self.metadata.get("configuration") or ())


def read_metadata(uri: str) -> TableMetadata | None:
    """Read the metadata of the last version of the table at a URI.

    None: there is no table, or its log has what only Spark can tell.

    Raises:
        BrokenTableError: its log is broken.
    """
    table = open_table(uri)
    if table is None:
        return None
    found, protocol = table.metadata(), table.protocol()
    metadata = {
        "id": str(found.id),
        "name": found.name,
        "description": found.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().to_json(),
        "partitionColumns": list(found.partition_columns),
        "configuration": found.configuration,
        "createdTime": found.created_time,
    }
    return TableMetadata(table.version(), _without_none(metadata), _named(protocol))


def _named(protocol: ProtocolVersions) -> dict[str, Any]:
    """Return a protocol as the log has it."""
    return _without_none(
        {
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            "readerFeatures": protocol.reader_features,
            "writerFeatures": protocol.writer_features,
        }
    )


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def change_metadata(
    uri: str, before: TableMetadata, *, schema: str, properties: Mapping[str, str]
) -> None:
    """Commit another schema and more properties for a table, in one commit without data.

    Delta's SQL does either, but not both at once, and cannot let the elements of an array be null.

    Raises:
        UsageError: the table has a feature of Delta's that this could not keep, or another writer
            has committed since ``before`` was read.
    """
    _check_protocol(uri, before.protocol)
    changed = before.metadata | {
        "schemaString": schema,
        "configuration": before.properties | dict(properties),
    }
    commit = {
        "timestamp": time.time_ns() // 1_000_000,
        "operation": "UPDATE SCHEMA",
        "operationParameters": {"schema": schema},
        "readVersion": before.version,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {},
        "engineInfo": "kafka-segments",
    }
    lines = ({"commitInfo": commit}, {"metaData": changed})
    try:
        publish_commit(uri, before.version + 1, lines)
    except FileExistsError:
        raise UsageError(
            f"{uri}: another run committed version {before.version + 1} while the table was brought"
            " up to date: run it again"
        ) from None


def _check_protocol(uri: str, protocol: Mapping[str, Any]) -> None:
    features = {
        *(protocol.get("writerFeatures") or ()),
        *(protocol.get("readerFeatures") or ()),
    }
    if features - _KNOWN_FEATURES or (
        not features and protocol["minWriterVersion"] > _LAST_WITHOUT_FEATURES
    ):
        named = ", ".join(sorted(features - _KNOWN_FEATURES)) or protocol["minWriterVersion"]
        raise UsageError(
            f"{uri} must be brought up to date, and has what this version cannot keep: Delta's"
            f" {named}. Move it away and run `kafka-segments build --full`"
        )


def publish_commit(uri: str, version: int, actions: Iterable[Mapping[str, Any]]) -> None:
    """Write a commit of the table at a URI, an action a line; wait for commits of other runs.

    Raises:
        FileExistsError: another writer has made that version.
    """
    text = "".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions)
    file = place(join_uri(uri, "_delta_log", f"{version:020d}.json"))
    with commit_lock(uri):
        publish_once(file, text.encode("utf-8"))


def publish_once(target: Place, data: bytes) -> None:
    """Write a file that appears whole, and replaces none.

    A store other than a local disk is asked before the file is written, as Delta's own writer does.

    Raises:
        FileExistsError: there is one of that name.
    """
    if target.store.is_local:
        write_durably(target.path, data, replaces=False)
        return
    if target.filesystem.get_file_info(target.path).type != fs.FileType.NotFound:
        raise FileExistsError(target.path)
    publish(target, data)
