"""A Delta table's metadata by its log, without Spark; and a commit that changes the metadata.

Source: delta-io/delta PROTOCOL.md, Change Metadata, Protocol Evolution, Delta Log Entries.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs, parquet

from kafka_segments.errors import SourceError, UsageError
from kafka_segments.files.storage.delta_log import CHECKPOINT, COMMIT
from kafka_segments.files.storage.durable_files import write_durably
from kafka_segments.files.storage.files import Place, list_folder, place, read_whole
from kafka_segments.files.storage.folder_lock import commit_lock
from kafka_segments.files.storage.publishing import publish
from kafka_segments.files.storage.uris import join_uri

_MOST_COMMITS = 100
_MOST_COMMIT_BYTES = 64 * 1024 * 1024
_OF_A_TABLE = ("metaData", "protocol")
# A change of the metadata alone keeps what these ask of a writer.
_KNOWN_FEATURES = {
    *("appendOnly", "invariants", "checkConstraints", "changeDataFeed"),
    *("clustering", "domainMetadata"),
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

    None: there is no table, or its log has what only an engine can tell, such as checkpoints of
    another kind.
    """
    log = place(join_uri(uri, "_delta_log"))
    try:
        names = [entry.name for entry in list_folder(log)]
        commits = sorted(int(found[1]) for name in names if (found := COMMIT.fullmatch(name)))
        if not commits:
            return None
        checkpoints = {int(found[1]) for name in names if (found := CHECKPOINT.fullmatch(name))}
        said: dict[str, Any] = {}
        for actions in _newest_first(log, commits, checkpoints):
            said = actions | said
            if len(said) == len(_OF_A_TABLE):
                return TableMetadata(commits[-1], said["metaData"], said["protocol"])
    except (OSError, SourceError, pa.ArrowException, KeyError, ValueError):
        return None
    return None


def _newest_first(
    log: Place, commits: list[int], checkpoints: set[int]
) -> Iterator[dict[str, Any]]:
    """Yield what commits say of the table, back to a checkpoint or a gap."""
    for version in range(commits[-1], max(-1, commits[-1] - _MOST_COMMITS), -1):
        if version in checkpoints:
            yield _of_checkpoint(log.child(f"{version:020d}.checkpoint.parquet"))
            return
        yield _of_commit(log.child(f"{version:020d}.json"))


def _of_commit(file: Place) -> dict[str, Any]:
    found: dict[str, Any] = {}
    text = read_whole(file, most_bytes=_MOST_COMMIT_BYTES).decode("utf-8")
    for line in text.splitlines():
        if line.startswith(tuple(f'{{"{kind}"' for kind in _OF_A_TABLE)):
            found |= json.loads(line)
    return found


def _of_checkpoint(file: Place) -> dict[str, Any]:
    with file.filesystem.open_input_file(file.path) as stream:
        columns = parquet.read_table(stream, columns=list(_OF_A_TABLE))
    found = {}
    for kind in _OF_A_TABLE:
        (value,) = columns[kind].drop_null().to_pylist(maps_as_pydicts="strict")
        found[kind] = {key: inner for key, inner in value.items() if inner is not None}
    return found


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
    now_ms = time.time_ns() // 1_000_000
    changed = before.metadata | {
        "schemaString": schema,
        "configuration": before.properties | dict(properties),
    }
    commit = {
        "timestamp": now_ms,
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
