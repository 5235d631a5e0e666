"""A Delta table's metadata by its log, without Spark; and a commit that changes the metadata.

Source: delta-io/delta PROTOCOL.md, Change Metadata, Protocol Evolution.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from deltalake.table import ProtocolVersions

from kafka_segments.errors import UsageError
from kafka_segments.files.delta.commit import commit_info, publish_commit
from kafka_segments.files.delta.properties import constraints_among
from kafka_segments.files.delta.rows import open_table

KEPT_FEATURES = {
    *("appendOnly", "invariants", "checkConstraints", "changeDataFeed"),
    *("clustering", "domainMetadata"),
}
"""Our commits keep what these ask of a writer, those that add rows too."""
_KEPT_WITHOUT_ROWS = {
    *KEPT_FEATURES,
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

    @property
    def constraints(self) -> dict[str, str]:
        """The CHECK constraints of the table: conditions by name."""
        return constraints_among(self.properties)

    @property
    def features(self) -> set[str]:
        """The features that the table names, for readers and for writers; early ones name none."""
        of_both = (self.protocol.get(name) for name in ("writerFeatures", "readerFeatures"))
        return {feature for features in of_both for feature in features or ()}


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
    _check_protocol(uri, before)
    changed = before.metadata | {
        "schemaString": schema,
        "configuration": before.properties | dict(properties),
    }
    said = commit_info("UPDATE SCHEMA", {"schema": schema}, read_version=before.version)
    try:
        publish_commit(uri, before.version + 1, (said, {"metaData": changed}))
    except FileExistsError:
        raise UsageError(
            f"{uri}: another run committed version {before.version + 1} while the table was brought"
            " up to date: run it again"
        ) from None


def _check_protocol(uri: str, table: TableMetadata) -> None:
    others, version = table.features - _KEPT_WITHOUT_ROWS, table.protocol["minWriterVersion"]
    if others or (not table.features and version > _LAST_WITHOUT_FEATURES):
        named = ", ".join(sorted(others)) or f"writer version {version}"
        raise UsageError(
            f"{uri} must be brought up to date, and has what this version cannot keep: Delta's"
            f" {named}. Move it away and run `kafka-segments build --full`"
        )
