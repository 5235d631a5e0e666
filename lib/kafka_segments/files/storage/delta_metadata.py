"""A Delta table's metadata by its log; and commits that make a table or change its metadata.

Source: delta-io/delta PROTOCOL.md, Change Metadata, Protocol Evolution, Delta Log Entries.
"""

import json
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
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
}
_LAST_WITHOUT_FEATURES = 4
_CONSTRAINT = "delta.constraints."
_FEED = "delta.enableChangeDataFeed"
_OF_VERSION_2 = ("appendOnly", "invariants")


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


def is_clustered(table: TableMetadata) -> bool:
    """Tell whether a table is clustered, or was: deltalake reads it and does not write to it."""
    return "clustering" in (table.protocol.get("writerFeatures") or ())


def create_table(uri: str, *, schema: str, properties: Mapping[str, str]) -> bool:
    """Make an empty table on a local disk as Delta's CREATE TABLE does, by one commit.

    deltalake takes the properties, but holds no row to constraints that it is given then.

    False: there is a table by now.

    Args:
        uri: where.
        schema: the schema as JSON.
        properties: the properties of the table, its constraints among them.
    """
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": dict(properties),
        "createdTime": _now_ms(),
    }
    asked = {
        "partitionBy": "[]",
        "clusterBy": "[]",
        "description": None,
        "isManaged": "false",
        "properties": json.dumps(dict(properties)),
    }
    commit = _commit_info("CREATE TABLE", asked) | {"isBlindAppend": True}
    protocol = {"protocol": _least_protocol(properties)}
    Path(place(join_uri(uri, "_delta_log")).path).mkdir(parents=True, exist_ok=True)
    try:
        publish_commit(uri, 0, ({"commitInfo": commit}, {"metaData": metadata}, protocol))
    except FileExistsError:
        return False
    return True


def _least_protocol(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the least protocol with what a table needs, as Delta takes it."""
    has_constraints = any(key.startswith(_CONSTRAINT) for key in properties)
    if properties.get(_FEED) != "true":
        return {"minReaderVersion": 1, "minWriterVersion": 3 if has_constraints else 2}
    features = [*_OF_VERSION_2, *(["checkConstraints"] if has_constraints else [])]
    features.append("changeDataFeed")
    return {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}


def _commit_info(operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "timestamp": _now_ms(),
        "operation": operation,
        "operationParameters": dict(parameters),
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {},
        "engineInfo": "kafka-segments",
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


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
    commit = _commit_info("UPDATE SCHEMA", {"schema": schema}) | {"readVersion": before.version}
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
