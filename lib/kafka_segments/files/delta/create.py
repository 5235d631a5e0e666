"""Make a Delta table on this machine as Delta's CREATE TABLE does, without Spark.

Source: delta-io/delta PROTOCOL.md, Change Metadata, Protocol Evolution, Domain Metadata, Clustered
Table; and the first commits that Delta 4 writes, with which tests compare ours.
"""

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka_segments.files.delta.commit import commit_info, publish_commit
from kafka_segments.files.delta.log import log_of
from kafka_segments.files.delta.properties import CHANGE_FEED, constraints_among, is_set

_OF_VERSION_2 = ("appendOnly", "invariants")


def create_table(
    uri: str, *, schema: str, properties: Mapping[str, str], clustered_by: Sequence[str]
) -> bool:
    """Make an empty table by its first commit; return whether it was made.

    False: there is a table by now.

    Args:
        uri: where, on a local disk.
        schema: the schema as JSON.
        properties: the properties of the table, its constraints among them.
        clustered_by: the columns by which files are clustered.
    """
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": dict(properties),
        "createdTime": time.time_ns() // 1_000_000,
    }
    lines = [
        _commit_info(properties, clustered_by),
        {"metaData": metadata},
        {"protocol": _protocol(properties, is_clustered=bool(clustered_by))},
    ]
    if clustered_by:
        lines.append({"domainMetadata": _clustering(clustered_by)})
    Path(log_of(uri).path).mkdir(parents=True, exist_ok=True)
    try:
        publish_commit(uri, 0, lines)
    except FileExistsError:
        return False
    return True


def _commit_info(properties: Mapping[str, str], clustered_by: Sequence[str]) -> dict[str, Any]:
    asked = {
        "partitionBy": "[]",
        "clusterBy": json.dumps(list(clustered_by)),
        "description": None,
        "isManaged": "false",
        "properties": json.dumps(dict(properties)),
    }
    return commit_info("CREATE TABLE", asked, read_version=None, is_blind=True)


def _protocol(properties: Mapping[str, str], *, is_clustered: bool) -> dict[str, Any]:
    """Return the least protocol with what the table needs, as Delta takes it."""
    has_constraints = bool(constraints_among(properties))
    has_feed = is_set(properties, CHANGE_FEED)
    if not has_feed and not is_clustered:
        return {"minReaderVersion": 1, "minWriterVersion": 3 if has_constraints else 2}
    features = [
        *_OF_VERSION_2,
        *(["checkConstraints"] if has_constraints else []),
        *(["changeDataFeed"] if has_feed else []),
        *(["domainMetadata", "clustering"] if is_clustered else []),
    ]
    return {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}


def _clustering(columns: Sequence[str]) -> dict[str, Any]:
    configuration = {
        "clusteringColumns": [[column] for column in columns],
        "domainName": "delta.clustering",
    }
    return {
        "domain": "delta.clustering",
        "configuration": json.dumps(configuration),
        "removed": False,
    }
